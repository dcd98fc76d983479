//! Computes the file changes of a jump.
//!
//! The log has every change of the folder since a version; undoing them, newest first, leads to the files of
//! that version. The route of the jump is not enough, since the conversation may have moved without the
//! files:
//!
//! ```text
//!   log      1 a     2 b     3 undo --conversation    4 c          jump to 3: c is undone, and b stays
//!   files    a       a b     a b                      a b c
//! ```
//!
//! Manual edits stay, as with any other move.

use retake_model::content::ContentId;
use retake_model::history::OperationLog as _;
use retake_model::operation::{FileChange, Operation, OperationKind, Version};
use retake_model::replay::FileStep;
use retake_store::{Queries, StoreError};

use super::plan::{FileOperationWalk, FolderKind};
use super::route::{edit_step, is_edit_in_worktree};

/// The changes of a folder since a version.
pub(super) struct FolderChanges {
    /// Newest first.
    changes: Vec<FileChange>,
    /// Manual edits in a worktree that has since been removed, by the take that was active at that version.
    edits: Vec<FileStep>,
}

impl FolderChanges {
    pub(super) fn since(
        queries: &Queries<'_>,
        (thread, head): (i64, Version),
        version: Version,
        here: FolderKind,
    ) -> Result<Self, StoreError> {
        let recorded = match here {
            FolderKind::Project => queries.log(thread).active(version)?,
            FolderKind::Worktree(take) => take,
        };
        let (mut changes, mut edits) = (Vec::new(), Vec::new());
        for last_file_operation in FileOperationWalk::up_to(queries, thread, head)? {
            let (operation, files) = last_file_operation?;
            if operation.version <= version {
                break;
            }
            if here.holds(&files) {
                if files.before != files.after && !is_hand_edit(&operation) {
                    changes.push(files);
                }
            } else if files.take == recorded && is_edit_in_worktree(&operation, &files) {
                edits.push(edit_step(&files));
            }
        }
        edits.reverse();
        Ok(Self { changes, edits })
    }

    /// The steps back to the files of the version. Consecutive changes are merged into one step, so that an
    /// undo and its redo cancel out.
    pub(super) fn steps(&self) -> Vec<FileStep> {
        let mut steps: Vec<FileStep> = Vec::new();
        for files in &self.changes {
            match steps.last_mut() {
                Some(step) if step.to == files.after => step.to = files.before,
                _ => steps.push(FileStep::new(files.after, files.before)),
            }
        }
        steps.extend(&self.edits);
        steps
    }

    /// Each change on the way, to report what they made excluded.
    pub(super) fn passed(&self) -> Vec<FileStep> {
        self.changes.iter().map(|files| FileStep::new(files.after, files.before)).collect()
    }

    /// The changes that another run may have made.
    pub(super) fn shared(&self) -> Vec<FileStep> {
        let shared = self.changes.iter().filter(|files| files.shared.is_some());
        shared.map(|files| FileStep::new(files.after, files.before)).collect()
    }
}

/// The changes of a folder since a snapshot, newest first; `None` if the thread has no such snapshot of it.
pub(super) fn changes_since(
    queries: &Queries<'_>,
    (thread, head): (i64, Version),
    snapshot: ContentId,
    here: FolderKind,
) -> Result<Option<Vec<FileStep>>, StoreError> {
    let mut changes = Vec::new();
    for last_file_operation in FileOperationWalk::up_to(queries, thread, head)? {
        let (_, files) = last_file_operation?;
        if !here.holds(&files) {
            continue;
        }
        if files.after == snapshot {
            return Ok(Some(changes));
        }
        changes.push(FileStep::new(files.after, files.before));
        if files.before == snapshot {
            return Ok(Some(changes));
        }
    }
    Ok(None)
}

/// Returns whether an operation records manual edits.
pub(super) fn is_hand_edit(operation: &Operation) -> bool {
    matches!(operation.kind, OperationKind::ExternalEdits { .. })
}
