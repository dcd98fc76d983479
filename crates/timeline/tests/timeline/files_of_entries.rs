//! A take that starts at a summary or an inserted entry has the files of that position.

use retake_model::command::Compression;
use retake_model::entry::EntryVersion;
use retake_timeline::{Command, InsertPosition};

use crate::support::FileWorld;

/// A question and an answer per name; the agent creates a file of that name in between.
fn asked(names: &[&str]) -> FileWorld {
    let world = FileWorld::new();
    for name in names {
        world.world.say("User", name);
        world.agent(|world| world.write(name, name));
        world.world.say("AI", "done");
    }
    world
}

fn insert(world: &FileWorld, spot: InsertPosition) {
    let entry = EntryVersion::from_text("User", "remark", world.world.timeline.now());
    let take = world.world.state().active;
    world.world.done(Command::AddEntries { take, at: spot, entries: vec![entry.into()] });
}

/// The files of a new take that starts at the entry with that number.
fn branch(world: &FileWorld, number: u64) -> Vec<String> {
    let from = world.world.state().active;
    let at = Some(world.world.entry(number));
    world.change(Command::Branch { from, at, name: None });
    let files = world.files().into_keys().collect();
    world.undo();
    files
}

#[test]
fn a_summary_has_the_files_of_the_last_entry_that_it_replaces() {
    let world = asked(&["a", "b", "c", "d"]);
    let take = world.world.state().active;
    let compress = |end| {
        let summary = EntryVersion::from_text("User", "what happened", world.world.timeline.now()).into();
        let seen = world.world.take().entries;
        let compression = Compression { turn: None, seen, end, kept: Vec::new(), summary };
        world.world.done(Command::Compress { take, compression });
    };
    compress(4);
    assert_eq!(branch(&world, 1), ["a", "b"]);
    assert_eq!(branch(&world, 2), ["a", "b"], "the question for c");
    assert_eq!(branch(&world, 3), ["a", "b", "c"]);
    // A summary of the summary.
    compress(3);
    assert_eq!(branch(&world, 1), ["a", "b", "c"]);
}

#[test]
fn an_inserted_entry_has_the_files_of_the_entry_before_it() {
    let world = asked(&["a", "b"]);
    insert(&world, InsertPosition::After(world.world.entry(2)));
    assert_eq!(branch(&world, 3), ["a"]);
    insert(&world, InsertPosition::After(world.world.entry(3)));
    assert_eq!(branch(&world, 4), ["a"]);
    insert(&world, InsertPosition::Before(world.world.entry(1)));
    assert!(branch(&world, 1).is_empty());
    // A take that started there undoes only its own changes.
    let from = world.world.state().active;
    world.change(Command::Branch { from, at: Some(world.world.entry(4)), name: None });
    world.agent(|world| world.write("own", "own"));
    world.world.say("AI", "done");
    assert_eq!(branch(&world, 4), ["a"]);
    assert!(branch(&world, 2).is_empty());
}
