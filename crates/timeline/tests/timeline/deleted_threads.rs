//! Deleted threads with files: restoring one changes only the conversation.

use retake_model::operation::OperationKind;
use retake_timeline::{Caller, ChangeError, Command, FileError, Goal, MoveOptions, Unit};

use crate::support::FileWorld;

const UNDO: Goal = Goal::Undo(Unit::Turn, 1);

/// A world whose thread has two steps with files, and is not the only one.
fn with_files() -> FileWorld {
    let world = FileWorld::new();
    world.world.another();
    world.agent(|world| world.write("a", "1"));
    world.agent(|world| world.write("b", "2"));
    world
}

fn is_deleted(world: &FileWorld) -> bool {
    world.world.state().deleted.is_some()
}

#[test]
fn an_undo_of_a_deletion_ignores_earlier_undos() {
    let world = with_files();
    world.undo();
    world.undo();
    let before = world.files();
    world.world.done(Command::Delete);
    assert_eq!(world.preview(UNDO).kind, world.go(UNDO).moved.expect("a move").done.kind);
    assert!(!is_deleted(&world));
    assert_eq!(world.files(), before);
    // Undone changes can still be redone.
    world.go(Goal::Redo(Unit::Turn, 1));
}

#[test]
fn hand_edits_do_not_prevent_undoing_a_deletion() {
    for undone in [false, true] {
        let world = with_files();
        if undone {
            world.undo();
        }
        world.world.done(Command::Delete);
        world.write("by hand", "3");
        world.write("a", "changed by hand");
        let before = world.files();
        let deleted = world.world.read().head(world.world.thread).expect("a head").operation.version;
        assert!(world.preview(UNDO).unrecorded.is_empty(), "nothing is recorded in a deleted thread");
        let moved = world.go(UNDO).moved.expect("a move").done;
        assert!(matches!(moved.kind, Some(OperationKind::Undone { .. })), "{moved:?}");
        assert_eq!(moved.version, deleted + 1, "nothing was recorded before it");
        assert_eq!(world.files(), before);
        // They are recorded with the next recording of the thread, and belong to it from then on.
        assert_eq!(world.record_changes().files.paths.len(), 2);
    }
}

#[test]
fn a_restored_and_undone_thread_is_restored_again_with_manual_edits() {
    let world = with_files();
    world.world.done(Command::Delete);
    world.world.done(Command::Restore);
    world.go(UNDO);
    assert!(is_deleted(&world));
    world.write("by hand", "3");
    world.go(Goal::Redo(Unit::Turn, 1));
    assert!(!is_deleted(&world));
}

#[test]
fn an_undo_beyond_a_deletion_moves_files_but_records_nothing_in_a_deleted_thread() {
    let two = Goal::Undo(Unit::Turn, 2);
    let world = with_files();
    world.world.done(Command::Delete);
    world.write("by hand", "3");
    let refused = world.try_go(two, MoveOptions::default());
    assert!(matches!(refused, Err(FileError::Change(ChangeError::ThreadDeleted))), "{refused:?}");
    assert!(is_deleted(&world));
    world.remove("by hand");
    world.go(two);
    assert!(!is_deleted(&world));
    assert_eq!((world.read("a").as_deref(), world.read("b")), (Some("1"), None));

    // Recording in a deleted thread fails only if there is something to record.
    let world = with_files();
    world.world.done(Command::Delete);
    world.write("by hand", "3");
    let looked = world.working_copy.record_changes(world.world.thread, Caller::human());
    assert!(matches!(looked, Err(FileError::Change(ChangeError::ThreadDeleted))), "{looked:?}");
}
