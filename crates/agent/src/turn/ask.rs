//! Whether a call may run: by the rules, by what was allowed before, or by asking.

use std::time::Duration;

use retake_model::agent::Event;
use retake_model::operation::{Actor, TurnStep};
use retake_model::turn::Letter;

use super::driver::Driver;
use super::event::{Decision, TurnEvent};
use super::TurnError;
use crate::approval::{self, Verdict};
use crate::tools::Call;

impl Driver<'_> {
    /// Decides on a call.
    pub(super) fn decide(&mut self, id: &str) -> Result<(), TurnError> {
        self.read_letters()?;
        if self.cancel.is_set() {
            return self.interrupt(Vec::new());
        }
        let Some(call) = self.call_of(id)? else {
            return self.fail(Self::missing_call(), Vec::new());
        };
        match self.verdict(&call)? {
            Verdict::Allow => self.allow(&call),
            Verdict::Deny { reason } => self.deny(id, reason),
            Verdict::Ask => self.ask(&call),
        }
    }

    fn verdict(&self, call: &Call) -> Result<Verdict, TurnError> {
        let verdict = self.shop.approval.decide(call, &self.shop.folder);
        if verdict != Verdict::Ask {
            return Ok(verdict);
        }
        let known = self.ledger.is_approved(self.shop.project, &approval::fingerprint(call))?;
        Ok(if known { Verdict::Allow } else { Verdict::Ask })
    }

    fn ask(&mut self, call: &Call) -> Result<(), TurnError> {
        let step = TurnStep::Asked { call: call.id.clone(), tool: call.name.clone() };
        self.go(Event::ToolAsked { call: call.id.clone() }, Vec::new(), step, Actor::Agent)?;
        let question = approval::describe(call);
        self.audience.hear(&TurnEvent::Asked { question: question.clone() });
        let decision = match self.audience.ask(&question) {
            Some(decision) => Some(decision),
            None => self.wait_for_decision(&call.id)?,
        };
        match decision {
            _ if self.cancel.is_set() => self.interrupt(Vec::new()),
            None => self.interrupt(Vec::new()),
            Some(Decision { allowed: true, remember, .. }) => {
                if remember {
                    let facts = question.what.join("\n");
                    let now = self.shop.timeline.now();
                    self.ledger.approve(self.shop.project, &approval::fingerprint(call), &facts, now)?;
                }
                self.allow(call)
            }
            Some(Decision { reason, .. }) => {
                let why = reason.unwrap_or_else(|| "The user does not allow this call.".to_owned());
                self.deny(&call.id, why)
            }
        }
    }

    /// Waits for a letter that decides; `None` if the turn is to end.
    fn wait_for_decision(&mut self, id: &str) -> Result<Option<Decision>, TurnError> {
        loop {
            let ours = |letter: &Letter| matches!(letter, Letter::Decide { call, .. } if call == id);
            if let Some(place) = self.decisions.iter().position(ours)
                && let Letter::Decide { allowed, remember, reason, .. } = self.decisions.remove(place)
            {
                return Ok(Some(Decision { allowed, remember, reason }));
            }
            if self.wait(Duration::from_millis(100))? {
                return Ok(None);
            }
        }
    }
}
