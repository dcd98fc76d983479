//! Commands on the thread as a whole.

use std::collections::BTreeSet;

use super::{Applied, Context, Refusal};
use crate::id::Fresh;
use crate::limits::NAMES;
use crate::name::{Naming, check};
use crate::object::{Objects, load};
use crate::operation::OperationKind;
use crate::settings::Settings;
use crate::sharing::Sharing;
use crate::state::ThreadState;
use crate::time::Timestamp;

pub(super) fn rename(state: &ThreadState, title: &str) -> Result<Applied, Refusal> {
    let title = check(Naming::Title, title)?;
    if title == state.title {
        return Ok(Applied::Unchanged);
    }
    let kind = OperationKind::Renamed { from: state.title.clone(), to: title.clone() };
    Ok(Applied::Changed { state: ThreadState { title, ..state.clone() }, kind })
}

pub(super) fn tag(state: &ThreadState, add: &[String], remove: &[String]) -> Result<Applied, Refusal> {
    let checked = |names: &[String]| -> Result<BTreeSet<String>, Refusal> {
        names.iter().map(|name| Ok(check(Naming::Tag, name)?)).collect()
    };
    let remove = checked(remove)?;
    let tags: BTreeSet<String> =
        state.tags.union(&checked(add)?).filter(|tag| !remove.contains(*tag)).cloned().collect();
    if tags.len() > NAMES {
        return Err(Refusal::TooMuch { what: "tags of a thread", limit: NAMES });
    }
    if tags == state.tags {
        return Ok(Applied::Unchanged);
    }
    let kind = OperationKind::Tagged {
        added: tags.difference(&state.tags).cloned().collect(),
        removed: state.tags.difference(&tags).cloned().collect(),
    };
    Ok(Applied::Changed { state: ThreadState { tags, ..state.clone() }, kind })
}

pub(super) fn pin(state: &ThreadState, pinned: bool) -> Applied {
    if pinned == state.pinned {
        return Applied::Unchanged;
    }
    Applied::Changed {
        state: ThreadState { pinned, ..state.clone() },
        kind: OperationKind::Pinned { pinned },
    }
}

/// Records the new visibility. It is not part of the state; only the operation records it. The caller
/// compares it with the current visibility in the thread's row.
pub(super) fn share(state: &ThreadState, sharing: Sharing) -> Applied {
    Applied::Changed { state: state.clone(), kind: sharing.recorded() }
}

pub(super) fn delete(state: &ThreadState, now: Timestamp) -> Applied {
    if state.deleted.is_some() {
        return Applied::Unchanged;
    }
    Applied::Changed {
        state: ThreadState { deleted: Some(now), ..state.clone() },
        kind: OperationKind::Deleted,
    }
}

pub(super) fn restore(state: &ThreadState) -> Applied {
    if state.deleted.is_none() {
        return Applied::Unchanged;
    }
    Applied::Changed { state: ThreadState { deleted: None, ..state.clone() }, kind: OperationKind::Restored }
}

/// Returns the roles in stored form: trimmed and without duplicates.
pub fn checked_roles(asked: &[String]) -> Result<Vec<String>, Refusal> {
    let mut roles: Vec<String> = Vec::new();
    for role in asked {
        let role = check(Naming::Role, role)?;
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    if roles.len() > NAMES {
        return Err(Refusal::TooMuch { what: "roles of a thread", limit: NAMES });
    }
    Ok(roles)
}

pub(super) fn set_roles(state: &ThreadState, asked: &[String]) -> Result<Applied, Refusal> {
    let roles = checked_roles(asked)?;
    if roles == state.roles {
        return Ok(Applied::Unchanged);
    }
    let missing = |from: &[String], of: &[String]| -> Vec<String> {
        of.iter().filter(|role| !from.contains(role)).cloned().collect()
    };
    let kind = OperationKind::RolesChanged {
        added: missing(&state.roles, &roles),
        removed: missing(&roles, &state.roles),
    };
    Ok(Applied::Changed { state: ThreadState { roles, ..state.clone() }, kind })
}

pub(super) fn set<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    values: &[(String, String)],
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    if values.is_empty() {
        return Ok(Applied::Unchanged);
    }
    let before: Settings = load(context.additions, state.settings)?;
    let mut after = before.clone();
    for (name, value) in values {
        after = after.with(name, value)?;
    }
    let names = before.changed(&after);
    if names.is_empty() {
        return Ok(Applied::Unchanged);
    }
    let settings = context.additions.add(&after);
    Ok(Applied::Changed {
        state: ThreadState { settings, ..state.clone() },
        kind: OperationKind::SettingsChanged { names },
    })
}
