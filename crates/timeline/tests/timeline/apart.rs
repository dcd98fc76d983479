//! Folders that takes have for themselves, and crashes while they are made.

use retake_model::id::TakeId;
use retake_timeline::{Caller, Command, Desk, FileError};
use retake_workspace::snapshot::Workspace;

use crate::support::FileWorld;

const MARK: &str = ".retake-tmp-opened";

/// A world with a take that is not the active one, and has a file of its own.
fn with_second_take() -> (FileWorld, TakeId) {
    let world = FileWorld::new();
    world.world.say("User", "first");
    let main = world.world.state().active;
    world.change(Command::Branch { from: main, at: Some(world.world.entry(1)), name: None });
    world.agent(|world| world.write("b", "of the take\n"));
    let take = world.world.state().active;
    world.change(Command::Switch { take: main });
    (world, take)
}

#[test]
fn a_folder_that_a_crash_left_unknown_is_taken_over_with_what_was_done_in_it() {
    let (world, take) = with_second_take();
    let (timeline, thread) = (&world.world.timeline, world.world.thread);
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("apart");
    let open = || world.desk.open_apart(thread, take, &folder, &Caller::human());
    let opened = open().expect("a folder");
    assert!(!folder.join(MARK).exists(), "it is known now");
    // As if the record had never been written.
    let forget = || {
        let known = timeline.look().expect("a look").apart_folders().expect("a list").remove(0);
        timeline.forget_apart(&known).expect("it is forgotten");
    };
    forget();
    let mark = format!("{thread} {take} {}\n", opened.snapshot);

    // A folder that is somebody's, or another take's, is in the way.
    for mark in [None, Some(""), Some("something else"), Some(&mark[1..])] {
        if let Some(mark) = mark {
            std::fs::write(folder.join(MARK), mark).expect("a file");
        }
        assert!(matches!(open(), Err(FileError::InTheWay(_))), "{mark:?}");
        assert!(folder.join("b").exists(), "nothing was removed");
    }
    std::fs::write(folder.join(MARK), &mark).expect("a file");
    std::fs::write(folder.join("b"), "edited since\n").expect("a file");
    let again = open().expect("it is taken over");
    assert_eq!((again.snapshot, again.files), (opened.snapshot, 1));
    assert!(!folder.join(MARK).exists());
    assert_eq!(std::fs::read_to_string(folder.join("b")).expect("a file"), "edited since\n");

    let known = timeline.look().expect("a look").apart_folders().expect("a list").remove(0);
    let desk = Desk::at_apart(timeline.clone(), &known, Workspace::of(&folder).expect("a folder"));
    let seen = desk.look(thread, Caller::human()).expect("a look");
    assert_eq!(seen.files.paths.len(), 1, "what was done since is recorded: {seen:?}");
}
