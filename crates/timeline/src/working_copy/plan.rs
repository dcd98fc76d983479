//! The files of takes, by the operations that changed them.
//!
//! Operations with files form a row of their own (`last_file_operation`), so that a long conversation between two of them
//! costs nothing.

use std::collections::BTreeMap;

use retake_model::content::ContentId;
use retake_model::history::{self, RouteStep};
use retake_model::id::TakeId;
use retake_model::operation::{FileChange, Operation, OperationKind, Version};
use retake_model::replay::FileStep;
use retake_model::state::ThreadState;
use retake_store::{Queries, StoreError};

use super::Scope;
use super::entry_files::promoted_from;
use super::jump::is_hand_edit;
use super::route::{edit_step, is_edit_in_worktree};

/// Which folder is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderKind {
    /// The project's.
    Project,
    /// The one that a take has for itself.
    Worktree(TakeId),
}

impl FolderKind {
    /// Whether an operation's files are in that folder.
    pub(super) fn holds(self, files: &FileChange) -> bool {
        match self {
            Self::Project => !files.worktree,
            Self::Worktree(take) => files.worktree && files.take == take,
        }
    }
}

/// The operations of a thread that have files, newest first.
pub(super) struct FileOperationWalk<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    thread: i64,
    next: Option<Version>,
}

impl<'queries, 'transaction> FileOperationWalk<'queries, 'transaction> {
    /// Those up to and including a version.
    pub(super) fn up_to(
        queries: &'queries Queries<'transaction>,
        thread: i64,
        version: Version,
    ) -> Result<Self, StoreError> {
        let next = match queries.operation(thread, version)? {
            Some(found) => found.operation.last_file_operation,
            None => None,
        };
        Ok(Self { queries, thread, next })
    }

    fn read(&mut self, version: Version) -> Result<(Operation, FileChange), StoreError> {
        let missing = || StoreError::Damaged(format!("operation {version} is missing"));
        let operation = self.queries.operation(self.thread, version)?.ok_or_else(missing)?.operation;
        let files = operation
            .files
            .ok_or_else(|| StoreError::Damaged(format!("operation {version} should have files")))?;
        self.next = match version.checked_sub(1).filter(|before| *before > 0) {
            Some(before) => self
                .queries
                .operation(self.thread, before)?
                .and_then(|found| found.operation.last_file_operation),
            None => None,
        };
        Ok((operation, files))
    }
}

impl Iterator for FileOperationWalk<'_, '_> {
    type Item = Result<(Operation, FileChange), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let version = self.next.take()?;
        Some(self.read(version))
    }
}

/// Back over the moves that led here from just where this one leads: that brings back, byte for byte, what the first of
/// them found, whatever had to be merged on the way here, and leaves alone what they left alone.
///
/// ```text
///   place    P ──undo 2──► Q ──redo──► R ──redo──► P         the second redo: back over the first one, and over the undo
/// ```
pub(super) fn steps_back(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    (way, scope): (&crate::write::moves::Destination, Scope),
    here: FolderKind,
) -> Result<Vec<FileStep>, StoreError> {
    let log = queries.log(thread);
    let there = way.cursor.clone().place(&log)?;
    let redoes = way.cursor.route().iter().all(|step| matches!(step, RouteStep::Forward(_)));
    // Where the chains of a take and of the thread were after an operation.
    let place = |version: Version, take: TakeId| -> Result<(TakeId, Version, Version), StoreError> {
        let thread = history::thread_position(&history::OperationLog::step(&log, version)?, version);
        Ok((take, history::take_position(&log, version, take)?.position, thread.position))
    };
    let (mut back, mut edits) = (Vec::new(), Vec::new());
    for last_file_operation in FileOperationWalk::up_to(queries, thread, head)? {
        let (operation, files) = last_file_operation?;
        // A move between two changes is younger than both.
        if operation.version <= way.from.max(way.to) {
            break;
        }
        if !here.holds(&files) {
            // What the take got by hand in a worktree since then is no step that would tell the two places apart.
            if files.take == there.0 && is_edit_in_worktree(&operation, &files) {
                edits.push(edit_step(&files));
            }
            continue;
        }
        let version = operation.version;
        let leads_back = match operation.kind {
            OperationKind::Undone { .. } | OperationKind::Redone { .. } | OperationKind::Jumped { .. } => {
                // The files alone go back over one move only: the conversation stands elsewhere.
                let from_here = scope != Scope::Files || place(version, way.now.0)? == way.now;
                from_here && place(version - 1, there.0)? == there
            }
            OperationKind::ExternalEdits { .. } | OperationKind::Saved { .. } => continue,
            // Where the conversation moves too, it passes over such a move as over any other change.
            OperationKind::FilesMoved { from, to, .. } if scope == Scope::Files => {
                (from, to) == (way.to, way.from)
            }
            _ => break,
        };
        if scope == Scope::Files {
            back.clear();
        }
        back.push(FileStep::new(files.after, files.before));
        // An undo that found nothing to do to files is taken back by doing nothing. A redo that found nothing to do may
        // have found files that an undo of the conversation alone had left there, and the undo of that takes them back.
        let went = back.iter().any(|step| step.from != step.to);
        if leads_back && (went || redoes) {
            back.extend(edits.into_iter().rev());
            return Ok(back);
        }
        if leads_back {
            break;
        }
    }
    Ok(Vec::new())
}

/// What brings the files of a promoted take into the project's folder, as long as its new thread did nothing there: a promotion
/// moves no file. `None` for any other take.
pub(super) fn step_to_promoted(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    take: TakeId,
) -> Result<Option<FileStep>, StoreError> {
    let Some(source) = promoted_from(queries, thread)?.filter(|source| source.take == take) else {
        return Ok(None);
    };
    let (Some(found), Some(own)) = (source.found, source.files) else { return Ok(None) };
    let is_untouched = is_untouched(queries, thread, head)?;
    Ok(is_untouched.then(|| FileStep::new(found, own)))
}

/// Whether a promoted thread did nothing to the files of the project's folder up to a version: the folder has those of another
/// thread. Edits by hand do not count.
fn is_untouched(queries: &Queries<'_>, thread: i64, version: Version) -> Result<bool, StoreError> {
    for last_file_operation in FileOperationWalk::up_to(queries, thread, version)? {
        let (operation, files) = last_file_operation?;
        let is_note = is_hand_edit(&operation) || matches!(operation.kind, OperationKind::Saved { .. });
        if operation.version > 1 && !files.worktree && !is_note {
            return Ok(false);
        }
    }
    let first = queries.operation(thread, 1)?;
    Ok(first.is_some_and(|first| matches!(first.operation.kind, OperationKind::ThreadPromoted { .. })))
}

/// What brings the files of a take back into the project's folder that it left some time ago: everything that this
/// thread did there since is taken back, and what the take did in a folder of its own is made. `None` if nothing
/// is known of the take's files.
pub(super) fn steps_to_take(
    queries: &Queries<'_>,
    thread: i64,
    head: &Operation,
    take: TakeId,
    present: ContentId,
) -> Result<Option<Vec<FileStep>>, StoreError> {
    let mut shown = ShownTakes::new(queries, thread, head.version)?;
    let (mut steps, mut last) = (Vec::new(), None);
    for last_file_operation in FileOperationWalk::up_to(queries, thread, head.version)? {
        let (operation, files) = last_file_operation?;
        if files.worktree {
            if last.is_none() && shown.shows(&operation, &files, take)?.is_some() {
                last = Some(files.after);
            }
            continue;
        }
        if shown.is_before_promoted_files(&operation)? {
            continue;
        }
        let back = FileStep::new(files.after, files.before);
        // The worktree was filled with the files that the take was left with, whichever they were.
        let known = match last {
            Some(_) => files_shown(&files, take),
            None => shown.shows(&operation, &files, take)?,
        };
        if let Some(known) = known {
            if known == files.before && known != files.after {
                steps.push(back);
            }
            let source = if operation.version == 1 { promoted_from(queries, thread)? } else { None };
            if let Some(found) = source.and_then(|source| source.found) {
                steps.push(FileStep::new(found, known));
            }
            steps.extend(last.map(|last| FileStep::between_folders(known, last)));
            return Ok(Some(steps));
        }
        if files.before != files.after {
            steps.push(back);
        }
    }
    // It never was in the project's folder: there is nothing to go by but its own last files.
    Ok(last.map(|last| vec![FileStep::between_folders(present, last)]))
}

/// The last files of a take that are known.
pub(crate) fn files_of_take(
    queries: &Queries<'_>,
    thread: i64,
    head: &Operation,
    take: TakeId,
) -> Result<Option<ContentId>, StoreError> {
    let mut shown = ShownTakes::new(queries, thread, head.version)?;
    for last_file_operation in FileOperationWalk::up_to(queries, thread, head.version)? {
        let (operation, files) = last_file_operation?;
        if let Some(known) = shown.shows(&operation, &files, take)? {
            return Ok(Some(known));
        }
    }
    Ok(None)
}

/// The take whose files are in the project's folder: not the active one, where the conversation alone was switched.
pub(super) fn take_in_folder(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    state: &ThreadState,
) -> Result<TakeId, StoreError> {
    for last_file_operation in FileOperationWalk::up_to(queries, thread, head)? {
        let (_, files) = last_file_operation?;
        if !files.worktree {
            let exists = state.takes.find(queries, files.take.bytes())?.is_some();
            return Ok(if exists { files.take } else { state.active });
        }
    }
    Ok(state.active)
}

/// The files of a take that an operation recorded.
fn files_shown(files: &FileChange, take: TakeId) -> Option<ContentId> {
    if files.left == Some(take) { Some(files.before) } else { (files.take == take).then_some(files.after) }
}

/// Which operations show takes with the files that belong to their present positions.
///
/// A move along the log may have shown older or newer files of a take than those: the take's chain says which steps were
/// done then, and which are done now.
pub(super) struct ShownTakes<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    thread: i64,
    head: Version,
    /// Whether the log is from before takes had chains.
    is_old: bool,
    /// Whether the thread was a take of another one that is known, and the files that were in the folder then.
    is_promoted: bool,
    /// The last change of files at a position of a chain.
    anchors: BTreeMap<Version, Version>,
}

impl<'queries, 'transaction> ShownTakes<'queries, 'transaction> {
    pub(super) fn new(
        queries: &'queries Queries<'transaction>,
        thread: i64,
        head: Version,
    ) -> Result<Self, StoreError> {
        let is_old = head > 1 && history::OperationLog::step(&queries.log(thread), 2)?.chains.is_none();
        let is_promoted = promoted_from(queries, thread)?.is_some_and(|source| source.found.is_some());
        Ok(Self { queries, thread, head, is_old, is_promoted, anchors: BTreeMap::new() })
    }

    /// The files of a take that an operation shows, if they are those of its present position.
    pub(super) fn shows(
        &mut self,
        operation: &Operation,
        files: &FileChange,
        take: TakeId,
    ) -> Result<Option<ContentId>, StoreError> {
        let Some(known) = files_shown(files, take) else { return Ok(None) };
        if self.is_before_promoted_files(operation)? {
            return Ok(None);
        }
        let log = self.queries.log(self.thread);
        if self.is_old {
            let is_step = !operation.kind.is_not_undoable();
            let done = is_step && history::is_done(&log, self.head, operation.version)?;
            return Ok((files.worktree || done).then_some(known));
        }
        let left = files.left == Some(take);
        let version = if left { operation.version.saturating_sub(1) } else { operation.version };
        let present = self.anchor(history::take_position(&log, self.head, take)?.position)?;
        let then = self.anchor(history::take_position(&log, version, take)?.position)?;
        Ok((then == present).then_some(known))
    }

    /// Whether an operation records an edit by hand in a promoted thread that had done nothing to files before: what is in
    /// the folder then is not the take's.
    fn is_before_promoted_files(&self, operation: &Operation) -> Result<bool, StoreError> {
        let is_note = is_hand_edit(operation) || matches!(operation.kind, OperationKind::Saved { .. });
        Ok(is_note && self.is_promoted && is_untouched(self.queries, self.thread, operation.version)?)
    }

    /// The last change of files at a position of a chain.
    fn anchor(&mut self, position: Version) -> Result<Version, StoreError> {
        if let Some(anchor) = self.anchors.get(&position) {
            return Ok(*anchor);
        }
        let mut anchor = position;
        while anchor != 0 {
            let missing = || StoreError::Damaged(format!("operation {anchor} is missing"));
            let operation = self.queries.operation(self.thread, anchor)?.ok_or_else(missing)?.operation;
            if operation.files.is_some_and(|files| files.before != files.after) {
                break;
            }
            anchor = operation.place.parent;
        }
        self.anchors.insert(position, anchor);
        Ok(anchor)
    }
}
