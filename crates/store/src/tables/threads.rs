//! The index of threads: summaries for lists, without opening any thread.

use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use retake_model::id::{ID_BYTES, ProjectId, ThreadId, keys_with_prefix};
use retake_model::sharing::Sharing;
use retake_model::summary::ThreadSummary;
use rusqlite::types::{ToSql, Value};
use rusqlite::{OptionalExtension, Row, params};

use crate::log::queries::{Queries, digest};
use crate::tables::facets::Facet;
use crate::tables::row_checksums::{self, ChecksumKind, LookupValue};
use crate::{StoreError, WriteTransaction};

/// Shorter id prefixes match too many threads to be useful.
const MIN_PREFIX: usize = 4;
/// Limit of matches by id prefix.
const MAX_BY_PREFIX: usize = 1000;

/// A thread in the index.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadRow {
    /// Row number, which other tables refer to.
    pub number: i64,
    /// The project that lists it in this store.
    pub home: ProjectId,
    /// The summary that lists show.
    pub summary: ThreadSummary,
}

/// Selects threads.
#[derive(Clone, Debug, Default)]
pub struct ThreadFilter {
    /// Only threads of this project.
    pub project: Option<ProjectId>,
    /// Whether to include deleted threads.
    pub deleted: DeletedFilter,
    /// Only threads with all of these facets.
    pub facets: Vec<(Facet, String)>,
    /// Only threads whose title contains this text, ignoring case.
    pub title: Option<String>,
    /// Only threads whose title, a tag (written `#tag`) or a take name contains this text, ignoring case, or
    /// whose id or a take's id starts with it.
    pub name_query: Option<String>,
    /// Only threads of one kind.
    pub only: Option<ThreadSelection>,
}

/// A kind of thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadSelection {
    /// Pinned threads.
    Pinned,
    /// Threads that are never synced.
    Private,
    /// Threads with these ids.
    Ids(BTreeSet<ThreadId>),
}

impl ThreadSelection {
    fn matches(&self, summary: &ThreadSummary) -> bool {
        match self {
            Self::Pinned => summary.pinned,
            Self::Private => summary.private,
            Self::Ids(threads) => threads.contains(&summary.id),
        }
    }
}

/// Whether to include deleted threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeletedFilter {
    /// Only threads that are not deleted.
    #[default]
    Hidden,
    /// All threads.
    Shown,
    /// Only deleted threads.
    Only,
}

/// The conditions of a filter that need no lookup: all but the facets.
pub(crate) struct ThreadMatcher<'filter> {
    filter: &'filter ThreadFilter,
    title: Option<String>,
    name_query: Option<NameMatcher>,
}

/// A name query, prepared for matching.
struct NameMatcher {
    lower: String,
    /// Threads matched by their id, or by the id or name of a take.
    numbers: BTreeSet<i64>,
}

impl NameMatcher {
    fn matches(&self, row: &ThreadRow, lower: &str) -> bool {
        let tagged = |tag: &String| format!("#{}", tag.to_lowercase()).contains(&self.lower);
        lower.contains(&self.lower)
            || row.summary.tags.iter().any(tagged)
            || self.numbers.contains(&row.number)
    }
}

impl<'filter> ThreadMatcher<'filter> {
    pub(crate) fn of(filter: &'filter ThreadFilter, queries: &Queries<'_>) -> Result<Self, StoreError> {
        let name_query = match &filter.name_query {
            Some(text) => Some(NameMatcher {
                lower: text.to_lowercase(),
                numbers: queries.threads_matching_name(text)?,
            }),
            None => None,
        };
        Ok(Self { name_query, ..Self::of_rows(filter) })
    }

    /// Uses only what rows contain; matching takes needs a lookup.
    fn of_rows(filter: &'filter ThreadFilter) -> Self {
        Self { filter, title: filter.title.as_ref().map(|title| title.to_lowercase()), name_query: None }
    }

    pub(crate) fn matches(&self, row: &ThreadRow) -> bool {
        match (&self.title, &self.name_query) {
            (None, None) => self.matches_with_title(row, ""),
            _ => self.matches_with_title(row, &row.summary.title.to_lowercase()),
        }
    }

    /// For callers that already have the title in lower case. Compares the records, which have a checksum,
    /// not the columns.
    pub(crate) fn matches_with_title(&self, row: &ThreadRow, lower: &str) -> bool {
        let deleted = row.summary.deleted.is_some();
        self.filter.project.is_none_or(|project| row.home == project)
            && match self.filter.deleted {
                DeletedFilter::Hidden => !deleted,
                DeletedFilter::Only => deleted,
                DeletedFilter::Shown => true,
            }
            && self.filter.only.as_ref().is_none_or(|only| only.matches(&row.summary))
            && self.title.as_ref().is_none_or(|title| lower.contains(title))
            && self.name_query.as_ref().is_none_or(|name_query| name_query.matches(row, lower))
    }
}

impl ThreadFilter {
    /// Whether a thread's row matches. Does not check facets and takes, which need a lookup.
    pub fn matches(&self, row: &ThreadRow) -> bool {
        ThreadMatcher::of_rows(self).matches(row)
    }
}

impl Queries<'_> {
    /// Finds a thread by id.
    pub fn thread(&self, id: ThreadId) -> Result<Option<ThreadRow>, StoreError> {
        let row = self
            .connection
            .prepare_cached("SELECT number, record, digest, project FROM thread WHERE key = ?1")?
            .query_row([id.key()], raw)
            .optional()?;
        let Some(row) = row else {
            self.check_row_checksum(ChecksumKind::ThreadKey, &LookupValue::Key(id.key().to_vec()), [])?;
            return Ok(None);
        };
        let row = read(row)?;
        if row.summary.id == id { Ok(Some(row)) } else { Err(damaged()) }
    }

    /// Finds a thread by row number.
    pub fn thread_by_number(&self, number: i64) -> Result<Option<ThreadRow>, StoreError> {
        let row = self
            .connection
            .prepare_cached("SELECT number, record, digest, project FROM thread WHERE number = ?1")?
            .query_row([number], raw)
            .optional()?;
        row.map(read).transpose()
    }

    /// Threads whose id starts with `prefix`, at most `limit`.
    pub fn threads_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<ThreadRow>, StoreError> {
        let Some((low, high)) = keys_with_prefix(prefix) else {
            return Ok(Vec::new());
        };
        let mut found = self.collect_threads(
            "SELECT number, record, digest, project FROM thread WHERE key BETWEEN ?1 AND ?2",
            params![low, high],
        )?;
        let bound: [&dyn ToSql; 2] = [&low, &high];
        self.check_row_checksums(
            ChecksumKind::ThreadKey as i64,
            "value BETWEEN ? AND ?",
            &bound,
            hashes(&found),
        )?;
        found.truncate(limit);
        Ok(found)
    }

    /// Threads with exactly this title, deleted or not.
    pub fn threads_with_title(&self, title: &str) -> Result<Vec<ThreadRow>, StoreError> {
        let found = self.collect_threads(
            "SELECT number, record, digest, project FROM thread WHERE title = ?1",
            [title],
        )?;
        self.check_row_checksum(
            ChecksumKind::ThreadTitle,
            &LookupValue::Text(title.to_owned()),
            hashes(&found),
        )?;
        Ok(found)
    }

    /// Threads that match the filter: pinned ones first, then most recently changed.
    pub fn threads(&self, filter: &ThreadFilter) -> Result<Vec<ThreadRow>, StoreError> {
        let mut found = match (filter.facets.as_slice(), filter.project) {
            ([], None) => self.all_threads()?,
            ([], Some(project)) => self.threads_of(project)?,
            (facets, _) => self.thread_rows_with_facets(facets)?,
        };
        let matcher = ThreadMatcher::of(filter, self)?;
        found.retain(|row| matcher.matches(row));
        found.sort_by_key(|row| Reverse(row.list_position()));
        Ok(found)
    }

    /// Numbers of the threads whose id or a take's id starts with the text, or with a take of that name.
    fn threads_matching_name(&self, text: &str) -> Result<BTreeSet<i64>, StoreError> {
        let mut numbers = self.threads_with_take_named(text)?;
        if text.len() >= MIN_PREFIX {
            numbers.extend(self.threads_with_prefix(text, MAX_BY_PREFIX)?.iter().map(|row| row.number));
            numbers.extend(self.takes_with_prefix(text, MAX_BY_PREFIX)?.iter().map(|take| take.thread));
        }
        Ok(numbers)
    }

    fn all_threads(&self) -> Result<Vec<ThreadRow>, StoreError> {
        let found = self.collect_threads("SELECT number, record, digest, project FROM thread", [])?;
        // Each thread belongs to exactly one project, and there are fewer projects than threads.
        self.check_row_checksums(ChecksumKind::ThreadProject as i64, "true", &[], hashes(&found))?;
        Ok(found)
    }

    fn threads_of(&self, project: ProjectId) -> Result<Vec<ThreadRow>, StoreError> {
        let key = project.key();
        let found = self.collect_threads(
            "SELECT number, record, digest, project FROM thread WHERE project = ?1",
            [key],
        )?;
        self.check_row_checksum(
            ChecksumKind::ThreadProject,
            &LookupValue::Key(key.to_vec()),
            hashes(&found),
        )?;
        Ok(found)
    }

    fn thread_rows_with_facets(&self, facets: &[(Facet, String)]) -> Result<Vec<ThreadRow>, StoreError> {
        let numbers = self.threads_with_facets(facets)?;
        numbers.into_iter().map(|number| self.thread_by_number(number)?.ok_or_else(damaged)).collect()
    }

    /// Numbers of the threads that have all of these facets.
    pub(crate) fn threads_with_facets(
        &self,
        facets: &[(Facet, String)],
    ) -> Result<BTreeSet<i64>, StoreError> {
        let mut numbers: Option<BTreeSet<i64>> = None;
        for (facet, value) in facets {
            let having = self.threads_with_facet(*facet, value)?;
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

impl WriteTransaction<'_> {
    /// Writes the row of a thread.
    pub(crate) fn put_thread(
        &self,
        number: i64,
        summary: &ThreadSummary,
        home: ProjectId,
    ) -> Result<(), StoreError> {
        let mut values = columns(summary, home);
        values.insert(0, number.into());
        // Most changes keep project and title, so that their indexes need no update.
        let updated = self
            .connection
            .prepare_cached(
                "UPDATE thread SET record = ?5, digest = ?6
                 WHERE number = ?1 AND key = ?2 AND project = ?3 AND title = ?4",
            )?
            .execute(rusqlite::params_from_iter(&values))?;
        if updated > 0 {
            return Ok(());
        }
        self.toggle_thread_checksum(number)?;
        self.connection
            .prepare_cached(
                "INSERT INTO thread (number, key, project, title, record, digest)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (number) DO UPDATE SET project = ?3, title = ?4, record = ?5, digest = ?6",
            )?
            .execute(rusqlite::params_from_iter(values))?;
        self.toggle_thread_checksum(number)
    }

    /// Sets the sharing of a thread, without an operation.
    pub fn put_sharing(&self, row: &ThreadRow, sharing: Sharing) -> Result<(), StoreError> {
        let summary = row.summary.clone().with_sharing(sharing);
        self.put_thread(row.number, &summary, row.home)
    }

    /// Toggles a thread's row in the checksums: call it before and after a change.
    fn toggle_thread_checksum(&self, number: i64) -> Result<(), StoreError> {
        let row: Option<(Vec<u8>, Vec<u8>, String)> = self
            .connection
            .prepare_cached("SELECT key, project, title FROM thread WHERE number = ?1")?
            .query_row([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((key, project, title)) = row else { return Ok(()) };
        let hash = row_checksums::hash_thread(number, &key);
        self.toggle_row_checksum(ChecksumKind::ThreadKey, &LookupValue::Key(key), hash)?;
        self.toggle_row_checksum(ChecksumKind::ThreadProject, &LookupValue::Key(project), hash)?;
        self.toggle_row_checksum(ChecksumKind::ThreadTitle, &LookupValue::Text(title), hash)
    }

    /// A number that no thread ever had. The log, unlike the table of threads, also has the numbers of purged
    /// threads.
    pub(crate) fn next_thread_number(&self) -> Result<i64, StoreError> {
        Ok(self
            .connection
            .prepare_cached(
                "SELECT 1 + max(coalesce((SELECT max(number) FROM thread), 0),
                                coalesce((SELECT max(thread) FROM operation), 0))",
            )?
            .query_row([], |row| row.get(0))?)
    }
}

/// The columns of a thread's row after its number: key, project, title, record, digest.
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

/// The digest of a row. It covers the project too, which is stored nowhere else.
fn guard(record: &[u8], home: &[u8]) -> i64 {
    digest(&[record, home].concat())
}

fn damaged() -> StoreError {
    StoreError::Damaged("a thread in the index".to_owned())
}

fn hashes(rows: &[ThreadRow]) -> impl Iterator<Item = i64> {
    rows.iter().map(|row| row_checksums::hash_thread(row.number, &row.summary.id.key()))
}

type RawRow = (i64, Vec<u8>, i64, Vec<u8>);

fn raw(row: &Row<'_>) -> rusqlite::Result<RawRow> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

fn read((number, record, found, home): RawRow) -> Result<ThreadRow, StoreError> {
    if guard(&record, &home) != found {
        return Err(damaged());
    }
    let home = key_of(&home).map(ProjectId::from_key).ok_or_else(damaged)?;
    Ok(ThreadRow { number, home, summary: minicbor::decode(&record).map_err(|_| damaged())? })
}

pub(crate) fn key_of(bytes: &[u8]) -> Option<[u8; ID_BYTES]> {
    bytes.try_into().ok()
}
