//! Views of a thread: plain values with a stable JSON shape.

use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TurnId};
use retake_model::operation::{Actor, OperationKind, Version};
use retake_model::time::Timestamp;
use retake_store::EntryPresentation;
use serde::Serialize;

/// An entry with its position.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EntryView {
    /// Position in the take, counted from 1.
    pub number: u64,
    /// The entry.
    pub id: EntryId,
    /// Id of its content.
    pub version: ContentId,
    /// Its display state.
    #[serde(flatten)]
    pub shown: EntryPresentation,
    /// Its content.
    pub entry: EntryVersion,
}

/// The position of a thread in its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UndoStatus {
    /// The current version: the number of its operations.
    pub version: Version,
    /// The change whose state is current.
    pub position: Version,
    /// Whether an undo is possible.
    pub can_undo: bool,
    /// Whether a redo is possible.
    pub can_redo: bool,
}

/// A saved version of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedVersion {
    /// The version, as argument of `jump`.
    pub version: Version,
    /// The name.
    pub name: String,
    /// When it was saved.
    pub time: Timestamp,
    /// The saved state.
    pub state: ContentId,
}

/// An operation in the history of a thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryItem {
    /// The version, as argument of `jump`.
    pub version: Version,
    /// Id of the operation.
    pub operation: ContentId,
    /// Its kind.
    pub kind: OperationKind,
    /// The turn with which it is undone.
    pub turn: TurnId,
    /// Its actor.
    pub actor: Actor,
    /// Its time.
    pub time: Timestamp,
    /// The state after it.
    pub state: ContentId,
    /// Whether its state is the current one.
    pub current: bool,
    /// Whether it is a change that the current state does not contain.
    pub undone: bool,
    /// Whether redo leads to it.
    pub redoable: bool,
}
