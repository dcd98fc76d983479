//! The desk: a timeline together with a folder that its threads work in.
//!
//! Conversation and files move together. Every move goes the same way, and a crash at any point of it leaves
//! something that the next one to come finishes:
//!
//! ```text
//!   lock the folder ─► finish what a crash left ─► look: hand edits become an operation of the human's
//!        │
//!        └─► work out: which changes to take back or make again, carried over to the present files
//!                │
//!                ├─► nothing moves ──────────────────────────────────────► publish the operation
//!                └─► intent durable ─► files move, path by path, synced ─► publish, intent gone
//! ```
//!
//! A [`Plan`] is the same without a trace: the files are observed, the operations rehearsed and rolled back.
//!
//! Each operation owns the paths that differ between its two snapshots, whoever else works in the folder: a move
//! of one thread never takes another thread's changes along, nor those that were made by hand.

mod alone;
mod apart;
mod carry_out;
mod durable;
mod emptied;
mod entry_files;
mod error;
mod glance;
mod imported;
mod jump;
mod look;
mod mode_bits;
mod moves;
mod of_takes;
mod open;
mod ownership;
mod pending;
mod place;
mod plan;
mod planning;
mod recover;
mod rehearse;
mod report;
mod restore;
mod roots;
mod route;
mod save;
mod sealed;
mod take_folder;
mod takes;
mod turn;
mod work;

use std::sync::Arc;

use retake_model::content::ContentId;
use retake_model::id::{FolderId, ProjectId};
use retake_model::intent::Apart;
use retake_model::replay::OnConflict;
use retake_store::FolderLock;
use retake_workspace::snapshot::Workspace;
use serde::Serialize;

use crate::Timeline;

pub use apart::{ApartFolder, CleanedUp, ClosedApart, OpenedApart, WorktreeChange, WorktreePreview};
pub use error::FileError;
pub use glance::Glance;
pub(crate) use imported::stay_with_files;
pub use look::{Present, Seen};
pub use moves::Moment;
pub use of_takes::{FilesOfTakes, TakeFiles};
pub use pending::PendingMove;
pub(crate) use planning::has_files;
pub use planning::{Executed, Plan, PlanRequest};
pub use recover::Recovered;
pub use rehearse::Preview;
pub use report::{FileReport, Outcome, PathReport};
pub use restore::{FilesAt, Restored};
pub use roots::FurtherRoot;
pub(crate) use route::changes_any_files;
pub use takes::Changed;
pub(crate) use takes::{files_of_new_take, files_of_promoted};
pub use turn::{Advanced, Around};

/// A timeline together with a folder.
#[derive(Clone)]
pub struct Desk {
    timeline: Timeline,
    folder: FolderId,
    project: ProjectId,
    workspace: Arc<Workspace>,
    apart: Option<Apart>,
}

/// What moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Halves {
    /// Conversation and files.
    #[default]
    Both,
    /// The conversation alone.
    Conversation,
    /// The files alone.
    Files,
}

/// How files are moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handling {
    /// What moves.
    pub halves: Halves,
    /// What becomes of files that do not merge.
    pub on_conflict: OnConflict,
    /// What becomes of changes that several runs made together.
    pub shared: SharedChanges,
}

/// What a move does about changes that several commands or tools made together, so that nobody knows whose they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedChanges {
    /// It is refused, unless it was previewed.
    #[default]
    Refuse,
    /// They are undone with the rest.
    Undo,
}

impl Desk {
    /// The timeline at a project's own folder.
    pub fn at(timeline: Timeline, project: ProjectId, workspace: Workspace) -> Self {
        Self {
            timeline,
            folder: FolderId::of_project(project),
            project,
            workspace: Arc::new(workspace),
            apart: None,
        }
    }

    /// The timeline underneath.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The take that lives in this folder apart from the others; none in the folder of a project.
    pub fn apart(&self) -> Option<Apart> {
        self.apart
    }

    /// Keeps everybody else out of the folder, and finishes what a crash left.
    fn begin(&self) -> Result<Session<'_>, FileError> {
        self.check_roots()?;
        self.begin_with_any_roots()
    }

    /// The same where the further roots may be others than those that are recorded.
    fn begin_with_any_roots(&self) -> Result<Session<'_>, FileError> {
        let lock = self.timeline.store.lock_folder(self.folder)?;
        let recovered = recover::recover_locked(&self.timeline, self.folder, Some(self.roots()))?;
        apart::clear_unfinished(&self.timeline, self.folder);
        let emptied = self.restore_emptied()?;
        Ok(Session { desk: self, recovered, emptied, expected: None, _lock: lock })
    }
}

/// The folder while nobody else moves files in it.
struct Session<'desk> {
    desk: &'desk Desk,
    recovered: Option<Recovered>,
    emptied: Vec<PathReport>,
    /// The files that a plan was made for; any will do if none are named.
    expected: Option<ContentId>,
    _lock: FolderLock,
}
