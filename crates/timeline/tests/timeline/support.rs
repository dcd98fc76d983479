//! A timeline in a temporary folder, with helpers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, ProjectId, TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_timeline::{
    Caller, ChangeError, ChangeOutcome, ChangeReport, Command, FileError, FileReport, Goal, InsertPosition,
    MoveOptions, MoveOutcome, NewThread, Outcome, PlanRequest, Preview, Reader, RecordedChanges, Rules,
    SeededClock, Timeline, Unit, WorkingCopy,
};
use retake_workspace::snapshot::{Options, Workspace};
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
            Timeline::open_with(folder.path(), rules, Arc::new(SeededClock::new(1))).expect("a new store");
        let new = NewThread::in_project(PROJECT).titled("Fix");
        let thread = timeline.create_thread(new, Caller::human()).expect("a new thread").thread;
        Self { folder, timeline, thread }
    }

    /// Creates another thread in the same project, so that this one can be deleted.
    pub(crate) fn another(&self) -> ThreadId {
        let new = NewThread::in_project(PROJECT);
        self.timeline.create_thread(new, Caller::human()).expect("another thread").thread
    }

    /// A world with these texts, alternating user and AI.
    pub(crate) fn saying(texts: &[&str]) -> Self {
        let world = Self::new();
        for (number, text) in texts.iter().enumerate() {
            world.say(if number % 2 == 0 { "User" } else { "AI" }, text);
        }
        world
    }

    pub(crate) fn read(&self) -> Reader<'_> {
        self.timeline.read().expect("a reader")
    }

    pub(crate) fn state(&self) -> ThreadState {
        self.read().state(self.thread).expect("a state")
    }

    pub(crate) fn take(&self) -> Take {
        self.state().active_take(&self.read().queries()).expect("an active take")
    }

    pub(crate) fn change(&self, command: Command) -> Result<ChangeOutcome, ChangeError> {
        self.timeline.change(self.thread, command, Caller::human())
    }

    pub(crate) fn done(&self, command: Command) -> ChangeOutcome {
        self.change(command).expect("a change that is allowed")
    }

    pub(crate) fn say(&self, role: &str, text: &str) -> ChangeOutcome {
        let entry = EntryVersion::from_text(role, text, self.timeline.now());
        let take = self.state().active;
        self.done(Command::AddEntries { take, at: InsertPosition::End, entries: vec![entry.into()] })
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.texts_of(&self.take())
    }

    pub(crate) fn texts_of(&self, take: &Take) -> Vec<String> {
        let page = self.read().entries(self.thread, take).page(0..take.entries.len()).expect("a page");
        page.iter().map(|view| view.entry.text()).collect()
    }

    /// The id of the entry with that number, from 1.
    pub(crate) fn entry(&self, number: u64) -> EntryId {
        let found = self.take().entries.get(&self.read().queries(), number - 1);
        found.expect("a readable list").expect("an entry").entry
    }

    pub(crate) fn named(&self, name: &str) -> TakeId {
        let reader = self.read();
        let row = reader.thread(self.thread).expect("a thread");
        reader.find().take(&row, name).expect("a take").summary.id
    }

    pub(crate) fn take_names(&self) -> Vec<String> {
        let takes = self.state().all_takes(&self.read().queries()).expect("readable takes");
        takes.into_iter().map(|take| take.name).collect()
    }

    pub(crate) fn undo(&self) -> Result<retake_timeline::HistoryMove, ChangeError> {
        self.timeline.undo(self.thread, Unit::Turn, 1, Caller::human())
    }

    pub(crate) fn redo(&self) -> Result<retake_timeline::HistoryMove, ChangeError> {
        self.timeline.redo(self.thread, Unit::Turn, 1, Caller::human())
    }
}

/// A world with a folder of files and its working copy.
pub(crate) struct FileWorld {
    pub(crate) world: World,
    pub(crate) root: TempDir,
    pub(crate) working_copy: WorkingCopy,
}

impl FileWorld {
    pub(crate) fn new() -> Self {
        Self::beside(World::new(), tempfile::tempdir().expect("a temporary folder"))
    }

    /// A world with a size limit for captured files.
    pub(crate) fn with_largest_file(bytes: u64) -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        let options = Options { largest_file: bytes, ..Options::default() };
        let workspace = Workspace::open(root.path(), &[], options).expect("a folder");
        Self::in_workspace(World::new(), root, workspace)
    }

    pub(crate) fn beside(world: World, root: TempDir) -> Self {
        let workspace = Workspace::of(root.path()).expect("a workspace");
        Self::in_workspace(world, root, workspace)
    }

    fn in_workspace(world: World, root: TempDir, workspace: Workspace) -> Self {
        let working_copy = WorkingCopy::at(world.timeline.clone(), PROJECT, workspace);
        let new = Self { world, root, working_copy };
        new.record_changes();
        new
    }

    /// A second working copy of the same folder, like that of another process.
    pub(crate) fn second_working_copy(&self) -> WorkingCopy {
        let timeline = Timeline::open(self.world.folder.path(), Rules::default()).expect("the same store");
        let workspace = Workspace::of(self.root.path()).expect("the same folder");
        WorkingCopy::at(timeline, PROJECT, workspace)
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
            .expect("it was there");
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok()
    }

    /// Every file with its text, every link with its target, every empty folder. Fails on leftover files of Retake.
    pub(crate) fn files(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        collect(self.root.path(), self.root.path(), &mut found);
        assert!(
            !found.keys().any(|path| path.contains(".retake-tmp")),
            "something was left behind: {found:?}"
        );
        found
    }

    pub(crate) fn record_changes(&self) -> RecordedChanges {
        self.working_copy.record_changes(self.world.thread, Caller::human()).expect("a reader")
    }

    /// Changes files as the agent, in a new turn.
    pub(crate) fn agent(&self, work: impl FnOnce(&Self)) -> RecordedChanges {
        self.agent_of(self.world.thread, work)
    }

    pub(crate) fn agent_of(&self, thread: ThreadId, work: impl FnOnce(&Self)) -> RecordedChanges {
        self.working_copy.record_changes(thread, Caller::human()).expect("a reader");
        work(self);
        let caller = Caller { actor: Actor::Agent, ..Caller::human() };
        self.working_copy.record_as_caller(thread, caller).expect("a record")
    }

    pub(crate) fn go(&self, goal: Goal) -> MoveOutcome {
        self.try_go(goal, MoveOptions::default()).expect("a move that is possible")
    }

    /// Previews a move.
    pub(crate) fn preview(&self, goal: Goal) -> Preview {
        let request = PlanRequest::Move(goal);
        let plan =
            self.working_copy.plan(self.world.thread, request, Caller::human(), MoveOptions::default());
        plan.expect("a plan").into_preview()
    }

    pub(crate) fn try_go(&self, goal: Goal, move_options: MoveOptions) -> Result<MoveOutcome, FileError> {
        self.working_copy.go(self.world.thread, goal, Caller::human(), move_options)
    }

    pub(crate) fn undo(&self) -> FileReport {
        self.go(Goal::Undo(Unit::Turn, 1)).files.expect("there are files")
    }

    pub(crate) fn redo(&self) -> FileReport {
        self.go(Goal::Redo(Unit::Turn, 1)).files.expect("there are files")
    }

    pub(crate) fn change(&self, command: Command) -> ChangeReport {
        self.working_copy
            .change(self.world.thread, command, Caller::human(), MoveOptions::default())
            .expect("a change that is allowed")
    }
}

/// The outcome of one path.
pub(crate) fn outcome<'report>(report: &'report FileReport, path: &str) -> &'report Outcome {
    let found = report.paths.iter().find(|found| found.path.to_string() == path);
    &found.unwrap_or_else(|| panic!("{path} is not in {report:?}")).outcome
}

fn collect(root: &Path, folder: &Path, found: &mut BTreeMap<String, String>) {
    let mut empty = true;
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        empty = false;
        let path = entry.path();
        let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            collect(root, &path, found);
        } else if kind.is_symlink() {
            let target = std::fs::read_link(&path).expect("a link");
            found.insert(name, format!("-> {}", target.display()));
        } else {
            found.insert(name, String::from_utf8_lossy(&std::fs::read(&path).expect("a file")).into_owned());
        }
    }
    if empty && folder != root {
        let name = folder.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
        found.insert(format!("{name}/"), String::new());
    }
}
