//! Folders that takes have for themselves, and crashes while they are made.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use retake_model::id::TakeId;
use retake_timeline::{Caller, Command, Desk, FileError};
use retake_workspace::snapshot::Workspace;

use crate::support::FileWorld;

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
    let name = blake3::hash(folder.to_str().expect("text").as_bytes()).to_hex();
    let mark = world.world.folder.path().join("folders").join(format!("opening-{name}"));
    assert!(!mark.exists(), "it is known now");
    // As if the record had never been written.
    let forget = || {
        let known = timeline.look().expect("a look").apart_folders().expect("a list").remove(0);
        timeline.forget_apart(&known).expect("it is forgotten");
    };
    forget();
    let number =
        |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).expect("a folder");
    let text = |(device, inode)| format!("{thread} {take} {} {device} {inode}\n", opened.snapshot);

    // A folder that is somebody's, or another take's, is in the way.
    let another = text(number(place.path()));
    for said in [None, Some(""), Some("something else"), Some(&another)] {
        if let Some(said) = said {
            std::fs::write(&mark, said).expect("a file");
        }
        assert!(matches!(open(), Err(FileError::InTheWay(_))), "{said:?}");
        assert!(folder.join("b").exists(), "nothing was removed");
    }
    std::fs::write(&mark, text(number(&folder))).expect("a file");
    std::fs::write(folder.join("b"), "edited since\n").expect("a file");
    let again = open().expect("it is taken over");
    assert_eq!((again.snapshot, again.files), (opened.snapshot, 1));
    assert!(!mark.exists());
    assert_eq!(std::fs::read_to_string(folder.join("b")).expect("a file"), "edited since\n");

    let known = timeline.look().expect("a look").apart_folders().expect("a list").remove(0);
    let desk = Desk::at_apart(timeline.clone(), &known, Workspace::of(&folder).expect("a folder"));
    let seen = desk.look(thread, Caller::human()).expect("a look");
    assert_eq!(seen.files.paths.len(), 1, "what was done since is recorded: {seen:?}");
}
