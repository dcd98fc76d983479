//! The operations that form the log of a thread. The log is append-only and contains the whole history.
//!
//! ```text
//!   version   1 ─────► 2 ─────► 3 ─────► 4 ─────► 5
//!   kind      created  added    edited   undone   added
//!   after     S1       S2       S3       S2       S5
//! ```
//!
//! An operation contains the hash of its predecessor, so cutting or altering the log in the middle is
//! detectable.

mod actor;
mod chains;
mod files;
mod kind;
#[cfg(test)]
mod tests;
mod turn;

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::content::{Content, ContentId, Kind};
use crate::id::{EntryId, ProjectId, RequestId, TakeId, ThreadId, TurnId};
use crate::state::Visibility;
use crate::take::FileList;
use crate::time::Timestamp;

pub use actor::Actor;
pub use chains::{ChainMoves, ChainPosition, ChainRun, Chains, TakePosition};
pub use files::{ConcurrentChange, FileChange};
pub use turn::{AddedEntries, ForkOrigin, TurnStep};

/// Number of operations in the log of a thread. The first operation has version 1.
pub type Version = u64;

/// One change of a thread.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Operation {
    /// The thread.
    #[n(0)]
    pub thread: ThreadId,
    /// Its position in the log.
    #[n(1)]
    pub version: Version,
    /// Content id of the previous operation.
    #[n(2)]
    pub previous: Option<ContentId>,
    /// The state after the operation.
    #[n(3)]
    pub after: ContentId,
    /// The kind of change.
    #[n(4)]
    pub kind: OperationKind,
    /// The turn it belongs to: all operations of a turn are undone together.
    #[n(5)]
    pub turn: TurnId,
    /// Author of the change.
    #[n(6)]
    pub actor: Actor,
    /// Time of the change.
    #[n(7)]
    pub time: Timestamp,
    /// Its position in the tree of changes.
    #[n(8)]
    pub place: Provenance,
    /// The environment it was made in.
    #[n(9)]
    pub environment: Option<ContentId>,
    /// The files that it changed.
    #[n(10)]
    pub files: Option<FileChange>,
    /// The last operation of the thread with `files`, this one included.
    #[n(11)]
    pub last_file_operation: Option<Version>,
    /// The request that caused it. A repeated request returns the result of the first.
    #[n(12)]
    pub request: Option<RequestId>,
    /// The chain it belongs to and the positions of the other chains: see [`crate::history`]. `None` in logs
    /// that predate chains per take. Trailing `None` fields are not encoded, so old operations keep their
    /// bytes.
    #[n(13)]
    pub chains: Option<Chains>,
}

/// Position of an operation in its chain: see [`crate::history`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Provenance {
    /// The previous change of the same chain; 0 for the first of a chain.
    #[n(0)]
    pub parent: Version,
    /// Number of changes between this one and the first of its chain.
    #[n(1)]
    pub depth: u64,
    /// An earlier change of the chain, for finding ancestors in few steps.
    #[n(2)]
    pub jump: Version,
    /// The change whose state is current after this operation.
    #[n(3)]
    pub position: Version,
    /// The change that redo leads to.
    #[n(4)]
    pub tip: Version,
}

/// The kind of an operation.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OperationKind {
    /// The thread was created.
    #[n(0)]
    ThreadCreated {
        /// The project it belongs to.
        #[n(0)]
        project: ProjectId,
    },
    /// Entries were added.
    #[n(1)]
    EntriesAdded {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// The first added entry.
        #[n(1)]
        entry: EntryId,
        /// Its content.
        #[n(2)]
        version: ContentId,
        /// Number of entries.
        #[n(3)]
        count: u64,
        /// Position of the first one, from 0.
        #[n(4)]
        position: u64,
    },
    /// An entry's content was changed.
    #[n(2)]
    EntryEdited {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// The entry.
        #[n(1)]
        entry: EntryId,
        /// Content before.
        #[n(2)]
        from: ContentId,
        /// Content after.
        #[n(3)]
        to: ContentId,
    },
    /// An entry's role was changed.
    #[n(3)]
    RoleChanged {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// The entry.
        #[n(1)]
        entry: EntryId,
        /// Role before.
        #[n(2)]
        from: String,
        /// Role after.
        #[n(3)]
        to: String,
    },
    /// Entries were deleted.
    #[n(4)]
    EntriesDeleted {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// The first deleted entry.
        #[n(1)]
        entry: EntryId,
        /// Its content.
        #[n(2)]
        version: ContentId,
        /// Number of entries.
        #[n(3)]
        count: u64,
    },
    /// All entries of a take were replaced.
    #[n(5)]
    EntriesReplaced {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// Number of entries before.
        #[n(1)]
        from: u64,
        /// Number of entries after.
        #[n(2)]
        to: u64,
    },
    /// The oldest entries were removed.
    #[n(6)]
    Truncated {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// Number of user and AI pairs that remain.
        #[n(1)]
        pairs: u64,
        /// Number of removed entries.
        #[n(2)]
        removed: u64,
    },
    /// All entries of a take were deleted.
    #[n(7)]
    Cleared {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// Number of removed entries.
        #[n(1)]
        removed: u64,
    },
    /// A take was branched from another, up to and including an entry.
    #[n(8)]
    TakeBranched {
        /// The new take.
        #[n(0)]
        take: TakeId,
        /// The source take.
        #[n(1)]
        from: TakeId,
        /// The last entry that both share.
        #[n(2)]
        at: Option<EntryId>,
        /// Its name.
        #[n(3)]
        name: String,
    },
    /// A take was forked at a user message, which became the draft of the new take.
    #[n(9)]
    TakeForked {
        /// The new take.
        #[n(0)]
        take: TakeId,
        /// The source take.
        #[n(1)]
        from: TakeId,
        /// The user message.
        #[n(2)]
        at: EntryId,
        /// Its name.
        #[n(3)]
        name: String,
    },
    /// The active take changed.
    #[n(10)]
    TakeSwitched {
        /// The previously active take.
        #[n(0)]
        from: TakeId,
        /// The take that is active now.
        #[n(1)]
        to: TakeId,
    },
    /// A take was renamed.
    #[n(11)]
    TakeRenamed {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// Name before.
        #[n(1)]
        from: String,
        /// Name after.
        #[n(2)]
        to: String,
    },
    /// A take was deleted.
    #[n(12)]
    TakeDeleted {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// Its name.
        #[n(1)]
        name: String,
    },
    /// A take was moved into a new thread.
    #[n(13)]
    TakePromoted {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// Its name.
        #[n(1)]
        name: String,
        /// The new thread.
        #[n(2)]
        into: ThreadId,
    },
    /// The thread was created from a take of another thread.
    #[n(14)]
    ThreadPromoted {
        /// The project it belongs to.
        #[n(0)]
        project: ProjectId,
        /// The source thread.
        #[n(1)]
        from: ThreadId,
        /// The promoted take.
        #[n(2)]
        take: TakeId,
        /// The operation of the source thread that removed the take.
        #[n(3)]
        by: Version,
    },
    /// The thread was renamed.
    #[n(15)]
    Renamed {
        /// Title before.
        #[n(0)]
        from: String,
        /// Title after.
        #[n(1)]
        to: String,
    },
    /// Tags were added or removed.
    #[n(16)]
    Tagged {
        /// Added tags.
        #[n(0)]
        added: Vec<String>,
        /// Removed tags.
        #[n(1)]
        removed: Vec<String>,
    },
    /// The thread was pinned or unpinned.
    #[n(17)]
    Pinned {
        /// Whether it is pinned now.
        #[n(0)]
        pinned: bool,
    },
    /// The sharing settings changed, as an undoable step. Only older versions wrote it; see
    /// [`Self::SharingSet`].
    #[n(18)]
    SharingChanged {
        /// The new visibility.
        #[n(0)]
        visibility: Visibility,
        /// Whether the thread is never sent to a hub.
        #[n(1)]
        private: bool,
        /// Whether support may see it.
        #[n(2)]
        shared_with_support: bool,
    },
    /// The thread was deleted.
    #[n(19)]
    Deleted,
    /// The deleted thread was restored.
    #[n(20)]
    Restored,
    /// The list of roles changed.
    #[n(21)]
    RolesChanged {
        /// Added roles.
        #[n(0)]
        added: Vec<String>,
        /// Removed roles.
        #[n(1)]
        removed: Vec<String>,
    },
    /// Settings changed.
    #[n(22)]
    SettingsChanged {
        /// Names of the changed settings.
        #[n(0)]
        names: Vec<String>,
    },
    /// The text of the draft changed.
    #[n(23)]
    DraftChanged {
        /// The take.
        #[n(0)]
        take: TakeId,
    },
    /// A list of files changed.
    #[n(24)]
    FilesListed {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// The changed list.
        #[n(1)]
        list: FileList,
        /// Number of files in it.
        #[n(2)]
        count: u64,
    },
    /// The context sent to the model was recorded.
    #[n(25)]
    SendRecorded {
        /// The take.
        #[n(0)]
        take: TakeId,
    },
    /// Entries, settings, drafts and files were all cleared.
    #[n(26)]
    Reset,
    /// The current version was saved under a name.
    #[n(27)]
    Saved {
        /// The name.
        #[n(0)]
        name: String,
    },
    /// Changes were undone.
    #[n(28)]
    Undone {
        /// The current change before.
        #[n(0)]
        from: Version,
        /// The current change after.
        #[n(1)]
        to: Version,
    },
    /// Undone changes were redone.
    #[n(29)]
    Redone {
        /// The current change before.
        #[n(0)]
        from: Version,
        /// The current change after.
        #[n(1)]
        to: Version,
    },
    /// The state of another version became current.
    #[n(30)]
    Jumped {
        /// The current change before.
        #[n(0)]
        from: Version,
        /// The current change after.
        #[n(1)]
        to: Version,
    },
    /// The user changed files outside Retake since the last snapshot.
    #[n(31)]
    ExternalEdits {
        /// Number of paths.
        #[n(0)]
        paths: u64,
    },
    /// The agent, a tool or a client changed files.
    #[n(32)]
    FilesChanged {
        /// Number of paths.
        #[n(0)]
        paths: u64,
    },
    /// Files were restored from another version.
    #[n(33)]
    FilesRestored {
        /// The snapshot of that version.
        #[n(0)]
        snapshot: ContentId,
        /// Number of paths.
        #[n(1)]
        paths: u64,
    },
    /// Files moved to another change while the conversation stayed.
    #[n(34)]
    FilesMoved {
        /// The current change before.
        #[n(0)]
        from: Version,
        /// The change whose files are in the folder now.
        #[n(1)]
        to: Version,
        /// Number of paths.
        #[n(2)]
        paths: u64,
    },
    /// An agent turn advanced.
    #[n(35)]
    TurnAdvanced {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// The step of the turn.
        #[n(1)]
        step: TurnStep,
        /// The entries it added.
        #[n(2)]
        added: Option<AddedEntries>,
    },
    /// Entries were replaced by a summary.
    #[n(36)]
    Compressed {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// The summary entry.
        #[n(1)]
        entry: EntryId,
        /// Its content.
        #[n(2)]
        version: ContentId,
        /// Number of replaced entries.
        #[n(3)]
        removed: u64,
    },
    /// Pictures were attached to the draft or removed from it.
    #[n(37)]
    DraftAttached {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// Number of pictures after the change.
        #[n(1)]
        pictures: u64,
    },
    /// The draft was discarded, with its pictures.
    #[n(38)]
    DraftCleared {
        /// The take.
        #[n(0)]
        take: TakeId,
    },
    /// The sharing settings changed. They are outside history: this operation records the change, and no
    /// undo, redo, jump, reset or import changes them (see [`crate::sharing`]).
    #[n(39)]
    SharingSet {
        /// Visibility on a hub.
        #[n(0)]
        visibility: Visibility,
        /// Whether the thread is never sent to a hub.
        #[n(1)]
        private: bool,
        /// Whether support may see it.
        #[n(2)]
        shared_with_support: bool,
    },
    /// A take was kept: it became active, and the takes that were alternatives to it were deleted.
    #[n(40)]
    TakeKept {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// Its name.
        #[n(1)]
        name: String,
        /// The previously active take.
        #[n(2)]
        from: TakeId,
        /// Names of the deleted takes.
        #[n(3)]
        deleted: Vec<String>,
    },
    /// Another take was merged into this one: its conclusion, its file changes, or both.
    #[n(41)]
    TakeMerged {
        /// The take.
        #[n(0)]
        take: TakeId,
        /// The other take.
        #[n(1)]
        from: TakeId,
        /// Its name.
        #[n(2)]
        name: String,
        /// The entry with its conclusion.
        #[n(3)]
        added: Option<AddedEntries>,
    },
}

impl Content for Operation {
    const KIND: Kind = Kind::Operation;
}
