//! The index of threads: what lists show, without opening any of them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use retake_model::id::{ID_BYTES, ProjectId, ThreadId, keys_with_prefix};
use retake_model::sharing::Sharing;
use retake_model::summary::ThreadSummary;
use rusqlite::types::{ToSql, Value};
use rusqlite::{OptionalExtension, Row, params};

use crate::facets::Facet;
use crate::queries::{Queries, digest};
use crate::tally::{self, Searched, Tally};
use crate::{StoreError, Writing};

/// Fewer letters of an id say nothing about it.
const SHORTEST_PREFIX: usize = 4;
/// So many are found by the beginning of an id.
const MOST_BY_PREFIX: usize = 1000;

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
    /// Only those that somebody may mean by that: their title, a tag (written `#tag`) or the name of a take contains it,
    /// whatever its case, or their id or that of a take begins with it.
    pub called: Option<String>,
    /// Only those of a kind.
    pub only: Option<Only>,
}

/// A kind of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Only {
    /// Those that stay on top.
    Pinned,
    /// Those that never leave this machine.
    Private,
    /// These.
    These(BTreeSet<ThreadId>),
}

impl Only {
    fn lets_through(&self, summary: &ThreadSummary) -> bool {
        match self {
            Self::Pinned => summary.pinned,
            Self::Private => summary.private,
            Self::These(threads) => threads.contains(&summary.id),
        }
    }
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

/// A filter but for its facets, which are looked up.
pub(crate) struct Sieve<'filter> {
    filter: &'filter ThreadFilter,
    title: Option<String>,
    called: Option<Called>,
}

/// What somebody typed to find a thread by.
struct Called {
    lower: String,
    /// The threads that are meant by their id, or by a take.
    numbers: BTreeSet<i64>,
}

impl Called {
    fn lets_through(&self, row: &ThreadRow, lower: &str) -> bool {
        let tagged = |tag: &String| format!("#{}", tag.to_lowercase()).contains(&self.lower);
        lower.contains(&self.lower)
            || row.summary.tags.iter().any(tagged)
            || self.numbers.contains(&row.number)
    }
}

impl<'filter> Sieve<'filter> {
    pub(crate) fn of(filter: &'filter ThreadFilter, queries: &Queries<'_>) -> Result<Self, StoreError> {
        let called = match &filter.called {
            Some(text) => Some(Called { lower: text.to_lowercase(), numbers: queries.meant_by(text)? }),
            None => None,
        };
        Ok(Self { called, ..Self::of_rows(filter) })
    }

    /// As far as rows say: which takes a thread has is looked up.
    fn of_rows(filter: &'filter ThreadFilter) -> Self {
        Self { filter, title: filter.title.as_ref().map(|title| title.to_lowercase()), called: None }
    }

    pub(crate) fn lets_through(&self, row: &ThreadRow) -> bool {
        match (&self.title, &self.called) {
            (None, None) => self.lets_through_titled(row, ""),
            _ => self.lets_through_titled(row, &row.summary.title.to_lowercase()),
        }
    }

    /// The same, where the title in lower case is known. Goes by what the records say, which are guarded, and not by
    /// columns.
    pub(crate) fn lets_through_titled(&self, row: &ThreadRow, lower: &str) -> bool {
        let deleted = row.summary.deleted.is_some();
        self.filter.project.is_none_or(|project| row.home == project)
            && match self.filter.deleted {
                Deleted::Hidden => !deleted,
                Deleted::Only => deleted,
                Deleted::Shown => true,
            }
            && self.filter.only.as_ref().is_none_or(|only| only.lets_through(&row.summary))
            && self.title.as_ref().is_none_or(|title| lower.contains(title))
            && self.called.as_ref().is_none_or(|called| called.lets_through(row, lower))
    }
}

impl ThreadFilter {
    /// Whether it lets a thread through, as far as its row says: facets and takes are looked up elsewhere.
    pub fn lets_through(&self, row: &ThreadRow) -> bool {
        Sieve::of_rows(self).lets_through(row)
    }
}

impl Queries<'_> {
    /// A thread by its identity.
    pub fn thread(&self, id: ThreadId) -> Result<Option<ThreadRow>, StoreError> {
        let row = self
            .connection
            .prepare_cached("SELECT number, record, digest, project FROM thread WHERE key = ?1")?
            .query_row([id.key()], raw)
            .optional()?;
        let Some(row) = row else {
            self.check_tally(Tally::ThreadKey, &Searched::Key(id.key().to_vec()), [])?;
            return Ok(None);
        };
        let row = read(row)?;
        if row.summary.id == id { Ok(Some(row)) } else { Err(damaged()) }
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
        let mut found = self.collect_threads(
            "SELECT number, record, digest, project FROM thread WHERE key BETWEEN ?1 AND ?2",
            params![low, high],
        )?;
        let bound: [&dyn ToSql; 2] = [&low, &high];
        self.check_tallies(Tally::ThreadKey as i64, "value BETWEEN ? AND ?", &bound, hashes(&found))?;
        found.truncate(limit);
        Ok(found)
    }

    /// Threads with exactly that title, in use or not.
    pub fn threads_titled(&self, title: &str) -> Result<Vec<ThreadRow>, StoreError> {
        let found = self.collect_threads(
            "SELECT number, record, digest, project FROM thread WHERE title = ?1",
            [title],
        )?;
        self.check_tally(Tally::ThreadTitle, &Searched::Text(title.to_owned()), hashes(&found))?;
        Ok(found)
    }

    /// Threads that the filter lets through: pinned ones first, then the most lately changed.
    pub fn threads(&self, filter: &ThreadFilter) -> Result<Vec<ThreadRow>, StoreError> {
        let mut found = match (filter.facets.as_slice(), filter.project) {
            ([], None) => self.all_threads()?,
            ([], Some(project)) => self.threads_of(project)?,
            (facets, _) => self.threads_having(facets)?,
        };
        let sieve = Sieve::of(filter, self)?;
        found.retain(|row| sieve.lets_through(row));
        found.sort_by_key(|row| Reverse(row.place()));
        Ok(found)
    }

    /// The numbers of the threads whose id, or that of a take, begins with a text, or a take of which is called so.
    fn meant_by(&self, text: &str) -> Result<BTreeSet<i64>, StoreError> {
        let mut numbers = self.threads_with_take_called(text)?;
        if text.len() >= SHORTEST_PREFIX {
            numbers.extend(self.threads_with_prefix(text, MOST_BY_PREFIX)?.iter().map(|row| row.number));
            numbers.extend(self.takes_with_prefix(text, MOST_BY_PREFIX)?.iter().map(|take| take.thread));
        }
        Ok(numbers)
    }

    fn all_threads(&self) -> Result<Vec<ThreadRow>, StoreError> {
        let found = self.collect_threads("SELECT number, record, digest, project FROM thread", [])?;
        // Every thread is listed under one project, and projects are fewer than threads.
        self.check_tallies(Tally::ThreadProject as i64, "true", &[], hashes(&found))?;
        Ok(found)
    }

    fn threads_of(&self, project: ProjectId) -> Result<Vec<ThreadRow>, StoreError> {
        let key = project.key();
        let found = self.collect_threads(
            "SELECT number, record, digest, project FROM thread WHERE project = ?1",
            [key],
        )?;
        self.check_tally(Tally::ThreadProject, &Searched::Key(key.to_vec()), hashes(&found))?;
        Ok(found)
    }

    fn threads_having(&self, facets: &[(Facet, String)]) -> Result<Vec<ThreadRow>, StoreError> {
        let numbers = self.having_all(facets)?;
        numbers.into_iter().map(|number| self.thread_numbered(number)?.ok_or_else(damaged)).collect()
    }

    /// The numbers of the threads that have all of these.
    pub(crate) fn having_all(&self, facets: &[(Facet, String)]) -> Result<BTreeSet<i64>, StoreError> {
        let mut numbers: Option<BTreeSet<i64>> = None;
        for (facet, value) in facets {
            let having = self.having(*facet, value)?;
            numbers = Some(match numbers {
                Some(numbers) => numbers.intersection(&having).copied().collect(),
                None => having,
            });
        }
        Ok(numbers.unwrap_or_default())
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
                "UPDATE thread SET record = ?5, digest = ?6
                 WHERE number = ?1 AND key = ?2 AND project = ?3 AND title = ?4",
            )?
            .execute(rusqlite::params_from_iter(&values))?;
        if updated > 0 {
            return Ok(number);
        }
        self.tally_thread(number)?;
        self.connection
            .prepare_cached(
                "INSERT INTO thread (number, key, project, title, record, digest)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (number) DO UPDATE SET project = ?3, title = ?4, record = ?5, digest = ?6",
            )?
            .execute(rusqlite::params_from_iter(values))?;
        self.tally_thread(number)?;
        Ok(number)
    }

    /// Sets who may see a thread, without an operation.
    pub fn put_sharing(&self, row: &ThreadRow, sharing: Sharing) -> Result<(), StoreError> {
        let summary = row.summary.clone().with_sharing(sharing);
        self.put_thread(Some(row.number), &summary, row.home).map(|_| ())
    }

    /// Counts a thread's row in, or out before it changes.
    fn tally_thread(&self, number: i64) -> Result<(), StoreError> {
        let row: Option<(Vec<u8>, Vec<u8>, String)> = self
            .connection
            .prepare_cached("SELECT key, project, title FROM thread WHERE number = ?1")?
            .query_row([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((key, project, title)) = row else { return Ok(()) };
        let hash = tally::of_thread(number, &key);
        self.tally(Tally::ThreadKey, &Searched::Key(key), hash)?;
        self.tally(Tally::ThreadProject, &Searched::Key(project), hash)?;
        self.tally(Tally::ThreadTitle, &Searched::Text(title), hash)
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

/// What stands in a thread's row behind its number: key, project, title, record, digest.
pub(crate) fn columns(summary: &ThreadSummary, home: ProjectId) -> Vec<Value> {
    let record = minicbor::to_vec(summary).expect("encoding into memory cannot fail");
    let guard = guard(&record, &home.key());
    vec![
        summary.id.key().to_vec().into(),
        home.key().to_vec().into(),
        summary.title.clone().into(),
        record.into(),
        guard.into(),
    ]
}

/// What guards a row: what is shown of a thread, and where it is listed, which nothing else knows.
fn guard(record: &[u8], home: &[u8]) -> i64 {
    digest(&[record, home].concat())
}

fn damaged() -> StoreError {
    StoreError::Damaged("a thread in the index".to_owned())
}

fn hashes(rows: &[ThreadRow]) -> impl Iterator<Item = i64> {
    rows.iter().map(|row| tally::of_thread(row.number, &row.summary.id.key()))
}

type Raw = (i64, Vec<u8>, i64, Vec<u8>);

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

fn read((number, record, found, home): Raw) -> Result<ThreadRow, StoreError> {
    if guard(&record, &home) != found {
        return Err(damaged());
    }
    let home = key_of(&home).map(ProjectId::from_key).ok_or_else(damaged)?;
    Ok(ThreadRow { number, home, summary: minicbor::decode(&record).map_err(|_| damaged())? })
}

pub(crate) fn key_of(bytes: &[u8]) -> Option<[u8; ID_BYTES]> {
    bytes.try_into().ok()
}
