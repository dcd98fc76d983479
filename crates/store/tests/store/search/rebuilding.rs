//! Damage to the index, which is rebuilt, and to the store, whose readable part stays searchable.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use retake_store::{RebuildReason, SearchIndex, SearchProblem, SearchQuery, SearchScope, Store};

use super::texts::texts;
use super::world::World;

#[test]
fn an_unusable_file_is_rebuilt() {
    let (world, _) = texts();
    assert_eq!(world.entries("parser").len(), 1);
    let World { store, index, folder, .. } = world;
    drop(index);
    let path = folder.path().join("search.db");
    let file = std::fs::metadata(&path).expect("the index").ino();
    let whole = std::fs::read(&path).expect("the index");
    let mut holed = whole.clone();
    holed[4096..].fill(0x5a);
    let mut beheaded = whole.clone();
    beheaded[..100].fill(0xff);
    let mut other_version = whole.clone();
    other_version[60..64].copy_from_slice(&99_u32.to_be_bytes());
    let damages: [(&str, &[u8]); 6] = [
        ("garbage", &[0x5a; 10_000]),
        ("holes", &holed),
        ("no head", &beheaded),
        ("half", &whole[..whole.len() / 2]),
        ("other version", &other_version),
        ("text", b"not a database at all"),
    ];
    for (name, bytes) in damages {
        std::fs::write(&path, bytes).expect("write succeeds");
        let index = SearchIndex::open(folder.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let reading = store.read().expect("a read transaction");
        let found = index
            .search(&reading.queries(), &SearchQuery::words("parser"))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(index.check(&reading.queries()).expect("check succeeds"), [], "{name}");
        let rebuilt = index.rebuild_reason();
        assert!(rebuilt.is_some(), "{name}");
        assert_eq!(rebuilt == Some(RebuildReason::OtherVersion), name == "other version", "{rebuilt:?}");
    }
    // Other processes may have the file open, so the rebuild must not replace it.
    assert_eq!(std::fs::metadata(&path).expect("the index").ino(), file);
    std::fs::write(&path, b"").expect("write succeeds");
    let index = SearchIndex::open(folder.path()).expect("an empty file is a new index");
    assert_eq!(index.rebuild_reason(), None);
}

#[test]
fn any_flipped_byte_is_harmless() {
    let (world, _) = texts();
    world.entries("parser");
    let World { store, index, folder, .. } = world;
    drop(index);
    let path = folder.path().join("search.db");
    let whole = std::fs::read(&path).expect("the index");
    let reading = store.read().expect("a read transaction");
    for place in (0..whole.len()).step_by(611) {
        let mut flipped = whole.clone();
        flipped[place] ^= 0x41;
        std::fs::write(&path, flipped).expect("write succeeds");
        let index = SearchIndex::open(folder.path()).unwrap_or_else(|error| panic!("{place}: {error}"));
        let found = index
            .search(&reading.queries(), &SearchQuery::words("the"))
            .unwrap_or_else(|error| panic!("{place}: {error}"));
        // Before the check, results can be missing but never wrong.
        assert!(found.iter().all(|hit| hit.snippet.text().contains("the")), "{place}");
        index.check(&reading.queries()).expect("check succeeds");
        index.rebuild(&reading.queries(), &mut |_| ()).expect("rebuild succeeds");
        let found = index.search(&reading.queries(), &SearchQuery::words("the")).expect("search succeeds");
        assert_eq!(found.len(), 2, "{place}");
        drop(index);
    }
}

#[test]
fn an_older_copy_of_the_store_gets_its_own_index() {
    let world = World::new();
    let thread = world.thread("Copies");
    world.say(thread, "User", "before the copy");
    world.tamper("PRAGMA wal_checkpoint(TRUNCATE)");
    let copy = std::fs::read(world.folder.path().join("retake.db")).expect("the store");
    world.say(thread, "User", "after the copy");
    assert_eq!(world.entries("copy").len(), 2);
    let World { store, index, folder, .. } = world;
    drop((store, index));
    std::fs::write(folder.path().join("retake.db"), copy).expect("write succeeds");
    let store = Store::open(folder.path()).expect("a store");
    let index = SearchIndex::open(folder.path()).expect("an index");
    let reading = store.read().expect("a read transaction");
    let query = SearchQuery { scope: SearchScope::History, ..SearchQuery::words("copy") };
    assert_eq!(index.search(&reading.queries(), &query).expect("search succeeds").len(), 1);
    assert_eq!(index.rebuild_reason(), Some(RebuildReason::OtherStore));
}

#[test]
fn the_readable_part_of_a_damaged_store_is_indexed() {
    let world = World::new();
    let thread = world.thread("Broken");
    world.say(thread, "User", "first stone");
    world.say(thread, "User", "second stone");
    world.say(thread, "User", "third stone");
    let World { store, index, folder, .. } = world;
    drop(store);
    // The operation that added the second entry.
    let connection = rusqlite::Connection::open(folder.path().join("retake.db")).expect("the database");
    connection
        .execute_batch("UPDATE operation SET body = CAST(x'00' || body AS BLOB) WHERE version = 3;")
        .expect("valid SQL");
    drop(connection);
    let store = Store::open(folder.path()).expect("a store");
    let reading = store.read().expect("a read transaction");
    let done = index.catch_up(&reading.queries(), &mut |_| ()).expect("catch-up succeeds");
    assert_eq!(done.unreadable, 1);
    // The next operation brings in the entry of the unreadable one.
    let found = index.search(&reading.queries(), &SearchQuery::words("stone")).expect("search succeeds");
    assert_eq!(found.len(), 3);
    assert_eq!(index.check(&reading.queries()).expect("check succeeds"), []);
}

#[test]
fn a_check_finds_missing_and_surplus_documents() {
    let (world, named) = texts();
    assert_eq!(world.entries("parser"), [named[0].1]);
    world.assert_sound();
    let connection = rusqlite::Connection::open(world.folder.path().join("search.db")).expect("the index");
    connection
        .execute_batch(
            "UPDATE doc SET entry = zeroblob(16) WHERE number = 1; DELETE FROM doc WHERE number = 2;",
        )
        .expect("valid SQL");
    let reading = world.store.read().expect("a read transaction");
    let problems = world.index.check(&reading.queries()).expect("check succeeds");
    let count =
        |wanted: fn(&SearchProblem) -> bool| problems.iter().filter(|problem| wanted(problem)).count();
    assert_eq!(count(|problem| matches!(problem, SearchProblem::Missing { .. })), 2);
    assert_eq!(count(|problem| matches!(problem, SearchProblem::Extra { .. })), 1);
    assert_eq!(count(|problem| matches!(problem, SearchProblem::Damaged(_))), 1, "words without a doc");
    world.index.rebuild(&reading.queries(), &mut |_| ()).expect("rebuild succeeds");
    world.assert_sound();
    assert_eq!(world.index.rebuild_reason(), Some(RebuildReason::Requested));
}

#[test]
fn the_files_of_the_index_are_private() {
    let (world, _) = texts();
    world.entries("parser");
    for name in ["search.db", "search.db-wal", "search.db-shm"] {
        let mode = std::fs::metadata(world.folder.path().join(name)).expect("the file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
