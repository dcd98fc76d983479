//! Messages to a running turn: steering, decisions about calls, interrupts.

use retake_model::agent::Event;
use retake_model::command::NewEntry;
use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId};
use retake_model::turn::TurnMessage;
use retake_store::runtime::RuntimeDatabase;

use super::TurnError;
use super::driver::Driver;
use super::event::{Reply, TurnEvent};
use super::session::TurnSession;
use super::turn_handle::MESSAGE_POLL_INTERVAL;
use crate::cancel::Cancel;

/// Messages that were read and are not handled yet.
#[derive(Default)]
pub(super) struct Inbox {
    steering: Vec<SteeringMessage>,
    decisions: Vec<TurnMessage>,
    /// Messages whose entries are about to be published.
    published: Vec<i64>,
    /// The last message read.
    read: i64,
}

/// A steering message that is not published yet.
struct SteeringMessage {
    number: i64,
    entry: EntryId,
    text: String,
}

impl Inbox {
    /// Deletes messages whose entries are published.
    pub(super) fn delete_published(&mut self, session: &TurnSession) -> Result<(), TurnError> {
        for number in std::mem::take(&mut self.published) {
            session.database.delete_message(number)?;
        }
        Ok(())
    }

    /// Deletes old decisions about a call before it asks for approval.
    pub(super) fn forget_decisions(&mut self, session: &TurnSession, call: &str) -> Result<(), TurnError> {
        self.decisions.retain(|message| message.call() != Some(call));
        for (number, message) in session.database.messages(session.take())? {
            if message.call() == Some(call) {
                session.database.delete_message(number)?;
            }
        }
        Ok(())
    }

    /// Removes the decision about a call.
    pub(super) fn take_decision(&mut self, call: &str) -> Option<Reply> {
        let index = self.decisions.iter().position(|message| message.call() == Some(call))?;
        match self.decisions.remove(index) {
            TurnMessage::Decide { allowed, remember, reason, .. } => {
                Some(Reply { allowed, remember, reason })
            }
            TurnMessage::Interrupt | TurnMessage::Steer { .. } => None,
        }
    }
}

impl Driver<'_> {
    /// Turns steering messages into entries. The messages are deleted after the entries are published.
    pub(super) fn take_steering_entries(&mut self) -> Vec<NewEntry> {
        let now = self.runtime.timeline.now();
        let mut entries = Vec::new();
        for SteeringMessage { number, entry, text } in std::mem::take(&mut self.inbox.steering) {
            self.observer.on_event(&TurnEvent::Steered { entry });
            let version = EntryVersion::from_text("User", &text, now);
            entries.push(NewEntry { id: Some(entry), version, blobs: Vec::new() });
            self.inbox.published.push(number);
        }
        entries
    }

    /// Reads messages that an earlier process, or an ended turn, did not receive.
    pub(super) fn load_undelivered_messages(&mut self) -> Result<(), TurnError> {
        for (number, message) in self.session.database.messages(self.session.take())? {
            self.inbox.read = self.inbox.read.max(number);
            match message {
                // Already read, and published with the next step.
                _ if self.inbox.steering.iter().any(|steering| steering.number == number) => {}
                TurnMessage::Steer { entry, text } if !self.publisher.has_entry(&self.session, entry)? => {
                    self.inbox.steering.push(SteeringMessage { number, entry, text });
                }
                // Interrupts and decisions for an ended turn do not apply to this one.
                _ => self.session.database.delete_message(number)?,
            }
        }
        Ok(())
    }

    /// Reads new messages. Cancels the turn if it was undone, to save the cost of an unused answer.
    pub(super) fn read_messages(&mut self) -> Result<(), TurnError> {
        for (number, message) in self.session.database.messages(self.session.take())? {
            if number <= self.inbox.read {
                continue;
            }
            self.inbox.read = number;
            match message {
                // Keep the message until its entry is published.
                TurnMessage::Steer { entry, text } => {
                    self.inbox.steering.push(SteeringMessage { number, entry, text });
                    self.note_steering();
                }
                TurnMessage::Interrupt => {
                    self.cancel.set();
                    self.session.database.delete_message(number)?;
                }
                // Keep the message, so that a second decision is refused.
                decision @ TurnMessage::Decide { .. } => self.inbox.decisions.push(decision),
            }
        }
        if self.publisher.is_undone(&self.session)? {
            self.cancel.set();
        }
        Ok(())
    }

    /// Records a message in the state while the model answers, because an answer without calls would end the
    /// turn. In other states the model is called anyway.
    fn note_steering(&mut self) {
        if self.machine.state().is_answering() {
            self.note(Event::Prompted);
        }
    }
}

/// Sets `settled` when an approval question is obsolete: the turn was interrupted, or the call was decided
/// elsewhere.
pub(super) fn watch_decision(
    database: &RuntimeDatabase,
    (take, call): (TakeId, &str),
    cancel: &Cancel,
    settled: &Cancel,
    over: &Cancel,
) {
    let settles = |(_, message): &(i64, TurnMessage)| {
        *message == TurnMessage::Interrupt || message.call() == Some(call)
    };
    while !over.wait_timeout(MESSAGE_POLL_INTERVAL) {
        let decided = || database.messages(take).is_ok_and(|messages| messages.iter().any(settles));
        if cancel.is_set() || decided() {
            return settled.set();
        }
    }
}
