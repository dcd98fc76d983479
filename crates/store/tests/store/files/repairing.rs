//! After a repair the store verifies clean, and lost files cost no part of a conversation.

use retake_model::content::Kind;
use retake_model::id::FolderId;
use retake_model::operation::{Actor, Operation};
use retake_model::time::Timestamp;
use retake_store::{RepairChange, RepairReport, Store};

use super::damage::DAMAGE;
use super::world::*;
use crate::support::*;

fn repair(store: &Store) -> RepairReport {
    store.repair(&mut |_| {}, Timestamp::from_millis(START + 1_000_000)).expect("the repair runs")
}

fn operations(world: &World) -> Vec<Operation> {
    let reading = world.store.read().expect("a read transaction");
    let number = number_of(&world.store, world.thread);
    let found = reading.queries().operations_back(number, u64::MAX, usize::MAX).expect("readable");
    found.into_iter().rev().map(|stored| stored.operation).collect()
}

#[test]
fn every_kind_of_damage_is_repaired_without_loss_in_the_conversation() {
    for (name, _, expected, plant) in DAMAGE {
        let world = World::moving();
        plant(&world);
        let before = entries(&world.store, world.thread);
        let repaired = repair(&world.store);
        let mut done: Vec<&str> = repaired.changes.iter().map(RepairChange::code).collect();
        done.sort_unstable();
        done.dedup();
        assert_eq!(done, *expected, "{name}: {:#?}", repaired.changes);
        assert_clean(&world.store);
        assert_eq!(entries(&world.store, world.thread), before, "{name}");
        assert!(repair(&world.store).is_unchanged(), "{name}");
    }
}

#[test]
fn damaged_rows_are_removed_and_others_stay() {
    let world = World::moving();
    world.folder.raw().execute("UPDATE intent SET digest = 0", []).expect("damage planted");
    repair(&world.store);
    let reading = world.store.read().expect("a read transaction");
    let queries = reading.queries();
    assert_eq!(queries.intents().expect("readable"), []);
    assert!(queries.folder(FolderId::of_project(world.project)).expect("readable").is_some());
}

#[test]
fn a_joined_log_still_refers_to_its_files() {
    let world = World::new();
    let raw = world.folder.raw();
    raw.execute("DELETE FROM operation WHERE version = 2", []).expect("damage planted");
    drop(raw);
    assert_eq!(repair(&world.store).changes[0].code(), "log_joined");
    assert_clean(&world.store);
    let operations = operations(&world);
    let last_file_operation: Vec<Option<u64>> =
        operations.iter().map(|operation| operation.last_file_operation).collect();
    assert_eq!(last_file_operation, [None, Some(2), Some(2), Some(4), Some(4)], "{operations:#?}");
    assert_eq!(operations[3].files.expect("files").after, world.snapshots[1]);
}

#[test]
fn an_operation_added_by_repair_refers_to_the_files() {
    let world = World::new();
    let raw = world.folder.raw();
    raw.execute(
        "DELETE FROM object WHERE number = (SELECT min(number) FROM object WHERE kind = ?1)",
        [Kind::Entry as i64],
    )
    .expect("damage planted");
    drop(raw);
    repair(&world.store);
    assert_clean(&world.store);
    let last = operations(&world).pop().expect("a head");
    assert_eq!((last.actor, last.files, last.last_file_operation), (Actor::Recovery, None, Some(5)));
}
