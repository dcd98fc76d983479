//! The working copy: a timeline together with the folder that its threads work in.
//!
//! Conversation and files move together. All moves use the same procedure, and after a crash at any point of it the next
//! process completes the move:
//!
//! ```text
//!   lock the folder ─► finish an interrupted move ─► record changes: manual edits become an operation of the user
//!        │
//!        └─► resolve the request: which changes to undo or redo, replayed on the current files
//!                │
//!                ├─► no file moves ──────────────────────────────────────► publish the operation
//!                └─► intent durable ─► files move, path by path, synced ─► publish, delete the intent
//! ```
//!
//! A [`Plan`] does the same without side effects: the files are observed, the operations executed and rolled back.
//!
//! Each operation owns the paths that differ between its two snapshots, whatever else happens in the folder: a move of one
//! thread never moves changes of another thread, nor manual edits.

mod after_import;
mod durable;
mod emptied_files;
mod entry_files;
mod error;
mod execute;
mod files_only;
mod folder_state;
mod jump;
mod merge;
mod mode_bits;
mod moves;
mod open;
mod ownership;
mod pending;
mod plan;
mod plan_outcome;
mod planning;
mod preview;
mod record_changes;
mod recover;
mod report;
mod resolve_request;
mod restore;
mod roots;
mod route;
mod run_report;
mod save;
mod sealed;
mod status;
mod take_files;
mod take_folder;
mod takes;
mod turn;
mod uncaptured;
mod worktree;

use std::sync::Arc;

use retake_model::content::ContentId;
use retake_model::id::{FolderId, ProjectId};
use retake_model::intent::WorktreeTake;
use retake_model::replay::OnConflict;
use retake_store::FolderLock;
use retake_workspace::snapshot::Workspace;
use serde::{Deserialize, Serialize};

use crate::Timeline;

pub(crate) use after_import::move_back_to_files;
pub use error::FileError;
pub use moves::MoveOutcome;
pub use pending::PendingMove;
pub(crate) use plan::{FileOperationWalk, files_of_take};
pub use plan_outcome::PlanOutcome;
pub(crate) use planning::has_files;
pub use planning::{Plan, PlanRequest};
pub use preview::Preview;
pub use record_changes::{CurrentFiles, RecordedChanges};
pub use recover::RecoveredMove;
pub use report::{FileReport, Outcome, PathReport};
pub use restore::RestoreOutcome;
pub use roots::AdditionalRoot;
pub(crate) use route::changes_any_files;
pub use status::FolderStatus;
pub use take_files::{TakeFiles, TakeFilesIndex};
pub use takes::ChangeReport;
pub(crate) use takes::{files_of_new_take, files_of_promoted};
pub use turn::{ToolPhase, TurnAdvanceOutcome};
pub use worktree::{
    CleanupReport, ClosedWorktree, OpenedWorktree, Worktree, WorktreeChange, WorktreePreview, WorktreeReader,
};

/// A timeline together with a folder.
#[derive(Clone)]
pub struct WorkingCopy {
    timeline: Timeline,
    folder: FolderId,
    project: ProjectId,
    workspace: Arc<Workspace>,
    worktree: Option<WorktreeTake>,
}

/// What a move affects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Conversation and files.
    #[default]
    Both,
    /// Only the conversation.
    Conversation,
    /// Only the files.
    Files,
}

/// Options of a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveOptions {
    /// What the move affects.
    pub scope: Scope,
    /// What to do with files that do not merge.
    pub on_conflict: OnConflict,
    /// What to do with changes that several runs made together.
    pub shared: SharedChanges,
}

/// How a move treats changes that several commands or tools made at the same time, so that their author is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedChanges {
    /// Reject the move, unless it was previewed.
    #[default]
    Refuse,
    /// Undo them with the rest.
    Undo,
}

impl WorkingCopy {
    /// The working copy in a project's own folder.
    pub fn at(timeline: Timeline, project: ProjectId, workspace: Workspace) -> Self {
        Self {
            timeline,
            folder: FolderId::of_project(project),
            project,
            workspace: Arc::new(workspace),
            worktree: None,
        }
    }

    /// The underlying timeline.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The take of this worktree; `None` in the folder of a project.
    pub fn worktree(&self) -> Option<WorktreeTake> {
        self.worktree
    }

    /// Locks the folder and finishes an interrupted move.
    fn begin(&self) -> Result<FolderSession<'_>, FileError> {
        self.check_roots()?;
        self.begin_with_changed_roots()
    }

    /// Like `begin`, if the additional roots may differ from the recorded ones.
    fn begin_with_changed_roots(&self) -> Result<FolderSession<'_>, FileError> {
        let lock = self.timeline.store.lock_folder(self.folder)?;
        let recovered = recover::recover_locked(&self.timeline, self.folder, Some(self.roots()))?;
        worktree::clear_unfinished_fills(&self.timeline, self.folder);
        let emptied = self.restore_emptied()?;
        Ok(FolderSession { working_copy: self, recovered, emptied, expected: None, _lock: lock })
    }
}

/// A locked folder.
struct FolderSession<'copy> {
    working_copy: &'copy WorkingCopy,
    recovered: Option<RecoveredMove>,
    emptied: Vec<PathReport>,
    /// The files that a plan was made for; `None` accepts any.
    expected: Option<ContentId>,
    _lock: FolderLock,
}
