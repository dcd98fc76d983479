//! Migration of an older store makes a backup first; a failure leaves the store unchanged.

use std::fs;

use crate::support::*;
use retake_model::command::Command;
use retake_model::content::{ContentId, Kind};
use retake_model::time::Timestamp;
use retake_store::{OpenError, SCHEMA_VERSION, Store};

const FIRST: &str = include_str!("../../src/schema/1.sql");
const SECOND: &str = include_str!("../../src/schema/2.sql");
const THIRD: &str = include_str!("../../src/schema/3.sql");
const NEXT: &str = "CREATE TABLE invention (number INTEGER PRIMARY KEY) STRICT";

fn backups(folder: &Folder) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(folder.path.join("backups")) else {
        return Vec::new();
    };
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

fn version(folder: &Folder) -> i64 {
    let raw = folder.raw_bundled();
    raw.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("readable")
}

#[test]
fn a_migration_makes_a_backup_first() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let before = dump(&store).expect("readable");
    drop(store);
    assert_eq!(backups(&folder).len(), 0);
    let store = Store::open_with(&folder.path, &[FIRST, SECOND, THIRD, NEXT]).expect("migration succeeds");
    assert_eq!(dump(&store).expect("readable"), before);
    drop(store);
    assert_eq!(version(&folder), SCHEMA_VERSION + 1);
    let backups = backups(&folder);
    assert_eq!(backups.len(), 1);
    // The backup is a complete store of the old schema.
    let restored = Folder::new();
    drop(restored.open());
    fs::copy(&backups[0], restored.database()).expect("file copied");
    assert_eq!(version(&restored), SCHEMA_VERSION);
    assert_eq!(dump(&restored.open()).expect("readable"), before);
}

#[test]
fn a_failed_migration_leaves_schema_and_data_unchanged() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let before = dump(&store).expect("readable");
    drop(store);
    let failing = "CREATE TABLE invention (number INTEGER PRIMARY KEY) STRICT;
                   DELETE FROM operation;
                   INSERT INTO nowhere VALUES (1)";
    assert!(Store::open_with(&folder.path, &[FIRST, SECOND, THIRD, failing]).is_err());
    assert_eq!(version(&folder), SCHEMA_VERSION);
    let store = folder.open();
    assert_eq!(dump(&store).expect("readable"), before);
    assert_clean(&store);
    let tables: i64 = folder
        .raw()
        .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'invention'", [], |row| row.get(0))
        .expect("readable");
    assert_eq!(tables, 0);
}

#[test]
fn a_newer_store_is_refused_and_unchanged() {
    let folder = Folder::new();
    let store = Store::open_with(&folder.path, &[FIRST, SECOND, THIRD, NEXT]).expect("open succeeds");
    grow(&store);
    drop(store);
    let before = fs::read(folder.database()).expect("readable");
    let refused = Store::open(&folder.path);
    let wanted = SCHEMA_VERSION;
    match refused {
        Err(OpenError::Newer { found, wanted: known }) => assert_eq!((found, known), (wanted + 1, wanted)),
        other => panic!("{:?}", other.map(|_| ())),
    }
    assert!(Store::salvage(&folder.path, &mut |_| {}, Timestamp::default()).is_err());
    assert_eq!(fs::read(folder.database()).expect("readable"), before);
}

#[test]
fn a_foreign_database_is_refused_and_unchanged() {
    let folder = Folder::new();
    fs::create_dir_all(&folder.path).expect("a folder");
    folder
        .raw()
        .execute_batch("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup')")
        .expect("a database");
    let before = fs::read(folder.database()).expect("readable");
    assert!(matches!(Store::open(&folder.path), Err(OpenError::Foreign(_))));
    assert_eq!(fs::read(folder.database()).expect("readable"), before);
}

/// Stores of the last program with each earlier schema; see scripts/old-store.
const OLD_STORES: [(i64, &[u8]); 2] =
    [(1, include_bytes!("../schema-1/retake.db.zst")), (2, include_bytes!("../schema-2/retake.db.zst"))];

fn old_store(packed: &[u8]) -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(&folder.path).expect("a folder");
    let bytes = zstd::stream::decode_all(packed).expect("a frame");
    fs::write(folder.database(), bytes).expect("write succeeds");
    folder
}

type OldRow = (i64, i64, i64, Vec<u8>, Option<Vec<u8>>);

/// The rows of the log, and kind and id of every object in a row of its own.
fn old_content(folder: &Folder) -> (Vec<OldRow>, Vec<(Kind, ContentId)>) {
    let raw = folder.raw_bundled();
    let mut statement = raw
        .prepare("SELECT sequence, thread, version, id, body FROM operation ORDER BY sequence")
        .expect("a statement");
    let columns =
        |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
    let log = statement.query_map([], columns).expect("rows").collect::<Result<_, _>>().expect("readable");
    let mut statement =
        raw.prepare("SELECT kind, packing, body FROM object ORDER BY number").expect("a statement");
    let object = |row: &rusqlite::Row<'_>| {
        let (kind, packing, body): (u8, i64, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let bytes = if packing == 0 { body } else { zstd::stream::decode_all(&*body).expect("a frame") };
        let kind = Kind::from_number(kind).expect("a kind");
        Ok((kind, ContentId::of(kind, &bytes)))
    };
    let objects = statement.query_map([], object).expect("rows").collect::<Result<_, _>>().expect("readable");
    (log, objects)
}

#[test]
fn an_old_store_keeps_everything_and_its_new_operations_have_bundles() {
    for (schema, packed) in OLD_STORES {
        keeps_everything(schema, packed);
    }
}

fn keeps_everything(schema: i64, packed: &[u8]) {
    let folder = old_store(packed);
    assert_eq!(version(&folder), schema);
    let before = old_content(&folder);
    let in_bundles = if schema == 1 { 0 } else { bundles(&folder.raw_bundled()).expect("readable").len() };
    assert!(before.0.len() > 100, "the fixture is large enough");
    assert!(before.1.len() > 500 || in_bundles > 100, "the fixture is large enough");
    let store = folder.open();
    assert_eq!(version(&folder), SCHEMA_VERSION);
    assert_eq!(old_content(&folder), before, "every row stays as it is");
    assert_pages_are_new(&folder);
    assert_clean(&store);
    let reading = store.read().expect("a read transaction");
    for &(kind, id) in &before.1 {
        assert!(reading.queries().contains(kind, id).expect("readable"), "{kind:?} {id:?}");
    }
    let (log, objects) = (before.0.len(), before.1.len());
    let rows = reading.queries().threads(&retake_store::ThreadFilter::default()).expect("threads");
    drop(reading);
    for row in &rows {
        let thread = row.summary.id;
        publish(&store, thread, say(active(&store, thread), "User", "after the update"));
    }
    let after = old_content(&folder);
    assert_eq!((after.0.len(), after.1.len()), (log + rows.len(), objects), "new objects are in bundles");
    assert_eq!(bundles(&folder.raw_bundled()).expect("readable").len(), in_bundles + rows.len());
    assert_clean(&store);
    let found = dump(&store).expect("readable");
    drop(store);
    assert_eq!(dump(&folder.open()).expect("readable"), found);
    let backups = backups(&folder);
    assert_eq!(backups.len(), 1, "opening it again makes no other one");
    let restored = Folder::new();
    fs::create_dir_all(&restored.path).expect("a folder");
    fs::copy(&backups[0], restored.database()).expect("file copied");
    assert_eq!((version(&restored), old_content(&restored)), (schema, before));
    assert_clean(&restored.open());
}

fn assert_pages_are_new(folder: &Folder) {
    let raw = folder.raw_bundled();
    let number = |pragma: &str| -> i64 {
        raw.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0)).expect("readable")
    };
    assert_eq!((number("page_size"), number("auto_vacuum")), (PAGE as i64, 0));
    let mode: String = raw.query_row("PRAGMA journal_mode", [], |row| row.get(0)).expect("readable");
    assert_eq!(mode, "wal");
}

/// A program of the old release that stays open could change tables that it no longer knows.
#[test]
fn a_store_that_another_program_has_open_is_not_migrated() {
    for (schema, packed) in OLD_STORES {
        let folder = old_store(packed);
        let other = folder.raw_bundled();
        other.pragma_update(None, "journal_mode", "WAL").expect("an old store in use");
        let read = |raw: &rusqlite::Connection| -> i64 {
            raw.query_row("SELECT count(*) FROM operation", [], |row| row.get(0)).expect("readable")
        };
        let count = read(&other);
        for _ in 0..2 {
            match Store::open(&folder.path) {
                Err(OpenError::Store(retake_store::StoreError::InUse)) => {}
                other => panic!("{:?}", other.map(|_| ())),
            }
            assert_eq!((version(&folder), read(&other)), (schema, count));
            assert_eq!(backups(&folder).len(), 0, "a refused migration copies nothing");
        }
        drop(other);
        assert_clean(&folder.open());
        assert_eq!(version(&folder), SCHEMA_VERSION);
        assert_eq!(backups(&folder).len(), 1);
    }
}

#[test]
fn a_program_that_is_open_during_a_migration_refuses_the_newer_store() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[0];
    let newer = SCHEMA_VERSION + 1;
    folder.raw_bundled().pragma_update(None, "user_version", newer).expect("a later migration");
    let is_newer = |error: &retake_store::StoreError| matches!(error, retake_store::StoreError::Newer { found, .. } if *found == newer);
    let refused = store.read().map(|_| ()).expect_err("refused");
    assert!(is_newer(&refused), "{refused}");
    let refused = store.write(|_| Ok::<_, ()>(())).expect_err("refused");
    assert!(matches!(&refused, retake_store::WriteError::Store(error) if is_newer(error)), "{refused:?}");
    folder.raw_bundled().pragma_update(None, "user_version", SCHEMA_VERSION).expect("as before");
    publish(&store, thread, say(active(&store, thread), "User", "as before"));
}

#[test]
fn a_copy_of_a_backup_can_be_used_as_a_store() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let found = dump(&store).expect("readable");
    drop(store);
    folder.raw_bundled().pragma_update(None, "journal_mode", "DELETE").expect("a plain file");
    let store = folder.open();
    assert_eq!(dump(&store).expect("readable"), found);
    assert_pages_are_new(&folder);
    publish(&store, store_thread(&store), Command::Pin { pinned: true });
    assert_clean(&store);
}

fn store_thread(store: &Store) -> retake_model::id::ThreadId {
    let reading = store.read().expect("a read transaction");
    let rows = reading.queries().threads(&retake_store::ThreadFilter::default()).expect("threads");
    rows[0].summary.id
}

#[test]
fn a_damaged_old_store_is_salvaged() {
    for (schema, packed) in OLD_STORES {
        for round in 0..12 {
            let folder = old_store(packed);
            let mut bytes = fs::read(folder.database()).expect("readable");
            // The first page, then others.
            let at = round * 4096 * 7 + 1_000 + round * 131;
            bytes[at % 400_000] ^= 0x41;
            fs::write(folder.database(), bytes).expect("write succeeds");
            let repaired = Store::salvage(&folder.path, &mut |_| {}, Timestamp::from_millis(START));
            repaired.unwrap_or_else(|error| panic!("schema {schema}, round {round}: {error}"));
            assert_clean(&folder.open());
            assert_eq!(version(&folder), SCHEMA_VERSION);
            assert_pages_are_new(&folder);
        }
    }
}
