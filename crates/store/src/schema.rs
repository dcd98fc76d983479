//! The tables, and how an older store becomes a newer one.
//!
//! A store carries the number of its schema. An older one is copied to `backups/` and then brought forward in
//! one transaction; a newer one is refused untouched. Objects carry their own evolution (fields are only ever
//! added at the end), so a migration never rewrites history.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::StoreError;
use crate::location::{backups, private_file, private_folder, sync_folder};
use crate::open::OpenError;

/// The schema that this program writes.
pub const CURRENT: i64 = MIGRATIONS.len() as i64;

/// Tells SQLite databases of Retake from others ("reta").
pub(crate) const APPLICATION: i64 = 0x7265_7461;

/// The step from each schema to the next; the first makes an empty store.
pub(crate) const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql")];

/// Brings the database to the last of the migrations. The caller holds the writer's lock.
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
        back_up(connection, folder, found)?;
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

/// The same statements without comments and spare white space. SQLite keeps the text of every table, and all of
/// it must fit on the database's first page: that is the one page that a salvage can renew.
fn compact(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split_once("--").map_or(line, |(before, _)| before));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ").replace("( ", "(").replace(" )", ")").replace(", ", ",")
}

pub(crate) fn version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// The description of every table and index that there should be, by its name.
pub(crate) fn described() -> Result<BTreeMap<String, String>, StoreError> {
    let connection = Connection::open_in_memory()?;
    for step in MIGRATIONS {
        connection.execute_batch(&compact(step))?;
    }
    Ok(descriptions(&connection)?)
}

/// The descriptions that a database has.
pub(crate) fn descriptions(connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    let mut statement =
        connection.prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// A durable copy of the whole database under `backups/`.
fn back_up(connection: &Connection, folder: &Path, version: i64) -> Result<PathBuf, StoreError> {
    let backups = backups(folder);
    private_folder(&backups)?;
    let target = free_name(&backups, version);
    // Made empty first, so that it never exists with a wider mode.
    private_file(&target)?;
    connection.execute("VACUUM INTO ?1", [target.to_string_lossy()])?;
    let fail = |error| StoreError::File { path: target.clone(), error };
    std::fs::File::open(&target).and_then(|file| file.sync_all()).map_err(fail)?;
    sync_folder(&backups).map_err(fail)?;
    Ok(target)
}

fn free_name(backups: &Path, version: i64) -> PathBuf {
    let candidates = (1..).map(|number| backups.join(format!("schema-{version}-{number}.db")));
    candidates
        .into_iter()
        .find(|path| fs::symlink_metadata(path).is_err())
        .expect("an endless row of names has a free one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_fits_on_the_first_page() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("schema.db");
        let connection = Connection::open(&path).expect("a database");
        connection.execute_batch(&compact(MIGRATIONS[0])).expect("it is made");
        drop(connection);
        // Behind the file's own head the first page says whether it is a leaf. A schema that needs more pages
        // could be lost with any of them, and salvage knows only the first.
        assert_eq!(fs::read(&path).expect("a file")[100], 0x0d);
    }
}
