//! The files of takes that are not in the folder.

use retake_timeline::{Caller, Command, MoveOptions, PlanRequest, Scope, WorkingCopy};
use retake_workspace::snapshot::Options;

use crate::support::FileWorld;

/// Two takes, each with its own file; the first is active.
fn two_takes() -> (FileWorld, [retake_model::id::TakeId; 2]) {
    let world = FileWorld::new();
    world.world.say("User", "first");
    let main = world.world.state().active;
    world.change(Command::Branch { from: main, at: Some(world.world.entry(1)), name: None });
    let other = world.world.state().active;
    world.agent(|world| world.write("b", "b"));
    world.change(Command::Switch { take: main });
    world.agent(|world| world.write("m", "m"));
    (world, [main, other])
}

fn names(world: &FileWorld) -> Vec<String> {
    world.files().into_keys().collect()
}

fn switch_conversation(world: &FileWorld, take: retake_model::id::TakeId) {
    let move_options = MoveOptions { scope: Scope::Conversation, ..MoveOptions::default() };
    let switch = Command::Switch { take };
    world.working_copy.change(world.world.thread, switch, Caller::human(), move_options).expect("a switch");
}

#[test]
fn switching_only_the_conversation_keeps_the_files_of_a_take() {
    let (world, [main, other]) = two_takes();
    switch_conversation(&world, other);
    world.write("hand", "edited");
    world.change(Command::Switch { take: main });
    assert_eq!(names(&world), ["hand", "m"]);
    world.change(Command::Switch { take: other });
    assert_eq!(names(&world), ["b"], "the files of the folder were never those of this take");
    world.change(Command::Switch { take: main });
    assert_eq!(names(&world), ["hand", "m"]);

    // From there to a third take, or to its own files.
    switch_conversation(&world, other);
    world.record_changes();
    world.change(Command::Branch { from: other, at: Some(world.world.entry(1)), name: None });
    assert_eq!(names(&world), ["b"], "a branch begins with the files of the take it comes from");
    world.change(Command::Switch { take: main });
    assert_eq!(names(&world), ["hand", "m"]);
}

#[test]
fn a_conversation_alone_switched_back_and_forth_changes_no_files() {
    let (world, [main, other]) = two_takes();
    switch_conversation(&world, other);
    switch_conversation(&world, main);
    world.record_changes();
    assert_eq!(names(&world), ["m"]);
    world.change(Command::Switch { take: other });
    assert_eq!(names(&world), ["b"]);
}

#[test]
fn recorded_hand_edits_belong_to_the_files_of_a_take() {
    let (world, [main, other]) = two_takes();
    world.change(Command::Switch { take: other });
    world.write("hand", "edited");
    world.record_changes();
    // Undoing the switch leaves the take; manual edits stay in the folder.
    world.undo();
    assert_eq!(world.world.state().active, main);
    world.remove("hand");
    world.change(Command::Switch { take: other });
    assert_eq!(names(&world), ["b", "hand"]);
}

#[test]
fn a_branch_of_a_take_in_a_worktree_has_its_unrecorded_edits() {
    let (world, [_, other]) = two_takes();
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("tree");
    let thread = world.world.thread;
    world.working_copy.open_worktree(thread, other, &folder, &Caller::human()).expect("a worktree");
    let known =
        world.world.read().worktrees().of(thread, other).expect("a reader").expect("a known worktree");
    let working_copy =
        WorkingCopy::of_worktree(&world.world.timeline, &known, &Options::default()).expect("a working copy");
    std::fs::write(folder.join("hand"), "edited").expect("a file");
    let at = {
        let reader = world.world.read();
        let take = world.world.state().take(&reader.queries(), other).expect("readable").expect("a take");
        take.entries.get(&reader.queries(), 0).expect("readable").expect("an entry").entry
    };
    let branch = Command::Branch { from: other, at: Some(at), name: Some("third".to_owned()) };
    let plan =
        working_copy.plan(thread, PlanRequest::Change(branch), Caller::human(), MoveOptions::default());
    let plan = plan.expect("a plan");
    assert_eq!(plan.preview().unrecorded.len(), 1, "{:?}", plan.preview());
    plan.execute().expect("a branch");
    assert_eq!(names(&world), ["m"], "the new take stays in the background");
    world.change(Command::Switch { take: world.world.named("third") });
    assert_eq!(names(&world), ["b", "hand"]);
}
