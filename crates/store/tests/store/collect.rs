//! Collection removes garbage that is old enough, and nothing else.

use std::time::Duration;

use crate::support::*;
use retake_model::time::Timestamp;
use retake_store::{CollectMode, CollectReport, Store};

const DAY: Duration = Duration::from_hours(24);

fn later(days: i64) -> Timestamp {
    Timestamp::from_millis(START + days * 24 * 60 * 60 * 1000)
}

fn collect(store: &Store, days: i64, mode: CollectMode) -> CollectReport {
    store.collect(DAY, later(days), mode).expect("the collection runs")
}

/// Rebuilds derived data after rows were deleted directly.
fn recount(store: &Store) {
    store.repair(&mut |_| {}, Timestamp::from_millis(START)).expect("the repair runs");
}

/// A store with unreachable objects, left by a thread whose rows were deleted directly.
fn with_garbage() -> (Folder, Store) {
    let folder = Folder::new();
    let store = folder.open();
    let grown = grow(&store);
    let number = number_of(&store, grown.threads[1]);
    folder
        .raw()
        .execute_batch(&format!(
            "INSERT INTO operation (thread, version, id) VALUES ({number}, 0, x'');
             DELETE FROM operation WHERE thread = {number} AND version > 0; DELETE FROM thread WHERE number = {number};
             DELETE FROM take WHERE thread = {number}; DELETE FROM facet WHERE thread = {number};"
        ))
        .expect("damage planted");
    recount(&store);
    assert_clean(&store);
    (folder, store)
}

#[test]
fn a_store_without_garbage_is_unchanged() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let before = dump(&store).expect("readable");
    assert_eq!(collect(&store, 1000, CollectMode::Collect), CollectReport::default());
    assert_eq!(dump(&store).expect("readable"), before);
}

#[test]
fn a_dry_run_reports_the_same_as_a_run() {
    let (_folder, store) = with_garbage();
    let before = dump(&store).expect("readable");
    let objects = verify(&store).objects;
    let dry = collect(&store, 2, CollectMode::DryRun);
    assert!(dry.unreachable >= 5 && dry.bytes > 0, "{dry:?}");
    assert_eq!((dry.young, dry.freed_file_bytes), (0, 0));
    assert_eq!(verify(&store).objects, objects);
    let run = collect(&store, 2, CollectMode::Collect);
    assert_eq!(CollectReport { freed_file_bytes: 0, ..run }, dry);
    assert_eq!(assert_clean(&store).objects, objects - run.unreachable);
    assert_eq!(dump(&store).expect("readable"), before);
    assert_eq!(collect(&store, 2, CollectMode::Collect), CollectReport::default());
}

#[test]
fn young_objects_are_retained() {
    let (_folder, store) = with_garbage();
    let objects = verify(&store).objects;
    let run = collect(&store, 0, CollectMode::Collect);
    assert_eq!((run.unreachable, run.bytes), (0, 0));
    assert!(run.young >= 5, "{run:?}");
    assert_eq!(verify(&store).objects, objects);
}

#[test]
fn a_file_with_much_garbage_shrinks() {
    let folder = Folder::new();
    let store = folder.open();
    let grown = grow(&store);
    let thread = create(&store, grown.project, "large");
    let noise: String = (0..200_000u32)
        .map(|number| char::from(b'!' + (blake3::hash(&number.to_le_bytes()).as_bytes()[0] % 90)))
        .collect();
    publish(&store, thread, say(active(&store, thread), "User", &noise));
    let number = number_of(&store, thread);
    folder
        .raw()
        .execute_batch(&format!(
            "INSERT INTO operation (thread, version, id) VALUES ({number}, 0, x'');
             DELETE FROM operation WHERE thread = {number} AND version > 0; DELETE FROM thread WHERE number = {number};
             DELETE FROM take WHERE thread = {number}; DELETE FROM facet WHERE thread = {number};
             PRAGMA wal_checkpoint(TRUNCATE);"
        ))
        .expect("damage planted");
    recount(&store);
    let before = store.usage().expect("usage").database;
    let run = collect(&store, 2, CollectMode::Collect);
    let after = store.usage().expect("usage").database;
    assert!(run.freed_file_bytes > 100_000, "{run:?}");
    assert_eq!(before - after, run.freed_file_bytes);
    assert_clean(&store);
}

#[test]
fn a_damaged_store_is_refused() {
    let (folder, store) = with_garbage();
    folder
        .raw()
        .execute("DELETE FROM object WHERE number = (SELECT min(number) FROM object WHERE kind = 2)", [])
        .expect("damage planted");
    let objects = verify(&store).objects;
    assert!(store.collect(DAY, later(2), CollectMode::Collect).is_err());
    assert_eq!(verify(&store).objects, objects);
}
