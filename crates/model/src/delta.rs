//! The difference between two states of a thread, carried over to a third.
//!
//! An undo takes back the steps of one take and of the thread while others go on working. It does not make an old state
//! current; it takes the difference that the steps made, and makes it the other way round in the present state:
//!
//! ```text
//!   after the steps ──► before them         present ──► present without them
//!   title  B        ──► A                   B       ──► A
//!   take T t2       ──► t1                  t2      ──► t1
//!   take U u1       ──► u1                  u5      ──► u5     not part of the difference
//! ```
//!
//! Where the present is what the steps left, the result is the very state before them: nothing new is written.

use std::collections::BTreeSet;

use crate::content::ContentId;
use crate::id::TakeId;
use crate::list::{List, TakeCell};
use crate::object::{Additions, Objects, Unavailable, load};
use crate::settings::Settings;
use crate::state::ThreadState;
use crate::take::Take;

/// Carries the difference from one state to another over to a third. A field or a take that the third has changed since
/// stays as it is there, except for the takes in `owned`, whose steps these are.
pub fn carry<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    present: &ThreadState,
    (from, to): (&ThreadState, &ThreadState),
    owned: &BTreeSet<TakeId>,
) -> Result<ThreadState, Unavailable> {
    if present == from {
        return Ok(to.clone());
    }
    let mut state = ThreadState {
        title: pick(&present.title, &from.title, &to.title),
        tags: pick(&present.tags, &from.tags, &to.tags),
        pinned: pick(&present.pinned, &from.pinned, &to.pinned),
        visibility: pick(&present.visibility, &from.visibility, &to.visibility),
        private: pick(&present.private, &from.private, &to.private),
        shared_with_support: pick(
            &present.shared_with_support,
            &from.shared_with_support,
            &to.shared_with_support,
        ),
        roles: pick(&present.roles, &from.roles, &to.roles),
        settings: carry_settings(additions, present.settings, from.settings, to.settings)?,
        takes: present.takes,
        active: pick(&present.active, &from.active, &to.active),
        deleted: pick(&present.deleted, &from.deleted, &to.deleted),
        parent: pick(&present.parent, &from.parent, &to.parent),
    };
    for hunk in List::diff(additions, &from.takes, &to.takes)? {
        let ids: BTreeSet<TakeId> =
            hunk.removed.iter().chain(&hunk.added).map(|cell: &TakeCell| cell.take).collect();
        for id in ids {
            carry_take(additions, &mut state, id, (from, to), owned.contains(&id))?;
        }
    }
    if state.takes.find(additions, state.active.bytes())?.is_none()
        && let Some(first) = state.takes.get(additions, 0)?
    {
        state.active = first.take;
    }
    Ok(state)
}

/// What a field becomes.
fn pick<T: Clone + PartialEq>(present: &T, from: &T, to: &T) -> T {
    if present == from { to.clone() } else { present.clone() }
}

fn carry_settings<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    present: ContentId,
    from: ContentId,
    to: ContentId,
) -> Result<ContentId, Unavailable> {
    if from == to || present == to {
        return Ok(present);
    }
    if present == from {
        return Ok(to);
    }
    let (mut settings, from, to): (Settings, Settings, Settings) =
        (load(additions, present)?, load(additions, from)?, load(additions, to)?);
    settings.carry(&from, &to);
    Ok(additions.add(&settings))
}

fn carry_take<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    state: &mut ThreadState,
    id: TakeId,
    (from, to): (&ThreadState, &ThreadState),
    owned: bool,
) -> Result<(), Unavailable> {
    let old = from.takes.find(additions, id.bytes())?;
    let new = to.takes.find(additions, id.bytes())?;
    let here = state.takes.find(additions, id.bytes())?;
    let content = |found: &Option<(u64, TakeCell)>| found.as_ref().map(|(_, cell)| cell.content);
    if content(&old) == content(&new) {
        return Ok(());
    }
    let cell = match (&old, &new, &here) {
        // Changed since, by others: it keeps that, and only its name goes back.
        (Some((_, old)), Some((_, new)), Some((_, here))) if here.content != old.content && !owned => {
            let (old, new): (Take, Take) = (load(additions, old.content)?, load(additions, new.content)?);
            let here: Take = load(additions, here.content)?;
            if old.name == new.name || here.name != old.name {
                return Ok(());
            }
            let content = additions.add(&Take { name: new.name, ..here });
            Some(with_free_name(additions, state, TakeCell { take: id, content })?)
        }
        _ if content(&here) != content(&old) && !owned => return Ok(()),
        (_, Some((_, cell)), _) => Some(with_free_name(additions, state, *cell)?),
        (_, None, _) => None,
    };
    // A thread always has a take: one that others worked on since may be all that is left.
    if cell.is_none() && state.takes.len() == 1 {
        return Ok(());
    }
    let range = match (&here, &new) {
        (Some((position, _)), _) => *position..position + 1,
        // Takes stand in the order in which they were made.
        (None, Some((position, _))) => {
            let position = (*position).min(state.takes.len());
            position..position
        }
        (None, None) => return Ok(()),
    };
    state.takes = state.takes.splice(additions, range, cell.into_iter().collect())?;
    Ok(())
}

/// A take whose name another take has got meanwhile is given one that is free.
fn with_free_name<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    state: &ThreadState,
    cell: TakeCell,
) -> Result<TakeCell, Unavailable> {
    let take: Take = load(additions, cell.content)?;
    let mut others = BTreeSet::new();
    for other in state.all_takes(additions)? {
        if other.id != take.id {
            others.insert(other.name);
        }
    }
    if !others.contains(&take.name) {
        return Ok(cell);
    }
    let base = crate::name::base(&take.name).to_owned();
    let mut number = 1u64;
    let mut name = format!("{base}_take_{number}");
    while others.contains(&name) {
        number += 1;
        name = format!("{base}_take_{number}");
    }
    let content = additions.add(&Take { name, ..take });
    Ok(TakeCell { take: cell.take, content })
}
