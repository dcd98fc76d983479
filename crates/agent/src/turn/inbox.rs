//! Messages to a running turn: steering, decisions about calls, interrupts.

use retake_model::agent::{Event, step};
use retake_model::command::NewEntry;
use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId};
use retake_model::turn::TurnMessage;
use retake_store::runtime::RuntimeDatabase;

use super::TurnError;
use super::driver::Driver;
use super::event::TurnEvent;

/// A steering message that is not published yet.
pub(super) struct Steering {
    pub(super) number: i64,
    pub(super) entry: EntryId,
    pub(super) text: String,
}

impl Driver<'_> {
    /// Turns steering messages into entries. The messages are deleted after the entries are published.
    pub(super) fn take_steering_entries(&mut self) -> Vec<NewEntry> {
        let now = self.runtime.timeline.now();
        let mut entries = Vec::new();
        for Steering { number, entry, text } in std::mem::take(&mut self.steering) {
            self.observer.on_event(&TurnEvent::Steered { entry });
            let version = EntryVersion::from_text("User", &text, now);
            entries.push(NewEntry { id: Some(entry), version, blobs: Vec::new() });
            self.published.push(number);
        }
        entries
    }

    /// Deletes messages whose entries are published.
    pub(super) fn delete_published_messages(&mut self) -> Result<(), TurnError> {
        for number in std::mem::take(&mut self.published) {
            self.runtime_database.delete_message(number)?;
        }
        Ok(())
    }

    /// Messages that a killed turn did not receive, as entries.
    pub(super) fn undelivered_messages(&mut self) -> Result<Vec<NewEntry>, TurnError> {
        for (number, message) in self.runtime_database.messages(self.take)? {
            self.read = self.read.max(number);
            match message {
                // Already read, and published with the next step.
                _ if self.steering.iter().any(|steering| steering.number == number) => {}
                TurnMessage::Steer { entry, text } if !self.holds(entry)? => {
                    self.steering.push(Steering { number, entry, text });
                }
                // Interrupts and decisions for an ended turn do not apply to this one.
                _ => self.runtime_database.delete_message(number)?,
            }
        }
        Ok(self.take_steering_entries())
    }

    /// Reads new messages, and checks that the turn was not undone.
    pub(super) fn read_messages(&mut self) -> Result<(), TurnError> {
        for (number, message) in self.runtime_database.messages(self.take)? {
            if number <= self.read {
                continue;
            }
            self.read = number;
            match message {
                // Keep the message until its entry is published.
                TurnMessage::Steer { entry, text } => {
                    self.steering.push(Steering { number, entry, text });
                    // Record it in the state too, because an answer without calls would end the turn.
                    self.state = step(&self.state, Event::Prompted, &self.runtime.retry_policy, 0).0;
                    continue;
                }
                TurnMessage::Interrupt => self.cancel.set(),
                // Keep the message, so that a second decision is refused.
                decision @ TurnMessage::Decide { .. } => {
                    self.decisions.push(decision);
                    continue;
                }
            }
            self.runtime_database.delete_message(number)?;
        }
        self.check_not_undone()
    }

    /// Cancels the turn if it was undone, to save the cost of an unused answer.
    pub(super) fn check_not_undone(&mut self) -> Result<(), TurnError> {
        let newest = self.newest()?;
        if newest == self.checked_version {
            return Ok(());
        }
        self.checked_version = newest;
        match self.agent() {
            Ok(agent) if agent.as_ref().map(|agent| agent.turn) == Some(self.turn()) => Ok(()),
            Ok(_) | Err(TurnError::NoSuchTake) => {
                self.cancel.set();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Whether an approval question is obsolete, because the turn was interrupted or the call was decided
    /// elsewhere.
    pub(super) fn is_settled(runtime_database: &RuntimeDatabase, take: TakeId, call: &str) -> bool {
        let settles = |(_, message): &(i64, TurnMessage)| {
            *message == TurnMessage::Interrupt || message.call() == Some(call)
        };
        runtime_database.messages(take).is_ok_and(|messages| messages.iter().any(settles))
    }

    /// Deletes old decisions about a call before it asks for approval.
    pub(super) fn forget_decisions(&mut self, call: &str) -> Result<(), TurnError> {
        self.decisions.retain(|message| message.call() != Some(call));
        for (number, message) in self.runtime_database.messages(self.take)? {
            if message.call() == Some(call) {
                self.runtime_database.delete_message(number)?;
            }
        }
        Ok(())
    }
}
