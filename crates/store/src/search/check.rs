//! Compares the index with the log.
//!
//! The expected content is computed differently from how the index is built: not from the differences between states,
//! but by visiting every state, each node once.

use std::collections::HashSet;

use retake_model::content::ContentId;
use retake_model::id::EntryId;
use retake_model::list::TakeCell;
use retake_model::object::load;
use retake_model::operation::Operation;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use rusqlite::Connection;

use super::SearchError;
use super::file::IndexFile;
use super::follow::cursor;
use super::new_versions::unless_damaged;
use crate::StoreError;
use crate::log::operations::RowContent;
use crate::log::queries::Queries;

/// Rows of the log read at a time.
const PAGE: usize = 2000;

/// A problem of the index. Rebuilding fixes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchProblem {
    /// An entry version is missing from the index.
    #[error("version {} of entry {} is missing from the search index", version.short(), entry.short())]
    Missing { thread: i64, entry: EntryId, version: ContentId },
    /// The index contains an entry version that the log does not.
    #[error("the search index has version {} of entry {}, which the log does not have", version.short(), entry.short())]
    Extra { thread: i64, entry: EntryId, version: ContentId },
    /// The index is inconsistent.
    #[error("the search index is damaged: {0}")]
    Damaged(String),
}

type VersionKey = (i64, EntryId, ContentId);

/// Checks the index up to its cursor.
pub(super) fn check(file: &IndexFile, reading: &Queries<'_>) -> Result<Vec<SearchProblem>, SearchError> {
    match compare(&file.connection, reading) {
        Err(error) if error.reason_to_rebuild().is_some() => {
            Ok(vec![SearchProblem::Damaged(error.to_string())])
        }
        other => other,
    }
}

fn compare(connection: &Connection, reading: &Queries<'_>) -> Result<Vec<SearchProblem>, SearchError> {
    let mut problems = inconsistencies(connection)?;
    let (expected, actual) = (expected(reading, cursor(connection)?.sequence)?, actual(connection)?);
    // A redaction removes versions from the index first; if it was interrupted, the log still has them.
    let forgotten = forgotten(connection)?;
    let mut missing: Vec<&VersionKey> =
        expected.difference(&actual).filter(|(_, _, version)| !forgotten.contains(version)).collect();
    let mut extra: Vec<&VersionKey> = actual.difference(&expected).collect();
    missing.sort();
    extra.sort();
    problems.extend(missing.into_iter().map(|&(thread, entry, version)| SearchProblem::Missing {
        thread,
        entry,
        version,
    }));
    problems.extend(extra.into_iter().map(|&(thread, entry, version)| SearchProblem::Extra {
        thread,
        entry,
        version,
    }));
    Ok(problems)
}

/// Checks by SQLite and FTS5, and docs without words or words without docs.
fn inconsistencies(connection: &Connection) -> Result<Vec<SearchProblem>, SearchError> {
    // This also runs the integrity check of FTS5.
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let found: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut problems: Vec<SearchProblem> =
        found.into_iter().filter(|found| found != "ok").map(SearchProblem::Damaged).collect();
    connection.execute("INSERT INTO words (words) VALUES ('integrity-check')", [])?;
    for (what, sql) in [
        ("without words", "SELECT count(*) FROM doc WHERE number NOT IN (SELECT id FROM words_docsize)"),
        ("only as words", "SELECT count(*) FROM words_docsize WHERE id NOT IN (SELECT number FROM doc)"),
    ] {
        let count: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        if count > 0 {
            problems.push(SearchProblem::Damaged(format!("{count} entries are there {what}")));
        }
    }
    Ok(problems)
}

fn forgotten(connection: &Connection) -> Result<HashSet<ContentId>, SearchError> {
    let mut statement = connection.prepare("SELECT version FROM forgotten")?;
    let versions = statement.query_map([], |row| Ok(ContentId::from_bytes(row.get(0)?)))?;
    Ok(versions.collect::<Result<_, _>>()?)
}

fn actual(connection: &Connection) -> Result<HashSet<VersionKey>, SearchError> {
    let mut statement = connection.prepare("SELECT thread, entry, version FROM doc")?;
    let docs = statement.query_map([], |row| {
        Ok((row.get(0)?, EntryId::from_bytes(row.get(1)?), ContentId::from_bytes(row.get(2)?)))
    })?;
    Ok(docs.collect::<Result<_, _>>()?)
}

/// All readable entry versions in the log, up to a sequence number.
fn expected(reading: &Queries<'_>, until: i64) -> Result<HashSet<VersionKey>, SearchError> {
    let mut walk = Walk { reading, seen: HashSet::new(), known: HashSet::new() };
    let mut place = 0;
    'log: loop {
        let page = reading.scan_log(place, PAGE)?;
        if page.is_empty() {
            break;
        }
        for row in page {
            if row.sequence > until {
                break 'log;
            }
            place = row.sequence;
            match row.content {
                RowContent::Operation(stored) => {
                    unless_damaged(walk.operation(row.thread, &stored.operation))?;
                }
                RowContent::Purged => walk.forget(row.thread),
                RowContent::Damaged => {}
            }
        }
    }
    let mut known = walk.known;
    let mut unreadable = Vec::new();
    for &(thread, entry, version) in &known {
        let loaded = load::<retake_model::entry::EntryVersion>(reading, version).map_err(StoreError::from);
        if reading.is_redacted(version)? || unless_damaged(loaded)?.is_none() {
            unreadable.push((thread, entry, version));
        }
    }
    for gone in unreadable {
        known.remove(&gone);
    }
    Ok(known)
}

struct Walk<'check, 'reading> {
    reading: &'check Queries<'reading>,
    /// Visited nodes, takes and states of each thread.
    seen: HashSet<(i64, ContentId)>,
    known: HashSet<VersionKey>,
}

impl Walk<'_, '_> {
    fn operation(&mut self, thread: i64, operation: &Operation) -> Result<(), StoreError> {
        if !self.seen.insert((thread, operation.after)) {
            return Ok(());
        }
        let state: ThreadState = load(self.reading, operation.after)?;
        let mut takes: Vec<TakeCell> = Vec::new();
        let seen = &mut self.seen;
        state.takes.visit_nodes(self.reading, &mut |node| seen.insert((thread, node)), &mut |cell| {
            takes.push(*cell);
        })?;
        for cell in takes {
            if self.seen.insert((thread, cell.content)) {
                let take: Take = load(self.reading, cell.content)?;
                let (seen, known) = (&mut self.seen, &mut self.known);
                take.entries.visit_nodes(
                    self.reading,
                    &mut |node| seen.insert((thread, node)),
                    &mut |cell| {
                        known.insert((thread, cell.entry, cell.version));
                    },
                )?;
            }
        }
        Ok(())
    }

    fn forget(&mut self, thread: i64) {
        self.seen.retain(|seen| seen.0 != thread);
        self.known.retain(|known| known.0 != thread);
    }
}
