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

#![warn(missing_docs)]

mod clock;
mod error;
mod files;
mod read;
mod transfer;
mod working_copy;
mod write;

use std::path::Path;
use std::sync::{Arc, Mutex};

use retake_model::environment::Environment;
use retake_model::id::{RequestId, TakeId, TurnId};
use retake_model::operation::{Actor, Version};
use retake_store::{OpenError, Store, ThreadList};

use crate::read::sent::SentConversations;
use crate::read::turns::index::TurnCache;

pub use clock::{Clock, SeededClock, SystemClock};
pub use error::{ChangeError, ReadError};
pub use files::blame::{Blame, BlameError, BlameLine, LineOrigin};
pub use files::captured::{ExcludedFile, SnapshotSummary, ThreadFiles};
pub use files::changes::{
    Changes, ChangesPage, ContentComparison, DEFAULT_CONTEXT, Detail, DiffOptions, FileDiff, FileFacts,
    HunkView, LineView, PartView, Stat,
};
pub use files::file_changes::FileChanges;
pub use files::file_history::{FileHistoryReader, FilesAt};
pub use files::file_log::{FileLog, FileLogItem, OperationInfo};
pub use files::git_branch::{GitBranchBase, GitBranchError, GitBranchPlan, GitBranchRequest};
pub use files::listing::{CapturedFile, CapturedFilePage, Depth, FilePiece, ListOptions};
pub use files::snapshot::SnapshotReader;
pub use read::compare_versions::{EntryDifference, FieldDifference, VersionComparison};
pub use read::entries::EntryReader;
pub use read::entry_history::{EntryHistory, FirstAppearance};
pub use read::find::{FindError, Finder, SHORTEST_PREFIX, ThreadMatch, id_hint};
pub use read::history::HistoryReader;
pub use read::paging::{InvalidCursorError, Page, ThreadCursor};
pub use read::pictures::{read_blob, read_picture};
pub use read::project::ProjectReader;
pub use read::reader::Reader;
pub use read::reset_summary::ResetSummary;
pub use read::revisions::{Comparison, FOLDER, NamedFiles, RevisionError, RevisionResolver, SnapshotFolder};
pub use read::search::{FoundEntries, FoundEntry};
pub use read::sent::{SentConversation, TooLarge};
pub use read::settings::SettingsReader;
pub use read::tail::{LogEvent, Tail, ThreadChange};
pub use read::thread_locations::ThreadLocations;
pub use read::tree::{Tree, TreeThread};
pub use read::turns::{TURN, Turn, TurnName, TurnStatus, Turns};
pub use read::view::{EntryView, HistoryItem, SavedVersion, UndoStatus};
pub use retake_model::command::{Command, InsertPosition, NewEntry};
pub use retake_model::history::Unit;
// The parts of the store that appear in this API.
pub use retake_store::{
    DeletedFilter, EntryPresentation, Facet, RedactError, SearchError, SearchIndex, SearchOrder, SearchQuery,
    SearchScope, Snippet, StoreError, StoreUsage, StoredOperation, ThreadFilter, ThreadRow, ThreadSelection,
};
pub use transfer::adopt::{AdoptError, Adoption, PauseReason};
pub use transfer::export::{ExportError, ExportFormatter, ExportItem, ExportSummary, Exporter};
pub use transfer::import::{ImportError, ImportMode, ImportSummary};
pub use transfer::replica::{ReplicaError, ReplicaPoint, ReplicaReader};
pub use working_copy::{
    AdditionalRoot, ChangeReport, CleanupReport, ClosedWorktree, CurrentFiles, FileError, FileReport,
    FolderStatus, MoveOptions, MoveOutcome, OpenedWorktree, Outcome, PathReport, PendingMove, Plan,
    PlanOutcome, PlanRequest, Preview, RecordedChanges, RecoveredMove, RestoreOutcome, Scope, SharedChanges,
    TakeFiles, TakeFilesIndex, ToolPhase, TurnAdvanceOutcome, WorkingCopy, Worktree, WorktreeChange,
    WorktreePreview, WorktreeReader,
};
pub use write::change::ChangeOutcome;
pub use write::create::{CreateError, NewThread};
pub use write::entry_display::{DisplayChange, EntrySelection};
pub use write::moves::{Goal, HistoryMove};
pub use write::presets::{ContextPreset, PresetError};
pub use write::project::{
    AdoptedProject, ForgottenProject, KnownProject, Project, ProjectChange, ProjectError,
};
pub use write::promote::PromoteOutcome;
pub use write::redaction::{RedactedEntry, RedactionPlan, RedactionRequest, SHORTEST_SECRET};

/// An open timeline. Clones are cheap and share the same timeline.
#[derive(Clone)]
pub struct Timeline {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    rules: Rules,
    recovered: Arc<Mutex<Vec<RecoveredMove>>>,
    emptied: Arc<Mutex<Vec<PathReport>>>,
    listing: Arc<Mutex<ThreadList>>,
    turns: Arc<TurnCache>,
    sent: Arc<SentConversations>,
}

/// Rules of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Draft changes within this number of milliseconds form one step.
    pub typing_pause: i64,
    /// How many turns undo reaches back; `None` for all.
    pub depth: Option<u64>,
}

/// The caller of a change, with its expectations.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The actor.
    pub actor: Actor,
    /// Where the caller runs.
    pub environment: Option<Environment>,
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
        Self { actor: Actor::Human, environment: None, turn: None, expected: None, request: None, take: None }
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
        let clock = Arc::new(clock::BoundedClock(clock));
        Ok(Self {
            store,
            clock,
            rules,
            recovered: Arc::default(),
            emptied: Arc::default(),
            listing: Arc::default(),
            turns: Arc::default(),
            sent: Arc::default(),
        })
    }

    /// The underlying store, for everything that is not a change: verification, usage, search.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Time and randomness for new ids.
    pub fn fresh(&self) -> impl retake_model::id::IdSource + '_ {
        clock::ClockIds(&*self.clock)
    }

    /// A random number from the timeline's clock.
    pub fn random_u64(&self) -> u64 {
        let random = retake_model::id::IdSource::random(&mut clock::ClockIds(&*self.clock));
        random.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
    }

    /// The current time of the timeline's clock.
    pub fn now(&self) -> retake_model::time::Timestamp {
        self.clock.now()
    }
}
