//! The timeline: every change of a thread goes through it.
//!
//! A caller names a thread, a [`Command`] and itself ([`Caller`]); the timeline computes the next state from the newest
//! one inside the store's writer, publishes it, and returns once it is durable. Undo, redo and jump are the same move:
//! choose a state, publish the operation that makes it current.
//!
//! ```text
//!   change(thread, command, caller)                 undo / redo / jump(thread, caller)
//!        │                                               │
//!        ▼                                               ▼
//!   state ── model::command::apply ──► state'       log ── model::history ──► an older state
//!        └──────────────► one operation, published with its objects ◄──────────────┘
//! ```
//!
//! A caller that names the version it read gets a typed conflict if the thread has changed since, and nothing changes;
//! it can read again and retry.

mod anchor;
mod blame;
mod change;
mod changes;
mod cleared;
mod clock;
mod create;
mod desk;
mod differ;
mod error;
mod export;
mod file_changes;
mod file_log;
mod filed;
mod files;
mod find;
mod held;
mod import;
mod looking;
mod moments;
mod moves;
mod paging;
mod past;
mod pictures;
mod present;
mod presets;
mod project;
mod promote;
mod redaction;
mod search;
mod seen;
mod shared;
mod tail;
mod touches;
mod tree;
mod view;

use std::path::Path;
use std::sync::{Arc, Mutex};

use retake_model::id::{RequestId, TakeId, TurnId};
use retake_model::operation::{Actor, Version};
use retake_model::surroundings::Surroundings;
use retake_store::{Listing, OpenError, Store};

pub use blame::{Blame, BlameError, BlameLine, WroteLines};
pub use change::Done;
pub use changes::{
    Changes, Compared, Detail, FileDiff, FileFacts, HunkView, LineView, PartView, Question, SomeChanges,
    Stat, USUAL_CONTEXT,
};
pub use cleared::Cleared;
pub use clock::{Clock, Seeded, SystemClock};
pub use create::{CreateError, NewThread};
pub use desk::{
    Advanced, ApartFolder, Around, Changed, CleanedUp, ClosedApart, Desk, Executed, FileError, FileReport,
    FilesAt, FilesOfTakes, FurtherRoot, Glance, Halves, Handling, Moment, OpenedApart, Outcome, PathReport,
    PendingMove, Plan, PlanRequest, Present, Preview, Recovered, Restored, Seen, SharedChanges, TakeFiles,
    WorktreeChange, WorktreePreview,
};
pub use differ::{Differing, EntryDiffers, FieldDiffers};
pub use error::{ChangeError, LookError};
pub use export::{ExportError, Exported, Front, Piece};
pub use file_changes::FileChanges;
pub use file_log::{FileLog, FileLogItem, Wrote};
pub use files::{Depth, FilePiece, FolderQuestion, HeldFile, HeldFiles};
pub use find::{FindError, Found, SHORTEST_PREFIX, why_no_id};
pub use held::{FilesOfThread, Held, NotHeld};
pub use import::{ImportError, Imported, Importing};
pub use looking::Looking;
pub use moments::{FOLDER, LookAtFolder, MomentError, Moments, NamedFiles};
pub use moves::{Goal, Moved};
pub use paging::{NotACursor, Page, ThreadCursor};
pub use past::{Arrival, Past};
pub use present::{Showing, WhichEntries};
pub use presets::{ContextPreset, PresetError};
pub use project::{ForgottenProject, KnownProject, Noticed, Project, ProjectError};
pub use promote::Promoted;
pub use redaction::{RedactedEntry, RedactionPlan, RedactionRequest, SHORTEST_SECRET};
pub use retake_model as model;
pub use retake_model::command::{Command, NewEntry, Spot};
pub use retake_model::history::Unit;
pub use retake_store as store;
pub use retake_workspace as workspace;
pub use search::{FoundEntries, FoundEntry};
pub use seen::SeenPlaces;
pub use tail::{Happened, Tail, ThreadChange};
pub use tree::{Tree, TreeThread};
pub use view::{EntryView, HistoryItem, SavedVersion, Standing};

/// An open timeline. Clones are cheap and share the same timeline.
#[derive(Clone)]
pub struct Timeline {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    rules: Rules,
    recovered: Arc<Mutex<Vec<Recovered>>>,
    emptied: Arc<Mutex<Vec<PathReport>>>,
    listing: Arc<Mutex<Listing>>,
}

/// Rules of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Draft changes within this number of milliseconds form one step.
    pub typing_pause: i64,
    /// How many changes undo reaches back; `None` for all.
    pub depth: Option<u64>,
}

/// The caller of a change, with its expectations.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The actor.
    pub actor: Actor,
    /// Where the caller runs.
    pub surroundings: Option<Surroundings>,
    /// The turn of the change; `None` starts a new one.
    pub turn: Option<TurnId>,
    /// The version that the caller read; `None` accepts any.
    pub expected: Option<Version>,
    /// The request of the change, if it has an id, by which its operations can be found.
    pub request: Option<RequestId>,
    /// The take whose files the change affects; `None` for the active one.
    pub take: Option<TakeId>,
}

impl Default for Rules {
    fn default() -> Self {
        Self { typing_pause: 2000, depth: None }
    }
}

impl Caller {
    /// The user, without an expected version.
    pub fn human() -> Self {
        Self {
            actor: Actor::Human,
            surroundings: None,
            turn: None,
            expected: None,
            request: None,
            take: None,
        }
    }

    /// Sets the expected version.
    #[must_use]
    pub fn expecting(self, version: Version) -> Self {
        Self { expected: Some(version), ..self }
    }
}

impl Timeline {
    /// Opens the timeline in a folder, creating it if necessary.
    pub fn open(folder: &Path, rules: Rules) -> Result<Self, OpenError> {
        Self::open_with(folder, rules, Arc::new(SystemClock))
    }

    /// Opens a timeline with another clock.
    pub fn open_with(folder: &Path, rules: Rules, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let store = Arc::new(Store::open(folder)?);
        let clock = Arc::new(clock::Bounded(clock));
        Ok(Self {
            store,
            clock,
            rules,
            recovered: Arc::default(),
            emptied: Arc::default(),
            listing: Arc::default(),
        })
    }

    /// The underlying store, for everything that is not a change: verification, usage, search.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Time and randomness for new ids.
    pub fn fresh(&self) -> impl retake_model::id::Fresh + '_ {
        clock::Ticks(&*self.clock)
    }

    /// A random number from the timeline's clock.
    pub fn dice(&self) -> u64 {
        let random = retake_model::id::Fresh::random(&mut clock::Ticks(&*self.clock));
        random.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
    }

    /// The current time of the timeline's clock.
    pub fn now(&self) -> retake_model::time::Timestamp {
        self.clock.now()
    }
}
