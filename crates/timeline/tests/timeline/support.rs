//! A timeline in a temporary folder, and short ways to do and see things.

use std::sync::Arc;

use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, ProjectId, TakeId, ThreadId};
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_timeline::{
    Caller, ChangeError, Command, Done, Looking, NewThread, Rules, Seeded, Spot, Timeline, Unit,
};
use tempfile::TempDir;

pub(crate) const PROJECT: ProjectId = ProjectId::from_bytes([7; 16]);

pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) timeline: Timeline,
    pub(crate) thread: ThreadId,
}

impl World {
    /// A timeline with one thread that has one empty take.
    pub(crate) fn new() -> Self {
        Self::with(Rules::default())
    }

    pub(crate) fn with(rules: Rules) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let timeline =
            Timeline::open_with(folder.path(), rules, Arc::new(Seeded::new(1))).expect("a new store");
        let new = NewThread::in_project(PROJECT).titled("Fix");
        let thread = timeline.create_thread(new, Caller::human()).expect("a new thread").thread;
        Self { folder, timeline, thread }
    }

    /// The same with these texts, user and AI in turn.
    pub(crate) fn saying(texts: &[&str]) -> Self {
        let world = Self::new();
        for (number, text) in texts.iter().enumerate() {
            world.say(if number % 2 == 0 { "User" } else { "AI" }, text);
        }
        world
    }

    pub(crate) fn look(&self) -> Looking<'_> {
        self.timeline.look().expect("a look")
    }

    pub(crate) fn state(&self) -> ThreadState {
        self.look().state(self.thread).expect("a state")
    }

    pub(crate) fn take(&self) -> Take {
        self.state().active_take(&self.look().queries()).expect("an active take")
    }

    pub(crate) fn change(&self, command: Command) -> Result<Done, ChangeError> {
        self.timeline.change(self.thread, command, Caller::human())
    }

    pub(crate) fn done(&self, command: Command) -> Done {
        self.change(command).expect("a change that is allowed")
    }

    pub(crate) fn say(&self, role: &str, text: &str) -> Done {
        let entry = EntryVersion::from_text(role, text, self.timeline.now());
        let take = self.state().active;
        self.done(Command::AddEntries { take, at: Spot::End, entries: vec![entry.into()] })
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.texts_of(&self.take())
    }

    pub(crate) fn texts_of(&self, take: &Take) -> Vec<String> {
        let page = self.look().page(self.thread, take, 0..take.entries.len()).expect("a page");
        page.iter().map(|view| view.entry.text()).collect()
    }

    /// The id of the entry with that number, from 1.
    pub(crate) fn entry(&self, number: u64) -> EntryId {
        let found = self.take().entries.get(&self.look().queries(), number - 1);
        found.expect("a readable list").expect("an entry").entry
    }

    pub(crate) fn named(&self, name: &str) -> TakeId {
        let looking = self.look();
        let row = looking.thread(self.thread).expect("a thread");
        looking.find_take(&row, name).expect("a take").summary.id
    }

    pub(crate) fn take_names(&self) -> Vec<String> {
        let takes = self.state().all_takes(&self.look().queries()).expect("readable takes");
        takes.into_iter().map(|take| take.name).collect()
    }

    pub(crate) fn undo(&self) -> Result<retake_timeline::Moved, ChangeError> {
        self.timeline.undo(self.thread, Unit::Turn, 1, Caller::human())
    }

    pub(crate) fn redo(&self) -> Result<retake_timeline::Moved, ChangeError> {
        self.timeline.redo(self.thread, Unit::Turn, 1, Caller::human())
    }
}
