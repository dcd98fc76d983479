//! The timeline: the only door for changes.
//!
//! Intents go down, states come up. A caller names a thread, a [`Command`] and itself ([`Caller`]); the
//! timeline computes the next state from the newest one inside the store's writer, publishes it, and answers
//! once it is durable. Undo, redo and jump are the same move: choose a state, publish the operation that makes
//! it current.
//!
//! ```text
//!   change(thread, command, caller)                 undo / redo / jump(thread, caller)
//!        │                                               │
//!        ▼                                               ▼
//!   state ── model::command::apply ──► state'       log ── model::history ──► an older state
//!        └──────────────► one operation, published with its objects ◄──────────────┘
//! ```
//!
//! A caller that names the version it saw gets a typed conflict when the thread has moved on, and nothing is
//! changed; it can look again and repeat what it asked.

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

/// A timeline that is open. Cheap to clone; every clone is the same timeline.
#[derive(Clone)]
pub struct Timeline {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    rules: Rules,
    recovered: Arc<Mutex<Vec<Recovered>>>,
    emptied: Arc<Mutex<Vec<PathReport>>>,
    listing: Arc<Mutex<Listing>>,
}

/// How history behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Changes of a draft that follow each other within this many milliseconds are one step.
    pub typing_pause: i64,
    /// How many changes undo reaches back; `None` for all of them.
    pub depth: Option<u64>,
}

/// Who asks for a change, and what they know.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who.
    pub actor: Actor,
    /// Where.
    pub surroundings: Option<Surroundings>,
    /// The turn that the change belongs to; `None` makes it a turn of its own.
    pub turn: Option<TurnId>,
    /// The version that the caller saw; `None` if any will do.
    pub expected: Option<Version>,
    /// The request that the change is made for, if it has a name: what is done for it can be found by that name.
    pub request: Option<RequestId>,
    /// The take whose files a change of files changes; `None` for the active one.
    pub take: Option<TakeId>,
}

impl Default for Rules {
    fn default() -> Self {
        Self { typing_pause: 2000, depth: None }
    }
}

impl Caller {
    /// The person at the keyboard, who has looked at no version in particular.
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

    /// The same caller, who expects the thread to be at that version.
    #[must_use]
    pub fn expecting(self, version: Version) -> Self {
        Self { expected: Some(version), ..self }
    }
}

impl Timeline {
    /// Opens the timeline that lives in that folder, making it if there is none.
    pub fn open(folder: &Path, rules: Rules) -> Result<Self, OpenError> {
        Self::open_with(folder, rules, Arc::new(SystemClock))
    }

    /// Opens the timeline with a clock of the caller's.
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

    /// The store underneath, for what is not a change: proof, usage, search.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Time and dice for new identities.
    pub fn fresh(&self) -> impl retake_model::id::Fresh + '_ {
        clock::Ticks(&*self.clock)
    }

    /// Any number, from the timeline's dice.
    pub fn dice(&self) -> u64 {
        let random = retake_model::id::Fresh::random(&mut clock::Ticks(&*self.clock));
        random.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
    }

    /// The present moment, as the timeline's clock says.
    pub fn now(&self) -> retake_model::time::Timestamp {
        self.clock.now()
    }
}
