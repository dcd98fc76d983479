//! Concurrent actions while a turn compresses itself: a stop, or another change of the thread.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use retake_agent::Sender;
use retake_model::id::TakeId;
use retake_timeline::{Caller, Command};

use super::Mistake;
use super::assistant::DuringSummary;
use super::world::World;
use crate::dice::Dice;
use crate::violation::Trouble;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Disturbance {
    Stop,
    Draft(String),
    Rename(String),
}

/// A planned action, and when it was executed.
#[derive(Clone)]
pub(super) struct Disturbed {
    pub(super) what: Disturbance,
    done: Arc<Mutex<Option<Instant>>>,
}

impl Disturbed {
    pub(super) fn roll(dice: &mut Dice, mistake: Option<Mistake>, step: u64) -> Self {
        let what = match (mistake, dice.below(3)) {
            (Some(Mistake::SummaryNotStopped), _) | (None, 0) => Disturbance::Stop,
            (_, 1) => Disturbance::Draft(format!("a draft of step {step}")),
            _ => Disturbance::Rename(format!("a title of step {step}")),
        };
        Self::new(what)
    }

    pub(super) fn new(what: Disturbance) -> Self {
        Self { what, done: Arc::default() }
    }

    /// Schedules the action for the next summary.
    pub(super) fn plan(&self, world: &World, take: TakeId, mistake: Option<Mistake>) {
        let (timeline, thread) = (world.shop.timeline.clone(), world.thread);
        let (what, done) = (self.what.clone(), Arc::clone(&self.done));
        let claimed = matches!(mistake, Some(Mistake::SummaryNotStopped | Mistake::ChangeLost));
        let slow = what == Disturbance::Stop;
        let act = move || {
            let change = |command| timeline.change(thread, command, Caller::human()).is_ok();
            let succeeded = claimed
                || match what {
                    Disturbance::Stop => {
                        Sender::new(&timeline).is_ok_and(|sender| sender.interrupt(take).is_ok())
                    }
                    Disturbance::Draft(text) => change(Command::SetDraft { take, text }),
                    Disturbance::Rename(title) => change(Command::Rename { title }),
                };
            *done.lock().unwrap_or_else(PoisonError::into_inner) = succeeded.then(Instant::now);
        };
        world.assistant.during_summary(DuringSummary { act: Box::new(act), slow });
    }

    /// When it was executed, if it was.
    pub(super) fn done(&self) -> Option<Instant> {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the change still exists.
    pub(super) fn is_there(&self, world: &World) -> Result<bool, Trouble> {
        Ok(match &self.what {
            Disturbance::Stop => true,
            Disturbance::Draft(text) => world.active()?.draft == *text,
            Disturbance::Rename(title) => {
                world.shop.timeline.look()?.thread(world.thread)?.summary.title == *title
            }
        })
    }
}
