//! Our changes of the thread, repeated on theirs: fields that only ours changed, tags and roles by name, and names and
//! deletions of takes.

use std::collections::BTreeSet;

use super::{Side, Sides, replaced, without};
use crate::history::OperationLog;
use crate::limits::NAMES;
use crate::object::{Objects, load};
use crate::operation::{Operation, OperationKind};
use crate::rebase::{RebaseError, Writer};
use crate::settings::{self, Settings};
use crate::state::ThreadState;
use crate::take::Take;

/// The outcome of a merge by field.
#[derive(Default)]
pub(super) struct Fields {
    /// The fields that both sides changed.
    pub(super) conflicts: Vec<String>,
}

impl Fields {
    /// Our value if only ours changed; notes a conflict.
    fn pick<'side, T: PartialEq>(
        &mut self,
        name: &str,
        base: &T,
        theirs: &T,
        ours: &'side T,
    ) -> Option<&'side T> {
        if ours == base || ours == theirs {
            return None;
        }
        if theirs == base {
            return Some(ours);
        }
        self.conflicts.push(name.to_owned());
        None
    }
}

impl<L: OperationLog<Error: std::error::Error>, O: Objects> Writer<'_, L, O> {
    pub(super) fn merge_fields(
        &mut self,
        sides: &Sides,
        like: &Operation,
        fields: &mut Fields,
    ) -> Result<(), RebaseError<L::Error>> {
        let [base, theirs, ours] = [&sides.base.state, &sides.theirs.state, &sides.ours.state];
        if let Some(title) = fields.pick("title", &base.title, &theirs.title, &ours.title) {
            let kind = OperationKind::Renamed { from: theirs.title.clone(), to: title.clone() };
            self.edit(like, kind, |state| state.title.clone_from(title))?;
        }
        if let Some(pinned) = fields.pick("pinned", &base.pinned, &theirs.pinned, &ours.pinned) {
            self.edit(like, OperationKind::Pinned { pinned: *pinned }, |state| state.pinned = *pinned)?;
        }
        self.merge_tags(sides, like)?;
        self.merge_roles(sides, like)?;
        self.merge_settings(sides, like, fields)?;
        self.merge_take_names(sides, like, fields)?;
        self.delete_takes(sides, like, fields)?;
        let deleted = |state: &ThreadState| state.deleted.is_some();
        let (was, is, ours_is) = (deleted(base), deleted(theirs), deleted(ours));
        if let Some(deleted) = fields.pick("deleted", &was, &is, &ours_is).copied() {
            let kind = if deleted { OperationKind::Deleted } else { OperationKind::Restored };
            self.edit(like, kind, |state| state.deleted = ours.deleted)?;
        }
        Ok(())
    }

    fn edit(
        &mut self,
        like: &Operation,
        kind: OperationKind,
        change: impl FnOnce(&mut ThreadState),
    ) -> Result<(), RebaseError<L::Error>> {
        let mut state: ThreadState = load(&self.additions, self.after)?;
        change(&mut state);
        self.change(like, kind, &state)
    }

    fn merge_tags(&mut self, sides: &Sides, like: &Operation) -> Result<(), RebaseError<L::Error>> {
        let [base, theirs, ours] = [&sides.base, &sides.theirs, &sides.ours].map(|side| &side.state.tags);
        let removed: Vec<String> =
            base.difference(ours).filter(|tag| theirs.contains(*tag)).cloned().collect();
        let room = (NAMES + removed.len()).saturating_sub(theirs.len());
        let added: Vec<String> =
            ours.difference(base).filter(|tag| !theirs.contains(*tag)).take(room).cloned().collect();
        if added.is_empty() && removed.is_empty() {
            return Ok(());
        }
        let kind = OperationKind::Tagged { added: added.clone(), removed: removed.clone() };
        self.edit(like, kind, |state| {
            state.tags.retain(|tag| !removed.contains(tag));
            state.tags.extend(added);
        })
    }

    fn merge_roles(&mut self, sides: &Sides, like: &Operation) -> Result<(), RebaseError<L::Error>> {
        let [base, theirs, ours] = [&sides.base, &sides.theirs, &sides.ours].map(|side| &side.state.roles);
        if ours == base || ours == theirs {
            return Ok(());
        }
        let merged: Vec<String> = if theirs == base {
            ours.clone()
        } else {
            let kept = theirs.iter().filter(|role| ours.contains(role) || !base.contains(role));
            let new = ours.iter().filter(|role| !base.contains(role) && !theirs.contains(role));
            kept.chain(new).take(NAMES).cloned().collect()
        };
        if merged == *theirs {
            return Ok(());
        }
        let less = |left: &[String], right: &[String]| -> Vec<String> {
            left.iter().filter(|role| !right.contains(role)).cloned().collect()
        };
        let kind =
            OperationKind::RolesChanged { added: less(&merged, theirs), removed: less(theirs, &merged) };
        self.edit(like, kind, |state| state.roles = merged)
    }

    fn merge_settings(
        &mut self,
        sides: &Sides,
        like: &Operation,
        fields: &mut Fields,
    ) -> Result<(), RebaseError<L::Error>> {
        let read = |side: &Side| load::<Settings>(&self.additions, side.state.settings);
        let (base, theirs, ours) = (read(&sides.base)?, read(&sides.theirs)?, read(&sides.ours)?);
        let (mut merged, mut names) = (theirs.clone(), Vec::new());
        for name in settings::NAMES {
            let [base, theirs, ours] = [&base, &theirs, &ours].map(|side| side.get(name).unwrap_or_default());
            let Some(value) = fields.pick(name, &base, &theirs, &ours) else { continue };
            if let Ok(with) = merged.with(name, value) {
                merged = with;
                names.push(name.to_owned());
            }
        }
        if merged == theirs {
            return Ok(());
        }
        let settings = self.additions.add(&merged);
        self.edit(like, OperationKind::SettingsChanged { names }, |state| state.settings = settings)
    }

    fn merge_take_names(
        &mut self,
        sides: &Sides,
        like: &Operation,
        fields: &mut Fields,
    ) -> Result<(), RebaseError<L::Error>> {
        let mut taken: BTreeSet<String> = sides.theirs.takes.values().map(|take| take.name.clone()).collect();
        for (id, base) in &sides.base.takes {
            let (Some(theirs), Some(ours)) = (sides.theirs.takes.get(id), sides.ours.takes.get(id)) else {
                continue;
            };
            let field = format!("name of take {}", theirs.name);
            let Some(name) = fields.pick(&field, &base.name, &theirs.name, &ours.name) else { continue };
            if !taken.insert(name.clone()) {
                fields.conflicts.push(field);
                continue;
            }
            taken.remove(&theirs.name);
            let state: ThreadState = load(&self.additions, self.after)?;
            let Some(take) = state.take(&self.additions, *id)? else { continue };
            let kind = OperationKind::TakeRenamed { take: *id, from: take.name.clone(), to: name.clone() };
            let content = self.additions.add(&Take { name: name.clone(), ..take });
            let takes = replaced(&state.takes, &mut self.additions, *id, content)?;
            self.change(like, kind, &ThreadState { takes, ..state })?;
        }
        Ok(())
    }

    /// Deletes the takes that ours deleted, unless they worked on them or use them.
    fn delete_takes(
        &mut self,
        sides: &Sides,
        like: &Operation,
        fields: &mut Fields,
    ) -> Result<(), RebaseError<L::Error>> {
        for (id, theirs) in &sides.theirs.takes {
            if sides.ours.takes.contains_key(id) || !sides.base.takes.contains_key(id) {
                continue;
            }
            let state: ThreadState = load(&self.additions, self.after)?;
            let used = state.active == *id || sides.theirs.content(*id) != sides.base.content(*id);
            if used {
                fields.conflicts.push(format!("deletion of take {}", theirs.name));
                continue;
            }
            let kind = OperationKind::TakeDeleted { take: *id, name: theirs.name.clone() };
            let takes = without(&state.takes, &mut self.additions, *id)?;
            self.change(like, kind, &ThreadState { takes, ..state })?;
        }
        Ok(())
    }
}
