//! What the kind of an operation says of it: whose step it is, what it brought, whether it is a step at all.

use super::{Added, OperationKind, TurnStep};
use crate::id::TakeId;

impl OperationKind {
    /// The take whose step this is; `None` for a step of the thread as a whole, and where only the file change that comes
    /// with the operation names the take.
    pub fn take(&self) -> Option<TakeId> {
        match self {
            // The take is made by this very step.
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
            | Self::Compressed { take, .. }
            | Self::DraftAttached { take, .. }
            | Self::DraftCleared { take } => Some(*take),
            _ => None,
        }
    }

    /// Whether it changed the files of a take and nothing else.
    pub fn changes_files_only(&self) -> bool {
        matches!(self, Self::FilesChanged { .. } | Self::FilesRestored { .. } | Self::FilesMoved { .. })
    }

    /// The take that this step made.
    pub fn made(&self) -> Option<TakeId> {
        match self {
            Self::TakeBranched { take, .. }
            | Self::TakeForked { take, .. }
            | Self::TurnAdvanced { take, step: TurnStep::Started { forked: Some(_) }, .. } => Some(*take),
            _ => None,
        }
    }

    /// The entries that it brought into a take, if it brought any.
    pub fn added(&self) -> Option<Added> {
        match self {
            Self::EntriesAdded { entry, version, count, position, .. } => {
                Some(Added { entry: *entry, version: *version, count: *count, position: *position })
            }
            Self::TurnAdvanced { added, .. } => *added,
            _ => None,
        }
    }

    /// Whether the operation is an undo, a redo or a jump.
    pub fn moves_chains(&self) -> bool {
        matches!(self, Self::Undone { .. } | Self::Redone { .. } | Self::Jumped { .. })
    }

    /// Whether the operation only moves along the log, names a moment, sets who may see the thread or notes what a
    /// hand did to files: it is no step of undo. What someone did by hand is theirs to take back.
    pub fn moves_only(&self) -> bool {
        matches!(
            self,
            Self::Undone { .. }
                | Self::Redone { .. }
                | Self::Jumped { .. }
                | Self::Saved { .. }
                | Self::FilesSeen { .. }
                | Self::SharingSet { .. }
        )
    }
}
