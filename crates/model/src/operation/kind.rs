//! Properties of an operation kind: its take, the entries it added, and whether undo covers it.

use super::{AddedEntries, OperationKind, TurnStep};
use crate::id::TakeId;

impl OperationKind {
    /// The take that the step belongs to; `None` for a step of the whole thread, and for operations whose
    /// take is named only by their file change.
    pub fn take(&self) -> Option<TakeId> {
        match self {
            // This step creates the take.
            Self::TurnAdvanced { step: TurnStep::Started { forked: Some(_) }, .. } => None,
            Self::EntriesAdded { take, .. }
            | Self::EntryEdited { take, .. }
            | Self::RoleChanged { take, .. }
            | Self::EntriesDeleted { take, .. }
            | Self::EntriesReplaced { take, .. }
            | Self::Truncated { take, .. }
            | Self::Cleared { take, .. }
            | Self::DraftChanged { take }
            | Self::FilesListed { take, .. }
            | Self::SendRecorded { take }
            | Self::TurnAdvanced { take, .. }
            | Self::TakeMerged { take, .. }
            | Self::Compressed { take, .. }
            | Self::DraftAttached { take, .. }
            | Self::DraftCleared { take } => Some(*take),
            _ => None,
        }
    }

    /// Whether it changed only files of a take.
    pub fn changes_files_only(&self) -> bool {
        matches!(self, Self::FilesChanged { .. } | Self::FilesRestored { .. } | Self::FilesMoved { .. })
    }

    /// The take that this step created.
    pub fn created_take(&self) -> Option<TakeId> {
        match self {
            Self::TakeBranched { take, .. }
            | Self::TakeForked { take, .. }
            | Self::TurnAdvanced { take, step: TurnStep::Started { forked: Some(_) }, .. } => Some(*take),
            _ => None,
        }
    }

    /// The entries it added to a take, if any.
    pub fn added(&self) -> Option<AddedEntries> {
        match self {
            Self::EntriesAdded { entry, version, count, position, .. } => {
                Some(AddedEntries { entry: *entry, version: *version, count: *count, position: *position })
            }
            Self::TurnAdvanced { added, .. } | Self::TakeMerged { added, .. } => *added,
            _ => None,
        }
    }

    /// Whether the operation is an undo, a redo or a jump.
    pub fn moves_chains(&self) -> bool {
        matches!(self, Self::Undone { .. } | Self::Redone { .. } | Self::Jumped { .. })
    }

    /// Whether undo skips the operation: it only moves along the log, names a version, changes sharing, or
    /// records edits that the user made outside Retake. Undoing those edits is up to the user.
    pub fn is_not_undoable(&self) -> bool {
        matches!(
            self,
            Self::Undone { .. }
                | Self::Redone { .. }
                | Self::Jumped { .. }
                | Self::Saved { .. }
                | Self::ExternalEdits { .. }
                | Self::SharingSet { .. }
        )
    }
}
