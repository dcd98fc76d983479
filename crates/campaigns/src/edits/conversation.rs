//! Changes of the conversation alone: entries that are inserted or summarised, and switches without files.

use retake_model::command::Compression;
use retake_model::entry::EntryVersion;
use retake_model::id::EntryId;
use retake_timeline::{Caller, Command, InsertPosition, MoveOptions, Scope};

use crate::violation::BoxError;

use super::reference::{ModelFault, ReferenceModel};
use super::run::EditSession;
use super::take_history::{Author, TakeEvent};

impl ReferenceModel {
    /// Inserts an entry after another one in the active take.
    fn insert_entry(&mut self, thread: usize, after: EntryId, new: EntryId) {
        let history = self.threads[thread].history(self.threads[thread].active());
        let history = match self.mistake {
            Some(ModelFault::InsertedEntriesHaveLaterFiles) => {
                history.with(TakeEvent::Entry(new, Author::User))
            }
            _ => history.with_inserted(after, new),
        };
        self.talk(thread, history);
    }

    /// Replaces the first entries of the active take, up to this one, by a summary.
    fn compress(&mut self, thread: usize, last: EntryId, summary: EntryId) {
        let history = self.threads[thread].history(self.threads[thread].active());
        self.talk(thread, history.compressed(last, summary));
    }

    /// Makes another take active and leaves the folder as it is.
    fn switch_alone(&mut self, thread: usize, take: usize) {
        if self.mistake == Some(ModelFault::ConversationsSwitchWithFiles) {
            return self.switch(thread, take);
        }
        let histories = self.threads[thread].head().histories.clone();
        self.change(thread, take, None, histories, None);
    }
}

impl EditSession {
    /// Inserts an entry after a random one, or replaces the first entries by a summary.
    pub(super) fn rearrange(&mut self, at: usize) -> Result<String, BoxError> {
        let active = self.model.threads[at].active();
        let entries: Vec<EntryId> =
            self.model.threads[at].history(active).entries().into_iter().map(|(entry, _)| entry).collect();
        if entries.len() < 3 {
            return self.add_entry(at);
        }
        let (id, timeline) = (self.threads[at], self.working_copy.timeline().clone());
        let take = timeline.read()?.state(id)?.active;
        let place = self.rng.index(entries.len() - 1);
        let entry = EntryVersion::from_text("User", "Between", timeline.now());
        let entry_at = |number: u64| -> Result<EntryId, BoxError> {
            let reader = timeline.read()?;
            let take = reader.state(id)?.take(&reader.queries(), take)?.ok_or("no such take")?;
            Ok(take.entries.get(&reader.queries(), number)?.ok_or("no entry")?.entry)
        };
        if self.rng.once_in(3) && place > 0 {
            let reader = timeline.read()?;
            let seen = reader.state(id)?.take(&reader.queries(), take)?.ok_or("no such take")?.entries;
            drop(reader);
            let end = place as u64 + 1;
            let compression = Compression { turn: None, seen, end, kept: Vec::new(), summary: entry.into() };
            timeline.change(id, Command::Compress { take, compression }, Caller::human())?;
            let summary = entry_at(0)?;
            self.model.compress(at, entries[place], summary);
            return Ok(format!("a summary of {end} entries in thread {at}"));
        }
        let position = InsertPosition::After(entries[place]);
        let add = Command::AddEntries { take, at: position, entries: vec![entry.into()] };
        timeline.change(id, add, Caller::human())?;
        let new = entry_at(place as u64 + 1)?;
        self.model.insert_entry(at, entries[place], new);
        Ok(format!("an entry between others in thread {at}"))
    }

    /// Switches only the conversation.
    pub(super) fn switch_alone(&mut self, at: usize, number: usize) -> Result<String, BoxError> {
        let (id, take) = (self.threads[at], self.takes[at][number]);
        let alone = MoveOptions { scope: Scope::Conversation, ..MoveOptions::default() };
        self.working_copy.change(id, Command::Switch { take }, Caller::human(), alone)?;
        self.model.switch_alone(at, number);
        Ok(format!("switch of the conversation alone to take {number} in thread {at}"))
    }
}
