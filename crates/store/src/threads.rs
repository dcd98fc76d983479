//! The index of threads: what lists show, without opening any of them.

use std::fmt::Write;

use retake_model::id::{ID_BYTES, ProjectId, ThreadId, keys_with_prefix};
use retake_model::summary::ThreadSummary;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params};

use crate::facets::Facet;
use crate::queries::{Queries, digest};
use crate::{StoreError, Writing};

/// A thread in the index.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadRow {
    /// Its number in this store, which other tables refer to.
    pub number: i64,
    /// The project that it is listed under here.
    pub home: ProjectId,
    /// What is shown of it.
    pub summary: ThreadSummary,
}

/// Which threads are meant.
#[derive(Clone, Debug, Default)]
pub struct ThreadFilter {
    /// Of that project only.
    pub project: Option<ProjectId>,
    /// Also those that were put away.
    pub deleted: Deleted,
    /// Only those that have all of these.
    pub facets: Vec<(Facet, String)>,
    /// Only those whose title contains that, whatever its case.
    pub title: Option<String>,
}

/// Which threads are meant, by whether they were put away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deleted {
    /// Those in use.
    #[default]
    Hidden,
    /// All.
    Shown,
    /// Those that were put away.
    Only,
}

impl Queries<'_> {
    /// A thread by its identity.
    pub fn thread(&self, id: ThreadId) -> Result<Option<ThreadRow>, StoreError> {
        let row = self
            .connection
            .prepare_cached("SELECT number, record, digest, project FROM thread WHERE key = ?1")?
            .query_row([id.key()], raw)
            .optional()?;
        row.map(read).transpose()
    }

    /// A thread by its number.
    pub fn thread_numbered(&self, number: i64) -> Result<Option<ThreadRow>, StoreError> {
        let row = self
            .connection
            .prepare_cached("SELECT number, record, digest, project FROM thread WHERE number = ?1")?
            .query_row([number], raw)
            .optional()?;
        row.map(read).transpose()
    }

    /// Threads whose identity begins with that text, at most `limit`.
    pub fn threads_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<ThreadRow>, StoreError> {
        let Some((low, high)) = keys_with_prefix(prefix) else {
            return Ok(Vec::new());
        };
        self.collect_threads(
            "SELECT number, record, digest, project FROM thread WHERE key BETWEEN ?1 AND ?2 LIMIT ?3",
            params![low, high, limit as i64],
        )
    }

    /// Threads with exactly that title, in use or not.
    pub fn threads_titled(&self, title: &str) -> Result<Vec<ThreadRow>, StoreError> {
        self.collect_threads("SELECT number, record, digest, project FROM thread WHERE title = ?1", [title])
    }

    /// Threads that the filter lets through: pinned ones first, then the most lately changed.
    pub fn threads(&self, filter: &ThreadFilter) -> Result<Vec<ThreadRow>, StoreError> {
        let mut sql = "SELECT number, record, digest, project FROM thread WHERE true".to_owned();
        let mut values: Vec<Value> = Vec::new();
        if let Some(project) = filter.project {
            sql.push_str(" AND project = ?");
            values.push(project.key().to_vec().into());
        }
        match filter.deleted {
            Deleted::Hidden => sql.push_str(" AND deleted = 0"),
            Deleted::Only => sql.push_str(" AND deleted = 1"),
            Deleted::Shown => {}
        }
        for (facet, value) in &filter.facets {
            let (condition, bound) = facet.condition(value);
            let kind = *facet as i64;
            write!(sql, " AND number IN (SELECT thread FROM facet WHERE kind = {kind} AND {condition})")
                .expect("writing into memory cannot fail");
            values.extend(bound);
        }
        sql.push_str(" ORDER BY pinned DESC, updated DESC, number DESC");
        let mut found = self.collect_threads(&sql, rusqlite::params_from_iter(values))?;
        if let Some(title) = &filter.title {
            let wanted = title.to_lowercase();
            found.retain(|row| row.summary.title.to_lowercase().contains(&wanted));
        }
        Ok(found)
    }

    fn collect_threads(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<ThreadRow>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(raw(row)?)?);
        }
        Ok(found)
    }
}

impl Writing<'_> {
    /// Writes what lists show of a thread; gives its number.
    pub(crate) fn put_thread(
        &self,
        number: Option<i64>,
        summary: &ThreadSummary,
        home: ProjectId,
    ) -> Result<i64, StoreError> {
        let number = match number {
            Some(number) => number,
            None => self.next_thread_number()?,
        };
        let mut values = columns(summary, home);
        values.insert(0, number.into());
        // Most changes leave project and title as they are, and with them the indexes on both.
        let updated = self
            .connection
            .prepare_cached(
                "UPDATE thread SET updated = ?5, pinned = ?6, deleted = ?7, record = ?8, digest = ?9
                 WHERE number = ?1 AND key = ?2 AND project = ?3 AND title = ?4",
            )?
            .execute(rusqlite::params_from_iter(&values))?;
        if updated > 0 {
            return Ok(number);
        }
        self.connection
            .prepare_cached(
                "INSERT INTO thread (number, key, project, title, updated, pinned, deleted, record, digest)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                 ON CONFLICT (number) DO UPDATE SET project = ?3, title = ?4, updated = ?5, pinned = ?6,
                     deleted = ?7, record = ?8, digest = ?9",
            )?
            .execute(rusqlite::params_from_iter(values))?;
        Ok(number)
    }

    /// A number that no thread has had. The log remembers those of purged threads too, which the table of
    /// threads does not.
    fn next_thread_number(&self) -> Result<i64, StoreError> {
        Ok(self
            .connection
            .prepare_cached(
                "SELECT 1 + max(coalesce((SELECT max(number) FROM thread), 0),
                                coalesce((SELECT max(thread) FROM operation), 0))",
            )?
            .query_row([], |row| row.get(0))?)
    }
}

/// What stands in a thread's row behind its number: key, project, title, updated, pinned, deleted, record,
/// digest.
pub(crate) fn columns(summary: &ThreadSummary, home: ProjectId) -> Vec<Value> {
    let record = minicbor::to_vec(summary).expect("encoding into memory cannot fail");
    let guard = guard(&record, &home.key());
    vec![
        summary.id.key().to_vec().into(),
        home.key().to_vec().into(),
        summary.title.clone().into(),
        summary.updated.millis().into(),
        summary.pinned.into(),
        summary.deleted.is_some().into(),
        record.into(),
        guard.into(),
    ]
}

/// What guards a row: what is shown of a thread, and where it is listed, which nothing else knows.
fn guard(record: &[u8], home: &[u8]) -> i64 {
    digest(&[record, home].concat())
}

type Raw = (i64, Vec<u8>, i64, Vec<u8>);

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

fn read((number, record, found, home): Raw) -> Result<ThreadRow, StoreError> {
    let damaged = || StoreError::Damaged("a thread in the index".to_owned());
    if guard(&record, &home) != found {
        return Err(damaged());
    }
    let home = key_of(&home).map(ProjectId::from_key).ok_or_else(damaged)?;
    Ok(ThreadRow { number, home, summary: minicbor::decode(&record).map_err(|_| damaged())? })
}

pub(crate) fn key_of(bytes: &[u8]) -> Option<[u8; ID_BYTES]> {
    bytes.try_into().ok()
}
