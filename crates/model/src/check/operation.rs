//! Validation of a single operation. The ids in it may be dangling, because their targets may have been
//! deleted.

use super::{InvalidContentError, at_most, clock_time, name, take_name};
use crate::limits::OBSERVATION_BYTES;
use crate::name::{NameKind, check};
use crate::operation::{Actor, Operation, OperationKind};
use crate::settings::{InvalidSettingError, NAMES};

/// Checks the time, the actor and the names of an operation.
pub fn operation(operation: &Operation) -> Result<(), InvalidContentError> {
    clock_time(operation.time)?;
    if let Actor::ToolCall { call: text } | Actor::Client { name: text } = &operation.actor {
        at_most("bytes of an actor's name", text.len(), OBSERVATION_BYTES)?;
    }
    let makes =
        matches!(operation.kind, OperationKind::ThreadCreated { .. } | OperationKind::ThreadPromoted { .. });
    if makes != (operation.version == 1) {
        return Err(InvalidContentError::NotFirstOperation);
    }
    names(&operation.kind)
}

/// An operation names every take that it deleted, and no thread has as many.
const MAX_DELETED: usize = 100_000;

fn names(kind: &OperationKind) -> Result<(), InvalidContentError> {
    use OperationKind as Kind;
    match kind {
        Kind::RoleChanged { from, to, .. } => {
            // The old role may come from a client, with surrounding white space.
            check(NameKind::Role, from)?;
            name(NameKind::Role, to)
        }
        Kind::TakeBranched { name, .. }
        | Kind::TakeForked { name, .. }
        | Kind::TakeDeleted { name, .. }
        | Kind::TakeMerged { name, .. }
        | Kind::TakePromoted { name, .. } => take_name(name),
        Kind::TakeKept { name, deleted, .. } => {
            at_most("deleted takes", deleted.len(), MAX_DELETED)?;
            take_name(name)?;
            deleted.iter().try_for_each(|name| take_name(name))
        }
        Kind::TakeRenamed { from, to, .. } => {
            take_name(from)?;
            take_name(to)
        }
        Kind::Renamed { from, to } => {
            name(NameKind::Title, from)?;
            name(NameKind::Title, to)
        }
        Kind::Tagged { added, removed } => all(NameKind::Tag, added, removed),
        Kind::RolesChanged { added, removed } => all(NameKind::Role, added, removed),
        Kind::SettingsChanged { names } => names.iter().try_for_each(|name| {
            if NAMES.contains(&name.as_str()) {
                Ok(())
            } else {
                Err(InvalidSettingError::Unknown(name.chars().take(40).collect()).into())
            }
        }),
        Kind::Saved { name: given } => name(NameKind::Save, given),
        // These contain no names. All are listed, so that a new kind is not forgotten.
        Kind::ThreadCreated { .. }
        | Kind::EntriesAdded { .. }
        | Kind::EntryEdited { .. }
        | Kind::EntriesDeleted { .. }
        | Kind::EntriesReplaced { .. }
        | Kind::Truncated { .. }
        | Kind::Cleared { .. }
        | Kind::TakeSwitched { .. }
        | Kind::ThreadPromoted { .. }
        | Kind::Pinned { .. }
        | Kind::SharingChanged { .. }
        | Kind::Deleted
        | Kind::Restored
        | Kind::DraftChanged { .. }
        | Kind::FilesListed { .. }
        | Kind::SendRecorded { .. }
        | Kind::Reset
        | Kind::Undone { .. }
        | Kind::Redone { .. }
        | Kind::Jumped { .. }
        | Kind::ExternalEdits { .. }
        | Kind::FilesChanged { .. }
        | Kind::FilesRestored { .. }
        | Kind::FilesMoved { .. }
        | Kind::TurnAdvanced { .. }
        | Kind::Compressed { .. }
        | Kind::DraftAttached { .. }
        | Kind::DraftCleared { .. }
        | Kind::SharingSet { .. } => Ok(()),
    }
}

fn all(naming: NameKind, added: &[String], removed: &[String]) -> Result<(), InvalidContentError> {
    let limit = crate::limits::NAMES;
    at_most("names in one change", added.len().max(removed.len()), limit)?;
    added.iter().chain(removed).try_for_each(|text| name(naming, text))
}
