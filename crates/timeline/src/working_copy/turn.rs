//! Steps of a turn with files: one operation records the result of a tool together with its changes.
//!
//! ```text
//!   before   manual edits recorded ─► "the tool runs" published, and the run recorded     one transaction
//!            the tool runs
//!   after    snapshot ─► result and changed files published, the run ended               one transaction
//! ```
//!
//! After a crash between the two, the record of the folder attributes the changes. If two tools work in one folder at the
//! same time, changes found before one starts belong to the other, and changes found after it to itself.

use std::sync::Arc;

use retake_model::command::{Command, TurnAdvance};
use retake_model::content::ContentId;
use retake_model::id::{TakeId, ThreadId};
use retake_model::intent::FolderRun;
use retake_model::path::TreePath;
use retake_workspace::snapshot;
use serde::Serialize;

use super::folder_state::{FolderState, KnownFolder};
use super::ownership::{Owner, Recorder, divide, with_changes};
use super::record_changes::{count, publish_shares, with_files};
use super::report::PathReport;
use super::sealed::SealedSnapshot;
use super::{FileError, WorkingCopy};
use crate::write::change::{ComposedOperation, Composer, Head, finish};
use crate::{Caller, ChangeError, ChangeOutcome};

/// Whether a step comes before or after a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolPhase {
    /// Before the tool runs.
    Before,
    /// After the tool has ended.
    After,
}

/// Outcome of a step of a turn.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnAdvanceOutcome {
    /// The change of the thread.
    #[serde(flatten)]
    pub done: ChangeOutcome,
    /// Snapshot of the current files.
    pub snapshot: ContentId,
    /// Number of paths that the tool changed.
    pub paths: u64,
}

impl WorkingCopy {
    /// Advances a turn before or after a tool. The caller holds the take's lease. `named` lists all paths that the tool
    /// writes; excluded ones are sealed before it runs. `None` means that the tool may write anything.
    pub fn advance(
        &self,
        thread: ThreadId,
        take: TakeId,
        advance: TurnAdvance,
        caller: Caller,
        phase: ToolPhase,
        named: Option<&[TreePath]>,
    ) -> Result<TurnAdvanceOutcome, FileError> {
        self.timeline
            .settled_files(|| self.try_advance(thread, take, advance.clone(), caller.clone(), phase, named))
    }

    fn try_advance(
        &self,
        thread: ThreadId,
        take: TakeId,
        advance: TurnAdvance,
        caller: Caller,
        phase: ToolPhase,
        named: Option<&[TreePath]>,
    ) -> Result<TurnAdvanceOutcome, FileError> {
        let session = self.begin()?;
        match phase {
            ToolPhase::Before => {
                let present = session.current_files(thread, &Caller { turn: None, ..caller.clone() })?;
                // An undo needs the content from before the tool runs, even if its process is killed.
                let sealed = self.seal_before(&present, named.unwrap_or_default())?;
                let snapshot = sealed.as_ref().map_or(present.id, |sealed| sealed.id);
                let (folder_state, clock, rules) =
                    (FolderState::of(self), self.timeline.clock.clone(), self.timeline.rules);
                let paths = named.map(|paths| paths.iter().map(|path| path.bytes().into()).collect());
                let (turn, actor) = (advance.turn, caller.actor.clone());
                let run = FolderRun { thread, take, turn, actor, paths, command: None };
                let done = self.timeline.store.write(move |writing| -> Result<ChangeOutcome, FileError> {
                    let at = Head::of(writing, thread, &caller)?;
                    // The tool would change the files of another take.
                    if folder_state.take(&at.state) != take {
                        return Err(FileError::OtherTake);
                    }
                    if let Some(sealed) = &sealed {
                        writing.put_contents(&sealed.objects, clock.now())?;
                        folder_state.set_snapshot(writing, sealed.id)?;
                    }
                    folder_state.mark_running(writing, run)?;
                    let composed = compose(
                        Composer { writing, at: &at, caller: &caller, clock: &*clock, rules },
                        take,
                        advance,
                    )?;
                    Ok(finish(writing, &at, composed)?.0)
                })?;
                Ok(TurnAdvanceOutcome { done, snapshot, paths: 0 })
            }
            ToolPhase::After => loop {
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
        advance: &TurnAdvance,
        caller: &Caller,
    ) -> Result<TurnAdvanceOutcome, FileError> {
        let folder_state = FolderState::of(self);
        let taken = Arc::new(snapshot::snapshot(&self.timeline.store, &self.workspace)?);
        let SealedSnapshot { id, objects, .. } = self.add_sealed(taken.id, &taken.snapshot)?;
        self.sync_changes(&taken, (id, &objects), true)?;
        let stored = Arc::clone(&taken);
        let (clock, rules) = (self.timeline.clock.clone(), self.timeline.rules);
        let (caller, advance, dead) = (caller.clone(), advance.clone(), self.ended_runs()?);
        let (done, paths) = self.timeline.store.write(move |writing| -> Result<_, FileError> {
            stored.store(writing, clock.now())?;
            writing.put_contents(&objects, clock.now())?;
            let mut at = Head::of(writing, thread, &caller)?;
            let KnownFolder { before, runs } = folder_state.known(writing, id)?;
            let left = runs.iter().filter(|run| run.turn != advance.turn).cloned().collect();
            folder_state.write_record(writing, id, left)?;
            let (before, found) = before.unwrap_or((id, Vec::new()));
            let mut shares = divide(&found, (&runs, &dead), Recorder::Author(Some(advance.turn)));
            let own = shares.pop_if(|share| share.owner == Owner::Caller);
            // Changes by others are recorded under their authors, before those of the tool.
            let between = match (&own, shares.is_empty()) {
                (_, true) => before,
                (None, false) => id,
                (Some(_), false) => {
                    let theirs: Vec<PathReport> =
                        shares.iter().flat_map(|share| share.paths.iter().cloned()).collect();
                    with_changes(writing, (before, id), &theirs, &*clock)?
                }
            };
            if !shares.is_empty() {
                publish_shares(writing, &folder_state, &*clock, (before, between), &shares, (at, &caller))?;
                at = Head::of(writing, thread, &Caller { expected: None, ..caller.clone() })?;
            }
            let composed = compose(
                Composer { writing, at: &at, caller: &caller, clock: &*clock, rules },
                take,
                advance,
            )?;
            let (composed, paths) = match own {
                Some(own) => {
                    let composed = with_files(composed, folder_state.change(between, id, take));
                    (composed.shared_with(&own.others, own.killed), count(&own.paths))
                }
                None => (composed, 0),
            };
            Ok((finish(writing, &at, composed)?.0, paths))
        })?;
        // A failure only makes the next snapshot slower.
        let _ = taken.save_cache();
        Ok(TurnAdvanceOutcome { done, snapshot: id, paths })
    }
}

fn compose<'writing, 'transaction>(
    composer: Composer<'_, 'writing, 'transaction>,
    take: TakeId,
    advance: TurnAdvance,
) -> Result<ComposedOperation<'writing, 'transaction>, FileError> {
    if composer.at.state.deleted.is_some() {
        return Err(ChangeError::ThreadDeleted.into());
    }
    let command = Command::AdvanceTurn { take, advance };
    composer.command(command)?.ok_or_else(|| FileError::Unchanged(Box::new(composer.at.unchanged())))
}
