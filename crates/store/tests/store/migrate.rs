//! Migration of an older store makes a backup first; a failure leaves the store unchanged.

use std::fs;

use crate::support::*;
use retake_model::time::Timestamp;
use retake_store::{OpenError, SCHEMA_VERSION, Store};

const FIRST: &str = include_str!("../../src/schema/1.sql");
const SECOND: &str = "CREATE TABLE invention (number INTEGER PRIMARY KEY) STRICT";

fn backups(folder: &Folder) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(folder.path.join("backups")) else {
        return Vec::new();
    };
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

fn version(folder: &Folder) -> i64 {
    let raw = folder.raw();
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
    let store = Store::open_with(&folder.path, &[FIRST, SECOND]).expect("migration succeeds");
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
    assert!(Store::open_with(&folder.path, &[FIRST, failing]).is_err());
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
    let store = Store::open_with(&folder.path, &[FIRST, SECOND]).expect("open succeeds");
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
