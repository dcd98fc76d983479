//! Concurrent actions while a turn compresses itself: a stop, or another change of the thread.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use retake_agent::TurnHandle;
use retake_model::id::TakeId;
use retake_timeline::{Caller, Command};

use super::DriverFault;
use super::scripted_model::SummaryHook;
use super::world::World;
use crate::rng::Rng;
use crate::violation::BoxError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Interference {
    Stop,
    Draft(String),
    Rename(String),
}

/// A planned action, and when it was executed.
#[derive(Clone)]
pub(super) struct PlannedInterference {
    pub(super) what: Interference,
    done: Arc<Mutex<Option<Instant>>>,
}

impl PlannedInterference {
    pub(super) fn sample(rng: &mut Rng, mistake: Option<DriverFault>, step: u64) -> Self {
        let what = match (mistake, rng.below(3)) {
            (Some(DriverFault::SummaryNotStopped), _) | (None, 0) => Interference::Stop,
            (_, 1) => Interference::Draft(format!("a draft of step {step}")),
            _ => Interference::Rename(format!("a title of step {step}")),
        };
        Self::new(what)
    }

    pub(super) fn new(what: Interference) -> Self {
        Self { what, done: Arc::default() }
    }

    /// Schedules the action for the next summary.
    pub(super) fn plan(&self, world: &World, take: TakeId, mistake: Option<DriverFault>) {
        let (timeline, thread) = (world.runtime.timeline.clone(), world.thread);
        let (what, done) = (self.what.clone(), Arc::clone(&self.done));
        let claimed = matches!(mistake, Some(DriverFault::SummaryNotStopped | DriverFault::ChangeLost));
        let slow = what == Interference::Stop;
        let act = move || {
            let change = |command| timeline.change(thread, command, Caller::human()).is_ok();
            let succeeded = claimed
                || match what {
                    Interference::Stop => {
                        TurnHandle::new(&timeline).is_ok_and(|sender| sender.interrupt(take).is_ok())
                    }
                    Interference::Draft(text) => change(Command::SetDraft { take, text }),
                    Interference::Rename(title) => change(Command::Rename { title }),
                };
            *done.lock().unwrap_or_else(PoisonError::into_inner) = succeeded.then(Instant::now);
        };
        world.assistant.during_summary(SummaryHook { act: Box::new(act), slow });
    }

    /// When it was executed, if it was.
    pub(super) fn done(&self) -> Option<Instant> {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the change still exists.
    pub(super) fn is_there(&self, world: &World) -> Result<bool, BoxError> {
        Ok(match &self.what {
            Interference::Stop => true,
            Interference::Draft(text) => world.active()?.draft == *text,
            Interference::Rename(title) => {
                world.runtime.timeline.read()?.thread(world.thread)?.summary.title == *title
            }
        })
    }
}
