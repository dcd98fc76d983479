//! Restores files that were captured at one version and are excluded at another.

use retake_model::content::ContentId;
use retake_model::path::RootPath;
use retake_timeline::{Caller, FileReport, MoveOptions, Outcome};

use crate::support::{FileWorld, outcome};

fn restore(world: &FileWorld, snapshot: ContentId, paths: &[&str]) -> FileReport {
    let path = |path: &&str| RootPath::main(path.parse().expect("a path"));
    let paths: Vec<RootPath> = paths.iter().map(path).collect();
    let thread = world.world.thread;
    let restored =
        world.working_copy.restore(thread, snapshot, &paths, Caller::human(), MoveOptions::default());
    restored.expect("a restore").files
}

#[test]
fn a_captured_file_that_became_excluded_is_restored() {
    let large = "large\n".repeat(400);
    for paths in [&[][..], &["d/a"][..], &["d"][..]] {
        for pipe in [false, true] {
            let world = FileWorld::with_largest_file(1_000);
            world.write("d/a", "old\n");
            let captured = world.record_changes().snapshot;
            world.agent(|world| {
                if pipe {
                    world.remove("d/a");
                    let made = std::process::Command::new("mkfifo").arg(world.path("d/a")).status();
                    assert!(made.expect("mkfifo runs").success());
                } else {
                    world.write("d/a", &large);
                }
            });
            let report = restore(&world, captured, paths);
            assert_eq!(*outcome(&report, "d/a"), Outcome::Written, "{paths:?} {pipe}");
            assert_eq!(world.read("d/a").as_deref(), Some("old\n"), "{paths:?} {pipe}");
            // The existing file has no copy, so it is moved aside.
            assert_eq!(report.aside, ["d/a.retake-aside"], "{paths:?} {pipe}");
        }
    }
}

#[test]
fn a_restore_reports_paths_that_the_version_does_not_contain() {
    let world = FileWorld::with_largest_file(1_000);
    world.write("a", &"large\n".repeat(400));
    world.write("b", "1\n");
    let excluded = world.record_changes().snapshot;
    world.write("a", "small\n");
    world.write("b", "2\n");
    world.record_changes();
    for paths in [&[][..], &["a"][..]] {
        let report = restore(&world, excluded, paths);
        assert!(matches!(outcome(&report, "a"), Outcome::Skipped { .. }), "{report:?}");
        assert_eq!(world.read("a").as_deref(), Some("small\n"));
        assert_eq!(report.paths.len(), if paths.is_empty() { 2 } else { 1 });
    }
    assert_eq!(world.read("b").as_deref(), Some("1\n"));
}

#[test]
fn a_saved_version_has_the_files_that_another_thread_had_changed_before() {
    let world = FileWorld::new();
    let (thread, other) = (world.world.thread, world.world.another());
    world.agent(|world| world.write("a", "1\n"));
    world.agent_of(other, |world| world.write("b", "1\n"));
    let saved = world.working_copy.save(thread, "both".to_owned(), Caller::human()).expect("a save").version;
    let at = |version| {
        let at = world.world.read().files(thread).at(version).expect("a reader").expect("files");
        at.files.after
    };
    world.agent(|world| world.write("a", "2\n"));
    world.agent_of(other, |world| world.write("b", "2\n"));
    restore(&world, at(saved), &[]);
    assert_eq!((world.read("a").as_deref(), world.read("b").as_deref()), (Some("1\n"), Some("1\n")));
    world.undo();
    assert_eq!((world.read("a").as_deref(), world.read("b").as_deref()), (Some("2\n"), Some("2\n")));
    // A save between an undo and its redo is skipped.
    world.undo();
    world.working_copy.save(thread, "between".to_owned(), Caller::human()).expect("a save");
    world.redo();
    assert_eq!((world.read("a").as_deref(), world.read("b").as_deref()), (Some("2\n"), Some("2\n")));
}
