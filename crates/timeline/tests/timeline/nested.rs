//! Projects and worktrees inside the folder of another project: neither captured nor touched by moves.

use std::path::Path;
use std::time::Duration;

use retake_model::replay::OnConflict;
use retake_model::tree::ExclusionReason;
use retake_timeline::{Caller, Command, FolderStatus, Goal, MoveOptions, Outcome, Unit};

use crate::support::{FileWorld, outcome};

fn excluded(status: &FolderStatus) -> Vec<(&str, ExclusionReason)> {
    status.captured.excluded.iter().map(|left| (left.path.as_str(), left.reason)).collect()
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[test]
fn a_worktree_moved_into_its_project_is_excluded() {
    let world = FileWorld::new();
    world.write("a", "one\n");
    let before = world.record_changes().snapshot;
    let main = world.world.state().active;
    world.change(Command::Branch { from: main, at: None, name: None });
    let take = world.world.state().active;
    world.change(Command::Switch { take: main });
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().canonicalize().expect("it exists").join("tree");
    world.working_copy.open_worktree(world.world.thread, take, &folder, &Caller::human()).expect("a folder");
    std::fs::write(folder.join("mine"), "of the take\n").expect("a file");
    let inside = world.path("tree");
    if std::fs::rename(&folder, &inside).is_err() {
        return;
    }
    let seen = world.record_changes();
    assert!(seen.operation.is_none(), "{seen:?}");
    assert_eq!(
        excluded(&world.working_copy.status(10).expect("a reader")),
        [("tree", ExclusionReason::OtherProject)]
    );
    world.agent(|world| world.write("a", "two\n"));
    let (thread, caller) = (world.world.thread, Caller::human());
    world.working_copy.restore(thread, before, &[], caller, MoveOptions::default()).expect("a restore");
    assert_eq!(world.read("a").as_deref(), Some("one\n"));
    assert_eq!(read(&inside.join("mine")).as_deref(), Some("of the take\n"));
    assert_eq!(read(&inside.join("a")).as_deref(), Some("one\n"));
}

#[test]
fn earlier_moves_skip_a_folder_that_became_a_project() {
    let world = FileWorld::new();
    world.write("a", "one\n");
    world.write("app/kept", "kept\n");
    world.write("app/old", "old\n");
    let before = world.record_changes().snapshot;
    world.agent(|world| {
        world.write("a", "two\n");
        world.write("app/new", "new\n");
        world.remove("app/old");
    });
    world.world.timeline.init_project(&world.path("app")).expect("a project");
    world.write("app/kept", "changed in its own project\n");
    // Once the stamps of the folder are old enough, the next snapshot uses the cache.
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(60));
        let seen = world.record_changes();
        assert!(seen.files.paths.iter().all(|path| path.path.to_string() == "app"), "{seen:?}");
        assert_eq!(
            excluded(&world.working_copy.status(10).expect("a reader")),
            [("app", ExclusionReason::OtherProject)]
        );
    }

    let app = |world: &FileWorld| -> Vec<String> {
        world.files().into_iter().filter(|(path, _)| path.starts_with("app/")).map(|(_, text)| text).collect()
    };
    let own = app(&world);
    let undone = world.undo();
    assert_eq!(world.read("a").as_deref(), Some("one\n"));
    assert_eq!(app(&world), own);
    assert!(matches!(outcome(&undone, "app/old"), Outcome::Skipped { .. }), "{undone:?}");
    world.redo();
    let move_options = MoveOptions { on_conflict: OnConflict::Take, ..MoveOptions::default() };
    world.try_go(Goal::Undo(Unit::Turn, 1), move_options).expect("an undo");
    assert_eq!(app(&world), own, "whatever is to become of conflicts");
    let (thread, caller) = (world.world.thread, Caller::human());
    world.working_copy.restore(thread, before, &[], caller, move_options).expect("a restore");
    assert_eq!(app(&world), own);
}

#[test]
fn a_copy_of_a_project_is_an_ordinary_folder() {
    let world = FileWorld::new();
    let place = tempfile::tempdir().expect("a folder");
    std::fs::write(place.path().join("x"), "x\n").expect("a file");
    world.world.timeline.init_project(place.path()).expect("a project");
    let copied =
        std::process::Command::new("cp").arg("-a").args([place.path(), &world.path("copy")]).status();
    assert!(copied.expect("a copy").success());
    world.record_changes();
    assert!(excluded(&world.working_copy.status(10).expect("a reader")).is_empty());
}
