//! Paths that one version captures and another excludes: a move neither removes nor forgets them.

use retake_model::operation::OperationKind;
use retake_model::replay::OnConflict;
use retake_timeline::{
    Caller, Command, FileReport, Goal, MoveOptions, Outcome, PlanRequest, RecordedChanges, Unit,
};

use crate::support::{FileWorld, outcome};

fn restore(world: &FileWorld, version: u64) -> FileReport {
    let thread = world.world.thread;
    let at = world.world.read().files(thread).at(version).expect("a reader").expect("files");
    let (caller, options) = (Caller::human(), MoveOptions::default());
    world.working_copy.restore(thread, at.files.after, &[], caller, options).expect("a restore").files
}

fn is_skipped(report: &FileReport, path: &str) -> bool {
    matches!(outcome(report, path), Outcome::Skipped { .. })
}

#[test]
fn a_switch_leaves_a_path_that_the_other_take_ignores() {
    let world = FileWorld::new();
    world.write(".gitignore", "notes\n");
    world.write("notes", "ignored\n");
    world.agent(|world| world.write("a", "1\n"));
    let main = world.world.state().active;
    world.change(Command::Branch { from: main, at: None, name: None });
    world.agent(|world| {
        world.remove(".gitignore");
        world.remove("notes");
    });
    world.agent(|world| world.write("notes", "captured\n"));
    let request = PlanRequest::Change(Command::Switch { take: main });
    let (thread, options) = (world.world.thread, MoveOptions::default());
    let plan = world.working_copy.plan(thread, request, Caller::human(), options).expect("a plan");
    let preview = plan.into_preview().files.expect("files");
    let report = world.change(Command::Switch { take: main }).files.expect("files");
    for report in [preview, report] {
        assert!(is_skipped(&report, "notes"), "{report:?}");
    }
    assert_eq!(world.read("notes").as_deref(), Some("captured\n"));
    assert_eq!(world.read(".gitignore").as_deref(), Some("notes\n"));
}

/// The agent writes `notes` in version 3 and ignores it in version 4.
fn ignoring() -> FileWorld {
    let world = FileWorld::new();
    world.agent(|world| world.write("a", "1\n"));
    world.agent(|world| world.write("notes", "agent\n"));
    world.agent(|world| world.write(".gitignore", "notes\n"));
    world.agent(|world| world.write("a", "2\n"));
    world
}

/// A move back to a version.
type Move<'a> = &'a dyn Fn(&FileWorld, u64) -> FileReport;

#[test]
fn every_move_names_a_file_that_it_leaves_because_it_was_ignored_since() {
    let version = |world: &FileWorld| {
        let thread = world.world.thread;
        world.world.read().head(thread).expect("a head").operation.version
    };
    let moves: [(&str, Move<'_>); 4] = [
        ("undo", &|world, _| world.go(Goal::Undo(Unit::Turn, 3)).files.expect("files")),
        ("jump", &|world, first| world.go(Goal::Jump(first)).files.expect("files")),
        ("restore", &restore),
        ("redo", &|world, _| {
            world.go(Goal::Undo(Unit::Turn, 3));
            world.go(Goal::Redo(Unit::Turn, 3)).files.expect("files")
        }),
    ];
    for (name, go) in moves {
        let world = ignoring();
        let first = version(&world) - 3;
        let report = go(&world, first);
        assert!(is_skipped(&report, "notes"), "{name}: {report:?}");
        assert_eq!(world.read("notes").as_deref(), Some("agent\n"), "{name}");
        assert_eq!(world.read("a").as_deref(), Some(if name == "redo" { "2\n" } else { "1\n" }), "{name}");
    }
    // A path that no change on the way touched is not named.
    let world = ignoring();
    let last = version(&world) - 1;
    let report = world.go(Goal::Jump(last)).files.expect("files");
    assert_eq!(report.paths.len(), 1, "{report:?}");
}

#[test]
fn a_switch_names_a_file_that_the_other_take_ignored_after_it_was_written() {
    let world = FileWorld::new();
    world.agent(|world| world.write("a", "1\n"));
    let main = world.world.state().active;
    world.change(Command::Branch { from: main, at: None, name: None });
    world.agent(|world| world.write("notes", "agent\n"));
    world.agent(|world| world.write(".gitignore", "notes\n"));
    let report = world.change(Command::Switch { take: main }).files.expect("files");
    assert!(is_skipped(&report, "notes"), "{report:?}");
    assert_eq!(world.read("notes").as_deref(), Some("agent\n"));
}

fn kind(recorded: &RecordedChanges) -> Option<&OperationKind> {
    recorded.operation.as_ref()?.kind.as_ref()
}

#[test]
fn a_file_in_place_of_an_excluded_folder_is_recorded_and_undone() {
    for link in [false, true] {
        let world = FileWorld::new();
        world.write(".gitignore", "build/\n");
        world.write("build/output", "built\n");
        let recorded = world.agent(|world| {
            world.remove("build");
            if link {
                std::os::unix::fs::symlink("elsewhere", world.path("build")).expect("a link");
            } else {
                world.write("build", "a file\n");
            }
        });
        assert!(matches!(kind(&recorded), Some(OperationKind::FilesChanged { paths: 1 })), "{recorded:?}");
        let there = || world.path("build").symlink_metadata().is_ok();
        let undone = world.undo();
        assert_eq!(*outcome(&undone, "build"), Outcome::Removed);
        assert!(
            undone.paths.iter().any(|path| path.note.is_some()),
            "the folder does not come back: {undone:?}"
        );
        assert!(!there());
        assert_eq!(*outcome(&world.redo(), "build"), Outcome::Written);
        assert!(there());
        // A folder that is built again stays, and is named.
        world.undo();
        world.write("build/output", "built\n");
        let redone = world.redo();
        assert!(is_skipped(&redone, "build"), "{redone:?}");
        assert_eq!(world.read("build/output").as_deref(), Some("built\n"));
    }
}

#[test]
fn an_excluded_folder_in_place_of_a_file_is_recorded_and_stays() {
    let world = FileWorld::new();
    world.write(".gitignore", "build/\n");
    world.write("build", "a file\n");
    let recorded = world.agent(|world| {
        world.remove("build");
        world.write("build/output", "built\n");
    });
    assert!(matches!(kind(&recorded), Some(OperationKind::FilesChanged { paths: 1 })), "{recorded:?}");
    for on_conflict in [OnConflict::Keep, OnConflict::Take] {
        let options = MoveOptions { on_conflict, ..MoveOptions::default() };
        let undone = world.try_go(Goal::Undo(Unit::Turn, 1), options).expect("an undo").files.expect("files");
        assert!(is_skipped(&undone, "build"), "{undone:?}");
        assert_eq!(world.read("build/output").as_deref(), Some("built\n"));
        world.redo();
    }
}

/// A preview with these options reports what the move then does.
fn check_preview(world: &FileWorld, on_conflict: OnConflict) -> FileReport {
    let options = MoveOptions { on_conflict, ..MoveOptions::default() };
    let (goal, thread) = (Goal::Undo(Unit::Turn, 1), world.world.thread);
    let plan = world.working_copy.plan(thread, PlanRequest::Move(goal), Caller::human(), options);
    let preview = plan.expect("a plan").into_preview().files.expect("files");
    let done = world.try_go(goal, options).expect("an undo").files.expect("files");
    let shown = |report: &FileReport| {
        let paths: Vec<_> =
            report.paths.iter().map(|path| (path.path.to_string(), path.outcome.clone())).collect();
        (paths, report.aside.clone())
    };
    assert_eq!(shown(&preview), shown(&done), "{on_conflict:?}");
    done
}

#[test]
fn a_preview_names_the_files_that_the_move_sets_aside() {
    for taken in [false, true] {
        let world = FileWorld::with_largest_file(1_000);
        world.write("d/a", "small\n");
        world.agent(|world| world.write("d/a", &"large\n".repeat(400)));
        if taken {
            world.write("d/a.retake-aside", "mine\n");
        }
        let done = check_preview(&world, OnConflict::Keep);
        assert_eq!(done.aside, [if taken { "d/a.retake-aside-2" } else { "d/a.retake-aside" }]);
    }
}

#[test]
fn a_preview_of_taking_the_other_version_reports_an_ignored_file_as_the_move_does() {
    for on_conflict in [OnConflict::Keep, OnConflict::Take, OnConflict::Mark] {
        let world = FileWorld::new();
        world.write("notes", "old\n");
        world.agent(|world| world.write("notes", "new\n"));
        world.write("notes", "mine\n");
        world.write(".gitignore", "notes\n");
        world.record_changes();
        let done = check_preview(&world, on_conflict);
        assert!(is_skipped(&done, "notes"), "{done:?}");
        assert_eq!(world.read("notes").as_deref(), Some("mine\n"));
    }
}
