//! The schema, and its migrations.
//!
//! A store records its schema version. An older one is copied to `backups/`, gets new pages if it needs them
//! ([`pages`]), and is then migrated in one transaction; a newer one is refused unchanged. Objects evolve by themselves
//! (fields are only added at the end), so a migration never rewrites history.

pub(crate) mod pages;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::StoreError;
use crate::location::{backups, first_free_name, private_file, private_folder, sync_folder};
use crate::open::OpenError;

/// The schema version that this program writes.
pub const CURRENT: i64 = MIGRATIONS.len() as i64;

/// Identifies SQLite databases of Retake ("reta").
pub(crate) const APPLICATION: i64 = 0x7265_7461;

/// One migration per schema version; the first creates an empty store.
pub(crate) const MIGRATIONS: &[&str] =
    &[include_str!("schema/1.sql"), include_str!("schema/2.sql"), include_str!("schema/3.sql")];

/// The last version with pages of 4 KB.
pub(crate) const LAST_WITH_OLD_PAGES: i64 = 2;

/// Applies the missing migrations. The caller holds the writer's lock.
pub(crate) fn migrate(
    connection: &mut Connection,
    folder: &Path,
    migrations: &[&str],
) -> Result<(), OpenError> {
    let found = version(connection)?;
    let wanted = migrations.len() as i64;
    if found > wanted {
        return Err(OpenError::Newer { found, wanted });
    }
    if found == wanted {
        return Ok(());
    }
    if found > 0 {
        if found <= LAST_WITH_OLD_PAGES {
            pages::renew(connection, || back_up(connection, folder, found))?;
        } else {
            back_up(connection, folder, found)?;
        }
    }
    let transaction = connection.transaction().map_err(StoreError::from)?;
    for step in &migrations[found as usize..] {
        transaction.execute_batch(&compact(step)).map_err(StoreError::from)?;
    }
    transaction.pragma_update(None, "user_version", wanted).map_err(StoreError::from)?;
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(StoreError::from)?;
    transaction.commit().map_err(StoreError::from)?;
    Ok(())
}

/// Removes comments and whitespace, because SQLite stores the text of every table.
fn compact(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split_once("--").map_or(line, |(before, _)| before));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ").replace("( ", "(").replace(" )", ")").replace(", ", ",")
}

pub(crate) fn version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// Fails if another program migrated the store since it was opened.
pub(crate) fn check_version(connection: &Connection, known: i64) -> Result<(), StoreError> {
    let found: i64 = connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))?;
    if found <= known { Ok(()) } else { Err(StoreError::Newer { file: "retake.db", found, known }) }
}

/// Makes an empty database with the tables of the last schema with pages of this size, which a salvage takes as a sample.
pub(crate) fn make_empty(path: &Path, page_bytes: usize) -> Result<(), StoreError> {
    let connection = Connection::open(path)?;
    let steps = if page_bytes == pages::PAGE_BYTES {
        pages::set_up(&connection)?;
        MIGRATIONS
    } else {
        pages::set_up_old(&connection)?;
        &MIGRATIONS[..LAST_WITH_OLD_PAGES as usize]
    };
    for step in steps {
        connection.execute_batch(&compact(step))?;
    }
    connection.pragma_update(None, "user_version", steps.len() as i64)?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    Ok(())
}

/// The expected definition of every table and index, by name.
pub(crate) fn expected_schema() -> Result<BTreeMap<String, String>, StoreError> {
    let connection = Connection::open_in_memory()?;
    for step in MIGRATIONS {
        connection.execute_batch(&compact(step))?;
    }
    Ok(read_schema(&connection)?)
}

/// The definitions in a database.
pub(crate) fn read_schema(connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    let mut statement =
        connection.prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Refuses a database whose schema text differs from the expected one. SQLite trusts the schema: a flipped bit can
/// swap two columns or map a table to the pages of another, and every later read would be silently wrong. The caller
/// has checked the version.
pub(crate) fn check_schema_text(connection: &Connection) -> Result<(), StoreError> {
    if fingerprint(connection)? == FINGERPRINT {
        Ok(())
    } else {
        Err(StoreError::Damaged("its table definitions were altered".to_owned()))
    }
}

/// The expected fingerprint. It is a constant so that opening a store need not build an empty one; a test keeps the
/// two equal.
const FINGERPRINT: &str = "8319f4ddec21189d91d5c6ae46680bf9c13f05cc7e0f93ed1f0f3353d7e7a177";

/// The hash of the schema text, without root pages, which differ in a backup.
fn fingerprint(connection: &Connection) -> Result<String, StoreError> {
    let mut hasher = blake3::Hasher::new();
    let mut statement =
        connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for column in 0..4 {
            let bytes = match row.get_ref(column)? {
                ValueRef::Text(text) => text,
                _ => &[],
            };
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// Makes a durable copy of the database under `backups/`. It gets its name when it is complete.
fn back_up(connection: &Connection, folder: &Path, version: i64) -> Result<PathBuf, StoreError> {
    let backups = backups(folder);
    private_folder(&backups)?;
    let incomplete = backups.join("incomplete.db");
    let target = first_free_name(&backups, |number| format!("schema-{version}-{number}.db"));
    let fail = |error| StoreError::File { path: target.clone(), error };
    match std::fs::remove_file(&incomplete) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }
    // Created empty first, so that it never has a wider mode.
    private_file(&incomplete)?;
    let written = connection
        .execute("VACUUM INTO ?1", [incomplete.to_string_lossy()])
        .map_err(StoreError::from)
        .and_then(|_| std::fs::File::open(&incomplete).and_then(|file| file.sync_all()).map_err(fail));
    if written.is_err() {
        // It may be what fills the disk.
        let _ = std::fs::remove_file(&incomplete);
    }
    written?;
    std::fs::rename(&incomplete, &target).map_err(fail)?;
    sync_folder(&backups).map_err(fail)?;
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_is_that_of_a_new_store() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = crate::Store::open(&folder.path().join("store")).expect("a store");
        let connection = Connection::open(crate::location::database(store.folder())).expect("a database");
        assert_eq!(fingerprint(&connection).expect("readable"), FINGERPRINT);
    }

    #[test]
    fn a_failed_renewal_of_the_pages_leaves_no_backup() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("old.db");
        make_empty(&path, pages::OLD_PAGE_BYTES).expect("an old store");
        let connection = crate::open::connect(&path).expect("a database");
        let backup_count = || std::fs::read_dir(backups(folder.path())).expect("a folder").count();
        for _ in 0..2 {
            let renewed = pages::renew(&connection, || {
                let backup = back_up(&connection, folder.path(), LAST_WITH_OLD_PAGES)?;
                assert_eq!(backup_count(), 1, "control");
                // The database cannot be written anew in a transaction.
                connection.execute_batch("BEGIN")?;
                Ok(backup)
            });
            assert!(renewed.is_err());
            connection.execute_batch("ROLLBACK").expect("a transaction");
            assert_eq!(backup_count(), 0);
        }
        pages::renew(&connection, || back_up(&connection, folder.path(), LAST_WITH_OLD_PAGES))
            .expect("renewed");
        assert_eq!(backup_count(), 1);
        assert!(pages::are_current(&connection).expect("readable"));
        assert!(pages::in_wal_mode(&connection).expect("readable"));
    }

    /// A salvage finds the tables, and the pages with their definitions, where a new store has them.
    #[test]
    fn every_table_stays_in_its_place_when_a_store_is_vacuumed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = crate::Store::open(&folder.path().join("store")).expect("a store");
        let connection = Connection::open(crate::location::database(store.folder())).expect("a database");
        let places = || {
            let sql = "SELECT rowid, name, rootpage FROM sqlite_schema ORDER BY rowid";
            let mut statement = connection.prepare(sql).expect("a statement");
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
            rows.expect("readable").collect::<Result<Vec<(i64, String, i64)>, _>>().expect("readable")
        };
        let definitions = || {
            connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("a checkpoint");
            let bytes = std::fs::read(crate::location::database(store.folder())).expect("a file");
            pages::of_schema(&bytes, pages::PAGE_BYTES).expect("a schema")
        };
        let before = (places(), definitions());
        connection.execute_batch("VACUUM").expect("space");
        assert_eq!((places(), definitions()), before);
        assert_eq!(before.1.len(), 3, "the first page and two leaves");
    }
}
