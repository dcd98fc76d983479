//! Common complaints about other tools, each as a test.

use std::os::unix::fs::PermissionsExt;

use retake_timeline::{Caller, Goal, MoveOptions, NewThread, Unit};
use retake_workspace::snapshot::Workspace;

use crate::support::{FileWorld, PROJECT};

/// "Undo in one session reverted the work of another."
#[test]
fn changes_of_another_thread_are_not_reverted() {
    let world = FileWorld::new();
    world.agent(|world| world.write("mine", "1"));
    let new = NewThread::in_project(PROJECT).titled("Other");
    let other = world.world.timeline.create_thread(new, Caller::human()).expect("a thread").thread;
    world.agent_of(other, |world| world.write("theirs", "2"));
    world.undo();
    assert_eq!((world.read("mine"), world.read("theirs").as_deref()), (None, Some("2")));
}

/// "Undo deleted a file that I had just added."
#[test]
fn a_users_new_file_is_not_deleted() {
    let world = FileWorld::new();
    world.agent(|world| world.write("folder/agents", "1"));
    world.write("folder/mine", "just added");
    world.undo();
    assert_eq!(
        (world.read("folder/agents"), world.read("folder/mine").as_deref()),
        (None, Some("just added"))
    );
}

/// "Restoring cleaned away a gigabyte of build output."
#[test]
fn ignored_build_output_is_not_cleaned_away() {
    let world = FileWorld::new();
    world.write(".gitignore", "target/\n*.log\n");
    world.write("src/main.rs", "1");
    world.write("target/debug/app", "built");
    let snapshot = world.record_changes().snapshot;
    world.agent(|world| {
        world.write("src/main.rs", "2");
        world.write("src/debug.log", "noise");
        world.write(".gitignore", "");
    });
    let restored = world.working_copy.restore(
        world.world.thread,
        snapshot,
        &[],
        Caller::human(),
        MoveOptions::default(),
    );
    restored.expect("a restore");
    assert_eq!(world.read("src/main.rs").as_deref(), Some("1"));
    assert_eq!(world.read("target/debug/app").as_deref(), Some("built"));
}

/// "It said restored, and nothing had happened: the folder had no git."
#[test]
fn outside_git_an_undo_moves_files_and_reports_no_false_success() {
    let world = FileWorld::new();
    world.write("a", "1");
    world.record_changes();
    world.agent(|world| world.write("a", "2"));
    let report = world.undo();
    assert!(report.moves_files());
    assert_eq!(world.read("a").as_deref(), Some("1"));
    // If nothing moves, the report contains no success.
    let again = world.try_go(Goal::Undo(Unit::Turn, 5), MoveOptions::default());
    assert!(again.is_err(), "{again:?}");
}

/// "Restoring from a subfolder overwrote its siblings."
#[test]
fn a_restore_of_a_subfolder_leaves_its_siblings() {
    let world = FileWorld::new();
    world.write("one/a", "1");
    world.write("two/b", "1");
    let snapshot = world.record_changes().snapshot;
    world.write("one/a", "2");
    world.write("two/b", "2");
    let only =
        [retake_model::path::RootPath::main(retake_model::path::TreePath::new(b"one").expect("a path"))];
    world
        .working_copy
        .restore(world.world.thread, snapshot, &only, Caller::human(), MoveOptions::default())
        .expect("a restore");
    assert_eq!((world.read("one/a").as_deref(), world.read("two/b").as_deref()), (Some("1"), Some("2")));
}

/// "Scripts were not executable any more, and line ends had changed."
#[test]
fn modes_and_line_ends_are_preserved() {
    let world = FileWorld::new();
    world.write("run.sh", "#!/bin/sh\r\necho\r\n");
    let mode = |mode| std::fs::set_permissions(world.path("run.sh"), std::fs::Permissions::from_mode(mode));
    mode(0o750).expect("a mode");
    world.record_changes();
    world.agent(|world| world.remove("run.sh"));
    world.undo();
    assert_eq!(world.read("run.sh").as_deref(), Some("#!/bin/sh\r\necho\r\n"));
    let found = std::fs::metadata(world.path("run.sh")).expect("a file").permissions().mode() & 0o777;
    assert_eq!(found, 0o750);
    world.agent(|_| mode(0o640).expect("a mode"));
    world.undo();
    let found = std::fs::metadata(world.path("run.sh")).expect("a file").permissions().mode() & 0o777;
    assert_eq!(found, 0o750);
}

/// "An empty tree could not be restored."
#[test]
fn an_empty_tree_can_be_restored() {
    let world = FileWorld::new();
    let snapshot = world.agent(|_| {}).snapshot;
    world.agent(|world| world.write("deep/a", "1"));
    world.undo();
    assert!(world.files().is_empty(), "{:?}", world.files());
    world.redo();
    world
        .working_copy
        .restore(world.world.thread, snapshot, &[], Caller::human(), MoveOptions::default())
        .expect("a restore of nothing at all");
    assert!(world.files().is_empty(), "{:?}", world.files());
}

/// "It took a copy of my home folder."
#[test]
fn a_home_folder_is_refused_with_an_alternative() {
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from).expect("a home");
    for folder in [home.as_path(), std::path::Path::new("/"), std::path::Path::new("/etc")] {
        let error = Workspace::of(folder).expect_err("too much to keep");
        assert!(error.to_string().contains("project"), "{error}");
    }
}
