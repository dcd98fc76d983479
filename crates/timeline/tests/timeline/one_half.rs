//! Jumps over moves of the conversation alone: conversation and files become what they were at that version.

use retake_model::operation::Version;
use retake_timeline::{Command, Goal, MoveOptions, Scope, Unit};

use crate::support::FileWorld;

const ALONE: MoveOptions = MoveOptions {
    scope: Scope::Conversation,
    on_conflict: retake_model::replay::OnConflict::Keep,
    shared: retake_timeline::SharedChanges::Refuse,
};

const FILES: MoveOptions = MoveOptions { scope: Scope::Files, ..ALONE };

/// A prompt and a file of the same name; the version after them.
fn turn(world: &FileWorld, name: &str) -> Version {
    world.world.say("User", name);
    world.agent(|world| world.write(name, name)).version
}

fn version(world: &FileWorld) -> Version {
    world.world.read().head(world.world.thread).expect("a head").operation.version
}

fn files(world: &FileWorld) -> Vec<String> {
    world.files().into_keys().collect()
}

#[test]
fn a_jump_brings_back_the_files_of_a_version_at_which_the_conversation_had_moved_alone() {
    let world = FileWorld::new();
    let (one, two) = (turn(&world, "a"), turn(&world, "b"));
    world.try_go(Goal::Undo(Unit::Turn, 2), ALONE).expect("an undo of the conversation");
    let alone = version(&world);
    let three = turn(&world, "c");
    world.write("mine", "by hand");
    for _ in 0..2 {
        for (target, texts, there) in [
            (alone, vec!["a"], vec!["a", "b", "mine"]),
            (one, vec!["a"], vec!["a", "mine"]),
            (three, vec!["a", "c"], vec!["a", "b", "c", "mine"]),
            (two, vec!["a", "b"], vec!["a", "b", "mine"]),
            (1, vec![], vec!["mine"]),
        ] {
            let preview = world.preview(Goal::Jump(target)).files.expect("files").paths;
            world.go(Goal::Jump(target));
            assert_eq!(world.world.texts(), texts, "version {target}");
            assert_eq!(files(&world), there, "version {target}, {preview:?}");
        }
    }
}

#[test]
fn a_jump_over_a_switch_of_the_conversation_alone_brings_the_files_of_that_version() {
    let world = FileWorld::new();
    let main = world.world.state().active;
    turn(&world, "a");
    world.change(Command::Branch { from: main, at: Some(world.world.entry(1)), name: Some("B".to_owned()) });
    let two = turn(&world, "b");
    let switch = Command::Switch { take: main };
    world
        .working_copy
        .change(world.world.thread, switch, retake_timeline::Caller::human(), ALONE)
        .expect("a switch");
    let alone = version(&world);
    world.change(Command::Switch { take: main });
    let switched = turn(&world, "c");
    for (target, texts, there) in [
        (two, vec!["a", "b"], vec!["a", "b"]),
        (switched, vec!["a", "c"], files(&world).iter().map(String::as_str).collect()),
        (alone, vec!["a"], vec!["a", "b"]),
    ] {
        world.go(Goal::Jump(target));
        assert_eq!(world.world.texts(), texts, "version {target}");
        assert_eq!(files(&world), there, "version {target}");
    }
}

#[test]
fn files_follow_a_conversation_that_moved_alone() {
    let world = FileWorld::new();
    world.write("f", "0");
    world.record_changes();
    let one = {
        world.world.say("User", "one");
        world.agent(|world| world.write("f", "1")).version
    };
    world.world.say("User", "two");
    world.agent(|world| world.write("f", "2"));
    let read = || world.read("f").expect("it is there");
    // Back over the file change and the prompt of the second turn.
    world.try_go(Goal::Undo(Unit::Turn, 2), ALONE).expect("an undo of the conversation");
    assert_eq!((world.world.texts(), read()), (vec!["one".to_owned()], "2".to_owned()));
    let undo = |steps| world.try_go(Goal::Undo(Unit::Turn, steps), FILES);
    let redo = |steps| world.try_go(Goal::Redo(Unit::Turn, steps), FILES);
    undo(1).expect("an undo of the files");
    assert_eq!((world.world.texts(), read()), (vec!["one".to_owned()], "1".to_owned()));
    undo(1).expect("an undo of the files further back");
    assert_eq!(read(), "0");
    assert!(undo(1).is_err(), "there are no older files");
    redo(2).expect("a redo to the files that the conversation left");
    assert_eq!(read(), "2");
    for (target, text) in [(one, "1"), (1, "0"), (one, "1")] {
        world.try_go(Goal::Jump(target), FILES).expect("a jump of the files");
        assert_eq!(read(), text, "version {target}");
        assert_eq!(world.world.texts(), ["one"]);
    }
}

#[test]
fn an_undo_of_the_conversation_skips_moves_of_the_files() {
    let world = FileWorld::new();
    turn(&world, "a");
    turn(&world, "b");
    for _ in 0..2 {
        world.try_go(Goal::Undo(Unit::Turn, 1), FILES).expect("an undo of the files");
    }
    assert!(files(&world).is_empty());
    // The change of `b` and the prompt before it.
    let moved = world.try_go(Goal::Undo(Unit::Turn, 2), ALONE).expect("an undo of the conversation");
    assert_eq!(moved.moved.expect("the conversation moved").steps, 2);
    assert_eq!(world.world.texts(), ["a"]);
    assert!(files(&world).is_empty());
    world.try_go(Goal::Redo(Unit::Turn, 2), ALONE).expect("a redo of the conversation");
    assert_eq!(world.world.texts(), ["a", "b"]);
    assert!(files(&world).is_empty());
    world.try_go(Goal::Undo(Unit::Turn, 4), ALONE).expect("an undo of the whole conversation");
    assert!(world.world.texts().is_empty());
    let nothing = world.try_go(Goal::Undo(Unit::Turn, 1), ALONE).expect_err("only files are left");
    assert!(nothing.to_string().contains("nothing"), "{nothing}");
}

#[test]
fn a_jump_to_where_everything_is_makes_no_operation() {
    let world = FileWorld::new();
    let one = turn(&world, "a");
    turn(&world, "b");
    assert_eq!(world.go(Goal::Jump(one)).moved.expect("a move").steps, 1);
    let before = version(&world);
    world.write("mine", "by hand");
    let again = world.go(Goal::Jump(one));
    // Only the edit by hand was recorded.
    assert_eq!(version(&world), before + 1);
    let moved = again.moved.expect("an answer");
    assert_eq!((moved.steps, moved.done.operation), (0, None));
    // Control: a jump moves the files even if the conversation is there.
    world.remove("mine");
    world.try_go(Goal::Undo(Unit::Turn, 1), FILES).expect("an undo of the files");
    world.go(Goal::Jump(one));
    assert_eq!(files(&world), ["a"]);
}
