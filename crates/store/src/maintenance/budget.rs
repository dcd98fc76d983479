//! Disk usage of the store, and the budget the user sets for it.
//!
//! A budget only warns: Retake never deletes anything because of it. The user frees space with `gc` and `purge`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::location::{backups, database, runtime_database, search};
use crate::{Store, StoreError};

/// Usage from this percentage of the budget on causes a warning.
const NEAR_PERCENT: u64 = 80;

/// Disk usage and object counts of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StoreUsage"))]
pub struct StoreUsage {
    /// Bytes of the database.
    pub database: u64,
    /// Bytes of the write-ahead log, which SQLite merges into the database.
    pub log: u64,
    /// Bytes of the search index.
    pub search: u64,
    /// Bytes of the runtime database: trace, running turns, browser sessions, idempotency keys.
    pub runtime_database: u64,
    /// Bytes of backups.
    pub backups: u64,
    /// Bytes of packs, which contain captured files.
    pub packs: u64,
    /// Bytes of the locks and stat caches of folders.
    pub folders: u64,
    pub total: u64,
    pub objects: u64,
    pub operations: u64,
    /// Threads, including deleted ones.
    pub threads: u64,
}

/// Usage relative to a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum BudgetState {
    Fine,
    Near { percent: u64 },
    Over { percent: u64 },
}

impl StoreUsage {
    /// Compares the usage with a budget in bytes.
    pub fn budget_state(&self, budget: u64) -> BudgetState {
        let percent = u128::from(self.total) * 100 / u128::from(budget.max(1));
        let percent = u64::try_from(percent).unwrap_or(u64::MAX);
        if self.total >= budget {
            BudgetState::Over { percent }
        } else if percent >= NEAR_PERCENT {
            BudgetState::Near { percent }
        } else {
            BudgetState::Fine
        }
    }
}

impl Store {
    /// Measures disk usage and counts objects, operations and threads.
    pub fn usage(&self) -> Result<StoreUsage, StoreError> {
        let reading = self.read()?;
        let count = |sql: &str| -> Result<u64, StoreError> {
            let count: i64 =
                reading.queries().connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(count as u64)
        };
        Ok(StoreUsage {
            // The index is counted, not the objects: it is a fraction of their size.
            objects: count(
                "SELECT (SELECT count(*) FROM object_index)
                      + (SELECT count(*) FROM packed)",
            )? + reading.queries().recent_name_count()?,
            operations: count("SELECT count(*) FROM operation WHERE version > 0")?,
            threads: count("SELECT count(*) FROM thread")?,
            ..self.file_sizes()?
        })
    }

    /// Compares the file sizes with a budget. This reads no table, so its cost does not grow with the store.
    pub fn budget_state(&self, budget: u64) -> Result<BudgetState, StoreError> {
        Ok(self.file_sizes()?.budget_state(budget))
    }

    fn file_sizes(&self) -> Result<StoreUsage, StoreError> {
        let database = database(&self.folder);
        let search = search(&self.folder);
        let runtime_database = runtime_database(&self.folder);
        let mut file_sizes = StoreUsage {
            database: size(&database)?,
            log: size(&sidecar_path(&database, "-wal"))?,
            search: size(&search)? + size(&sidecar_path(&search, "-wal"))?,
            runtime_database: size(&runtime_database)? + size(&sidecar_path(&runtime_database, "-wal"))?,
            backups: folder_size(&backups(&self.folder))?,
            packs: folder_size(&crate::objects::packs::folder(&self.folder))?,
            folders: folder_size(&self.folder.join("folders"))?,
            ..StoreUsage::default()
        };
        file_sizes.total =
            file_sizes.database + file_sizes.log + file_sizes.search + file_sizes.runtime_database;
        file_sizes.total += file_sizes.backups + file_sizes.packs + file_sizes.folders;
        Ok(file_sizes)
    }
}

/// The path of a file that SQLite creates next to a database, such as the write-ahead log.
pub(crate) fn sidecar_path(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The size of a file; 0 if it does not exist.
pub(crate) fn size(path: &Path) -> Result<u64, StoreError> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(StoreError::File { path: path.to_owned(), error }),
    }
}

fn folder_size(folder: &Path) -> Result<u64, StoreError> {
    list_files(folder)?.iter().map(|path| size(path)).sum()
}

/// The files in a folder; none if the folder does not exist.
pub(crate) fn list_files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let fail = |error| StoreError::File { path: folder.to_owned(), error };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    entries.map(|entry| Ok(entry.map_err(fail)?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_warns_before_it_is_reached() {
        let check = |total: u64, budget: u64, expected: BudgetState| {
            let usage = StoreUsage { total, ..StoreUsage::default() };
            assert_eq!(usage.budget_state(budget), expected, "{total} of {budget}");
        };
        check(0, 100, BudgetState::Fine);
        check(79, 100, BudgetState::Fine);
        check(80, 100, BudgetState::Near { percent: 80 });
        check(99, 100, BudgetState::Near { percent: 99 });
        check(100, 100, BudgetState::Over { percent: 100 });
        check(250, 100, BudgetState::Over { percent: 250 });
        check(0, 0, BudgetState::Over { percent: 0 });
        check(u64::MAX, 1, BudgetState::Over { percent: u64::MAX });
    }
}
