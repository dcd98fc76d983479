//! Takes that are created at random entries, and promoted takes.

use retake_model::agent::AgentState;
use retake_model::command::{Prompt, TurnAdvance, TurnStart};
use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId, ThreadId, TurnId};
use retake_model::operation::TurnStep;
use retake_timeline::{Caller, Command, InsertPosition, MoveOptions, Scope};

use crate::violation::BoxError;

use super::run::{EditSession, EditsSummary};
use super::take_history::Author;

/// Maximum number of takes per thread.
const MAX_TAKES: usize = 12;
/// Maximum number of threads.
const MAX_THREADS: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SplitKind {
    Fork,
    Branch,
    Retry,
}

impl EditSession {
    /// Adds a user entry to the active take.
    pub(super) fn add_entry(&mut self, at: usize) -> Result<String, BoxError> {
        let (id, timeline) = (self.threads[at], self.working_copy.timeline());
        let take = timeline.read()?.state(id)?.active;
        let entry = EntryVersion::from_text("User", "Say it", timeline.now());
        let add = Command::AddEntries { take, at: InsertPosition::End, entries: vec![entry.into()] };
        timeline.change(id, add, Caller::human())?;
        let entry = self.last_entry(id, take)?;
        self.model.add_entry(at, entry, Author::User, None);
        Ok(format!("an entry in thread {at}"))
    }

    fn last_entry(&self, thread: ThreadId, take: TakeId) -> Result<EntryId, BoxError> {
        let reader = self.working_copy.timeline().read()?;
        let take = reader.state(thread)?.take(&reader.queries(), take)?.ok_or("no such take")?;
        let last = take.entries.get(&reader.queries(), take.entries.len() - 1)?;
        Ok(last.ok_or("no entry")?.entry)
    }

    /// The index of a random take.
    fn some_take(&mut self, at: usize) -> Result<usize, BoxError> {
        let reader = self.working_copy.timeline().read()?;
        let state = reader.state(self.threads[at])?;
        let takes: Vec<TakeId> =
            state.all_takes(&reader.queries())?.into_iter().map(|take| take.id).collect();
        drop(reader);
        let take = self.rng.pick(&takes).copied().ok_or("a thread without takes")?;
        Ok(self.takes[at].iter().position(|known| *known == take).ok_or("an unknown take")?)
    }

    /// A fork, a branch or a retry at a random entry of a random take.
    pub(super) fn split(&mut self, at: usize, summary: &mut EditsSummary) -> Result<String, BoxError> {
        if self.model.threads[at].takes >= MAX_TAKES {
            return Ok("enough takes".to_owned());
        }
        let how = [SplitKind::Fork, SplitKind::Branch, SplitKind::Retry][self.rng.index(3)];
        let take = self.some_take(at)?;
        let entries = self.model.threads[at].history(take).entries();
        let entries: Vec<EntryId> = entries
            .into_iter()
            .filter(|(_, author)| how == SplitKind::Branch || *author == Author::User)
            .map(|(entry, _)| entry)
            .collect();
        let Some(entry) = self.rng.pick(&entries).copied() else { return Ok("no entry yet".to_owned()) };
        let (id, from) = (self.threads[at], self.takes[at][take]);
        let turn = TurnId::generate(&mut self.working_copy.timeline().fresh());
        let command = match how {
            SplitKind::Fork => Command::Fork { from, at: entry, name: None },
            SplitKind::Branch => Command::Branch { from, at: Some(entry), name: None },
            SplitKind::Retry => {
                let (context, settings) = (Vec::new(), Vec::new());
                let start = TurnStart { turn, context, prompt: Prompt::Original, settings, sent: None };
                Command::Retry { from, at: entry, name: None, start }
            }
        };
        let caller = Caller { turn: (how == SplitKind::Retry).then_some(turn), ..Caller::human() };
        self.working_copy.change(id, command, caller.clone(), MoveOptions::default())?;
        let new = self.working_copy.timeline().read()?.state(id)?.active;
        self.takes[at].push(new);
        self.model.split(at, take, entry, how);
        summary.splits += 1;
        if how == SplitKind::Retry {
            self.answer(at, new, turn, caller)?;
        }
        Ok(format!("{how:?} of take {take} in thread {at}"))
    }

    /// A retry adds the message again, and the agent answers in the same turn.
    fn answer(&mut self, at: usize, take: TakeId, turn: TurnId, caller: Caller) -> Result<(), BoxError> {
        let (id, timeline) = (self.threads[at], self.working_copy.timeline().clone());
        let message = self.last_entry(id, take)?;
        self.model.retried(at, message);
        let entry = EntryVersion::from_text("AI", "Done", timeline.now());
        let (entries, settings) = (vec![entry.into()], Vec::new());
        let advance =
            TurnAdvance { turn, entries, settings, state: AgentState::Waiting, step: TurnStep::Answered };
        timeline.change(id, Command::AdvanceTurn { take, advance }, caller)?;
        let answer = self.last_entry(id, take)?;
        self.model.add_entry(at, answer, Author::Agent, Some(self.model.threads[at].version()));
        Ok(())
    }

    /// Promotes a take that is not active, and continues in the new thread.
    pub(super) fn promote(&mut self, at: usize, summary: &mut EditsSummary) -> Result<String, BoxError> {
        let take = self.some_take(at)?;
        if self.threads.len() >= MAX_THREADS || take == self.model.threads[at].active() {
            return Ok("nothing to promote".to_owned());
        }
        let (id, from) = (self.threads[at], self.takes[at][take]);
        let title = Some(format!("Promoted {}", self.threads.len()));
        let promoted = self.working_copy.promote(id, from, title, Caller::human(), Scope::Both)?;
        self.threads.push(promoted.promoted.thread);
        self.takes.push(vec![from]);
        self.model.promote(at, take);
        summary.splits += 1;
        self.add_entry(self.threads.len() - 1)?;
        Ok(format!("take {take} of thread {at} is promoted"))
    }
}
