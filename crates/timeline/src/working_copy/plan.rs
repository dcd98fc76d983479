//! Plans file changes from the operations that changed the files of takes.
//!
//! Operations that changed files are linked to each other (`last_file_operation`), so that a walk skips the
//! conversation between them.

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

/// A folder with files of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderKind {
    /// The project's folder.
    Project,
    /// The worktree of a take.
    Worktree(TakeId),
}

impl FolderKind {
    /// Returns whether an operation changed files in this folder.
    pub(super) fn holds(self, files: &FileChange) -> bool {
        match self {
            Self::Project => !files.worktree,
            Self::Worktree(take) => files.worktree && files.take == take,
        }
    }
}

/// Walks over the operations of a thread that changed files, newest first.
pub(crate) struct FileOperationWalk<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    thread: i64,
    next: Option<Version>,
}

impl<'queries, 'transaction> FileOperationWalk<'queries, 'transaction> {
    /// Starts at a version, inclusive.
    pub(crate) fn up_to(
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

/// The steps that reverse earlier moves, if those moves started where this one leads. Reversing them restores
/// the files exactly, even where a move had to merge, and does not touch files that those moves did not
/// touch.
///
/// ```text
///   P ──undo 2──► Q ──redo──► R ──redo──► P         the second redo reverses the first one and the undo
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
    // The positions of a take's chain and of the thread's chain after an operation.
    let place = |version: Version, take: TakeId| -> Result<(TakeId, Version, Version), StoreError> {
        let thread = history::thread_position(&history::OperationLog::step(&log, version)?, version);
        Ok((take, history::take_position(&log, version, take)?.position, thread.position))
    };
    let (mut back, mut edits) = (Vec::new(), Vec::new());
    for last_file_operation in FileOperationWalk::up_to(queries, thread, head)? {
        let (operation, files) = last_file_operation?;
        // A move between two changes is newer than both.
        if operation.version <= way.from.max(way.to) {
            break;
        }
        if !here.holds(&files) {
            // Manual edits in a worktree do not change positions, so they are applied in addition.
            if files.take == there.0 && is_edit_in_worktree(&operation, &files) {
                edits.push(edit_step(&files));
            }
            continue;
        }
        let version = operation.version;
        let leads_back = match operation.kind {
            OperationKind::Undone { .. } | OperationKind::Redone { .. } | OperationKind::Jumped { .. } => {
                // A move of only the files reverses a single move, because the conversation is at another
                // position.
                let from_here = scope != Scope::Files || place(version, way.now.0)? == way.now;
                from_here && place(version - 1, there.0)? == there
            }
            OperationKind::ExternalEdits { .. } | OperationKind::Saved { .. } => continue,
            // If the conversation moves too, such a move is a change like any other.
            OperationKind::FilesMoved { from, to, .. } if scope == Scope::Files => {
                (from, to) == (way.to, way.from)
            }
            _ => break,
        };
        if scope == Scope::Files {
            back.clear();
        }
        back.push(FileStep::new(files.after, files.before));
        // Reversing an undo that changed no files changes none either. A redo may have changed none because
        // an undo of only the conversation had left the files in place; reversing it must remove them.
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

/// The steps that move the files of a promoted take into the project's folder, as long as its new thread
/// changed nothing there: a promotion moves no files. `None` for any other take.
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

/// Returns whether a promoted thread changed no files in the project's folder up to a version, so that the
/// folder has the files of another thread. Manual edits do not count.
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

/// The steps that move the files of an inactive take back into the project's folder: they undo later changes
/// of this thread there, and apply the changes of the take in its worktree. `None` if the files of the take
/// are unknown.
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
        // The worktree was created with the files that the take had when it became inactive.
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
    // The take was never in the project's folder: only its own last files are known.
    Ok(last.map(|last| vec![FileStep::between_folders(present, last)]))
}

/// The last known files of a take.
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

/// The take whose files are in the project's folder. Not the active take, if only the conversation was
/// switched.
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

/// The files of a take that an operation recorded: those before it if the take left the folder, or else after
/// it.
fn files_shown(files: &FileChange, take: TakeId) -> Option<ContentId> {
    if files.left == Some(take) { Some(files.before) } else { (files.take == take).then_some(files.after) }
}

/// Finds operations that recorded the files of takes at their current positions.
///
/// Other operations may have recorded older or newer files of a take, because moves along the log undid or
/// redid its changes. The take's chain tells them apart.
pub(super) struct ShownTakes<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    thread: i64,
    head: Version,
    /// Whether the log was written before takes had chains.
    is_old: bool,
    /// Whether the thread was promoted from a known thread, and the files in the folder at that time are
    /// known.
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

    /// The files of a take that an operation recorded, if they are those of its current position.
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

    /// Returns whether an operation records a manual edit or a save in a promoted thread that has not changed
    /// files yet: the folder then has the files of another take.
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
