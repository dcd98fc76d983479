//! Messages to a running turn: steering, decisions about calls, interrupts.

use retake_model::agent::{Event, step};
use retake_model::command::NewEntry;
use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId};
use retake_model::turn::Letter;
use retake_timeline::store::Ledger;

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
    pub(super) fn steered(&mut self) -> Vec<NewEntry> {
        let now = self.shop.timeline.now();
        let mut entries = Vec::new();
        for Steering { number, entry, text } in std::mem::take(&mut self.steering) {
            self.audience.hear(&TurnEvent::Steered { entry });
            let version = EntryVersion::from_text("User", &text, now);
            entries.push(NewEntry { id: Some(entry), version, blobs: Vec::new() });
            self.published.push(number);
        }
        entries
    }

    /// Deletes messages whose entries are published.
    pub(super) fn forget_published(&mut self) -> Result<(), TurnError> {
        for number in std::mem::take(&mut self.published) {
            self.ledger.forget_letter(number)?;
        }
        Ok(())
    }

    /// Messages that a killed turn did not receive, as entries.
    pub(super) fn unheard(&mut self) -> Result<Vec<NewEntry>, TurnError> {
        for (number, letter) in self.ledger.letters(self.take)? {
            self.read = self.read.max(number);
            match letter {
                // Already read, and published with the next step.
                _ if self.steering.iter().any(|steering| steering.number == number) => {}
                Letter::Steer { entry, text } if !self.holds(entry)? => {
                    self.steering.push(Steering { number, entry, text });
                }
                // Interrupts and decisions for an ended turn do not apply to this one.
                _ => self.ledger.forget_letter(number)?,
            }
        }
        Ok(self.steered())
    }

    /// Reads new messages, and checks that the turn was not undone.
    pub(super) fn read_letters(&mut self) -> Result<(), TurnError> {
        for (number, letter) in self.ledger.letters(self.take)? {
            if number <= self.read {
                continue;
            }
            self.read = number;
            match letter {
                // Keep the message until its entry is published.
                Letter::Steer { entry, text } => {
                    self.steering.push(Steering { number, entry, text });
                    // Record it in the state too, because an answer without calls would end the turn.
                    self.state = step(&self.state, Event::Prompted, &self.shop.patience, 0).0;
                    continue;
                }
                Letter::Interrupt => self.cancel.set(),
                // Keep the message, so that a second decision is refused.
                decision @ Letter::Decide { .. } => {
                    self.decisions.push(decision);
                    continue;
                }
            }
            self.ledger.forget_letter(number)?;
        }
        self.check_still_wanted()
    }

    /// Cancels the turn if it was undone, to save the cost of an unused answer.
    pub(super) fn check_still_wanted(&mut self) -> Result<(), TurnError> {
        let newest = self.newest()?;
        if newest == self.looked {
            return Ok(());
        }
        self.looked = newest;
        match self.agent() {
            Ok(agent) if agent.as_ref().map(|agent| agent.turn) == Some(self.turn()) => Ok(()),
            Ok(_) | Err(TurnError::NoSuchTake) => {
                self.cancel.set();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Whether an approval question is obsolete, because the turn was interrupted or the call was decided elsewhere.
    pub(super) fn is_settled(ledger: &Ledger, take: TakeId, call: &str) -> bool {
        let settles =
            |(_, letter): &(i64, Letter)| *letter == Letter::Interrupt || letter.call() == Some(call);
        ledger.letters(take).is_ok_and(|letters| letters.iter().any(settles))
    }

    /// Deletes old decisions about a call before it asks for approval.
    pub(super) fn forget_decisions(&mut self, call: &str) -> Result<(), TurnError> {
        self.decisions.retain(|letter| letter.call() != Some(call));
        for (number, letter) in self.ledger.letters(self.take)? {
            if letter.call() == Some(call) {
                self.ledger.forget_letter(number)?;
            }
        }
        Ok(())
    }
}
