//! Whether a call may run: by the rules, by what was allowed before, or by asking.

use std::time::Duration;

use retake_model::agent::Event;
use retake_model::operation::{Actor, TurnStep};
use retake_model::turn::Letter;
use retake_timeline::store::DecisionSent;

use super::TurnError;
use super::driver::Driver;
use super::event::{Reply, TurnEvent};
use crate::approval::{self, Because, Decision, Fingerprint, Place, Verdict};
use crate::tools::{self, Call};

impl Driver<'_> {
    /// Decides on a call.
    pub(super) fn decide(&mut self, id: &str) -> Result<(), TurnError> {
        self.read_letters()?;
        if self.cancel.is_set() {
            return self.interrupt(Vec::new());
        }
        let Some((call, broken)) = self.call_of(id)? else {
            return self.fail(Self::missing_call(), Vec::new());
        };
        if let Some(why) = broken {
            return self.deny(id, why);
        }
        let verdict = self.verdict(&call);
        match verdict.decision {
            Decision::Allow => self.allow(&call),
            Decision::Deny => self.deny(id, denied(verdict.because)),
            Decision::Ask => self.ask(&call),
        }
    }

    fn verdict(&self, call: &Call) -> Verdict {
        let project = self.shop.project.to_string();
        let place = Place { directory: &self.shop.folder, project: &project };
        let remembered = |fingerprint: &Fingerprint| {
            self.ledger.is_approved(self.shop.project, fingerprint.bytes()).unwrap_or(false)
        };
        // Where it cannot be looked up, a person is asked once more.
        self.shop.approval.decide(call, place, &remembered)
    }

    fn ask(&mut self, call: &Call) -> Result<(), TurnError> {
        // A model may give two calls of a turn the same name: what was decided about one says nothing of the other.
        self.forget_decisions(&call.id)?;
        let step = TurnStep::Asked { call: call.id.clone(), tool: call.name.clone() };
        self.go(Event::ToolAsked { call: call.id.clone() }, Vec::new(), step, Actor::Agent)?;
        let question = approval::describe(call);
        self.audience
            .hear(&TurnEvent::ApprovalRequested { call: call.id.clone(), question: question.clone() });
        let (ledger, take, cancel) = (&self.ledger, self.take, self.cancel);
        let ended = || cancel.is_set() || Self::is_settled(ledger, take, &call.id);
        let decision = match self.audience.ask(&question, &ended) {
            // Whoever is asked here decides like anybody else: the first one holds.
            Some(reply) if ledger.send_decision(take, &reply.letter(&call.id))? == DecisionSent::Sent => {
                Some(reply)
            }
            _ => self.wait_for_decision(&call.id)?,
        };
        self.read_letters()?;
        match decision {
            _ if self.cancel.is_set() => self.interrupt(Vec::new()),
            None => self.interrupt(Vec::new()),
            Some(Reply { allowed: true, remember, .. }) => {
                if remember {
                    let facts = format!("{}: {}", question.tool, question.what.join("\n"));
                    let project = self.shop.project.to_string();
                    let fingerprint = approval::fingerprint(call, &project, tools::VERSION);
                    let now = self.shop.timeline.now();
                    self.ledger.approve(self.shop.project, fingerprint.bytes(), &facts, now)?;
                }
                self.allow(call)
            }
            Some(Reply { reason, .. }) => {
                let why = reason.unwrap_or_else(|| "The user does not allow this call.".to_owned());
                self.deny(&call.id, why)
            }
        }
    }

    /// Waits for a letter that decides; `None` if the turn is to end.
    fn wait_for_decision(&mut self, id: &str) -> Result<Option<Reply>, TurnError> {
        loop {
            let ours = |letter: &Letter| matches!(letter, Letter::Decide { call, .. } if call == id);
            if let Some(place) = self.decisions.iter().position(ours)
                && let Letter::Decide { allowed, remember, reason, .. } = self.decisions.remove(place)
            {
                return Ok(Some(Reply { allowed, remember, reason }));
            }
            if self.wait(Duration::from_millis(100))? {
                return Ok(None);
            }
        }
    }
}

/// What a model is told of a call that may not run.
fn denied(because: Because) -> String {
    match because {
        Because::UnknownTool => {
            let names: Vec<&str> = tools::all().iter().map(|tool| tool.name).collect();
            format!("There is no such tool. There are: {}.", names.join(", "))
        }
        Because::Rule(_) => "A rule of the user's denies this call. Find another way, or ask.".to_owned(),
        Because::Mode(_) | Because::Remembered => {
            "Tools may only look at files here. Say what you would have done instead.".to_owned()
        }
    }
}
