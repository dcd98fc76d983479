//! The index of takes: their summaries for the tree, and their names.
//!
//! The summary of the active take is in the row of its thread, which every change writes anyway. Its own row has its
//! name, and the summary of some earlier time, which nothing reads; it is written when another take becomes active.

use std::collections::{BTreeSet, HashMap, HashSet};

use retake_model::id::{ProjectId, TakeId, keys_with_prefix};
use retake_model::list::{List, TakeCell};
use retake_model::object::load;
use retake_model::state::ThreadState;
use retake_model::summary::{TakeSummary, summarize};
use retake_model::take::{FIRST_TAKE, Take};
use rusqlite::{OptionalExtension, Row, params};

use crate::log::head::ThreadHead;
use crate::log::queries::{Queries, decode_checked, digest};
use crate::{StoreError, ThreadRow, WriteTransaction};

/// A take in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeRow {
    /// Row number of its thread.
    pub thread: i64,
    /// The summary that lists show.
    pub summary: TakeSummary,
}

impl Queries<'_> {
    /// Finds a take of a thread by name.
    pub fn take_named(&self, thread: i64, name: &str) -> Result<Option<TakeRow>, StoreError> {
        let row = self
            .connection
            .prepare_cached("SELECT thread, record, digest, key FROM take WHERE thread = ?1 AND name = ?2")?
            .query_row(params![thread, name], raw)
            .optional()?;
        let Some(row) = row else { return Ok(None) };
        read(row, &self.row_of_thread(thread)?).map(Some)
    }

    /// All takes of a thread, oldest first.
    pub fn takes_of(&self, thread: i64) -> Result<Vec<TakeRow>, StoreError> {
        match self.thread_by_number(thread)? {
            Some(row) => self.takes_of_row(&row),
            None => Ok(Vec::new()),
        }
    }

    /// Like `takes_of`, for callers that already have the row of the thread.
    pub fn takes_of_row(&self, row: &ThreadRow) -> Result<Vec<TakeRow>, StoreError> {
        let found = self.collect_takes(
            "SELECT thread, record, digest, key FROM take INDEXED BY take_name WHERE thread = ?1",
            [row.number],
        )?;
        let mut found: Vec<TakeRow> =
            found.into_iter().map(|take| read(take, row)).collect::<Result<_, _>>()?;
        found.sort_by_key(|row| row.summary.id);
        check_count(row.summary.takes, found.len())?;
        Ok(found)
    }

    /// The takes of these threads, which are of one project if it is named.
    pub fn takes_in(
        &self,
        project: Option<ProjectId>,
        threads: &[ThreadRow],
    ) -> Result<Vec<TakeRow>, StoreError> {
        let found = match project {
            Some(project) => self.collect_takes(
                "SELECT take.thread, take.record, take.digest, take.key
                 FROM take JOIN thread ON thread.number = take.thread WHERE thread.project = ?1",
                [project.key()],
            )?,
            None => self.collect_takes("SELECT thread, record, digest, key FROM take", [])?,
        };
        let threads: HashMap<i64, &ThreadRow> = threads.iter().map(|row| (row.number, row)).collect();
        let takes = found.into_iter().filter_map(|take| Some((*threads.get(&take.0)?, take)));
        takes.map(|(row, take)| read(take, row)).collect()
    }

    /// Takes of any thread whose id starts with `prefix`, at most `limit`.
    pub fn takes_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<TakeRow>, StoreError> {
        let Some((low, high)) = keys_with_prefix(prefix) else {
            return Ok(Vec::new());
        };
        let found = self.collect_takes(
            "SELECT thread, record, digest, key FROM take WHERE key BETWEEN ?1 AND ?2 LIMIT ?3",
            params![low, high, limit as i64],
        )?;
        found.into_iter().map(|take| read(take.clone(), &self.row_of_thread(take.0)?)).collect()
    }

    fn row_of_thread(&self, number: i64) -> Result<ThreadRow, StoreError> {
        self.thread_by_number(number)?
            .ok_or_else(|| StoreError::Damaged("a thread is missing from the index".to_owned()))
    }

    /// Numbers of threads with a take whose name contains the text, ignoring case. Skips first takes: they
    /// all have the same name.
    pub(crate) fn threads_with_take_named(&self, text: &str) -> Result<BTreeSet<i64>, StoreError> {
        let lower = text.to_lowercase();
        let mut statement =
            self.connection.prepare_cached("SELECT thread, name FROM take INDEXED BY take_name")?;
        let mut rows = statement.query([])?;
        let mut found = BTreeSet::new();
        while let Some(row) = rows.next()? {
            let name = row.get_ref(1)?.as_str().unwrap_or_default();
            if name != FIRST_TAKE && name.to_lowercase().contains(&lower) {
                found.insert(row.get(0)?);
            }
        }
        Ok(found)
    }

    fn collect_takes(&self, sql: &str, values: impl rusqlite::Params) -> Result<Vec<RawRow>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(raw(row)?);
        }
        Ok(found)
    }
}

impl WriteTransaction<'_> {
    /// Updates the index of takes from one state of a thread to another. Opens only takes that differ; the
    /// summary of the active one is already known.
    pub(crate) fn put_takes(
        &self,
        thread: i64,
        before: Option<&ThreadHead>,
        after: &ThreadState,
        active: &TakeSummary,
    ) -> Result<(), StoreError> {
        let old = before.map_or_else(List::<TakeCell>::empty, |head| head.state.takes);
        let hunks = List::diff(&**self, &old, &after.takes)?;
        let mut gone: HashSet<TakeId> =
            hunks.iter().flat_map(|hunk| &hunk.removed).map(|cell| cell.take).collect();
        let was_active = before.map(|head| &head.row.summary.active);
        let left = was_active.filter(|left| left.id != active.id && !gone.contains(&left.id));
        if let Some(left) = left {
            // Its row is behind.
            self.update_take(thread, left)?;
        }
        let mut come = Vec::new();
        for cell in hunks.iter().flat_map(|hunk| &hunk.added) {
            let stays = was_active.is_some_and(|was| was.id == active.id && was.name == active.name);
            if cell.take == active.id && stays && gone.remove(&cell.take) {
                continue;
            }
            let summary = if cell.take == active.id {
                active.clone()
            } else {
                summarize(&load::<Take>(&**self, cell.content)?, &**self)?
            };
            if gone.contains(&cell.take) && self.update_take(thread, &summary)? {
                gone.remove(&cell.take);
            } else {
                come.push(summary);
            }
        }
        // Delete before inserting: a name can move from one take to another.
        for take in gone {
            self.remove_take(thread, take)?;
        }
        come.iter().try_for_each(|summary| self.put_take(thread, summary))
    }

    /// Updates the summary of a take that keeps its name, as most changes do. Returns false if the name
    /// differs.
    fn update_take(&self, thread: i64, summary: &TakeSummary) -> Result<bool, StoreError> {
        let record = minicbor::to_vec(summary).expect("encoding into memory cannot fail");
        let digest = digest(&record);
        let changed = self
            .connection
            .prepare_cached(
                "UPDATE take SET record = ?4, digest = ?5 WHERE key = ?1 AND thread = ?2 AND name = ?3",
            )?
            .execute(params![summary.id.key(), thread, summary.name, record, digest])?;
        Ok(changed > 0)
    }

    pub(crate) fn put_take(&self, thread: i64, summary: &TakeSummary) -> Result<(), StoreError> {
        let record = minicbor::to_vec(summary).expect("encoding into memory cannot fail");
        let digest = digest(&record);
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO take (key, thread, name, record, digest) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![summary.id.key(), thread, summary.name, record, digest])?;
        Ok(())
    }

    fn remove_take(&self, thread: i64, take: TakeId) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("DELETE FROM take WHERE key = ?1 AND thread = ?2")?
            .execute(params![take.key(), thread])?;
        Ok(())
    }
}

/// Fails if the number of takes differs from the number in the thread's row.
fn check_count(expected: u64, found: usize) -> Result<(), StoreError> {
    if expected == found as u64 {
        Ok(())
    } else {
        Err(StoreError::Damaged("a take is missing from the index".to_owned()))
    }
}

type RawRow = (i64, Vec<u8>, i64, Vec<u8>);

fn raw(row: &Row<'_>) -> rusqlite::Result<RawRow> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

fn read((thread, record, guard, key): RawRow, row: &ThreadRow) -> Result<TakeRow, StoreError> {
    let active = &row.summary.active;
    let summary =
        if key == active.id.key() { active.clone() } else { decode_checked(&record, guard, "take")? };
    Ok(TakeRow { thread, summary })
}
