//! The jump back to their side, and the merge of ours into it.
//!
//! Each chain continues on one side. The chain of the thread continues on ours only if they did not move it; otherwise
//! our changes of the thread are repeated as operations.
//!
//! ```text
//!   take changed by     theirs    ours    both                     neither
//!   continues as        theirs    ours    theirs, and ours as a    theirs
//!                                         second take
//! ```

mod fields;

use std::collections::{BTreeMap, BTreeSet};

use super::relink::{Target, settled};
use super::{KeptTake, MergeReport, RebaseError, Writer};
use crate::command::naming::numbered_name;
use crate::content::{ContentId, encode};
use crate::history::{OperationLog, link_change, route_between, thread_position};
use crate::id::{EntryId, TakeId};
use crate::list::{EntryCell, List, TakeCell};
use crate::object::{Additions, ObjectError, Objects, load};
use crate::operation::{ChainPosition, Operation, OperationKind, Version};
use crate::state::ThreadState;
use crate::take::Take;

use self::fields::Fields;

/// The states of the three points of a divergence.
struct Sides {
    base: Side,
    theirs: Side,
    ours: Side,
}

struct Side {
    state: ThreadState,
    takes: BTreeMap<TakeId, Take>,
}

/// Where a take continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continues {
    Theirs,
    Ours,
    /// Theirs; our version becomes another take.
    Both,
    /// Ours has a take that theirs does not have, under its own id.
    Created,
}

impl Side {
    fn load(objects: &impl Objects, operation: &Operation) -> Result<Self, ObjectError> {
        let state: ThreadState = load(objects, operation.after)?;
        let takes = state.all_takes(objects)?.into_iter().map(|take| (take.id, take)).collect();
        Ok(Self { state, takes })
    }

    /// A take without its name, which belongs to the thread.
    fn content(&self, take: TakeId) -> Option<Vec<u8>> {
        self.takes.get(&take).map(|take| encode(&Take { name: String::new(), ..take.clone() }))
    }
}

impl Sides {
    fn continues(&self, take: TakeId) -> Continues {
        let [base, theirs, ours] = [&self.base, &self.theirs, &self.ours].map(|side| side.content(take));
        match (&theirs, &ours) {
            _ if ours == base || ours == theirs || ours.is_none() => Continues::Theirs,
            (Some(_), _) if theirs == base => Continues::Ours,
            (None, _) if base.is_none() => Continues::Created,
            _ => Continues::Both,
        }
    }

    /// Whether they left the thread itself as it was: fields, names and existence of takes.
    fn theirs_kept_thread(&self) -> bool {
        let part = |side: &Side| {
            let names = side.takes.values().map(|take| (take.id, take.name.clone()));
            let names: BTreeSet<_> = names.collect();
            (ThreadState { takes: List::empty(), ..side.state.clone() }, names)
        };
        part(&self.base) == part(&self.theirs)
    }

    /// Whether ours deleted a take that they changed.
    fn ours_deleted_their_work(&self) -> bool {
        self.theirs.takes.keys().any(|take| {
            !self.ours.takes.contains_key(take) && self.theirs.content(*take) != self.base.content(*take)
        })
    }
}

impl<L: OperationLog<Error: std::error::Error>, O: Objects> Writer<'_, L, O> {
    /// Returns to their side and merges ours. Called after ours were appended.
    pub(super) fn merge(
        &mut self,
        common: &Operation,
        theirs: &Operation,
        ours: &Operation,
    ) -> Result<MergeReport, RebaseError<L::Error>> {
        let sides = Sides {
            base: Side::load(&self.additions, common)?,
            theirs: Side::load(&self.additions, theirs)?,
            ours: Side::load(&self.additions, ours)?,
        };
        let head = self.log.head();
        let position = |version: Version| -> Result<ChainPosition, RebaseError<L::Error>> {
            Ok(thread_position(&self.log.step(version).map_err(RebaseError::Log)?, version))
        };
        let (at_base, at_theirs) = (position(common.version)?, position(theirs.version)?);
        let theirs_moved = (at_base.position, at_base.changed) != (at_theirs.position, at_theirs.changed);
        let resets = self.resets_takes(at_base.position, position(head)?.position)?;
        let thread_is_ours = !theirs_moved
            && !resets
            && sides.theirs_kept_thread()
            && !sides.ours_deleted_their_work()
            && position(head)?.position != at_base.position;
        let mut continues: BTreeMap<TakeId, Continues> = BTreeMap::new();
        let known = sides.base.takes.keys().chain(sides.theirs.takes.keys()).chain(sides.ours.takes.keys());
        for take in known.copied().chain(self.log.moved_takes()) {
            let decided = match sides.continues(take) {
                // A reset clears takes outside their chains, so that ours is not where its chain is.
                Continues::Ours if resets => Continues::Both,
                Continues::Created if thread_is_ours => Continues::Ours,
                decided => decided,
            };
            continues.insert(take, decided);
        }
        self.jump_back(&sides, theirs, &continues, thread_is_ours)?;
        let mut fields = Fields::default();
        if !thread_is_ours {
            self.merge_fields(&sides, theirs, &mut fields)?;
        }
        let mut report = MergeReport { takes: Vec::new(), fields: fields.conflicts };
        for (take, continues) in continues {
            if matches!(continues, Continues::Both | Continues::Created) {
                report.takes.extend(self.add_ours(&sides, theirs, take, continues)?);
            }
        }
        Ok(report)
    }

    /// Whether the thread passes a step that cleared all takes, in either direction.
    fn resets_takes(&self, from: Version, to: Version) -> Result<bool, RebaseError<L::Error>> {
        for step in route_between(&self.log, from, to).map_err(RebaseError::Log)? {
            let step = self.log.step(step.version()).map_err(RebaseError::Log)?;
            if step.resets_takes || step.chains.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn jump_back(
        &mut self,
        sides: &Sides,
        theirs: &Operation,
        continues: &BTreeMap<TakeId, Continues>,
        thread_is_ours: bool,
    ) -> Result<(), RebaseError<L::Error>> {
        let mut target = Target::default();
        if !thread_is_ours {
            target.thread = Some(settled(&self.log, theirs.version, None)?);
        }
        for (take, continues) in continues {
            match continues {
                Continues::Ours => {}
                // It is created again, with everything that is in it.
                Continues::Created => target.takes.push((*take, ChainPosition::default())),
                Continues::Theirs | Continues::Both => {
                    target.takes.push((*take, settled(&self.log, theirs.version, Some(*take))?));
                }
            }
        }
        let (side, other) =
            if thread_is_ours { (&sides.ours, &sides.theirs) } else { (&sides.theirs, &sides.ours) };
        let mut state = side.state.clone();
        for (id, take) in &side.takes {
            let is_ours = continues.get(id) == Some(&Continues::Ours);
            if is_ours != thread_is_ours
                && let Some(from_other) = other.takes.get(id)
            {
                let content = self.additions.add(&Take { name: take.name.clone(), ..from_other.clone() });
                state.takes = replaced(&state.takes, &mut self.additions, *id, content)?;
            }
        }
        let after = self.additions.add(&state);
        self.jump(target, theirs, after, b"return")
    }

    /// Adds our version of a take beside theirs.
    fn add_ours(
        &mut self,
        sides: &Sides,
        like: &Operation,
        take: TakeId,
        continues: Continues,
    ) -> Result<Option<KeptTake>, RebaseError<L::Error>> {
        let Some(ours) = sides.ours.takes.get(&take) else { return Ok(None) };
        let state: ThreadState = load(&self.additions, self.after)?;
        let taken: BTreeSet<String> =
            state.all_takes(&self.additions)?.into_iter().map(|take| take.name).collect();
        let is_copy = continues == Continues::Both;
        if is_copy && has_nothing_new(ours, sides.base.takes.get(&take)) {
            return Ok(None);
        }
        let name = if !is_copy && !taken.contains(&ours.name) {
            ours.name.clone()
        } else {
            (1..=taken.len() as u64 + 1)
                .map(|number| numbered_name(&ours.name, number))
                .find(|name| !taken.contains(name))
                .unwrap_or_default()
        };
        let added = if is_copy {
            let id = TakeId::from_bytes(self.derived_id(&[b"take", take.bytes().as_slice()].concat()));
            let fork_point = match sides.theirs.takes.get(&take) {
                Some(theirs) => last_common(&self.additions, ours, theirs)?,
                None => ours.fork_point,
            };
            Take { id, name, parent: Some(take), fork_point, agent: None, ..ours.clone() }
        } else {
            Take { name, ..ours.clone() }
        };
        let content = self.additions.add(&added);
        let end = state.takes.len();
        let cell = TakeCell { take: added.id, content };
        let takes = state.takes.splice(&mut self.additions, end..end, vec![cell])?;
        let kind = OperationKind::TakeBranched {
            take: added.id,
            from: added.parent.unwrap_or(state.active),
            at: added.fork_point,
            name: added.name.clone(),
        };
        self.change(like, kind, &ThreadState { takes, ..state })?;
        let theirs = sides.theirs.takes.get(&take);
        Ok(is_copy.then(|| KeptTake {
            theirs: take,
            name: theirs.map(|theirs| theirs.name.clone()),
            ours: added.id,
            copy: added.name,
        }))
    }

    /// Appends a change of the thread. All changes of a merge are one turn, which is undone together.
    fn change(
        &mut self,
        like: &Operation,
        kind: OperationKind,
        state: &ThreadState,
    ) -> Result<(), RebaseError<L::Error>> {
        let after = self.additions.add(state);
        let (place, chains) = link_change(&self.log, self.log.head(), None).map_err(RebaseError::Log)?;
        let own = self.own(kind, after, b"merge", like);
        self.append(Operation { place, chains: Some(chains), ..own })
    }
}

/// A list of takes with another content of one of them.
fn replaced<O: Objects>(
    takes: &List<TakeCell>,
    additions: &mut Additions<'_, O>,
    take: TakeId,
    content: ContentId,
) -> Result<List<TakeCell>, ObjectError> {
    splice(takes, additions, take, vec![TakeCell { take, content }])
}

/// A list of takes without one of them.
fn without<O: Objects>(
    takes: &List<TakeCell>,
    additions: &mut Additions<'_, O>,
    take: TakeId,
) -> Result<List<TakeCell>, ObjectError> {
    splice(takes, additions, take, Vec::new())
}

fn splice<O: Objects>(
    takes: &List<TakeCell>,
    additions: &mut Additions<'_, O>,
    take: TakeId,
    cells: Vec<TakeCell>,
) -> Result<List<TakeCell>, ObjectError> {
    match takes.find(additions, take.bytes())? {
        Some((place, _)) => takes.splice(additions, place..place + 1, cells),
        None => Ok(*takes),
    }
}

/// Whether our version of a take has nothing that a second take would keep.
fn has_nothing_new(ours: &Take, base: Option<&Take>) -> bool {
    base.is_some_and(|base| {
        let same_draft = ours.draft == base.draft && ours.attached == base.attached;
        ours.entries == base.entries && (same_draft || ours.has_no_draft())
    })
}

/// The last entry before the first difference of two takes.
fn last_common(objects: &impl Objects, left: &Take, right: &Take) -> Result<Option<EntryId>, ObjectError> {
    let hunks = List::<EntryCell>::diff(objects, &left.entries, &right.entries)?;
    let end = hunks.first().map_or(left.entries.len(), |hunk| hunk.old_start);
    match end.checked_sub(1) {
        Some(position) => Ok(left.entries.get(objects, position)?.map(|cell| cell.entry)),
        None => Ok(None),
    }
}
