//! A worker: lanes that write to shared threads and to their own, and acknowledge each operation.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use retake_model::command::{CommandError, InsertPosition, NewEntry};
use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, ThreadId};
use retake_model::operation::OperationKind;
use retake_model::time::Timestamp;
use retake_timeline::{Caller, ChangeError, ChangeOutcome, Command, Rules, Timeline, Unit};

use super::acknowledgement::{AcknowledgedOperation, Acknowledgement, Acknowledgements};
use super::plan::{Plan, PlannedOperation, store};
use crate::rng::Rng;
use crate::violation::BoxError;

/// Pause of the control between acknowledgement and write. Longer than a write, so that most kills fall into it.
const EARLY_PAUSE: Duration = Duration::from_millis(20);

/// The work of one process.
#[derive(Clone, Debug)]
pub struct WorkerPlan {
    /// The folder with the store, the plan and the acknowledgements.
    pub scratch: PathBuf,
    /// Its lanes.
    pub lanes: Range<usize>,
    /// Whether it acknowledges before it writes.
    pub early: bool,
}

/// Runs the worker, continuing where a killed one stopped.
pub fn work(work: &WorkerPlan) -> Result<(), BoxError> {
    let plan = Plan::load(&work.scratch)?;
    let timeline = Timeline::open(&store(&work.scratch), Rules::default())?;
    std::thread::scope(|scope| {
        let lanes: Vec<_> = work
            .lanes
            .clone()
            .map(|number| {
                let (plan, timeline) = (&plan, &timeline);
                scope.spawn(move || WriterLane::resume(work, plan, timeline, number)?.run())
            })
            .collect();
        lanes.into_iter().try_for_each(|lane| lane.join().unwrap_or_else(|_| Err("a lane panicked".into())))
    })
}

struct WriterLane<'work> {
    plan: &'work Plan,
    timeline: &'work Timeline,
    number: usize,
    early: bool,
    acknowledgements: Acknowledgements,
    /// The next operation.
    next: u64,
    /// Whether that operation may have been executed before a kill.
    in_doubt: bool,
    own: ThreadId,
    /// The version of this lane's own thread, to which nothing else writes.
    own_version: u64,
}

impl<'work> WriterLane<'work> {
    fn resume(
        work: &WorkerPlan,
        plan: &'work Plan,
        timeline: &'work Timeline,
        number: usize,
    ) -> Result<Self, BoxError> {
        let before = Acknowledgements::read(&work.scratch, number)?;
        let own = *plan.own.get(number).ok_or("the plan has no such lane")?;
        let on_own = before.iter().filter_map(|line| line.done.as_ref()).filter(|done| done.thread == own);
        let own_version =
            on_own.filter_map(|done| done.operation).map(|(version, _)| version).max().unwrap_or(1);
        Ok(Self {
            plan,
            timeline,
            number,
            early: work.early,
            acknowledgements: Acknowledgements::open(&work.scratch, number)?,
            next: before.last().map_or(0, |line| line.ordinal + 1),
            in_doubt: true,
            own,
            own_version,
        })
    }

    fn run(mut self) -> Result<(), BoxError> {
        while self.next < self.plan.operations {
            let (planned, mut rng) = self.plan.operation(self.number, self.next);
            match planned {
                PlannedOperation::Add { thread, entry, expecting } => self.add(thread, entry, expecting)?,
                PlannedOperation::Own => self.change_own(&mut rng)?,
            }
            self.in_doubt = false;
            self.next += 1;
        }
        Ok(())
    }

    fn add(&mut self, thread: ThreadId, entry: EntryId, expecting: bool) -> Result<(), BoxError> {
        if self.early {
            self.acknowledge(1, Some(AcknowledgedOperation { thread, operation: None, entry: Some(entry) }))?;
            std::thread::sleep(EARLY_PAUSE);
        }
        let take = self.timeline.read()?.state(thread)?.active;
        let text = format!("lane {} operation {}", self.number, self.next);
        let version = EntryVersion::from_text("User", &text, Timestamp::from_millis(self.next as i64));
        for tries in 1.. {
            let mut caller = Caller::human();
            if expecting {
                caller = caller.expecting(self.timeline.read()?.thread(thread)?.summary.version);
            }
            let entries = vec![NewEntry { id: Some(entry), ..version.clone().into() }];
            let command = Command::AddEntries { take, at: InsertPosition::End, entries };
            let done = match self.timeline.change(thread, command, caller) {
                Ok(done) => AcknowledgedOperation { thread, operation: operation(&done), entry: Some(entry) },
                Err(ChangeError::Conflict { .. }) if expecting => continue,
                Err(ChangeError::Refused(CommandError::EntryExists(_))) if self.in_doubt => {
                    let operation = Some(self.find(thread, entry)?);
                    let done = AcknowledgedOperation { thread, operation, entry: Some(entry) };
                    return self.acknowledge(0, Some(done));
                }
                Err(error) => return Err(error.to_string().into()),
            };
            return if self.early { Ok(()) } else { self.acknowledge(tries, Some(done)) };
        }
        Ok(())
    }

    fn change_own(&mut self, rng: &mut Rng) -> Result<(), BoxError> {
        let thread = self.own;
        let head = self.timeline.read()?.head(thread)?;
        if self.in_doubt && head.operation.version == self.own_version + 1 {
            self.own_version += 1;
            let operation = Some((head.operation.version, head.id));
            return self.acknowledge(0, Some(AcknowledgedOperation { thread, operation, entry: None }));
        }
        let caller = Caller::human().expecting(self.own_version);
        let done = match rng.below(12) {
            0 | 1 => self.timeline.undo(thread, Unit::Turn, 1, caller).map(|moved| moved.done),
            2 => self.timeline.redo(thread, Unit::Turn, 1, caller).map(|moved| moved.done),
            3 => self.timeline.jump(thread, rng.below(self.own_version) + 1, caller).map(|moved| moved.done),
            _ => {
                let command = self.own_command(rng)?;
                self.timeline.change(thread, command, caller)
            }
        };
        match done {
            Ok(done) => {
                self.own_version = done.version;
                let operation = operation(&done);
                let done = operation.map(|_| AcknowledgedOperation { thread, operation, entry: None });
                self.acknowledge(1, done)
            }
            Err(
                ChangeError::NothingToUndo
                | ChangeError::NothingToRedo
                | ChangeError::Refused(CommandError::LastTake),
            ) => self.acknowledge(1, None),
            Err(error) => Err(format!("on its own thread: {error}").into()),
        }
    }

    fn own_command(&self, rng: &mut Rng) -> Result<Command, BoxError> {
        let reader = self.timeline.read()?;
        let state = reader.state(self.own)?;
        let take = state.active_take(&reader.queries())?;
        let text = format!("own {} {}", self.number, self.next);
        let now = Timestamp::from_millis(self.next as i64);
        let entry = match take.entries.len() {
            0 => None,
            count => take.entries.get(&reader.queries(), rng.below(count))?.map(|cell| cell.entry),
        };
        Ok(match (rng.below(10), entry) {
            (0, Some(entry)) => Command::EditEntry { take: take.id, entry, text },
            (1, Some(entry)) => Command::DeleteEntries { take: take.id, entries: vec![entry] },
            (2, at) => Command::Branch { from: take.id, at, name: None },
            (3, _) => Command::DeleteTake { take: take.id },
            (4, _) => Command::Rename { title: text },
            (5, _) => Command::Truncate { take: take.id, pairs: 3 },
            _ => Command::AddEntries {
                take: take.id,
                at: InsertPosition::End,
                entries: vec![EntryVersion::from_text("User", &text, now).into()],
            },
        })
    }

    /// Finds the operation that added an entry, after a kill.
    fn find(
        &self,
        thread: ThreadId,
        entry: EntryId,
    ) -> Result<(u64, retake_model::content::ContentId), BoxError> {
        let history = self.timeline.read()?.history(thread).list(None, usize::MAX)?;
        let added = history.into_iter().find(
            |item| matches!(&item.kind, OperationKind::EntriesAdded { entry: added, .. } if *added == entry),
        );
        let added = added.ok_or("an entry exists that no operation added")?;
        Ok((added.version, added.operation))
    }

    fn acknowledge(&mut self, tries: u64, done: Option<AcknowledgedOperation>) -> Result<(), BoxError> {
        self.acknowledgements.write(&Acknowledgement { ordinal: self.next, tries, done })
    }
}

fn operation(done: &ChangeOutcome) -> Option<(u64, retake_model::content::ContentId)> {
    done.operation.map(|operation| (done.version, operation))
}
