//! Files emptied by a power cut are restored; files emptied by the user stay empty.

use std::sync::Arc;
use std::time::Duration;

use retake_model::operation::OperationKind;
use retake_model::time::Timestamp;
use retake_timeline::{
    Caller, Clock, FileError, Goal, MoveOptions, NewThread, Outcome, PlanRequest, Rules, SystemClock,
    Timeline, Unit, WorkingCopy,
};
use retake_workspace::snapshot::Workspace;
use tempfile::TempDir;

use crate::support::{FileWorld, PROJECT, World};

/// The system clock in a given boot, set forward by that many milliseconds.
struct ShiftedClock(&'static str, i64);

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().millis() + self.1)
    }

    fn random(&self) -> [u8; 10] {
        SystemClock.random()
    }

    fn boot(&self) -> Option<String> {
        Some(self.0.to_owned())
    }
}

/// With this offset, emptying a file now is older than the capture, like after a power cut.
const AHEAD: i64 = 60_000;

fn open(
    folder: TempDir,
    root: TempDir,
    clock: ShiftedClock,
    thread: Option<retake_model::id::ThreadId>,
) -> FileWorld {
    let timeline = Timeline::open_with(folder.path(), Rules::default(), Arc::new(clock)).expect("a store");
    let thread = thread.unwrap_or_else(|| {
        let new = NewThread::in_project(PROJECT).titled("Fix");
        timeline.create_thread(new, Caller::human()).expect("a thread").thread
    });
    let workspace = Workspace::of(root.path()).expect("a folder");
    let working_copy = WorkingCopy::at(timeline.clone(), PROJECT, workspace);
    FileWorld { world: World { folder, timeline, thread }, root, working_copy }
}

/// A thread in which the agent wrote a file and changed another.
fn world(clock: ShiftedClock) -> FileWorld {
    let (folder, root) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let world = open(folder, root, clock, None);
    world.write("old.txt", "old\n");
    world.write("empty.txt", "");
    world.record_changes();
    world.agent(|world| {
        world.write("old.txt", "changed\n");
        world.write("src/new.txt", "new\n");
    });
    world
}

/// The same world after a restart of the system.
fn reboot(world: FileWorld, clock: ShiftedClock) -> FileWorld {
    let FileWorld { world: World { folder, timeline, thread }, root, working_copy } = world;
    drop((timeline, working_copy));
    open(folder, root, clock, Some(thread))
}

#[test]
fn files_emptied_by_a_power_cut_are_restored_without_an_operation() {
    let world = world(ShiftedClock("a", AHEAD));
    world.write("old.txt", "");
    world.write("src/new.txt", "");
    let world = reboot(world, ShiftedClock("b", 0));
    let seen = world.record_changes();
    assert!(seen.operation.is_none(), "{:?}", seen.operation);
    assert_eq!(world.read("old.txt").as_deref(), Some("changed\n"));
    assert_eq!(world.read("src/new.txt").as_deref(), Some("new\n"));
    assert_eq!(world.read("empty.txt").as_deref(), Some(""));
    let emptied: Vec<_> =
        seen.files.emptied.iter().map(|path| (path.path.to_string(), &path.outcome)).collect();
    assert_eq!(
        emptied,
        [("old.txt".to_owned(), &Outcome::Written), ("src/new.txt".to_owned(), &Outcome::Written)]
    );
    assert_eq!(world.world.timeline.take_emptied().len(), 2);
    // Reported only once.
    assert!(world.record_changes().files.emptied.is_empty());
    let undone = world.undo();
    assert!(!undone.left_something(), "{undone:?}");
    assert_eq!(world.read("old.txt").as_deref(), Some("old\n"));
    assert_eq!(world.read("src/new.txt"), None);
    world.files();
}

#[test]
fn an_undo_right_after_the_cut_finds_the_files_restored() {
    let world = world(ShiftedClock("a", AHEAD));
    world.write("old.txt", "");
    let world = reboot(world, ShiftedClock("b", 0));
    let undone = world.undo();
    assert!(!undone.left_something(), "{undone:?}");
    assert_eq!(undone.emptied.len(), 1);
    assert_eq!(world.read("old.txt").as_deref(), Some("old\n"));
    world.redo();
    assert_eq!(world.read("old.txt").as_deref(), Some("changed\n"));
}

#[test]
fn a_preview_restores_nothing_and_names_the_command_that_does() {
    let world = world(ShiftedClock("a", AHEAD));
    world.write("old.txt", "");
    let world = reboot(world, ShiftedClock("b", 0));
    let request = PlanRequest::Move(Goal::Undo(Unit::Turn, 1));
    let plan = || {
        world.working_copy.plan(world.world.thread, request.clone(), Caller::human(), MoveOptions::default())
    };
    let refused = plan().err().expect("no preview");
    assert!(matches!(refused, FileError::EmptiedFiles(_)), "{refused}");
    assert!(refused.to_string().contains(" status`"), "{refused}");
    assert_eq!(world.read("old.txt").as_deref(), Some(""));
    world.record_changes();
    plan().expect("a plan").execute().expect("an undo");
    assert_eq!(world.read("old.txt").as_deref(), Some("old\n"));
}

#[test]
fn a_preview_that_may_recover_restores_the_files_and_reports_them() {
    let world = world(ShiftedClock("a", AHEAD));
    world.write("old.txt", "");
    let world = reboot(world, ShiftedClock("b", 0));
    let request = PlanRequest::Move(Goal::Undo(Unit::Turn, 1));
    let plan = || {
        let (thread, request) = (world.world.thread, request.clone());
        world.working_copy.recover_and_plan(thread, request, Caller::human(), MoveOptions::default())
    };
    let first = plan().expect("a plan");
    assert_eq!(first.preview().emptied.len(), 1);
    assert_eq!(world.read("old.txt").as_deref(), Some("changed\n"));
    let second = plan().expect("a plan");
    assert!(second.preview().emptied.is_empty(), "it is reported once");
    second.execute().expect("an undo");
    assert_eq!(world.read("old.txt").as_deref(), Some("old\n"));
}

/// Control: a file emptied after its capture is the user's change, in this boot and in the next.
#[test]
fn a_file_that_the_user_emptied_is_the_users_change() {
    let before_the_cut = world(ShiftedClock("a", 0));
    std::thread::sleep(Duration::from_millis(50));
    before_the_cut.write("old.txt", "");
    let after_the_cut = reboot(world(ShiftedClock("a", 0)), ShiftedClock("b", 0));
    std::thread::sleep(Duration::from_millis(50));
    after_the_cut.write("old.txt", "");
    let same_boot = world(ShiftedClock("a", AHEAD));
    same_boot.write("old.txt", "");
    // After the first recording in a boot, the clock may even be wrong.
    let later = reboot(world(ShiftedClock("a", AHEAD)), ShiftedClock("b", 0));
    later.record_changes();
    later.write("old.txt", "");
    for world in [reboot(before_the_cut, ShiftedClock("b", 0)), after_the_cut, same_boot, later] {
        let seen = world.record_changes();
        let kind = seen.operation.expect("the user's change").kind;
        assert!(matches!(kind, Some(OperationKind::ExternalEdits { paths: 1 })), "{kind:?}");
        assert!(seen.files.emptied.is_empty());
        assert_eq!(world.read("old.txt").as_deref(), Some(""));
    }
}

#[test]
fn a_wrong_clock_at_the_capture_does_not_bring_back_what_the_user_deleted() {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let world = reboot(world(ShiftedClock("a", DAY)), ShiftedClock("b", 0));
    world.write("old.txt", "");
    let seen = world.record_changes();
    assert!(seen.files.emptied.is_empty(), "{:?}", seen.files.emptied);
    assert_eq!(world.read("old.txt").as_deref(), Some(""));
}
