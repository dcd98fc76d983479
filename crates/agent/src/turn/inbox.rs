//! What others want of a turn that runs: messages to the model, decisions about calls, the wish to stop.

use retake_model::agent::{Event, step};
use retake_model::command::NewEntry;
use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId};
use retake_model::turn::Letter;
use retake_timeline::store::Ledger;

use super::TurnError;
use super::driver::Driver;
use super::event::TurnEvent;

/// A message that came while the turn ran.
pub(super) struct Steering {
    pub(super) number: i64,
    pub(super) entry: EntryId,
    pub(super) text: String,
}

impl Driver<'_> {
    /// Messages that came meanwhile, as entries. Their letters are forgotten once these are published.
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

    /// What was published need not be kept as letters.
    pub(super) fn forget_published(&mut self) -> Result<(), TurnError> {
        for number in std::mem::take(&mut self.published) {
            self.ledger.forget_letter(number)?;
        }
        Ok(())
    }

    /// Messages that a turn was sent and did not live to hear, as entries.
    pub(super) fn unheard(&mut self) -> Result<Vec<NewEntry>, TurnError> {
        for (number, letter) in self.ledger.letters(self.take)? {
            self.read = self.read.max(number);
            match letter {
                // It was read, and waits for a step that publishes it.
                _ if self.steering.iter().any(|steering| steering.number == number) => {}
                Letter::Steer { entry, text } if !self.holds(entry)? => {
                    self.steering.push(Steering { number, entry, text });
                }
                // What was meant for a turn that is no more is not meant for this one.
                _ => self.ledger.forget_letter(number)?,
            }
        }
        Ok(self.steered())
    }

    /// Reads what others want of this turn, and looks whether it is still wanted at all.
    pub(super) fn read_letters(&mut self) -> Result<(), TurnError> {
        for (number, letter) in self.ledger.letters(self.take)? {
            if number <= self.read {
                continue;
            }
            self.read = number;
            match letter {
                // Until its entry is published, the letter is all there is of it.
                Letter::Steer { entry, text } => {
                    self.steering.push(Steering { number, entry, text });
                    // Remembered by the state too: an answer without calls would end the turn.
                    self.state = step(&self.state, Event::Prompted, &self.shop.patience, 0).0;
                    continue;
                }
                Letter::Interrupt => self.cancel.set(),
                // It stays where it is, so that nobody decides a second time.
                decision @ Letter::Decide { .. } => {
                    self.decisions.push(decision);
                    continue;
                }
            }
            self.ledger.forget_letter(number)?;
        }
        self.check_still_wanted()
    }

    /// Stops soon where the turn was undone: nobody should pay for an answer that is thrown away.
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

    /// Whether a question about a call need not be answered any more, as far as letters say: somebody wants the turn to
    /// end, or has decided elsewhere. For those who wait for a person.
    pub(super) fn is_settled(ledger: &Ledger, take: TakeId, call: &str) -> bool {
        let settles =
            |(_, letter): &(i64, Letter)| *letter == Letter::Interrupt || letter.call() == Some(call);
        ledger.letters(take).is_ok_and(|letters| letters.iter().any(settles))
    }

    /// Forgets what was decided about a call: it is about to be asked about.
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
