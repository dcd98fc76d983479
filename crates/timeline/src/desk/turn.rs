//! Steps of a turn that have to do with files: what a tool does is recorded with its result, in one operation.
//!
//! ```text
//!   before   hand edits recorded ─► "the tool runs" published, and written at the folder    one transaction
//!            the tool runs
//!   after    snapshot ─► result and changed files published, nothing runs any more          one transaction
//! ```
//!
//! Between the two a crash may happen. The folder then says whose the changes are that are found later. Where two are at
//! work in one folder at once, what is found before one begins is the other's, and what is found after it is its own.

use std::sync::Arc;

use retake_model::command::{Advance, Command};
use retake_model::content::ContentId;
use retake_model::id::{TakeId, ThreadId};
use retake_model::intent::Running;
use retake_model::path::TreePath;
use retake_store::Writing;
use retake_workspace::snapshot;
use serde::Serialize;

use super::look::{count, publish_shares, with_files};
use super::ownership::{Owner, Recorder, divide, with_changes};
use super::place::{Known, Place};
use super::report::PathReport;
use super::sealed::WithSealed;
use super::{Desk, FileError};
use crate::change::{Composed, Head, compose_command, finish};
use crate::clock::Clock;
use crate::{Caller, ChangeError, Done, Rules};

/// On which side of a tool's work a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// The tool is about to run.
    Before,
    /// The tool has ended.
    After,
}

/// What came of a step of a turn.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advanced {
    /// What became of the thread.
    #[serde(flatten)]
    pub done: Done,
    /// The files as they are.
    pub snapshot: ContentId,
    /// How many paths the tool changed.
    pub paths: u64,
}

impl Desk {
    /// Goes on with a turn at one side of a tool's work in the folder. The caller holds the take's lease. `named` are
    /// the paths that the tool is known to write, and no others; those that snapshots leave out are sealed before it runs.
    /// `None` stands for a tool that may write anything.
    pub fn advance(
        &self,
        thread: ThreadId,
        take: TakeId,
        advance: Advance,
        caller: Caller,
        around: Around,
        named: Option<&[TreePath]>,
    ) -> Result<Advanced, FileError> {
        self.timeline
            .settled_files(|| self.try_advance(thread, take, advance.clone(), caller.clone(), around, named))
    }

    fn try_advance(
        &self,
        thread: ThreadId,
        take: TakeId,
        advance: Advance,
        caller: Caller,
        around: Around,
        named: Option<&[TreePath]>,
    ) -> Result<Advanced, FileError> {
        let session = self.begin()?;
        match around {
            Around::Before => {
                let present = session.present(thread, &Caller { turn: None, ..caller.clone() })?;
                // What is on disk before the tool runs is what an undo needs, even if the tool's program is killed.
                let sealed = self.seal_before(&present, named.unwrap_or_default())?;
                let snapshot = sealed.as_ref().map_or(present.id, |sealed| sealed.id);
                let (place, clock, rules) =
                    (Place::of(self), self.timeline.clock.clone(), self.timeline.rules);
                let paths = named.map(|paths| paths.iter().map(|path| path.bytes().into()).collect());
                let run = Running { thread, take, turn: advance.turn, actor: caller.actor.clone(), paths };
                let done = self.timeline.store.write(move |writing| -> Result<Done, FileError> {
                    let at = Head::of(writing, thread, &caller)?;
                    // What the tool would write here would be another take's, whatever the log said.
                    if place.take(&at.state) != take {
                        return Err(FileError::OtherTake);
                    }
                    if let Some(sealed) = &sealed {
                        writing.put_contents(&sealed.objects, clock.now())?;
                        place.look_like(writing, sealed.id)?;
                    }
                    place.let_loose(writing, run)?;
                    let composed = compose(writing, &at, take, advance, &caller, &*clock, rules)?;
                    Ok(finish(writing, &at, composed)?.0)
                })?;
                Ok(Advanced { done, snapshot, paths: 0 })
            }
            Around::After => loop {
                match self.try_after(thread, take, &advance, &caller) {
                    Err(FileError::Outdated) => {}
                    other => return other,
                }
            },
        }
    }

    fn try_after(
        &self,
        thread: ThreadId,
        take: TakeId,
        advance: &Advance,
        caller: &Caller,
    ) -> Result<Advanced, FileError> {
        let place = Place::of(self);
        let taken = Arc::new(snapshot::snapshot(&self.timeline.store, &self.workspace)?);
        let WithSealed { id, objects, .. } = self.with_sealed(taken.id, &taken.snapshot, &taken.objects)?;
        self.sync_changes(&taken, (id, &objects), true)?;
        let stored = Arc::clone(&taken);
        let (clock, rules) = (self.timeline.clock.clone(), self.timeline.rules);
        let (caller, advance) = (caller.clone(), advance.clone());
        let (done, paths) = self.timeline.store.write(move |writing| -> Result<_, FileError> {
            stored.store(writing, clock.now())?;
            writing.put_contents(&objects, clock.now())?;
            let mut at = Head::of(writing, thread, &caller)?;
            let Known { before, runs } = place.known(writing, id)?;
            let left = runs.iter().filter(|run| run.turn != advance.turn).cloned().collect();
            place.put(writing, id, left)?;
            let (before, found) = before.unwrap_or((id, Vec::new()));
            let mut shares = divide(&found, &runs, Recorder::Author(Some(advance.turn)));
            let own = shares.pop_if(|share| share.owner == Owner::Caller);
            // What others changed meanwhile is recorded as theirs, before what the tool did.
            let between = match (&own, shares.is_empty()) {
                (_, true) => before,
                (None, false) => id,
                (Some(_), false) => {
                    let theirs: Vec<PathReport> =
                        shares.iter().flat_map(|share| share.paths.iter().cloned()).collect();
                    with_changes(writing, before, &theirs, &*clock)?
                }
            };
            if !shares.is_empty() {
                publish_shares(writing, &place, &*clock, (before, between), &shares, (at, &caller))?;
                at = Head::of(writing, thread, &Caller { expected: None, ..caller.clone() })?;
            }
            let composed = compose(writing, &at, take, advance, &caller, &*clock, rules)?;
            let (composed, paths) = match own {
                Some(own) => {
                    let composed = with_files(composed, place.change(between, id, take));
                    (composed.shared_with(&own.others), count(&own.paths))
                }
                None => (composed, 0),
            };
            Ok((finish(writing, &at, composed)?.0, paths))
        })?;
        // That it is not remembered costs time at the next look, and nothing else.
        let _ = taken.remember();
        Ok(Advanced { done, snapshot: id, paths })
    }
}

fn compose<'writing, 'transaction>(
    writing: &'writing Writing<'transaction>,
    at: &Head,
    take: TakeId,
    advance: Advance,
    caller: &Caller,
    clock: &dyn Clock,
    rules: Rules,
) -> Result<Composed<'writing, 'transaction>, FileError> {
    if at.state.deleted.is_some() {
        return Err(ChangeError::ThreadDeleted.into());
    }
    let command = Command::AdvanceTurn { take, advance };
    compose_command(writing, at, command, caller, clock, rules)?
        .ok_or_else(|| FileError::Unchanged(Box::new(at.unchanged())))
}
