//! An undo of a promotion deletes only threads without changes.

use retake_model::entry::EntryVersion;
use retake_model::id::ProjectId;
use retake_model::time::Timestamp;
use retake_timeline::{Caller, Command, InsertPosition, NewThread, Rules, Timeline, Unit};

#[test]
fn undoing_a_promotion_keeps_a_changed_thread_that_was_deleted_and_restored() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let timeline = Timeline::open(folder.path(), Rules::default()).expect("a new store");
    let new = NewThread::in_project(ProjectId::from_bytes([7; 16]));
    let source = timeline.create_thread(new, Caller::human()).expect("a new thread").thread;
    let first = timeline.read().expect("a reading").state(source).expect("its state").active;
    let branch = Command::Branch { from: first, at: None, name: None };
    timeline.change(source, branch, Caller::human()).expect("a branch");
    let take = timeline.read().expect("a reading").state(source).expect("its state").active;
    let promoted =
        timeline.promote(source, take, None, Caller::human()).expect("a promotion").promoted.thread;
    let entry = EntryVersion::from_text("User", "work", Timestamp::from_millis(1));
    let add = Command::AddEntries { take, at: InsertPosition::End, entries: vec![entry.into()] };
    for command in [add, Command::Delete, Command::Restore] {
        timeline.change(promoted, command, Caller::human()).expect("a change");
    }
    let moved = timeline.undo(source, Unit::Turn, 1, Caller::human()).expect("an undo");
    assert!(moved.also.is_empty(), "somebody's work went with another's undo");
    let row = timeline.read().expect("a reading").thread(promoted).expect("its row");
    assert!(row.summary.deleted.is_none());
}
