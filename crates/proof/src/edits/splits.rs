//! Takes that are created at random entries, and promoted takes.

use retake_model::agent::AgentState;
use retake_model::command::{Advance, Prompt, Start};
use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId, ThreadId, TurnId};
use retake_model::operation::TurnStep;
use retake_timeline::{Caller, Command, Halves, Handling, Spot};

use crate::violation::Trouble;

use super::run::{Leg, Walked};
use super::story::Author;

/// Maximum number of takes per thread.
const TAKES: usize = 12;
/// Maximum number of threads.
const THREADS: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    Fork,
    Branch,
    Retry,
}

impl Leg {
    /// Adds a user entry to the active take.
    pub(super) fn say(&mut self, at: usize) -> Result<String, Trouble> {
        let (id, timeline) = (self.threads[at], self.desk.timeline());
        let take = timeline.look()?.state(id)?.active;
        let entry = EntryVersion::from_text("User", "Say it", timeline.now());
        let add = Command::AddEntries { take, at: Spot::End, entries: vec![entry.into()] };
        timeline.change(id, add, Caller::human())?;
        let entry = self.last_entry(id, take)?;
        self.model.say(at, entry, Author::User, None);
        Ok(format!("an entry in thread {at}"))
    }

    fn last_entry(&self, thread: ThreadId, take: TakeId) -> Result<EntryId, Trouble> {
        let looking = self.desk.timeline().look()?;
        let take = looking.state(thread)?.take(&looking.queries(), take)?.ok_or("no such take")?;
        let last = take.entries.get(&looking.queries(), take.entries.len() - 1)?;
        Ok(last.ok_or("no entry")?.entry)
    }

    /// The index of a random take.
    fn some_take(&mut self, at: usize) -> Result<usize, Trouble> {
        let looking = self.desk.timeline().look()?;
        let state = looking.state(self.threads[at])?;
        let takes: Vec<TakeId> =
            state.all_takes(&looking.queries())?.into_iter().map(|take| take.id).collect();
        drop(looking);
        let take = self.dice.pick(&takes).copied().ok_or("a thread without takes")?;
        Ok(self.takes[at].iter().position(|known| *known == take).ok_or("an unknown take")?)
    }

    /// A fork, a branch or a retry at a random entry of a random take.
    pub(super) fn split(&mut self, at: usize, walked: &mut Walked) -> Result<String, Trouble> {
        if self.model.threads[at].takes >= TAKES {
            return Ok("enough takes".to_owned());
        }
        let how = [Split::Fork, Split::Branch, Split::Retry][self.dice.index(3)];
        let take = self.some_take(at)?;
        let entries = self.model.threads[at].story(take).entries();
        let entries: Vec<EntryId> = entries
            .into_iter()
            .filter(|(_, author)| how == Split::Branch || *author == Author::User)
            .map(|(entry, _)| entry)
            .collect();
        let Some(entry) = self.dice.pick(&entries).copied() else { return Ok("no entry yet".to_owned()) };
        let (id, from) = (self.threads[at], self.takes[at][take]);
        let turn = TurnId::fresh(&mut self.desk.timeline().fresh());
        let command = match how {
            Split::Fork => Command::Fork { from, at: entry, name: None },
            Split::Branch => Command::Branch { from, at: Some(entry), name: None },
            Split::Retry => {
                let (context, settings) = (Vec::new(), Vec::new());
                let start = Start { turn, context, prompt: Prompt::Same, settings, sent: None };
                Command::Retry { from, at: entry, name: None, start }
            }
        };
        let caller = Caller { turn: (how == Split::Retry).then_some(turn), ..Caller::human() };
        self.desk.change(id, command, caller.clone(), Handling::default())?;
        let new = self.desk.timeline().look()?.state(id)?.active;
        self.takes[at].push(new);
        self.model.split(at, take, entry, how);
        walked.splits += 1;
        if how == Split::Retry {
            self.answer(at, new, turn, caller)?;
        }
        Ok(format!("{how:?} of take {take} in thread {at}"))
    }

    /// A retry adds the message again, and the agent answers in the same turn.
    fn answer(&mut self, at: usize, take: TakeId, turn: TurnId, caller: Caller) -> Result<(), Trouble> {
        let (id, timeline) = (self.threads[at], self.desk.timeline().clone());
        let message = self.last_entry(id, take)?;
        self.model.retried(at, message);
        let entry = EntryVersion::from_text("AI", "Done", timeline.now());
        let (entries, settings) = (vec![entry.into()], Vec::new());
        let advance =
            Advance { turn, entries, settings, state: AgentState::Waiting, step: TurnStep::Answered };
        timeline.change(id, Command::AdvanceTurn { take, advance }, caller)?;
        let answer = self.last_entry(id, take)?;
        self.model.say(at, answer, Author::Agent, Some(self.model.threads[at].version()));
        Ok(())
    }

    /// Promotes a take that is not active, and continues in the new thread.
    pub(super) fn promote(&mut self, at: usize, walked: &mut Walked) -> Result<String, Trouble> {
        let take = self.some_take(at)?;
        if self.threads.len() >= THREADS || take == self.model.threads[at].active() {
            return Ok("nothing to promote".to_owned());
        }
        let (id, from) = (self.threads[at], self.takes[at][take]);
        let title = Some(format!("Promoted {}", self.threads.len()));
        let promoted = self.desk.promote(id, from, title, Caller::human(), Halves::Both)?;
        self.threads.push(promoted.promoted.thread);
        self.takes.push(vec![from]);
        self.model.promote(at, take);
        walked.splits += 1;
        self.say(self.threads.len() - 1)?;
        Ok(format!("take {take} of thread {at} is promoted"))
    }
}
