//! Imports a thread from an export, completely or not at all.
//!
//! An export is untrusted. Every object is hashed, decoded and checked against the limits of commands. Every
//! reference must be to an earlier object of the right kind, every state must be reachable by commands (see
//! [`retake_model::check`]), and every operation must follow its predecessor by the rules of history.
//!
//! If the thread already exists, an export that continues it adds its operations, and one without new
//! operations changes nothing. If the two have diverged, the import is rejected; the export can still be
//! imported as a copy.

use std::collections::HashSet;
use std::convert::Infallible;
use std::io::{BufRead, Read};
use std::sync::Arc;

use data_encoding::BASE64;
use retake_model::check::{self, FileChecker, InvalidContentError, StateChecker};
use retake_model::content::{ContentId, Kind, decode};
use retake_model::history::{FIRST, Link};
use retake_model::id::{ProjectId, ThreadId};
use retake_model::object::{MemoryObjects, NewObject, ObjectError, Objects};
use retake_model::operation::{ConcurrentChange, Operation, OperationKind, Version};
use retake_model::reference::{Reference, references};
use retake_store::{Publication, PublishError, Queries, StoreError, WriteError, WriteTransaction};
use serde::{Deserialize, Serialize};

use crate::clock::ClockIds;
use crate::transfer::export::{FORMAT, kind_named};
use crate::working_copy::move_back_to_files;
use crate::write::project::UnrecordedProject;
use crate::{ChangeError, Clock, Project, ProjectError, Timeline};

/// Maximum length of a line: the largest entry in base64, with a margin.
const LONGEST_LINE: u64 = 128 * 1024 * 1024;

/// The identity of the imported thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportMode {
    /// The same thread.
    Same,
    /// A new thread with the same history.
    Copy,
    /// A copy with an id chosen by the caller, so that a repeated import finds the same copy.
    CopyAs(ThreadId),
}

/// What was imported. It is durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportSummary {
    /// The thread.
    pub thread: ThreadId,
    /// Its title.
    pub title: String,
    /// Its version now.
    pub version: Version,
    /// How many operations were new.
    pub new_operations: u64,
    /// Set where the new operations changed files of a thread whose files are in a folder here: conversation and files stay
    /// where they were, and a jump to this version brings both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jump_to: Option<Version>,
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file could not be read.
    #[error("the import could not be read: {0}")]
    Read(#[from] std::io::Error),
    /// The file is not an export.
    #[error("line {line}: this is not a Retake export ({reason})")]
    NotAnExport {
        /// Number of the line.
        line: u64,
        /// The reason.
        reason: String,
    },
    /// A newer version of the program wrote the export.
    #[error("the export has format {found}, this program knows {FORMAT}; update this program")]
    Newer {
        /// The format of the file.
        found: u64,
    },
    /// The export is damaged.
    #[error("line {line}: the export is damaged: {reason}; nothing was imported")]
    Damaged {
        /// Number of the line.
        line: u64,
        /// The reason.
        reason: String,
    },
    /// The export is incomplete.
    #[error("the export breaks off after line {0}; nothing was imported")]
    CutOff(u64),
    /// The thread exists and has diverged from the export.
    #[error(
        "thread {} is here already and went another way after version {common}; import it with --copy",
        .thread.short()
    )]
    Diverged {
        /// The thread.
        thread: ThreadId,
        /// The last common version.
        common: Version,
    },
    /// The existing thread cannot be continued with the export.
    #[error("{0}; nothing was imported")]
    Refused(Box<ChangeError>),
    /// The folder cannot be a project.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<WriteError<ImportError>> for ImportError {
    fn from(error: WriteError<ImportError>) -> Self {
        match error {
            WriteError::Refused(error) => error,
            WriteError::Store(error) => Self::Store(error),
        }
    }
}

impl Timeline {
    /// Imports a thread into a project. `progress` receives the number of imported operations and their
    /// total.
    ///
    /// Reads `from` inside a write transaction, so that an import is atomic, and blocks all other changes
    /// until it ends. `from` should therefore be a file, and not a slow source such as a network connection.
    pub fn import(
        &self,
        from: impl BufRead + Send + 'static,
        project: ProjectId,
        importing: ImportMode,
        mut progress: impl FnMut(u64, u64) + Send + 'static,
    ) -> Result<ImportSummary, ImportError> {
        let clock = self.clock.clone();
        Ok(self
            .store
            .write(move |writing| import_thread(writing, from, project, importing, &*clock, &mut progress))?)
    }

    /// Imports a thread into the project of a folder. A new folder becomes a project in the same transaction,
    /// so that a rejected import leaves no project behind.
    pub fn import_into(
        &self,
        from: impl BufRead + Send + 'static,
        project: &Project,
        importing: ImportMode,
        mut progress: impl FnMut(u64, u64) + Send + 'static,
    ) -> Result<ImportSummary, ImportError> {
        if project.recorded {
            return self.import(from, project.id, importing, progress);
        }
        let (clock, unrecorded) = (self.clock.clone(), UnrecordedProject::of(project)?);
        let (project, imported) =
            self.store.write(move |writing| -> Result<(Project, ImportSummary), ImportError> {
                let project = unrecorded.record(writing, &*clock)?;
                let imported = import_thread(writing, from, project.id, importing, &*clock, &mut progress)?;
                Ok((project, imported))
            })?;
        project.mark();
        Ok(imported)
    }

    /// Previews an import, with the same checks. Changes nothing.
    pub fn preview_import(
        &self,
        from: impl BufRead + Send + 'static,
        project: ProjectId,
        importing: ImportMode,
    ) -> Result<ImportSummary, ImportError> {
        let clock = self.clock.clone();
        let refused = self.store.write(move |writing| -> Result<Infallible, Box<PreviewResult>> {
            // Always an error, so that the transaction is rolled back.
            Err(Box::new(import_thread(writing, from, project, importing, &*clock, &mut |_, _| ())))
        });
        match refused {
            Ok(never) => match never {},
            Err(WriteError::Refused(foreseen)) => *foreseen,
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }
}

/// The result of an import or of its preview.
type PreviewResult = Result<ImportSummary, ImportError>;

fn import_thread(
    writing: &WriteTransaction<'_>,
    from: impl BufRead,
    project: ProjectId,
    importing: ImportMode,
    clock: &dyn Clock,
    progress: &mut dyn FnMut(u64, u64),
) -> PreviewResult {
    let copy = match importing {
        ImportMode::Same => None,
        ImportMode::Copy => Some(ThreadId::generate(&mut ClockIds(clock))),
        ImportMode::CopyAs(thread) => Some(thread),
    };
    let mut import = Import {
        writing,
        from,
        project,
        copy,
        has_original: false,
        hasher: blake3::Hasher::new(),
        line: 0,
        present: HashSet::new(),
        redacted: HashSet::new(),
        waiting: ObjectBuffer::default(),
        accepted: StateChecker::default(),
        measures: FileChecker::default(),
        now: clock.now(),
        previous: None,
        new_operations: 0,
    };
    let arrived = import.run(progress)?;
    import.finish(arrived, clock)
}

/// An imported thread, and its version before the import.
struct ImportedThread {
    thread: ThreadId,
    before: Option<Version>,
}

#[derive(Deserialize)]
struct Header {
    retake: String,
    format: u64,
    thread: ThreadId,
    version: Version,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Object { object: String, data: String },
    Operation { operation: Version, data: String },
    Redacted { redacted: ContentId, kind: String },
    End { end: bool, lines: u64, digest: String },
}

struct Import<'writing, 'transaction, R> {
    writing: &'writing WriteTransaction<'transaction>,
    from: R,
    project: ProjectId,
    copy: Option<ThreadId>,
    /// Whether the original of a copy is in the same project.
    has_original: bool,
    hasher: blake3::Hasher,
    line: u64,
    /// Objects that the export has brought so far.
    present: HashSet<Reference>,
    /// Objects that the export declares as redacted, until something refers to them.
    redacted: HashSet<Reference>,
    waiting: ObjectBuffer,
    accepted: StateChecker,
    measures: FileChecker,
    now: retake_model::time::Timestamp,
    previous: Option<ContentId>,
    new_operations: u64,
}

/// Objects of the next operation, in the order of the export and by id.
#[derive(Default)]
struct ObjectBuffer {
    order: Vec<NewObject>,
    named: MemoryObjects,
}

impl ObjectBuffer {
    fn push(&mut self, object: NewObject) {
        self.named.insert_all([object.clone()]);
        self.order.push(object);
    }
}

/// Buffered objects on top of the stored ones.
struct ImportObjects<'import> {
    waiting: &'import MemoryObjects,
    stored: &'import Queries<'import>,
}

impl Objects for ImportObjects<'_> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, ObjectError> {
        self.waiting.bytes(kind, id).or_else(|_| self.stored.bytes(kind, id))
    }
}

impl<R: BufRead> Import<'_, '_, R> {
    fn run(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<ImportedThread, ImportError> {
        let header = self.header()?;
        let thread = self.copy.unwrap_or(header.thread);
        let original = self.writing.thread(header.thread)?;
        self.has_original = original.is_some_and(|row| row.home == self.project);
        let known = self.writing.thread(thread)?;
        let before = known.as_ref().map(|row| row.summary.version);
        let here = known.map(|row| row.summary.sharing());
        let mut next: Version = 1;
        loop {
            let before = self.hasher.finalize();
            let before_lines = self.line;
            let text = self.next_line()?.ok_or(ImportError::CutOff(self.line))?;
            let line = serde_json::from_str(&text).map_err(|error| self.not_an_export(&error.to_string()))?;
            match line {
                Line::Object { object, data } => self.object(&object, &data)?,
                Line::Redacted { redacted, kind } => self.redacted(redacted, &kind)?,
                Line::Operation { operation, data } => {
                    if operation != next {
                        return Err(self.damaged("an operation is missing"));
                    }
                    self.operation(thread, next, &data)?;
                    progress(next, header.version);
                    next += 1;
                }
                Line::End { end, lines, digest } => {
                    if !end || lines != before_lines || digest != before.to_hex().as_str() {
                        return Err(self.damaged("the end does not fit the beginning"));
                    }
                    break;
                }
            }
        }
        if self.next_line()?.is_some() {
            return Err(self.damaged("something stands behind its end"));
        }
        let row = self.writing.thread(thread)?.ok_or_else(|| self.damaged("it holds no operation"))?;
        if header.version != next - 1 {
            return Err(self.damaged("it holds fewer operations than it says"));
        }
        // The sharing of an existing thread is a local decision, which an import does not change.
        if let Some(sharing) = here.filter(|here| *here != row.summary.sharing()) {
            self.writing.put_sharing(&row, sharing)?;
        }
        Ok(ImportedThread { thread, before })
    }

    /// Keeps conversation and files together, and summarizes the import.
    fn finish(&self, arrived: ImportedThread, clock: &dyn Clock) -> Result<ImportSummary, ImportError> {
        let ImportedThread { thread, before } = arrived;
        let continued = before.filter(|_| self.new_operations > 0);
        let jump_to = match continued.map(|before| move_back_to_files(self.writing, thread, before, clock)) {
            Some(Err(ChangeError::Store(error))) => return Err(error.into()),
            Some(Err(error)) => return Err(ImportError::Refused(Box::new(error))),
            Some(Ok(jump_to)) => jump_to,
            None => None,
        };
        let row = self.writing.thread(thread)?.ok_or_else(|| self.damaged("it holds no operation"))?;
        Ok(ImportSummary {
            thread,
            title: row.summary.title.clone(),
            version: row.summary.version,
            new_operations: self.new_operations,
            jump_to,
        })
    }

    fn header(&mut self) -> Result<Header, ImportError> {
        let text = self.next_line()?.ok_or_else(|| self.not_an_export("it is empty"))?;
        let header: Header =
            serde_json::from_str(&text).map_err(|error| self.not_an_export(&error.to_string()))?;
        if header.retake != "thread" {
            return Err(self.not_an_export("it does not hold a thread"));
        }
        if header.format > FORMAT {
            return Err(ImportError::Newer { found: header.format });
        }
        Ok(header)
    }

    fn object(&mut self, kind: &str, data: &str) -> Result<(), ImportError> {
        let kind = kind_named(kind).ok_or_else(|| self.damaged("an object of an unknown kind"))?;
        if kind == Kind::Sealed {
            return Err(self.damaged("sealed bytes, which no export holds"));
        }
        let bytes = BASE64.decode(data.as_bytes()).map_err(|_| self.damaged("data that is not base64"))?;
        let needed = references(kind, &bytes).map_err(|error| self.damaged(&error.to_string()))?;
        for reference in needed {
            self.need(reference)?;
        }
        check::content(kind, &bytes).map_err(|error| self.bad(&error))?;
        let id = ContentId::of(kind, &bytes);
        self.measures.content(kind, id, &bytes).map_err(|error| self.bad(&error))?;
        self.present.insert((kind, id));
        // An import does not restore content that was redacted here.
        if !can_be_redacted(kind) || !self.writing.is_redacted(id)? {
            self.waiting.push(NewObject { id, kind, bytes: bytes.into() });
        }
        Ok(())
    }

    /// Checks that a referenced object came earlier, or is declared as redacted.
    fn need(&mut self, reference: Reference) -> Result<(), ImportError> {
        if self.present.contains(&reference) {
            return Ok(());
        }
        if !self.redacted.remove(&reference) {
            return Err(self.damaged("something refers to what is not there"));
        }
        // Content that was redacted elsewhere but exists here stays: an export must not delete content.
        let (kind, id) = reference;
        if !self.writing.contains(kind, id)? {
            self.writing.put_redaction(kind, id, self.now)?;
        }
        self.present.insert(reference);
        Ok(())
    }

    fn redacted(&mut self, id: ContentId, kind: &str) -> Result<(), ImportError> {
        let kind = kind_named(kind).ok_or_else(|| self.damaged("an object of an unknown kind"))?;
        if !can_be_redacted(kind) {
            return Err(self.damaged("only entries, blobs and sealed bytes can be redacted"));
        }
        // Recorded only when something refers to it with the declared kind.
        self.redacted.insert((kind, id));
        Ok(())
    }

    fn operation(&mut self, thread: ThreadId, version: Version, data: &str) -> Result<(), ImportError> {
        let bytes = BASE64.decode(data.as_bytes()).map_err(|_| self.damaged("data that is not base64"))?;
        let mut operation: Operation = decode(&bytes).map_err(|error| self.damaged(&error.to_string()))?;
        let needed = references(Kind::Operation, &bytes).map_err(|error| self.damaged(&error.to_string()))?;
        for reference in needed {
            self.need(reference)?;
        }
        check::operation(&operation).map_err(|error| self.bad(&error))?;
        if let Some(ends) = ends(&operation.kind)
            && ends.iter().any(|end| !(1..operation.version).contains(end))
        {
            return Err(self.damaged("a move between versions that are not there"));
        }
        if operation.version != version {
            return Err(self.damaged("an operation out of order"));
        }
        if self.copy.is_some() {
            operation.thread = thread;
            operation.previous = self.previous;
            self.rewrite_project(&mut operation.kind);
            self.share_files(&mut operation);
        } else if operation.thread != thread || operation.previous != self.previous {
            return Err(self.damaged("an operation that does not follow the one before it"));
        }
        let id = ContentId::of(Kind::Operation, &retake_model::content::encode(&operation));
        self.previous = Some(id);
        let row = self.writing.thread(thread)?;
        if let Some(row) = &row
            && let Some(here) = self.writing.operation(row.number, version)?
        {
            self.waiting = ObjectBuffer::default();
            if here.id != id {
                return Err(ImportError::Diverged { thread, common: version - 1 });
            }
            return Ok(());
        }
        self.check_position(row.as_ref().map(|row| row.number), &operation)?;
        self.check_last_file_operation(row.map(|row| row.number), &operation)?;
        // Checked before it is published, because publishing reads the state, and a malicious one is
        // expensive to read.
        let arriving = ImportObjects { waiting: &self.waiting.named, stored: self.writing };
        self.accepted.state(&arriving, operation.after).map_err(|error| self.bad(&error))?;
        let objects = std::mem::take(&mut self.waiting).order;
        self.writing.publish_in(Publication { operation, objects }, Some(self.project)).map_err(|error| {
            match error {
                PublishError::Store(error) => ImportError::Store(error),
                other => self.damaged(&other.to_string()),
            }
        })?;
        self.new_operations += 1;
        Ok(())
    }

    /// Computes the position of an operation again, because undo and redo rely on it.
    fn check_position(&self, row: Option<i64>, operation: &Operation) -> Result<(), ImportError> {
        let link = Link::of(operation);
        let Some(number) = row else {
            let first = operation.version == 1 && operation.place == FIRST && link.predates_chains();
            return if first { Ok(()) } else { Err(self.damaged("a first operation in the wrong place")) };
        };
        let head = self.writing.head(number)?.ok_or_else(|| self.damaged("an operation without a log"))?;
        let head = head.operation;
        if !link.follows(&self.writing.log(number), head.version)? {
            return Err(self.damaged("an operation in the wrong place"));
        }
        if !operation.kind.is_not_undoable() {
            return Ok(());
        }
        // In a log from before takes had chains, a move makes an old state current. In newer logs a note
        // changes nothing, and a move creates a state that is checked like any other.
        let expected = if link.predates_chains() {
            self.change(number, operation.place.position)?.map(|target| target.after)
        } else if link.is_move() {
            return Ok(());
        } else {
            Some(head.after)
        };
        if expected == Some(operation.after) {
            Ok(())
        } else {
            Err(self.damaged("a move that does not lead where it says"))
        }
    }

    /// Checks `last_file_operation`, the link to the previous operation with files, because searches for
    /// files follow it.
    fn check_last_file_operation(&self, row: Option<i64>, operation: &Operation) -> Result<(), ImportError> {
        let head = row.map(|number| self.writing.head(number)).transpose()?.flatten();
        let before = head.and_then(|head| head.operation.last_file_operation);
        if operation.last_file_operation == operation.files.map(|_| operation.version).or(before) {
            Ok(())
        } else {
            Err(self.damaged("an operation that names the wrong one as the last with files"))
        }
    }

    fn change(&self, number: i64, version: Version) -> Result<Option<Operation>, ImportError> {
        let found = self.writing.operation(number, version)?;
        Ok(found.map(|found| found.operation).filter(|operation| !operation.kind.is_not_undoable()))
    }

    /// Makes a copy independent of the original's source thread, so that no undo there can delete it.
    fn rewrite_project(&self, kind: &mut OperationKind) {
        if let OperationKind::ThreadCreated { .. } | OperationKind::ThreadPromoted { .. } = kind {
            *kind = OperationKind::ThreadCreated { project: self.project };
        }
    }

    /// Marks file changes of a copy as shared, so that an undo asks before it reverts work of the original.
    fn share_files(&self, operation: &mut Operation) {
        let is_change = !operation.kind.is_not_undoable();
        if let Some(files) = operation.files.as_mut().filter(|_| is_change && self.has_original) {
            files.shared = Some(ConcurrentChange::OtherThread);
        }
    }

    fn next_line(&mut self) -> Result<Option<String>, ImportError> {
        let mut bytes = Vec::new();
        self.from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        if bytes.last() != Some(&b'\n') {
            return Err(ImportError::CutOff(self.line));
        }
        self.hasher.update(&bytes);
        String::from_utf8(bytes).map(Some).map_err(|_| self.not_an_export("it is not UTF-8"))
    }

    fn not_an_export(&self, reason: &str) -> ImportError {
        ImportError::NotAnExport { line: self.line, reason: reason.chars().take(120).collect() }
    }

    fn damaged(&self, reason: &str) -> ImportError {
        ImportError::Damaged { line: self.line, reason: reason.to_owned() }
    }

    fn bad(&self, error: &InvalidContentError) -> ImportError {
        self.damaged(&error.to_string())
    }
}

/// The versions between which a move leads.
fn ends(kind: &OperationKind) -> Option<[Version; 2]> {
    match *kind {
        OperationKind::Undone { from, to }
        | OperationKind::Redone { from, to }
        | OperationKind::Jumped { from, to }
        | OperationKind::FilesMoved { from, to, .. } => Some([from, to]),
        _ => None,
    }
}

/// Returns whether a kind of object can be redacted: only content, and not the structure of a thread.
fn can_be_redacted(kind: Kind) -> bool {
    matches!(kind, Kind::Entry | Kind::Blob | Kind::Sealed)
}
