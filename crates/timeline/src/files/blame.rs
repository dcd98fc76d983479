//! Finds the operation that wrote each line of a file.
//!
//! Goes through the operations that touched the file, oldest first, over all threads of the project and through its
//! former names; `trace` carries the origin of each line along. Lines from before Retake first captured the file have
//! no origin; manual edits belong to the user; lines restored by an undo, redo, jump, restore or switch belong to their
//! original author.

mod trace;

use std::cell::RefCell;
use std::collections::HashMap;

use retake_model::content::{ContentId, Kind};
use retake_model::diff::{self, DiffError, MAX_LINES, MAX_TEXT_BYTES};
use retake_model::object::{ObjectError, load};
use retake_model::operation::{OperationKind, TurnStep};
use retake_model::path::RootPath;
use retake_model::tree::{Node, Snapshot, read, resolve};
use retake_store::{Queries, StoreError};
use serde::Serialize;

use self::trace::{StepEffect, TextSource, Trace};
use crate::files::file_history::FileHistoryReader;
use crate::files::file_log::OperationInfo;
use crate::files::touches::Touches;
use crate::read::project::ProjectReader;
use crate::{NamedFiles, ReadError, TurnName};

/// The lines of a file with their origins.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Blame {
    /// The file.
    #[serde(flatten)]
    pub path: RootPath,
    /// The operations that wrote the lines, oldest first.
    pub origins: Vec<LineOrigin>,
    /// The lines.
    pub lines: Vec<BlameLine>,
}

/// An operation that wrote some lines.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineOrigin {
    /// The operation.
    #[serde(flatten)]
    pub by: OperationInfo,
    /// Path of the file at that time.
    pub path: RootPath,
    /// The number and prompt of its turn; `null` if a prompt did not cause it, or it was undone.
    pub in_turn: Option<TurnName>,
}

/// A line with its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlameLine {
    /// Line number, counted from 1.
    pub number: u64,
    /// The operation that wrote it, as an index into `origins`; `null` for lines from before Retake first captured the
    /// file.
    pub origin: Option<usize>,
    /// The line without its line feed. Invalid UTF-8 is replaced.
    pub text: String,
}

/// Why a file has no blame.
#[derive(Debug, thiserror::Error)]
pub enum BlameError {
    /// The path does not exist.
    #[error("the file does not exist in that version")]
    NoSuchFile,
    /// The path is a folder or a link.
    #[error("the path is not a file")]
    NotAFile,
    /// The content is not text, or too large.
    #[error(transparent)]
    Incomparable(#[from] DiffError),
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl ProjectReader<'_> {
    /// Finds the operation that wrote each line of a file in a snapshot, considering operations up to a sequence
    /// number.
    pub fn blame(
        &self,
        path: &RootPath,
        snapshot: ContentId,
        up_to: Option<i64>,
    ) -> Result<Blame, BlameError> {
        let queries = self.reader.queries();
        let node = find(&queries, snapshot, path)?;
        match node {
            None => return Err(BlameError::NoSuchFile),
            Some(Node::File { .. }) => {}
            Some(_) => return Err(BlameError::NotAFile),
        }
        let contents = Contents { queries: &queries, files: RefCell::default() };
        let content = contents.id(node.as_ref()).ok_or(DiffError::TooLarge)?;
        let text = contents.text(content)?;
        diff::check(&text)?;
        if diff::lines(&text).count() > MAX_LINES {
            return Err(DiffError::TooLarge.into());
        }
        let mut touches = Touches::of(&queries, self.project, path, up_to.unwrap_or(i64::MAX))?;
        let mut found = touches.by_ref().collect::<Result<Vec<_>, _>>()?;
        found.reverse();
        let mut trace = Trace::new();
        for (number, touch) in (0_u32..).zip(&found) {
            let before = contents.id(touch.change.before.as_ref());
            let after = contents.id(touch.change.after.as_ref());
            trace.step(number, effect_of(&touch.stored.operation.kind), before, after, &contents)?;
        }
        let origins = trace.lines(content, &contents)?;
        // Lists only operations of which some line remains.
        let mut places: HashMap<u32, usize> = HashMap::new();
        let mut named: Vec<u32> = origins.iter().copied().flatten().collect();
        named.sort_unstable();
        named.dedup();
        let mut described = Vec::with_capacity(named.len());
        for number in named {
            let touch = &found[number as usize];
            places.insert(number, described.len());
            let operation = &touch.stored.operation;
            let history = self.reader.history(operation.thread);
            let turns = history.in_take(operation.files.map(|files| files.take)).turns()?;
            described.push(LineOrigin {
                by: OperationInfo::of(touch, &touches.threads()[touch.thread].summary.title),
                in_turn: turns.name_of(operation.turn)?,
                path: RootPath { root: path.root.clone(), path: touch.change.path.clone() },
            });
        }
        let lines = diff::lines(&text).zip(origins).zip(1..).map(|((line, origin), number)| {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let origin = origin.and_then(|origin| places.get(&origin).copied());
            BlameLine { number, origin, text: String::from_utf8_lossy(line).into_owned() }
        });
        Ok(Blame { path: path.clone(), lines: lines.collect(), origins: described })
    }
}

impl FileHistoryReader<'_> {
    /// Finds the operation that wrote each line of a file as of a version of the thread.
    pub fn blame(&self, path: &RootPath, at: &NamedFiles) -> Result<Blame, BlameError> {
        let thread = self.reader.thread(self.thread)?;
        let up_to = match at.version {
            Some(version) => self.reader.queries().operation(thread.number, version)?,
            None => None,
        };
        self.reader.project(thread.home).blame(path, at.snapshot, up_to.map(|stored| stored.sequence))
    }
}

impl From<ObjectError> for BlameError {
    fn from(unavailable: ObjectError) -> Self {
        Self::Read(unavailable.into())
    }
}

impl From<StoreError> for BlameError {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}

fn find(queries: &Queries<'_>, snapshot: ContentId, path: &RootPath) -> Result<Option<Node>, ObjectError> {
    let snapshot: Snapshot = load(queries, snapshot)?;
    match snapshot.root(&path.root) {
        Some(root) => resolve(queries, root.tree, &path.path),
        None => Ok(None),
    }
}

/// The versions of files, by their content.
struct Contents<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    files: RefCell<HashMap<ContentId, Node>>,
}

impl Contents<'_, '_> {
    /// The content of a file that is small enough to have lines.
    fn id(&self, node: Option<&Node>) -> Option<ContentId> {
        match node {
            Some(file @ Node::File { content, size, .. }) if *size <= MAX_TEXT_BYTES as u64 => {
                self.files.borrow_mut().insert(*content, file.clone());
                Some(*content)
            }
            _ => None,
        }
    }
}

impl TextSource<ContentId> for Contents<'_, '_> {
    type Error = ObjectError;

    fn text(&self, content: ContentId) -> Result<Vec<u8>, ObjectError> {
        match self.files.borrow().get(&content) {
            Some(file) => read(self.queries, file),
            None => Err(ObjectError::Missing { kind: Kind::Blob, id: content }),
        }
    }
}

/// Whether an operation writes new text or restores old text.
fn effect_of(kind: &OperationKind) -> StepEffect {
    match kind {
        OperationKind::Undone { .. }
        | OperationKind::Redone { .. }
        | OperationKind::Jumped { .. }
        | OperationKind::FilesRestored { .. }
        | OperationKind::FilesMoved { .. }
        | OperationKind::TakeSwitched { .. }
        | OperationKind::TakeBranched { .. }
        | OperationKind::TakeForked { .. }
        | OperationKind::TurnAdvanced { step: TurnStep::Started { .. }, .. }
        | OperationKind::TakeDeleted { .. }
        | OperationKind::TakeKept { .. }
        | OperationKind::TakeMerged { .. }
        | OperationKind::TakePromoted { .. }
        | OperationKind::ThreadPromoted { .. } => StepEffect::Restore,
        _ => StepEffect::Write,
    }
}
