//! Commands and tools that run at the same time: certain changes are undone with their run, uncertain ones need
//! confirmation.

use retake_model::entry::EntryVersion;
use retake_model::history::link_change;
use retake_model::id::TurnId;
use retake_model::intent::{Intent, RunningCommand};
use retake_model::operation::{Actor, FileChange, Operation, OperationKind};
use retake_timeline::{
    Caller, ChangeError, Command, FileError, Goal, InsertPosition, MoveOptions, PlanRequest, RecordedChanges,
    SharedChanges, Unit,
};

use crate::support::FileWorld;

const UNDO: Goal = Goal::Undo(Unit::Turn, 1);

/// A command that runs in the folder, like `retake exec`.
struct Exec<'world> {
    world: &'world FileWorld,
    turn: TurnId,
    _alive: retake_store::runtime::LivenessLock,
}

impl<'world> Exec<'world> {
    fn begin(world: &'world FileWorld) -> Self {
        let turn = TurnId::generate(&mut world.world.timeline.fresh());
        let alive = world.world.timeline.store().lock_alive(turn).expect("it is alive");
        let exec = Self { world, turn, _alive: alive };
        world.working_copy.mark_running(world.world.thread, exec.caller(), turn, None).expect("it begins");
        exec
    }

    fn caller(&self) -> Caller {
        Caller { actor: Actor::Agent, turn: Some(self.turn), ..Caller::human() }
    }

    fn end(self) -> RecordedChanges {
        self.world
            .working_copy
            .record_as_caller(self.world.world.thread, self.caller())
            .expect("it is recorded")
    }
}

/// Two overlapping commands: `first` and `last` belong to the first one, `both` to either.
fn overlap(world: &FileWorld) {
    let first = Exec::begin(world);
    world.write("first", "1");
    let second = Exec::begin(world);
    world.write("both", "?");
    second.end();
    world.write("last", "1");
    first.end();
}

#[test]
fn undoing_changes_of_overlapping_commands_requires_confirmation() {
    let world = FileWorld::new();
    overlap(&world);
    // Changes of the first command after the other one ended are its own.
    world.undo();
    assert_eq!(world.files().into_keys().collect::<Vec<_>>(), ["both", "first"]);
    let refused = world.try_go(UNDO, MoveOptions::default()).expect_err("it is asked about");
    assert!(matches!(&refused, FileError::SharedChanges(paths) if paths.len() == 1), "{refused}");
    assert!(refused.to_string().contains("both") && refused.to_string().contains("--shared"), "{refused}");
    assert_eq!(world.read("both").as_deref(), Some("?"));
    let move_options = MoveOptions { shared: SharedChanges::Undo, ..MoveOptions::default() };
    world.try_go(UNDO, move_options).expect("an undo that was asked for");
    assert_eq!(world.files().into_keys().collect::<Vec<_>>(), ["first"]);
    // So are its changes from before the other one started.
    world.undo();
    assert!(world.files().is_empty());
    for _ in 0..3 {
        world.redo();
    }
    assert_eq!(world.files().len(), 3);
}

#[test]
fn a_fork_or_branch_asks_about_shared_changes_like_an_undo_and_a_switch_does_not() {
    for inherited in [false, true] {
        let world = FileWorld::new();
        world.world.say("User", "one");
        let (main, entry) = (world.world.state().active, world.world.entry(1));
        overlap(&world);
        world.world.say("User", "two");
        let last = Some(world.world.entry(2));
        world.change(Command::Branch { from: main, at: last, name: Some("second".to_owned()) });
        if !inherited {
            world.change(Command::Switch { take: main });
        }
        let from = world.world.state().active;
        for command in [
            Command::Fork { from, at: entry, name: None },
            Command::Branch { from, at: Some(entry), name: None },
        ] {
            let (thread, before) = (world.world.thread, world.files());
            let change = |move_options| {
                world.working_copy.change(thread, command.clone(), Caller::human(), move_options)
            };
            let refused = change(MoveOptions::default()).expect_err("it is asked about");
            assert!(matches!(&refused, FileError::SharedChanges(paths) if paths.len() == 1), "{refused}");
            assert_eq!((world.files(), world.world.state().active), (before, from));
            let request = PlanRequest::Change(command.clone());
            let plan = world.working_copy.plan(thread, request, Caller::human(), MoveOptions::default());
            let shared: Vec<String> =
                plan.expect("a plan").preview().shared.iter().map(ToString::to_string).collect();
            assert_eq!(shared, ["both"]);
            change(MoveOptions { shared: SharedChanges::Undo, ..MoveOptions::default() })
                .expect("it was allowed");
            assert!(world.files().is_empty(), "{:?}", world.files());
            // The files of the take return with it.
            world.change(Command::Switch { take: from });
            assert_eq!(world.files().len(), 3);
        }
    }
}

#[test]
fn a_preview_lists_shared_changes_and_can_be_executed() {
    let world = FileWorld::new();
    overlap(&world);
    world.undo();
    let request = PlanRequest::Move(UNDO);
    let plan = world.working_copy.plan(world.world.thread, request, Caller::human(), MoveOptions::default());
    let plan = plan.expect("a plan");
    let shared: Vec<String> = plan.preview().shared.iter().map(ToString::to_string).collect();
    assert_eq!(shared, ["both"]);
    plan.execute().expect("an executed plan");
    assert_eq!(world.files().into_keys().collect::<Vec<_>>(), ["first"]);
}

/// Control: commands that run one after the other share nothing.
#[test]
fn commands_that_do_not_overlap_share_nothing() {
    let world = FileWorld::new();
    for name in ["one", "two"] {
        let exec = Exec::begin(&world);
        world.write(name, name);
        exec.end();
    }
    world.undo();
    assert_eq!(world.files().into_keys().collect::<Vec<_>>(), ["one"]);
    world.undo();
    assert!(world.files().is_empty());
}

#[test]
fn changes_of_a_killed_command_belong_to_it() {
    let world = FileWorld::new();
    let killed = Exec::begin(&world);
    world.write("killed", "1");
    drop(killed);
    let next = Exec::begin(&world);
    world.write("next", "2");
    next.end();
    world.undo();
    assert_eq!(world.files().into_keys().collect::<Vec<_>>(), ["killed"]);
    // The user may have changed files after the command was killed.
    let move_options = MoveOptions { shared: SharedChanges::Undo, ..MoveOptions::default() };
    world.try_go(UNDO, move_options).expect("an undo that was asked for");
    assert!(world.files().is_empty());
}

#[test]
fn changes_found_after_a_command_was_killed_are_asked_about_before_they_are_undone() {
    let world = FileWorld::new();
    world.write("mine", "0");
    let killed = Exec::begin(&world);
    world.write("command", "1");
    // The process is gone, but nothing has recorded its changes yet.
    drop(killed);
    world.write("mine", "hand");
    world.record_changes();
    // Edits after that are the user's alone.
    world.write("later", "hand");
    let refused = world.try_go(UNDO, MoveOptions::default()).expect_err("it is asked about");
    assert!(matches!(&refused, FileError::SharedChanges(paths) if paths.len() == 2), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("command") && text.contains("mine") && text.contains("--shared"), "{text}");
    assert_eq!(world.read("mine").as_deref(), Some("hand"));
    let move_options = MoveOptions { shared: SharedChanges::Undo, ..MoveOptions::default() };
    world.try_go(UNDO, move_options).expect("an undo that was asked for");
    assert_eq!(world.files().into_keys().collect::<Vec<_>>(), ["later", "mine"]);
    assert_eq!(world.read("mine").as_deref(), Some("0"));
}

#[test]
fn a_preview_is_refused_like_the_move_while_a_command_runs() {
    let world = FileWorld::new();
    world.agent(|world| world.write("one", "1"));
    let preview = || {
        let request = PlanRequest::Move(UNDO);
        world
            .working_copy
            .plan(world.world.thread, request, Caller::human(), MoveOptions::default())
            .map(drop)
    };
    let exec = Exec::begin(&world);
    let moved = world.try_go(UNDO, MoveOptions::default()).expect_err("a command runs");
    let previewed = preview().expect_err("a command runs");
    assert!(matches!(previewed, FileError::Running(_)), "{previewed}");
    assert_eq!(previewed.to_string(), moved.to_string());
    exec.end();
    preview().expect("nothing runs any more");
    world.undo();
    assert!(world.files().is_empty());
}

#[test]
fn an_undo_is_refused_if_a_command_starts_before_it_commits() {
    let world = FileWorld::new();
    let timeline = &world.world.timeline;
    let thread = world.world.another();
    let take = timeline.read().expect("a reader").state(thread).expect("a state").active;
    let entry = EntryVersion::from_text("User", "first", timeline.now());
    let add = Command::AddEntries { take, at: InsertPosition::End, entries: vec![entry.into()] };
    let version = timeline.change(thread, add, Caller::human()).expect("an entry").version;
    let request = PlanRequest::Move(UNDO);
    let plan =
        world.working_copy.plan(thread, request, Caller::human(), MoveOptions::default()).expect("a plan");
    assert!(plan.preview().folder.is_none(), "the thread has no files");

    let turn = TurnId::generate(&mut timeline.fresh());
    let _alive = timeline.store().lock_alive(turn).expect("it is alive");
    let caller = Caller { actor: Actor::Agent, turn: Some(turn), ..Caller::human() };
    world.working_copy.mark_running(thread, caller, turn, None).expect("it begins");
    let outdated = plan.execute().expect_err("its files are not known yet");
    assert!(matches!(outdated, FileError::PlanOutdated), "{outdated}");
    let refused = world.working_copy.go(thread, UNDO, Caller::human(), MoveOptions::default());
    assert!(matches!(refused, Err(FileError::Running(_))), "{refused:?}");
    let now = timeline.read().expect("a reader").thread(thread).expect("a thread").summary.version;
    assert_eq!(now, version, "nothing was undone");
}

#[test]
fn a_command_is_one_undo_step_despite_an_entry_between_its_changes() {
    let world = FileWorld::new();
    world.world.say("User", "before");
    let exec = Exec::begin(&world);
    world.write("first", "1");
    world.record_changes();
    world.world.say("User", "meanwhile");
    world.world.done(Command::SetDraft { take: world.world.state().active, text: "typed".to_owned() });
    world.world.done(Command::Tag { add: vec!["new".to_owned()], remove: Vec::new() });
    world.write("last", "1");
    exec.end();
    world.world.say("User", "after");
    world.undo();
    assert_eq!(world.files().len(), 2, "only the last entry is undone");
    world.undo();
    assert!(world.files().is_empty(), "{:?}", world.files());
    assert_eq!(world.world.texts(), ["before"]);
    world.redo();
    assert_eq!(world.files().into_keys().collect::<Vec<_>>(), ["first", "last"]);
    assert_eq!(world.world.texts(), ["before", "meanwhile"]);
    assert_eq!(world.world.state().tags.len(), 1);
}

/// The control: an entry that came before the first recorded change of a command, or after its end, is a step of its own.
#[test]
fn an_entry_outside_a_command_is_undone_alone() {
    let world = FileWorld::new();
    let exec = Exec::begin(&world);
    world.world.say("User", "while nothing was recorded");
    world.write("first", "1");
    exec.end();
    world.undo();
    assert!(world.files().is_empty());
    assert_eq!(world.world.texts(), ["while nothing was recorded"]);
    world.redo();
    world.world.say("User", "after");
    world.undo();
    assert_eq!(world.files().len(), 1);
}

/// A move of the thread in another folder must not give the changes of its command to the user, in another thread.
#[test]
fn a_command_keeps_its_changes_while_its_thread_moves_files_in_a_worktree() {
    let world = FileWorld::new();
    let (thread, timeline) = (world.world.thread, world.world.timeline.clone());
    world.agent(|world| world.write("old", "1"));
    let take = world.world.state().active;
    world.change(Command::Branch { from: take, at: None, name: None });
    let beside = tempfile::tempdir().expect("a folder");
    let request = PlanRequest::OpenWorktree { take, folder: beside.path().join("worktree") };
    let plan = world.working_copy.plan(thread, request, Caller::human(), MoveOptions::default());
    plan.expect("a plan").execute().expect("a worktree");
    let other = world.world.another();
    let exec = Exec::begin(&world);
    world.write("by-command", "1");
    // An undo in the worktree was killed after its intent became durable.
    let reader = world.world.read();
    let (row, head) = (reader.thread(thread).expect("a thread"), reader.head(thread).expect("a head"));
    let mut folders = reader.queries().folders().expect("readable").into_iter();
    let folder = folders.find(|folder| folder.worktree.is_some()).expect("the worktree");
    let snapshot = folder.snapshot.expect("files");
    let (before, after) = (snapshot, snapshot);
    let files = FileChange { before, after, take, worktree: true, left: None, shared: None };
    let version = head.operation.version + 1;
    let log = reader.queries();
    let (place, chains) =
        link_change(&log.log(row.number), head.operation.version, Some(take)).expect("a log");
    let kind = OperationKind::FilesMoved { from: head.operation.version, to: 1, paths: 0 };
    let operation = Operation {
        version,
        previous: Some(head.id),
        kind,
        place,
        chains: Some(chains),
        files: Some(files),
        last_file_operation: Some(version),
        ..head.operation
    };
    let intent = Intent { folder: folder.id, roots: folder.roots, files, operation, token: "cut".to_owned() };
    drop(reader);
    timeline.store().write(move |writing| writing.put_intent(&intent)).expect("an intent");
    world.working_copy.record_changes(other, Caller::human()).expect("it is recorded");
    exec.end();
    world.undo();
    assert!(world.read("by-command").is_none(), "the change belongs to the command: {:?}", world.files());
}

#[test]
fn a_thread_or_take_whose_command_runs_is_not_removed() {
    let world = FileWorld::new();
    world.world.another();
    let take = world.world.state().active;
    let exec = Exec::begin(&world);
    let refused = world.world.change(Command::Delete);
    assert!(matches!(refused, Err(ChangeError::CommandRuns(_))), "{refused:?}");
    let refused = world.world.change(Command::DeleteTake { take });
    assert!(refused.is_err(), "{refused:?}");
    world.write("late", "1");
    exec.end();
    world.world.done(Command::Delete);
}

#[test]
fn a_command_reports_what_another_one_recorded_while_it_ran() {
    let world = FileWorld::new();
    let (turn, thread) = (TurnId::generate(&mut world.world.timeline.fresh()), world.world.thread);
    let _alive = world.world.timeline.store().lock_alive(turn).expect("it is alive");
    let caller = || Caller { actor: Actor::Agent, turn: Some(turn), ..Caller::human() };
    let command = RunningCommand { program: "sh".to_owned(), process: 7 };
    let began = world.working_copy.mark_running(thread, caller(), turn, Some(command)).expect("it begins");
    world.write("first", "1");
    world.write("gone", "1");
    world.record_changes();
    let refused = world.try_go(Goal::Jump(1), MoveOptions::default()).expect_err("it runs");
    assert!(matches!(&refused, FileError::CommandRuns { process: 7, .. }), "{refused}");
    world.remove("gone");
    world.write("last", "1");
    let recorded = world.working_copy.record_run(thread, caller(), began.version).expect("it is recorded");
    let paths: Vec<String> = recorded.files.paths.iter().map(|path| path.path.to_string()).collect();
    assert_eq!(paths, ["first", "last"]);
}
