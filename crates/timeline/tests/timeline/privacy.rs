//! The visibility of a thread is not part of its history: only its own command changes it.

use std::io::BufReader;

use crate::exchange::export;
use crate::support::{PROJECT, World};
use retake_model::operation::OperationKind;
use retake_model::state::Visibility;
use retake_timeline::{Caller, Command, ImportMode, NewThread, Rules, Timeline, Unit};

fn private(private: bool) -> Command {
    Command::Share { visibility: None, private: Some(private), shared_with_support: None }
}

fn is_private(world: &World) -> bool {
    world.read().thread(world.thread).expect("a thread").summary.private
}

#[test]
fn no_undo_redo_jump_or_reset_clears_the_private_mark() {
    let world = World::saying(&["one", "two"]);
    let done = world.done(private(true));
    assert!(done.changed() && !done.undoable, "it is recorded, and is no step of undo");
    assert!(matches!(done.kind, Some(OperationKind::SharingSet { private: true, .. })));
    let check = |what: &str| assert!(is_private(&world), "{what}");
    world.undo().expect("an undo");
    assert_eq!(world.texts(), ["one"], "the undo takes back what was said last");
    check("undo");
    world.redo().expect("a redo");
    check("redo");
    world.timeline.jump(world.thread, 1, Caller::human()).expect("a jump");
    check("jump to the beginning");
    world.timeline.jump(world.thread, done.version, Caller::human()).expect("a jump");
    check("jump to where it was set");
    world.done(Command::Reset);
    check("reset");
    world.timeline.undo(world.thread, Unit::Operation, 1, Caller::human()).expect("an undo");
    check("undo of one operation");
    world.another();
    world.done(Command::Delete);
    world.done(Command::Restore);
    check("restore");
    assert!(!world.done(private(true)).changed(), "it is private already");
    world.done(private(false));
    world.undo().expect("an undo");
    assert!(!is_private(&world), "and an undo does not bring the mark back either");
    assert!(world.timeline.store().verify(&mut |_| {}).expect("verified").is_clean());
}

#[test]
fn a_private_mark_set_at_creation_survives_jumps() {
    let world = World::new();
    let new = NewThread { private: true, ..NewThread::in_project(PROJECT).titled("Secret") };
    let thread = world.timeline.create_thread(new, Caller::human()).expect("a thread").thread;
    let world = World { thread, ..world };
    world.say("User", "one");
    world.done(private(false));
    world.timeline.jump(thread, 1, Caller::human()).expect("a jump to where it was private");
    assert!(!is_private(&world));
    assert!(world.timeline.store().verify(&mut |_| {}).expect("verified").is_clean());
}

#[test]
fn a_promoted_take_is_as_private_as_its_thread_is_now() {
    let world = World::saying(&["one"]);
    world.done(Command::Branch {
        from: world.state().active,
        at: Some(world.entry(1)),
        name: Some("b".into()),
    });
    let take = world.named("b");
    world.done(private(true));
    let promoted =
        world.timeline.promote(world.thread, take, None, Caller::human()).expect("a promotion").promoted;
    assert!(promoted.summary.private);
    world.undo().expect("an undo of the promotion");
    world.redo().expect("a redo of the promotion");
    assert!(world.read().thread(promoted.thread).expect("a thread").summary.private);
}

#[test]
fn an_import_keeps_the_sharing_of_an_existing_thread() {
    let here = World::saying(&["one"]);
    let export = |world: &World| export(&world.timeline, world.thread);
    let import = |world: &World, file: Vec<u8>| {
        world
            .timeline
            .import(BufReader::new(std::io::Cursor::new(file)), PROJECT, ImportMode::Same, |_, _| ())
            .expect("an import")
    };
    here.done(private(true));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let timeline = Timeline::open(folder.path(), Rules::default()).expect("another store");
    let elsewhere = World { folder, timeline, thread: here.thread };
    import(&elsewhere, export(&here));
    assert!(is_private(&elsewhere), "a thread that is new here has the marks of its file");
    elsewhere.say("AI", "two");
    elsewhere.done(private(false));
    elsewhere.done(Command::Share {
        visibility: Some(Visibility::Public),
        private: None,
        shared_with_support: Some(true),
    });
    assert!(import(&here, export(&elsewhere)).new_operations > 0);
    let summary = here.read().thread(here.thread).expect("a thread").summary;
    assert!(summary.private && !summary.shared_with_support);
    assert_eq!(summary.visibility, Visibility::Organization);
    assert!(here.timeline.store().verify(&mut |_| {}).expect("verified").is_clean());
    // The log ends with a value set elsewhere, which must not decide if the row is lost.
    let database = rusqlite::Connection::open(here.folder.path().join("retake.db")).expect("a database");
    database.execute("UPDATE thread SET record = zeroblob(40)", []).expect("it is damaged");
    drop(database);
    let now = here.timeline.now();
    here.timeline.store().repair(&mut |_| {}, now).expect("repaired");
    let summary = here.read().thread(here.thread).expect("a thread").summary;
    assert!(summary.private && !summary.shared_with_support);
    assert_eq!(summary.visibility, Visibility::Private);
}
