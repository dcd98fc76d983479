//! Decides whether a call may run: by rules, by remembered approvals, or by asking the user.

use std::time::Duration;

use retake_model::agent::Event;
use retake_model::operation::{Actor, TurnStep};
use retake_store::runtime::DecisionOutcome;

use super::driver::Driver;
use super::event::{Reply, TurnEvent};
use super::inbox::watch_decision;
use super::{TurnError, calls};
use crate::approval::{self, CallSite, Decision, Fingerprint, Verdict, VerdictReason};
use crate::cancel::Cancel;
use crate::tools::{self, Call};

impl Driver<'_> {
    /// Decides about a call.
    pub(super) fn decide(&mut self, id: &str) -> Result<(), TurnError> {
        self.read_messages()?;
        if self.cancel.is_set() {
            return self.interrupt(Vec::new());
        }
        let Some((call, broken)) = self.call_of(id)? else {
            return self.fail(calls::missing_call(), Vec::new());
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
        let project = self.runtime.project.to_string();
        let site = CallSite { directory: &self.runtime.folder, project: &project };
        let remembered = |fingerprint: &Fingerprint| {
            self.session.database.is_approved(self.runtime.project, fingerprint.bytes()).unwrap_or(false)
        };
        // If the lookup fails, the user is asked again.
        self.runtime.approval.decide(call, site, &remembered)
    }

    fn ask(&mut self, call: &Call) -> Result<(), TurnError> {
        // A model may use the same id for two calls of a turn; a decision about one does not apply to the
        // other.
        self.inbox.forget_decisions(&self.session, &call.id)?;
        let step = TurnStep::ApprovalRequested { call: call.id.clone(), tool: call.name.clone() };
        self.advance(Event::ToolAsked { call: call.id.clone() }, Vec::new(), step, Actor::Agent)?;
        let question = approval::describe(call);
        self.observer
            .on_event(&TurnEvent::ApprovalRequested { call: call.id.clone(), question: question.clone() });
        let (database, take) = (&self.session.database, self.session.take());
        let (cancel, settled, over) = (self.cancel, Cancel::new(), Cancel::new());
        let observer = &mut *self.observer;
        let reply = std::thread::scope(|scope| {
            scope.spawn(|| watch_decision(database, (take, &call.id), cancel, &settled, &over));
            let _over = over.set_on_drop();
            observer.ask(&question, &settled)
        });
        let decision = match reply {
            // The first decision wins, wherever it comes from.
            Some(reply)
                if database.send_decision(take, &reply.message(&call.id))? == DecisionOutcome::Sent =>
            {
                Some(reply)
            }
            _ => self.wait_for_decision(&call.id)?,
        };
        self.read_messages()?;
        match decision {
            _ if self.cancel.is_set() => self.interrupt(Vec::new()),
            None => self.interrupt(Vec::new()),
            Some(Reply { allowed: true, remember, .. }) => {
                if remember {
                    let facts = format!("{}: {}", question.tool, question.what.join("\n"));
                    let project = self.runtime.project.to_string();
                    let fingerprint = approval::fingerprint(call, &project, tools::VERSION);
                    let now = self.runtime.timeline.now();
                    self.session.database.approve(self.runtime.project, fingerprint.bytes(), &facts, now)?;
                }
                self.allow(call)
            }
            Some(Reply { reason, .. }) => {
                let why = reason.unwrap_or_else(|| "The user does not allow this call.".to_owned());
                self.deny(&call.id, why)
            }
        }
    }

    /// Waits for a message with a decision; `None` if the turn is to end.
    fn wait_for_decision(&mut self, id: &str) -> Result<Option<Reply>, TurnError> {
        loop {
            if let Some(reply) = self.inbox.take_decision(id) {
                return Ok(Some(reply));
            }
            if self.wait(Duration::from_millis(100))? {
                return Ok(None);
            }
        }
    }
}

/// The result that the model gets for a denied call.
fn denied(because: VerdictReason) -> String {
    match because {
        VerdictReason::UnknownTool => {
            let names: Vec<&str> = tools::all().iter().map(|tool| tool.name).collect();
            format!("There is no such tool. There are: {}.", names.join(", "))
        }
        VerdictReason::Rule(_) => "A rule of the user denies this call. Find another way, or ask.".to_owned(),
        VerdictReason::Mode(_) | VerdictReason::Remembered => {
            "Tools may only read files here. Describe what you would have done instead.".to_owned()
        }
    }
}
