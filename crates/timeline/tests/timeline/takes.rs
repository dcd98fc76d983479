//! Takes: branch, fork, switch, rename, delete, promote.

use crate::support::{PROJECT, World};
use retake_model::command::CommandError;
use retake_model::environment::Environment;
use retake_store::DeletedFilter;
use retake_timeline::{Caller, ChangeError, Command, Tree};

#[test]
fn a_branch_contains_everything_up_to_and_including_the_entry() {
    let world = World::saying(&["one", "two", "three"]);
    let main = world.state().active;
    let done = world.done(Command::Branch { from: main, at: Some(world.entry(2)), name: None });
    assert_eq!(world.texts(), ["one", "two"]);
    assert_eq!(world.take().name, "main_take_1");
    assert_eq!(world.take().parent, Some(main));
    assert!(done.new_bytes < 4096, "{} bytes", done.new_bytes);
    world.say("AI", "other");
    let source = world.state().take(&world.read().queries(), main).expect("readable").expect("the source");
    assert_eq!(world.texts_of(&source), ["one", "two", "three"], "the source is unchanged");
}

#[test]
fn a_fork_starts_before_the_message_with_its_text_as_the_draft() {
    let world = World::saying(&["one", "two", "three", "four"]);
    let main = world.state().active;
    world.done(Command::Fork { from: main, at: world.entry(3), name: None });
    assert_eq!(world.texts(), ["one", "two"]);
    assert_eq!(world.take().draft, "three");
    let take = world.take();
    world.done(Command::Switch { take: main });
    assert_eq!(take.fork_point, Some(world.entry(2)));
    let refused = world.change(Command::Fork { from: main, at: world.entry(2), name: None });
    assert!(
        matches!(refused, Err(ChangeError::Refused(CommandError::NotAUserMessage { .. }))),
        "{refused:?}"
    );
}

#[test]
fn generated_names_use_the_base_and_duplicates_are_refused() {
    let world = World::saying(&["one"]);
    let main = world.state().active;
    for _ in 0..3 {
        world.done(Command::Branch { from: world.state().active, at: Some(world.entry(1)), name: None });
    }
    assert_eq!(world.take_names(), ["main", "main_take_1", "main_take_2", "main_take_3"]);
    let taken = world.change(Command::RenameTake { take: main, name: "main_take_2".into() });
    assert!(matches!(taken, Err(ChangeError::Refused(CommandError::NameTaken(_)))));
    world.done(Command::DeleteTake { take: world.named("main_take_3") });
    world.done(Command::Branch { from: main, at: None, name: None });
    assert_eq!(world.take().name, "main_take_3");
}

#[test]
fn the_last_take_cannot_be_deleted_and_deleting_the_active_one_activates_its_parent() {
    let world = World::saying(&["one"]);
    let main = world.state().active;
    let refused = world.change(Command::DeleteTake { take: main });
    assert!(matches!(refused, Err(ChangeError::Refused(CommandError::LastTake))));
    world.done(Command::Branch { from: main, at: Some(world.entry(1)), name: None });
    let first = world.state().active;
    world.done(Command::Branch { from: first, at: Some(world.entry(1)), name: None });
    world.done(Command::DeleteTake { take: world.state().active });
    assert_eq!(world.state().active, first);
}

#[test]
fn a_take_whose_parent_is_gone_is_a_root_of_the_tree() {
    let world = World::saying(&["one"]);
    let main = world.state().active;
    world.done(Command::Branch { from: main, at: Some(world.entry(1)), name: None });
    world.done(Command::DeleteTake { take: main });
    let tree = Tree::of(&world.read(), Some(PROJECT), DeletedFilter::Hidden).expect("a tree");
    let thread = &tree.threads[0];
    assert_eq!(thread.all_takes.len(), 1);
    assert_eq!(thread.all_takes[0].parent, Some(main));
    assert_eq!(thread.parent_of(&thread.all_takes[0]), None);
}

#[test]
fn undoing_a_promotion_removes_the_thread_unless_it_was_changed() {
    let world = World::saying(&["one", "two"]);
    let main = world.state().active;
    world.done(Command::Branch { from: main, at: Some(world.entry(1)), name: None });
    let take = world.state().active;
    let promote = || world.timeline.promote(world.thread, take, Some("Own".into()), Caller::human());
    let into = promote().expect("a promotion").promoted.thread;
    assert_eq!(world.take_names(), ["main"]);
    let reader = world.read();
    let promoted = reader.state(into).expect("the new thread");
    assert_eq!(
        (promoted.title.as_str(), promoted.parent.map(|parent| parent.thread)),
        ("Own", Some(world.thread))
    );
    drop(reader);
    let undone = world.undo().expect("an undo");
    assert_eq!(undone.also, [into]);
    assert_eq!(world.take_names(), ["main", "main_take_1"]);
    assert!(world.read().state(into).expect("the new thread").deleted.is_some());
    let redone = world.redo().expect("a redo");
    assert_eq!(redone.also, [into]);
    assert!(world.read().state(into).expect("the new thread").deleted.is_none());
    let after = world.read().history(world.thread).undo_status().expect("an undo status").position;
    let back = world.timeline.jump(world.thread, 2, Caller::human()).expect("a jump back");
    assert_eq!(back.also, [into]);
    let forth = world.timeline.jump(world.thread, after, Caller::human()).expect("a jump forth");
    assert_eq!(forth.also, [into]);
    let far = world.timeline.undo(world.thread, retake_timeline::Unit::Turn, 3, Caller::human());
    assert_eq!(far.expect("three steps").also, [into]);
    let far = world.timeline.redo(world.thread, retake_timeline::Unit::Turn, 3, Caller::human());
    assert_eq!(far.expect("three steps").also, [into]);
    world.timeline.change(into, Command::Pin { pinned: true }, Caller::human()).expect("a change");
    assert!(world.undo().expect("an undo").also.is_empty(), "nobody's work goes with another's undo");
    assert!(world.read().state(into).expect("the new thread").deleted.is_none());
}

#[test]
fn the_only_take_cannot_be_promoted() {
    let world = World::saying(&["one"]);
    let refused = world.timeline.promote(world.thread, world.state().active, None, Caller::human());
    assert!(matches!(refused, Err(ChangeError::Refused(CommandError::OnlyTake))));
}

#[test]
fn a_deleted_thread_accepts_no_change_until_it_is_restored() {
    let world = World::saying(&["one"]);
    world.another();
    world.done(Command::Delete);
    assert!(!world.done(Command::Delete).changed(), "twice is harmless");
    assert!(matches!(world.change(Command::Pin { pinned: true }), Err(ChangeError::ThreadDeleted)));
    world.done(Command::Restore);
    assert_eq!(world.texts(), ["one"]);
}

#[test]
fn redo_does_not_repeat_a_deletion_that_was_reverted() {
    let world = World::saying(&["one", "two"]);
    world.another();
    world.done(Command::Delete);
    world.done(Command::Restore);
    world.say("User", "three");
    world.timeline.jump(world.thread, 2, Caller::human()).expect("a jump");
    assert_eq!(world.texts(), ["one"]);
    for texts in [&["one", "two"][..], &["one", "two"], &["one", "two", "three"]] {
        world.redo().expect("a redo");
        assert!(world.state().deleted.is_none());
        assert_eq!(world.texts(), texts);
    }
    assert!(matches!(world.redo(), Err(ChangeError::NothingToRedo)));
    // A deletion that was not restored is redone.
    world.done(Command::Delete);
    world.undo().expect("an undo");
    world.redo().expect("a redo");
    assert!(world.state().deleted.is_some());
}

#[test]
fn the_last_thread_of_a_project_is_not_deleted() {
    let world = World::saying(&["one"]);
    assert!(matches!(world.change(Command::Delete), Err(ChangeError::LastThread)));
    let other = world.another();
    world.done(Command::Delete);
    assert!(matches!(
        world.timeline.change(other, Command::Delete, Caller::human()),
        Err(ChangeError::LastThread)
    ));
    // No move along the log leads there either.
    world.undo().expect("an undo of the deletion");
    world.timeline.change(other, Command::Delete, Caller::human()).expect("a deletion");
    assert!(matches!(world.redo(), Err(ChangeError::LastThread)));
    assert!(matches!(world.timeline.jump(world.thread, 3, Caller::human()), Err(ChangeError::LastThread)));
}

#[test]
fn a_new_take_records_the_last_commit_of_its_source() {
    let world = World::saying(&["one"]);
    let main = world.state().active;
    let seen = |commit: &str| Caller {
        environment: Some(Environment { git_commit: Some(commit.to_owned()), ..Environment::default() }),
        ..Caller::human()
    };
    let change = |command, commit: &str| {
        world.timeline.change(world.thread, command, seen(commit)).expect("a change");
    };
    change(Command::SetDraft { take: main, text: "at the first".into() }, "c1");
    change(Command::Branch { from: main, at: None, name: Some("other".into()) }, "c1");
    let other = world.named("other");
    let branch = |from, name: &str| {
        change(Command::Branch { from, at: None, name: Some(name.to_owned()) }, "c3");
        world.take().git_commit
    };
    assert_eq!(
        branch(other, "unchanged"),
        Some("c1".to_owned()),
        "it was never changed, and has its own anchor"
    );
    change(Command::SetDraft { take: other, text: "at the second".into() }, "c2");
    assert_eq!(branch(main, "of main"), Some("c1".to_owned()));
    assert_eq!(branch(other, "of other"), Some("c2".to_owned()));
    world.done(Command::Reset);
    let commits: Vec<Option<String>> = world
        .state()
        .all_takes(&world.read().queries())
        .expect("readable takes")
        .into_iter()
        .map(|take| take.git_commit)
        .collect();
    let expected = [None, Some("c1"), Some("c1"), Some("c1"), Some("c2")];
    assert_eq!(commits, expected.map(|commit| commit.map(str::to_owned)), "a reset keeps anchors");
}
