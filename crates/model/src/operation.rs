//! Operations: the log of a thread. The log only grows; everything a thread was can be read off it.
//!
//! ```text
//!   version   1 ─────► 2 ─────► 3 ─────► 4 ─────► 5
//!   kind      created  added    edited   undone   added
//!   after     S1       S2       S3       S2       S5
//! ```
//!
//! An operation names the one before it by its hash, so a log cannot be cut or altered in the middle without
//! showing it.

mod actor;
mod chains;
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
pub use turn::{Added, Forked, TurnStep};

/// How many operations a thread has had. The first has version 1.
pub type Version = u64;

/// One change of a thread.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Operation {
    /// The thread.
    #[n(0)]
    pub thread: ThreadId,
    /// Its place in the log.
    #[n(1)]
    pub version: Version,
    /// The name of the operation before it.
    #[n(2)]
    pub previous: Option<ContentId>,
    /// The state that it led to.
    #[n(3)]
    pub after: ContentId,
    /// What was done.
    #[n(4)]
    pub kind: OperationKind,
    /// The operations that it is undone with.
    #[n(5)]
    pub turn: TurnId,
    /// Who did it.
    #[n(6)]
    pub actor: Actor,
    /// When.
    #[n(7)]
    pub time: Timestamp,
    /// Where it stands in the tree of changes.
    #[n(8)]
    pub place: Place,
    /// Where it was made.
    #[n(9)]
    pub surroundings: Option<ContentId>,
    /// The files that it changed.
    #[n(10)]
    pub files: Option<FileChange>,
    /// The last operation of the thread that has `files`, this one included.
    #[n(11)]
    pub filed: Option<Version>,
    /// The request that it was made for: one that is repeated finds what it did the first time.
    #[n(12)]
    pub request: Option<RequestId>,
    /// Which chain it belongs to, and where the others are: see [`crate::history`]. `None` in logs from before takes
    /// had chains of their own; fields at the end that are `None` are not written, so those keep their bytes.
    #[n(13)]
    pub chains: Option<Chains>,
}

/// Where an operation stands in its chain: see [`crate::history`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Place {
    /// The change of the same chain that this one was made on; 0 for the first of a chain.
    #[n(0)]
    pub parent: Version,
    /// How many changes lie between this one and the first of its chain.
    #[n(1)]
    pub depth: u64,
    /// A change further up, for finding ancestors in few steps.
    #[n(2)]
    pub jump: Version,
    /// The change whose state is current after this operation.
    #[n(3)]
    pub position: Version,
    /// The change that redo leads to.
    #[n(4)]
    pub tip: Version,
}

/// The files before and after an operation. What differs between the two is what the operation changed; they
/// are the same where files were looked at and found unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileChange {
    /// The snapshot before.
    #[n(0)]
    pub before: ContentId,
    /// The snapshot after.
    #[n(1)]
    pub after: ContentId,
    /// The take whose files they are.
    #[n(2)]
    pub take: TakeId,
    /// Whether they are in a folder that the take has for itself, and not in the project's.
    #[n(3)]
    pub apart: bool,
    /// The take whose files they were before, if another one is the active one since.
    #[n(4)]
    pub left: Option<TakeId>,
    /// Whether others may have made the change.
    #[n(5)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<Sharing>,
}

/// Who else may have made a change of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cbor(index_only)]
pub enum Sharing {
    /// Another command or tool ran at the same time, which an undo of this change is not about.
    #[n(0)]
    OtherRuns,
    /// The thread is a copy, and the one that it is a copy of, in the same project, has the same change.
    #[n(1)]
    OtherThread,
}

/// What an operation did.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OperationKind {
    /// The thread was made.
    #[n(0)]
    ThreadCreated {
        /// The project it belongs to.
        #[n(0)]
        project: ProjectId,
    },
    /// Entries came in.
    #[n(1)]
    EntriesAdded {
        /// Into which take.
        #[n(0)]
        take: TakeId,
        /// The first of them.
        #[n(1)]
        entry: EntryId,
        /// Its content.
        #[n(2)]
        version: ContentId,
        /// How many.
        #[n(3)]
        count: u64,
        /// Where the first one stands, counted from 0.
        #[n(4)]
        position: u64,
    },
    /// An entry's content was changed.
    #[n(2)]
    EntryEdited {
        /// In which take.
        #[n(0)]
        take: TakeId,
        /// Which entry.
        #[n(1)]
        entry: EntryId,
        /// What it was.
        #[n(2)]
        from: ContentId,
        /// What it became.
        #[n(3)]
        to: ContentId,
    },
    /// An entry's role was changed.
    #[n(3)]
    RoleChanged {
        /// In which take.
        #[n(0)]
        take: TakeId,
        /// Which entry.
        #[n(1)]
        entry: EntryId,
        /// The role it had.
        #[n(2)]
        from: String,
        /// The role it has.
        #[n(3)]
        to: String,
    },
    /// Entries were taken out.
    #[n(4)]
    EntriesDeleted {
        /// Of which take.
        #[n(0)]
        take: TakeId,
        /// The first of them.
        #[n(1)]
        entry: EntryId,
        /// Its content.
        #[n(2)]
        version: ContentId,
        /// How many.
        #[n(3)]
        count: u64,
    },
    /// All entries of a take were replaced by others.
    #[n(5)]
    EntriesReplaced {
        /// Of which take.
        #[n(0)]
        take: TakeId,
        /// How many there were.
        #[n(1)]
        from: u64,
        /// How many there are.
        #[n(2)]
        to: u64,
    },
    /// Old entries were cut off.
    #[n(6)]
    Truncated {
        /// In which take.
        #[n(0)]
        take: TakeId,
        /// How many user and AI pairs were kept.
        #[n(1)]
        pairs: u64,
        /// How many entries went.
        #[n(2)]
        removed: u64,
    },
    /// All entries of a take were taken out.
    #[n(7)]
    Cleared {
        /// Of which take.
        #[n(0)]
        take: TakeId,
        /// How many there were.
        #[n(1)]
        removed: u64,
    },
    /// A take was branched off, up to and including an entry.
    #[n(8)]
    TakeBranched {
        /// The new take.
        #[n(0)]
        take: TakeId,
        /// The take it came from.
        #[n(1)]
        from: TakeId,
        /// The last entry that both share.
        #[n(2)]
        at: Option<EntryId>,
        /// Its name.
        #[n(3)]
        name: String,
    },
    /// A take was forked at a user message, which became its draft.
    #[n(9)]
    TakeForked {
        /// The new take.
        #[n(0)]
        take: TakeId,
        /// The take it came from.
        #[n(1)]
        from: TakeId,
        /// The user message.
        #[n(2)]
        at: EntryId,
        /// Its name.
        #[n(3)]
        name: String,
    },
    /// Another take became the active one.
    #[n(10)]
    TakeSwitched {
        /// The one before.
        #[n(0)]
        from: TakeId,
        /// The one now.
        #[n(1)]
        to: TakeId,
    },
    /// A take got another name.
    #[n(11)]
    TakeRenamed {
        /// Which take.
        #[n(0)]
        take: TakeId,
        /// The name it had.
        #[n(1)]
        from: String,
        /// The name it has.
        #[n(2)]
        to: String,
    },
    /// A take was deleted.
    #[n(12)]
    TakeDeleted {
        /// Which take.
        #[n(0)]
        take: TakeId,
        /// The name it had.
        #[n(1)]
        name: String,
    },
    /// A take became a thread of its own.
    #[n(13)]
    TakePromoted {
        /// Which take.
        #[n(0)]
        take: TakeId,
        /// The name it had.
        #[n(1)]
        name: String,
        /// The thread it became.
        #[n(2)]
        into: ThreadId,
    },
    /// The thread was made from a take of another.
    #[n(14)]
    ThreadPromoted {
        /// The project it belongs to.
        #[n(0)]
        project: ProjectId,
        /// The thread it came from.
        #[n(1)]
        from: ThreadId,
        /// The take it was.
        #[n(2)]
        take: TakeId,
        /// The operation of that thread that let it go.
        #[n(3)]
        by: Version,
    },
    /// The thread got another title.
    #[n(15)]
    Renamed {
        /// The title it had.
        #[n(0)]
        from: String,
        /// The title it has.
        #[n(1)]
        to: String,
    },
    /// Tags were added or removed.
    #[n(16)]
    Tagged {
        /// Tags that were added.
        #[n(0)]
        added: Vec<String>,
        /// Tags that were removed.
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
    /// Who may see the thread was changed, as a step of undo. Only older programs wrote it; see [`Self::SharingSet`].
    #[n(18)]
    SharingChanged {
        /// Who may see it.
        #[n(0)]
        visibility: Visibility,
        /// Whether it never leaves this machine.
        #[n(1)]
        private: bool,
        /// Whether support may see it.
        #[n(2)]
        shared_with_support: bool,
    },
    /// The thread was put away.
    #[n(19)]
    Deleted,
    /// The thread was taken back into use.
    #[n(20)]
    Restored,
    /// The list of roles was changed.
    #[n(21)]
    RolesChanged {
        /// Roles that were added.
        #[n(0)]
        added: Vec<String>,
        /// Roles that were removed.
        #[n(1)]
        removed: Vec<String>,
    },
    /// Settings were changed.
    #[n(22)]
    SettingsChanged {
        /// Their names.
        #[n(0)]
        names: Vec<String>,
    },
    /// The text of the draft was changed.
    #[n(23)]
    DraftChanged {
        /// Of which take.
        #[n(0)]
        take: TakeId,
    },
    /// A list of files was changed.
    #[n(24)]
    FilesListed {
        /// Of which take.
        #[n(0)]
        take: TakeId,
        /// Which list.
        #[n(1)]
        list: FileList,
        /// How many files it has.
        #[n(2)]
        count: u64,
    },
    /// What was given to the model was recorded.
    #[n(25)]
    SendRecorded {
        /// Of which take.
        #[n(0)]
        take: TakeId,
    },
    /// Entries, settings, drafts and files were all cleared.
    #[n(26)]
    Reset,
    /// The moment was given a name.
    #[n(27)]
    Saved {
        /// The name.
        #[n(0)]
        name: String,
    },
    /// Changes were taken back.
    #[n(28)]
    Undone {
        /// The change that was current.
        #[n(0)]
        from: Version,
        /// The change that is current.
        #[n(1)]
        to: Version,
    },
    /// Changes that had been taken back were made again.
    #[n(29)]
    Redone {
        /// The change that was current.
        #[n(0)]
        from: Version,
        /// The change that is current.
        #[n(1)]
        to: Version,
    },
    /// The state of another moment was made current.
    #[n(30)]
    Jumped {
        /// The change that was current.
        #[n(0)]
        from: Version,
        /// The change that is current.
        #[n(1)]
        to: Version,
    },
    /// Files were found changed by hand since Retake last looked.
    #[n(31)]
    FilesSeen {
        /// How many paths.
        #[n(0)]
        paths: u64,
    },
    /// Files were changed by the agent, a tool or a client.
    #[n(32)]
    FilesChanged {
        /// How many paths.
        #[n(0)]
        paths: u64,
    },
    /// Files were made exactly what they were at another moment.
    #[n(33)]
    FilesRestored {
        /// The files of that moment.
        #[n(0)]
        snapshot: ContentId,
        /// How many paths.
        #[n(1)]
        paths: u64,
    },
    /// Files were moved along the log while the conversation stayed.
    #[n(34)]
    FilesMoved {
        /// The change that was current.
        #[n(0)]
        from: Version,
        /// The change whose files are there now.
        #[n(1)]
        to: Version,
        /// How many paths.
        #[n(2)]
        paths: u64,
    },
    /// A turn of the agent's went on.
    #[n(35)]
    TurnAdvanced {
        /// In which take.
        #[n(0)]
        take: TakeId,
        /// What it did.
        #[n(1)]
        step: TurnStep,
        /// The entries that it brought.
        #[n(2)]
        added: Option<Added>,
    },
    /// Entries were replaced by a summary of them.
    #[n(36)]
    Compressed {
        /// In which take.
        #[n(0)]
        take: TakeId,
        /// The summary.
        #[n(1)]
        entry: EntryId,
        /// Its content.
        #[n(2)]
        version: ContentId,
        /// How many entries went.
        #[n(3)]
        removed: u64,
    },
    /// Pictures came to the draft, or went.
    #[n(37)]
    DraftAttached {
        /// Of which take.
        #[n(0)]
        take: TakeId,
        /// How many it has then.
        #[n(1)]
        pictures: u64,
    },
    /// The draft was thrown away, with its pictures.
    #[n(38)]
    DraftCleared {
        /// Of which take.
        #[n(0)]
        take: TakeId,
    },
    /// Who may see the thread was set. The marks are outside history: this records that they were set, and no undo,
    /// redo, jump, reset or import changes them (see [`crate::sharing`]).
    #[n(39)]
    SharingSet {
        /// Who may see it once it is on a hub.
        #[n(0)]
        visibility: Visibility,
        /// Whether it never leaves this machine.
        #[n(1)]
        private: bool,
        /// Whether support may see it.
        #[n(2)]
        shared_with_support: bool,
    },
}

impl Content for Operation {
    const KIND: Kind = Kind::Operation;
}
