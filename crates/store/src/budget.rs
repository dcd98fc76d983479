//! Disk usage of the store, and the budget the user sets for it.
//!
//! A budget only warns: Retake never deletes anything because of it. The user frees space with `gc` and `purge`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::location::{backups, database, ledger, search};
use crate::{Store, StoreError};

/// Usage from this percentage of the budget on causes a warning.
const NEAR_PERCENT: u64 = 80;

/// Disk usage and object counts of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StoreUsage"))]
pub struct Usage {
    /// Bytes of the database.
    pub database: u64,
    /// Bytes of the write-ahead log, which SQLite merges into the database.
    pub log: u64,
    /// Bytes of the search index.
    pub search: u64,
    /// Bytes of the runtime database: trace, running turns, browser sessions, idempotency keys.
    pub ledger: u64,
    /// Bytes of backups.
    pub backups: u64,
    /// Bytes of packs, which contain captured files.
    pub packs: u64,
    /// Bytes of the locks and stat caches of folders.
    pub folders: u64,
    pub total: u64,
    pub objects: u64,
    pub operations: u64,
    /// Threads, including archived ones.
    pub threads: u64,
}

/// Usage relative to a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum BudgetState {
    Fine,
    Near {
        percent: u64,
    },
    Over {
        percent: u64,
    },
}

impl Usage {
    /// Compares the usage with a budget in bytes.
    pub fn against(&self, budget: u64) -> BudgetState {
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
    pub fn usage(&self) -> Result<Usage, StoreError> {
        let reading = self.read()?;
        let count = |sql: &str| -> Result<u64, StoreError> {
            let count: i64 =
                reading.queries().connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(count as u64)
        };
        Ok(Usage {
            // The index is counted, not the objects: it is a fraction of their size.
            objects: count(
                "SELECT (SELECT count(*) FROM object_index)
                      + (SELECT coalesce(sum(length(names)), 0) / 8 FROM object_recent)
                      + (SELECT count(*) FROM packed)",
            )?,
            operations: count("SELECT count(*) FROM operation WHERE version > 0")?,
            threads: count("SELECT count(*) FROM thread")?,
            ..self.room()?
        })
    }

    /// Compares the file sizes with a budget. This reads no table, so its cost does not grow with the store.
    pub fn against(&self, budget: u64) -> Result<BudgetState, StoreError> {
        Ok(self.room()?.against(budget))
    }

    fn room(&self) -> Result<Usage, StoreError> {
        let database = database(&self.folder);
        let search = search(&self.folder);
        let ledger = ledger(&self.folder);
        let mut room = Usage {
            database: size(&database)?,
            log: size(&beside(&database, "-wal"))?,
            search: size(&search)? + size(&beside(&search, "-wal"))?,
            ledger: size(&ledger)? + size(&beside(&ledger, "-wal"))?,
            backups: size_of_folder(&backups(&self.folder))?,
            packs: size_of_folder(&crate::packs::folder(&self.folder))?,
            folders: size_of_folder(&self.folder.join("folders"))?,
            ..Usage::default()
        };
        room.total = room.database + room.log + room.search + room.ledger;
        room.total += room.backups + room.packs + room.folders;
        Ok(room)
    }
}

/// The path of a file that SQLite creates next to a database, such as the write-ahead log.
pub(crate) fn beside(database: &Path, ending: &str) -> PathBuf {
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

fn size_of_folder(folder: &Path) -> Result<u64, StoreError> {
    files_of(folder)?.iter().map(|path| size(path)).sum()
}

/// The files in a folder; none if the folder does not exist.
pub(crate) fn files_of(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
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
            let usage = Usage { total, ..Usage::default() };
            assert_eq!(usage.against(budget), expected, "{total} of {budget}");
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
