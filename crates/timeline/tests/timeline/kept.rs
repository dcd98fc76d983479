//! Keeping a take: which alternatives it deletes, and that one undo brings them back.

use retake_model::id::TakeId;
use retake_timeline::Command;

use crate::support::World;

/// The names of the takes after keeping one.
fn kept(world: &World, take: TakeId) -> Vec<String> {
    let before = world.state();
    world.done(Command::Keep { take });
    assert_eq!(world.state().active, take);
    let names = world.take_names();
    world.undo().expect("one undo");
    assert_eq!(world.state(), before, "one undo restores all of it");
    world.redo().expect("a redo");
    assert_eq!(world.take_names(), names);
    world.undo().expect("an undo");
    names
}

#[test]
fn alternatives_share_the_newest_fork_of_the_kept_take() {
    let world = World::saying(&["one", "two", "three", "four"]);
    let main = world.state().active;
    let branch = |from: TakeId, at: u64, name: &str| {
        world.done(Command::Switch { take: from });
        world.done(Command::Branch { from, at: Some(world.entry(at)), name: Some(name.into()) });
        world.say("User", name);
        world.state().active
    };
    let a = branch(main, 2, "a");
    let b = branch(main, 2, "b");
    let early = branch(main, 1, "early");
    let deep = branch(a, 3, "deep");
    assert_eq!(kept(&world, b), ["b", "early", "deep"]);
    assert_eq!(kept(&world, main), ["main", "early", "deep"]);
    // The newest fork of `a` is at its end, where it did not go on.
    assert_eq!(kept(&world, a), ["main", "a", "b", "early"]);
    assert!(!world.done(Command::Keep { take: deep }).changed(), "`a` did not go on after its fork");
    assert_eq!(kept(&world, early), ["a", "b", "early", "deep"]);
    world.done(Command::Switch { take: a });
    world.say("AI", "goes on");
    assert_eq!(kept(&world, deep), ["main", "b", "early", "deep"]);
    let done = world.done(Command::Keep { take: deep });
    assert!(done.changed());
    assert!(!world.done(Command::Keep { take: deep }).changed(), "again");
}
