//! Collection retains the content that folders and pending moves need, and removes it afterwards; a salvage
//! preserves folders, moves and packs.

use std::os::unix::fs::FileExt;

use retake_model::id::FolderId;
use retake_model::time::Timestamp;
use retake_store::Store;

use super::world::*;
use crate::support::*;

#[test]
fn collection_retains_the_snapshot_of_a_folder() {
    let world = World::new();
    let only = noise(7, 900);
    put_folder(&world.store, world.project, snapshot(&world.store, std::slice::from_ref(&only)));
    assert_eq!(collect(&world.store).unreachable, 0);
    assert!(has(&world.store, &only));
    let folder = FolderId::of_project(world.project);
    world.store.write(move |writing| writing.forget_folder(folder)).expect("folder deleted");
    assert!(collect(&world.store).unreachable > 0, "the control");
    assert!(!has(&world.store, &only));
    assert_clean(&world.store);
}

#[test]
fn collection_retains_the_content_of_a_pending_move() {
    let world = World::new();
    let only = noise(7, 900);
    let wanted = snapshot(&world.store, std::slice::from_ref(&only));
    let intent = begin(&world.store, world.thread, world.project, world.snapshots[1], wanted);
    assert_eq!(collect(&world.store).unreachable, 0);
    assert!(has(&world.store, &only));
    world.store.write(move |writing| writing.end_intent(intent)).expect("intent ended");
    assert!(collect(&world.store).unreachable > 0, "the control");
    assert!(!has(&world.store, &only));
    assert_clean(&world.store);
}

#[test]
fn a_pack_that_is_mostly_garbage_is_rewritten() {
    let world = World::new();
    let files: Vec<Vec<u8>> = (10..50).map(|seed| noise(seed, 20_000)).collect();
    snapshot(&world.store, &files);
    // The same blobs, of which only some stay in use.
    let kept = snapshot(&world.store, &files[3..7]);
    look(&world.store, world.thread, world.snapshots[1], kept);
    let before = world.store.usage().expect("usage").packs;
    collect(&world.store);
    for (number, bytes) in files.iter().enumerate() {
        assert_eq!(has(&world.store, bytes), (3..7).contains(&number), "{number}");
        assert_eq!(is_on_disk(&world.store.folder().join("packs"), bytes), (3..7).contains(&number));
    }
    let after = world.store.usage().expect("usage").packs;
    assert!(after + 600_000 < before, "{before} {after}");
    assert_clean(&world.store);
}

#[test]
fn a_pack_with_little_garbage_gets_a_hole() {
    let world = World::new();
    // One frame each.
    let files: Vec<Vec<u8>> = (10..14).map(|seed| noise(seed, 300_000)).collect();
    let all = snapshot(&world.store, &files);
    let packs = pack_files(&world.store);
    put_folder(&world.store, world.project, all);
    let kept = snapshot(&world.store, &files[1..]);
    look(&world.store, world.thread, world.snapshots[1], kept);
    put_folder(&world.store, world.project, kept);
    let length = std::fs::metadata(packs.last().expect("a pack")).expect("a file").len();
    collect(&world.store);
    assert_eq!(std::fs::metadata(packs.last().expect("a pack")).expect("the same file").len(), length);
    assert!(!is_on_disk(&world.store.folder().join("packs"), &files[0]));
    assert!(!has(&world.store, &files[0]));
    assert!(files[1..].iter().all(|bytes| has(&world.store, bytes)));
    assert_clean(&world.store);
    assert_eq!(collect(&world.store).unreachable, 0);
    let again = world.store.repair(&mut |_| {}, now()).expect("run succeeds");
    assert!(again.is_unchanged(), "a hole is no damage: {again:?}");
}

#[test]
fn a_salvage_preserves_packs_folders_and_moves() {
    for first_page in [true, false] {
        let world = World::moving();
        let of_before = records(&world.store);
        drop(world.folder.raw().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"));
        let World { folder, store, .. } = world;
        drop(store);
        let page = if first_page { 1 } else { page_of_index(&folder) };
        let file = std::fs::OpenOptions::new().write(true).open(folder.database()).expect("open succeeds");
        file.write_all_at(&[0x5a; PAGE], (page - 1) * PAGE as u64).expect("damage planted");
        drop(file);
        let repaired = Store::salvage(&folder.path, &mut |_| {}, Timestamp::from_millis(START))
            .expect("salvage succeeds");
        assert!(repaired.salvaged.is_some());
        let store = folder.open();
        assert_eq!(records(&store), of_before);
        assert!(has(&store, &noise(1, 900)) && has(&store, &noise(2, 900)));
        assert_clean(&store);
    }
}

/// The root page of the object index.
fn page_of_index(folder: &Folder) -> u64 {
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'object_index'";
    let page: u32 = folder.raw().query_row(sql, [], |row| row.get(0)).expect("exists");
    u64::from(page)
}

fn records(store: &Store) -> String {
    let reading = store.read().expect("a read transaction");
    let (folders, intents) = (reading.queries().folders(), reading.queries().intents());
    format!("{:?} {:?}", folders.expect("readable"), intents.expect("readable"))
}

#[test]
fn a_purge_retains_the_content_of_another_threads_move() {
    let world = World::new();
    let other = create(&world.store, world.project, "another");
    let shared = noise(7, 900);
    let wanted = snapshot(&world.store, std::slice::from_ref(&shared));
    look(&world.store, world.thread, world.snapshots[1], wanted);
    begin(&world.store, other, world.project, world.snapshots[1], wanted);
    world.store.purge_threads(&[world.thread]).expect("purge succeeds");
    assert!(has(&world.store, &shared));
    assert_clean(&world.store);
}
