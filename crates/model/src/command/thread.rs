//! Commands on the thread as a whole.

use std::collections::BTreeSet;

use super::{CommandContext, CommandError, CommandOutcome};
use crate::id::IdSource;
use crate::limits::NAMES;
use crate::name::{NameKind, check};
use crate::object::{Objects, load};
use crate::operation::OperationKind;
use crate::settings::Settings;
use crate::sharing::Sharing;
use crate::state::ThreadState;
use crate::time::Timestamp;

pub(super) fn rename(state: &ThreadState, title: &str) -> Result<CommandOutcome, CommandError> {
    let title = check(NameKind::Title, title)?;
    if title == state.title {
        return Ok(CommandOutcome::Unchanged);
    }
    let kind = OperationKind::Renamed { from: state.title.clone(), to: title.clone() };
    Ok(CommandOutcome::Changed { state: ThreadState { title, ..state.clone() }, kind })
}

pub(super) fn tag(
    state: &ThreadState,
    add: &[String],
    remove: &[String],
) -> Result<CommandOutcome, CommandError> {
    let checked = |names: &[String]| -> Result<BTreeSet<String>, CommandError> {
        names.iter().map(|name| Ok(check(NameKind::Tag, name)?)).collect()
    };
    let remove = checked(remove)?;
    let tags: BTreeSet<String> =
        state.tags.union(&checked(add)?).filter(|tag| !remove.contains(*tag)).cloned().collect();
    if tags.len() > NAMES {
        return Err(CommandError::TooMuch { what: "tags of a thread", limit: NAMES });
    }
    if tags == state.tags {
        return Ok(CommandOutcome::Unchanged);
    }
    let kind = OperationKind::Tagged {
        added: tags.difference(&state.tags).cloned().collect(),
        removed: state.tags.difference(&tags).cloned().collect(),
    };
    Ok(CommandOutcome::Changed { state: ThreadState { tags, ..state.clone() }, kind })
}

pub(super) fn pin(state: &ThreadState, pinned: bool) -> CommandOutcome {
    if pinned == state.pinned {
        return CommandOutcome::Unchanged;
    }
    CommandOutcome::Changed {
        state: ThreadState { pinned, ..state.clone() },
        kind: OperationKind::Pinned { pinned },
    }
}

/// Records the new visibility. It is not part of the state; only the operation records it. The caller
/// compares it with the current visibility in the thread's row.
pub(super) fn share(state: &ThreadState, sharing: Sharing) -> CommandOutcome {
    CommandOutcome::Changed { state: state.clone(), kind: sharing.into_operation() }
}

pub(super) fn delete(state: &ThreadState, now: Timestamp) -> CommandOutcome {
    if state.deleted.is_some() {
        return CommandOutcome::Unchanged;
    }
    CommandOutcome::Changed {
        state: ThreadState { deleted: Some(now), ..state.clone() },
        kind: OperationKind::Deleted,
    }
}

pub(super) fn restore(state: &ThreadState) -> CommandOutcome {
    if state.deleted.is_none() {
        return CommandOutcome::Unchanged;
    }
    CommandOutcome::Changed {
        state: ThreadState { deleted: None, ..state.clone() },
        kind: OperationKind::Restored,
    }
}

/// Returns the roles in stored form: trimmed and without duplicates.
pub fn checked_roles(asked: &[String]) -> Result<Vec<String>, CommandError> {
    let mut roles: Vec<String> = Vec::new();
    for role in asked {
        let role = check(NameKind::Role, role)?;
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    if roles.len() > NAMES {
        return Err(CommandError::TooMuch { what: "roles of a thread", limit: NAMES });
    }
    Ok(roles)
}

pub(super) fn set_roles(state: &ThreadState, asked: &[String]) -> Result<CommandOutcome, CommandError> {
    let roles = checked_roles(asked)?;
    if roles == state.roles {
        return Ok(CommandOutcome::Unchanged);
    }
    let missing = |from: &[String], of: &[String]| -> Vec<String> {
        of.iter().filter(|role| !from.contains(role)).cloned().collect()
    };
    let kind = OperationKind::RolesChanged {
        added: missing(&state.roles, &roles),
        removed: missing(&roles, &state.roles),
    };
    Ok(CommandOutcome::Changed { state: ThreadState { roles, ..state.clone() }, kind })
}

pub(super) fn set<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    values: &[(String, String)],
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    if values.is_empty() {
        return Ok(CommandOutcome::Unchanged);
    }
    let before: Settings = load(context.additions, state.settings)?;
    let mut after = before.clone();
    for (name, value) in values {
        after = after.with(name, value)?;
    }
    let names = before.changed(&after);
    if names.is_empty() {
        return Ok(CommandOutcome::Unchanged);
    }
    let settings = context.additions.add(&after);
    Ok(CommandOutcome::Changed {
        state: ThreadState { settings, ..state.clone() },
        kind: OperationKind::SettingsChanged { names },
    })
}
