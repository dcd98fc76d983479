//! What is shown of a thread: plain values with a stable JSON shape, for every surface alike.

use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TurnId};
use retake_model::operation::{Actor, OperationKind, Version};
use retake_model::time::Timestamp;
use retake_store::Shown;
use serde::Serialize;

/// An entry where it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EntryView {
    /// Its place in the take, counted from 1 as people do.
    pub number: u64,
    /// Its identity.
    pub id: EntryId,
    /// Its content's name.
    pub version: ContentId,
    /// How it is shown.
    #[serde(flatten)]
    pub shown: Shown,
    /// Its content.
    pub entry: EntryVersion,
}

/// Where a thread stands in its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Standing {
    /// How many operations it has had.
    pub version: Version,
    /// The change whose state is current.
    pub position: Version,
    /// Whether an undo is possible.
    pub can_undo: bool,
    /// Whether a redo is possible.
    pub can_redo: bool,
}

/// A version of a thread that was saved under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedVersion {
    /// Its place in the log: what `jump` takes.
    pub version: Version,
    /// The name.
    pub name: String,
    /// When it was saved.
    pub time: Timestamp,
    /// The state that was saved.
    pub state: ContentId,
}

/// One line of a thread's history.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryItem {
    /// Its place in the log: what `jump` takes.
    pub version: Version,
    /// The operation's name.
    pub operation: ContentId,
    /// What was done.
    pub kind: OperationKind,
    /// What it is undone with.
    pub turn: TurnId,
    /// Who did it.
    pub actor: Actor,
    /// When.
    pub time: Timestamp,
    /// The state that it led to.
    pub state: ContentId,
    /// Whether its state is the current one.
    pub current: bool,
    /// Whether it is a change that the current state does not contain.
    pub undone: bool,
    /// Whether redo leads to it.
    pub redoable: bool,
}
