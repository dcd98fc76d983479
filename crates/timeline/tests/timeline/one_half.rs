//! Jumps over moves of the conversation alone: conversation and files become what they were at that version.

use retake_model::operation::Version;
use retake_timeline::{Command, Goal, MoveOptions, Scope, Unit};

use crate::support::FileWorld;

const ALONE: MoveOptions = MoveOptions {
    scope: Scope::Conversation,
    on_conflict: retake_model::replay::OnConflict::Keep,
    shared: retake_timeline::SharedChanges::Refuse,
};

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
