//! Resolves revisions of files from user input.
//!
//! | input | files |
//! |---|---|
//! | `12` | after version 12 |
//! | `before the rewrite` | of the version saved under that name |
//! | `take:main_take_1` | of that take |
//! | `turn:3` | after the third turn of the take, `turn:last` after the last |
//! | `folder` | the current files |
//! | `3f9c01` | of a snapshot, by the prefix of its id |
//!
//! The current files have to be captured, which records manual edits. Only a revision that needs them does so, and only
//! once.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use retake_model::content::ContentId;
use retake_model::id::TakeId;
use retake_model::operation::{OperationKind, Version};
use retake_model::path::RootPath;
use retake_store::{StoreError, ThreadRow};
use serde::Serialize;

use crate::{FilesAt, FindError, ReadError, Reader, TURN, Timeline, Turns};

/// The current files.
pub const FOLDER: &str = "folder";
/// Operations to read at a time.
const PAGE: usize = 100;

/// The files of a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedFiles {
    /// Its name for people.
    pub name: String,
    /// The snapshot.
    pub snapshot: ContentId,
    /// The version, if the revision is one.
    pub version: Option<Version>,
}

/// The two sides of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The files before.
    pub from: NamedFiles,
    /// The files after.
    pub to: NamedFiles,
    /// The paths that a turn changed, if the comparison is of a turn. Other paths may have changed meanwhile.
    pub changed: Option<BTreeSet<RootPath>>,
}

/// Why a text is not a revision.
#[derive(Debug, thiserror::Error)]
pub enum RevisionError {
    /// Nothing matches.
    #[error(
        "{0:?} is not a revision: name a version, a saved version, `turn:NUMBER`, `take:NAME`, `folder` or a snapshot; \
         `retake history`, `retake turns` and `retake snapshot list` show them"
    )]
    NoSuchRevision(String),
    /// Several snapshots match.
    #[error("{text:?} matches {count} snapshots; use a longer prefix")]
    Several {
        /// The input.
        text: String,
        /// Number of matches.
        count: usize,
    },
    /// The operation changed no files.
    #[error("version {0} changed no files; `retake snapshot list` shows the versions that did")]
    NoFileChanges(Version),
    /// The thread has no files yet.
    #[error("this thread has no files yet; record them with `retake snapshot take`")]
    NoFiles,
    /// The take has no files yet.
    #[error("take {0} has no files yet")]
    NoFilesOfTake(String),
    /// The take was not found.
    #[error(transparent)]
    Find(#[from] FindError),
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<StoreError> for RevisionError {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}

/// Captures the folder and returns the snapshot.
pub type SnapshotFolder<'timeline, E> = Box<dyn Fn() -> Result<ContentId, E> + 'timeline>;

/// Resolves revisions of a thread's files.
pub struct RevisionResolver<'timeline, E> {
    timeline: &'timeline Timeline,
    /// The thread.
    pub thread: ThreadRow,
    /// The take whose worktree is meant; `None` for the project's folder.
    here: Option<TakeId>,
    /// The take whose turns are meant; `None` for the same, or the active one.
    turns_of: Option<TakeId>,
    snapshot_folder: SnapshotFolder<'timeline, E>,
    folder: OnceCell<ContentId>,
}

impl<'timeline, E: From<RevisionError>> RevisionResolver<'timeline, E> {
    /// A resolver for a thread, as seen from the project's folder or from a worktree.
    pub fn new(
        timeline: &'timeline Timeline,
        thread: ThreadRow,
        here: Option<TakeId>,
        snapshot_folder: SnapshotFolder<'timeline, E>,
    ) -> Self {
        Self { timeline, thread, here, turns_of: None, snapshot_folder, folder: OnceCell::new() }
    }

    /// The current files.
    pub fn folder(&self) -> Result<NamedFiles, E> {
        let snapshot = if let Some(known) = self.folder.get() {
            *known
        } else {
            let seen = (self.snapshot_folder)()?;
            *self.folder.get_or_init(|| seen)
        };
        Ok(NamedFiles { name: "the folder".to_owned(), snapshot, version: None })
    }

    /// Resolves a revision.
    pub fn find(&self, text: &str) -> Result<NamedFiles, E> {
        let text = text.trim();
        if text == FOLDER {
            return self.folder();
        }
        let reader = self.timeline.read().map_err(RevisionError::from)?;
        if let Some(take) = text.strip_prefix("take:") {
            let (name, known) = self.take(&reader, take)?;
            return match known {
                Some(snapshot) => Ok(NamedFiles { name, snapshot, version: None }),
                None => Ok(NamedFiles { name, ..self.folder()? }),
            };
        }
        if let Some(turn) = text.strip_prefix(TURN) {
            let (turns, number) = self.turn(&reader, turn).map_err(RevisionError::from)?;
            return Ok(around_turn(&turns, number)?.to);
        }
        Ok(self.known(&reader, text)?)
    }

    /// The files before and after a turn, if the text names one.
    pub fn of_turn(&self, text: &str) -> Result<Option<Comparison>, RevisionError> {
        let Some(turn) = text.trim().strip_prefix(TURN) else { return Ok(None) };
        let reader = self.timeline.read()?;
        let (turns, number) = self.turn(&reader, turn)?;
        around_turn(&turns, number).map(Some)
    }

    /// Resolves the two sides of a comparison: manual edits if none is named, and up to the current files if only the
    /// first is. A turn alone is compared with the files before it.
    pub fn between(&self, from: Option<&str>, to: Option<&str>) -> Result<Comparison, E> {
        let from = match from {
            Some(turn) if to.is_none() && turn.trim().starts_with(TURN) => return Ok(self.of(turn)?),
            Some(from) => self.find(from)?,
            None => self.before_user_edits()?,
        };
        let to = match to {
            Some(to) => self.find(to)?,
            None => self.folder()?,
        };
        Ok(Comparison { from, to, changed: None })
    }

    /// The files before and after what a text names: a version or a turn.
    pub fn of(&self, text: &str) -> Result<Comparison, RevisionError> {
        match self.of_turn(text)? {
            Some(files) => Ok(files),
            None => self.around(text.trim().parse().map_err(|_| FindError::NoVersion(text.to_owned()))?),
        }
    }

    /// The same revisions, with the turns of this take.
    #[must_use]
    pub fn in_take(self, take: TakeId) -> Self {
        Self { turns_of: Some(take), ..self }
    }

    /// The files before and after an operation.
    pub fn around(&self, version: Version) -> Result<Comparison, RevisionError> {
        let reader = self.timeline.read()?;
        // Fails if the version does not exist.
        reader.state_at(self.thread.summary.id, version)?;
        let at = reader.files(self.thread.summary.id).at(version)?.filter(|at| at.version == version);
        let at = at.ok_or(RevisionError::NoFileChanges(version))?;
        let named_files = |name: &str, snapshot| NamedFiles {
            name: format!("{name} version {version}"),
            snapshot,
            version: Some(version),
        };
        Ok(Comparison {
            from: named_files("just before", at.files.before),
            to: named_files("just after", at.files.after),
            changed: None,
        })
    }

    /// The turns of the take, and the number that a text names.
    fn turn<'reader>(
        &self,
        reader: &'reader Reader<'reader>,
        text: &str,
    ) -> Result<(Turns<'reader>, u64), FindError> {
        let turns = reader.history(self.thread.summary.id).in_take(self.turns_of.or(self.here)).turns()?;
        let number = turns.find_number(text)?;
        Ok((turns, number))
    }

    /// The files after the last change by this thread's agent or by a move: later changes are manual edits. Falls back
    /// to the oldest known files.
    fn before_user_edits(&self) -> Result<NamedFiles, E> {
        let folder = self.folder()?;
        Ok(self.last_files(folder.snapshot)?)
    }

    fn last_files(&self, folder: ContentId) -> Result<NamedFiles, RevisionError> {
        let reader = self.timeline.read()?;
        let mut oldest = None;
        let mut before = None;
        loop {
            let page = reader.files(self.thread.summary.id).list(before, PAGE)?;
            let is_here = |at: &&FilesAt| match self.here {
                Some(take) => at.files.worktree && at.files.take == take,
                None => !at.files.worktree,
            };
            let is_made = |at: &&FilesAt| {
                !matches!(at.kind, OperationKind::ExternalEdits { .. } | OperationKind::Saved { .. })
            };
            let made = page.iter().filter(is_here).find(is_made);
            if let Some(at) = made {
                let (name, version) = (format!("version {}", at.version), Some(at.version));
                return Ok(NamedFiles { name, snapshot: at.files.after, version });
            }
            match page.last() {
                Some(last) => {
                    oldest = Some(last.files.before);
                    before = Some(last.version);
                }
                None => break,
            }
        }
        Ok(NamedFiles {
            name: "the first look".to_owned(),
            snapshot: oldest.unwrap_or(folder),
            version: None,
        })
    }

    fn known(&self, reader: &Reader<'_>, text: &str) -> Result<NamedFiles, RevisionError> {
        if let Ok(version) = text.parse() {
            return self.version(reader, version, format!("version {version}"));
        }
        if let Some(version) = reader.history(self.thread.summary.id).saved(text)? {
            return self.version(reader, version, format!("{text:?}"));
        }
        let found = reader.files(self.thread.summary.id).snapshots_beginning(text)?;
        match found.as_slice() {
            [one] => {
                Ok(NamedFiles { name: format!("snapshot {}", one.short()), snapshot: *one, version: None })
            }
            [] => Err(RevisionError::NoSuchRevision(text.to_owned())),
            several => Err(RevisionError::Several { text: text.to_owned(), count: several.len() }),
        }
    }

    fn version(
        &self,
        reader: &Reader<'_>,
        version: Version,
        name: String,
    ) -> Result<NamedFiles, RevisionError> {
        let thread = self.thread.summary.id;
        // Fails if the version does not exist.
        reader.state_at(thread, version)?;
        if let Some(at) = reader.files(thread).at(version)? {
            return Ok(NamedFiles { name, snapshot: at.files.after, version: Some(version) });
        }
        // Before the first operation with files, they were those that this operation found.
        let first = reader.files(thread).list(None, usize::MAX)?.pop().ok_or(RevisionError::NoFiles)?;
        Ok(NamedFiles { name, snapshot: first.files.before, version: Some(version) })
    }

    /// Name and files of a take; `None` if they are in the folder.
    fn take(&self, reader: &Reader<'_>, text: &str) -> Result<(String, Option<ContentId>), RevisionError> {
        let take = reader.find().take(&self.thread, text)?.summary;
        let name = format!("take {}", take.name);
        let thread = self.thread.summary.id;
        // The folder has the files of a promoted take only once the new thread has recorded an operation there.
        let is_in_folder =
            self.here.is_some() || reader.head(thread)?.operation.last_file_operation != Some(1);
        if is_in_folder && take.id == self.here.unwrap_or(reader.state(thread)?.active) {
            return Ok((name, None));
        }
        match reader.files(thread).of_take(take.id)? {
            Some(snapshot) => Ok((name, Some(snapshot))),
            None => Err(RevisionError::NoFilesOfTake(take.name)),
        }
    }
}

/// The files before and after a turn that exists, and the paths that it changed.
fn around_turn(turns: &Turns<'_>, number: u64) -> Result<Comparison, RevisionError> {
    let (before, after) = turns.files(number)?.ok_or(RevisionError::NoFiles)?;
    let (name, version) = (turns.name(number)?.to_string(), Some(turns.last(number)));
    let from = NamedFiles { name: format!("before {name}"), snapshot: before, version: None };
    let to = NamedFiles { name, snapshot: after, version };
    Ok(Comparison { from, to, changed: Some(turns.changed_files(number)?) })
}
