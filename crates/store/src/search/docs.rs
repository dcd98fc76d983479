//! The docs that match a query, in the order of its hits.
//!
//! Three ways lead to them, so that no more matches are read than the order requires:
//!
//! ```text
//!   relevance, few matches    all matches, ranked by FTS5 and sorted
//!   relevance, many           the matches in the order of the index, last indexed first
//!   newest                    the same; a doc waits until no later one can be newer
//!
//!      number   9    8    7    6    5        `latest`: the newest time among all docs up to here
//!      time    14   11   13   12    3        A doc with time 13 may be shown once a doc with `latest` 13 or less is
//!      latest  14   13   13   12    3        reached: what remains is no newer.
//! ```
//!
//! Docs are indexed about in the order of their times, except for imported conversations. So a search for the newest
//! matches reads little more than it shows.

use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use retake_model::content::ContentId;
use retake_model::id::EntryId;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use super::SearchError;
use super::expression::Expression;
use super::query::{SearchOrder, SearchQuery};

/// Ranking more matches than this takes noticeable time.
const MOST_RANKED: usize = 10_000;
/// For more threads, the range of their docs would be nearly everything.
const MOST_RANGED: usize = 16;

/// A doc of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Doc {
    // The first fields determine the order of the newest.
    time: i64,
    number: i64,
    pub(super) thread: i64,
    pub(super) entry: EntryId,
    pub(super) version: ContentId,
}

type EachDoc<'each> = &'each mut dyn FnMut(&Doc) -> Result<ControlFlow<()>, SearchError>;

/// Passes the matching docs in order until there are enough. `threads` restricts them.
pub(super) fn each_doc(
    connection: &Connection,
    query: &SearchQuery,
    expression: &Expression,
    threads: Option<&[i64]>,
    each: EachDoc<'_>,
) -> Result<(), SearchError> {
    let filter = Filter::new(query, expression, threads);
    let Some(wanted) = &expression.wanted else {
        return filter.sorted(connection, "doc", "true", None, "doc.time DESC, doc.number DESC", each);
    };
    let range = match threads {
        Some(threads) if threads.len() <= MOST_RANGED => Range::of(connection, threads)?,
        _ => Range::ALL,
    };
    if range.first > range.last {
        return Ok(());
    }
    if query.order == SearchOrder::Newest {
        return filter.newest(connection, wanted, range, each);
    }
    let mut numbers = matches(connection, wanted, Range::ALL)?;
    if numbers.len() <= MOST_RANKED {
        // Lower is better; values are negative. The constant is 30 days in milliseconds.
        let order = "bm25(words) * (1 + 2592000000.0 / (2592000000.0 + (SELECT max(time) FROM doc) - doc.time)), \
                     doc.time DESC, doc.number DESC";
        let tables = "words JOIN doc ON doc.number = words.rowid";
        return filter.sorted(connection, tables, "words MATCH ?", Some(wanted), order, each);
    }
    if !filter.sql.is_empty() {
        // Most matches may be filtered out, which one statement does faster than one for each match.
        return filter.last_indexed(connection, wanted, range, each);
    }
    let mut one = filter.prepare_one(connection)?;
    while let Some(&last) = numbers.last() {
        for &number in &numbers {
            if let Some(doc) = one.get(number)?
                && each(&doc)?.is_break()
            {
                return Ok(());
            }
        }
        numbers = matches(connection, wanted, Range { last: last - 1, ..Range::ALL })?;
    }
    Ok(())
}

/// The last matching docs of a range, one more than are ranked, last first.
fn matches(connection: &Connection, wanted: &str, range: Range) -> rusqlite::Result<Vec<i64>> {
    let sql = "SELECT rowid FROM words WHERE words MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC LIMIT ?4";
    let values = rusqlite::params![wanted, range.first, range.last, MOST_RANKED as i64 + 1];
    connection.prepare_cached(sql)?.query_map(values, |row| row.get(0))?.collect()
}

/// Numbers of docs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: i64,
    last: i64,
}

impl Range {
    const ALL: Self = Self { first: 0, last: i64::MAX };

    /// From the first to the last doc of some threads: FTS5 seeks the first, and reads no match outside.
    fn of(connection: &Connection, threads: &[i64]) -> rusqlite::Result<Self> {
        let mut statement =
            connection.prepare_cached("SELECT min(number), max(number) FROM doc WHERE thread = ?1")?;
        let mut all = Self { first: i64::MAX, last: 0 };
        for thread in threads {
            let (first, last): (Option<i64>, Option<i64>) =
                statement.query_row([thread], |row| Ok((row.get(0)?, row.get(1)?)))?;
            all.first = first.map_or(all.first, |first| all.first.min(first));
            all.last = last.map_or(all.last, |last| all.last.max(last));
        }
        Ok(all)
    }
}

/// Conditions of docs beside their words.
struct Filter {
    sql: String,
    values: Vec<Value>,
}

const COLUMNS: &str = "doc.time, doc.number, doc.thread, doc.entry, doc.version, doc.latest";

impl Filter {
    fn new(query: &SearchQuery, expression: &Expression, threads: Option<&[i64]>) -> Self {
        let (mut sql, mut values) = (String::new(), Vec::<Value>::new());
        if let Some(unwanted) = &expression.unwanted {
            sql.push_str(" AND doc.number NOT IN (SELECT rowid FROM words WHERE words MATCH ?)");
            values.push(unwanted.clone().into());
        }
        if !query.roles.is_empty() {
            sql.push_str(" AND doc.role IN (");
            sql.push_str(&vec!["?"; query.roles.len()].join(", "));
            sql.push(')');
            values.extend(query.roles.iter().map(|role| role.trim().to_lowercase().into()));
        }
        if let Some(since) = query.since {
            sql.push_str(" AND doc.time >= ?");
            values.push(since.millis().into());
        }
        if let Some(until) = query.until {
            sql.push_str(" AND doc.time <= ?");
            values.push(until.millis().into());
        }
        if let Some(threads) = threads {
            sql.push_str(" AND doc.thread IN (SELECT value FROM json_each(?))");
            let numbers: Vec<String> = threads.iter().map(i64::to_string).collect();
            values.push(format!("[{}]", numbers.join(",")).into());
        }
        Self { sql, values }
    }

    fn with(&self, first: &[Value]) -> Vec<Value> {
        first.iter().chain(&self.values).cloned().collect()
    }

    /// Docs that SQLite sorts.
    fn sorted(
        &self,
        connection: &Connection,
        tables: &str,
        condition: &str,
        wanted: Option<&String>,
        order: &str,
        each: EachDoc<'_>,
    ) -> Result<(), SearchError> {
        let sql = format!("SELECT {COLUMNS} FROM {tables} WHERE {condition}{} ORDER BY {order}", self.sql);
        let wanted: Vec<Value> = wanted.into_iter().map(|wanted| wanted.clone().into()).collect();
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(self.with(&wanted)))?;
        while let Some(row) = rows.next()? {
            if each(&doc(row)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Docs in the order of the index, last first.
    fn last_indexed(
        &self,
        connection: &Connection,
        wanted: &str,
        range: Range,
        each: EachDoc<'_>,
    ) -> Result<(), SearchError> {
        let mut statement = connection.prepare_cached(&self.backwards())?;
        let mut rows = statement.query(params_from_iter(self.in_range(wanted, range)))?;
        while let Some(row) = rows.next()? {
            if each(&doc(row)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The statement for matching docs in the order of the index, last first.
    fn backwards(&self) -> String {
        format!(
            "SELECT {COLUMNS} FROM words JOIN doc ON doc.number = words.rowid
             WHERE words MATCH ? AND words.rowid BETWEEN ? AND ?{} ORDER BY words.rowid DESC",
            self.sql
        )
    }

    fn in_range(&self, wanted: &str, range: Range) -> Vec<Value> {
        self.with(&[wanted.to_owned().into(), range.first.into(), range.last.into()])
    }

    /// Docs in the order of their times, from docs in the order of the index.
    fn newest(
        &self,
        connection: &Connection,
        wanted: &str,
        range: Range,
        each: EachDoc<'_>,
    ) -> Result<(), SearchError> {
        let mut statement = connection.prepare_cached(&self.backwards())?;
        let mut rows = statement.query(params_from_iter(self.in_range(wanted, range)))?;
        let mut waiting: BinaryHeap<Doc> = BinaryHeap::new();
        while let Some(row) = rows.next()? {
            let latest: i64 = row.get(5)?;
            waiting.push(doc(row)?);
            while waiting.peek().is_some_and(|newest| newest.time >= latest) {
                let newest = waiting.pop().expect("it was there");
                if each(&newest)?.is_break() {
                    return Ok(());
                }
            }
        }
        while let Some(newest) = waiting.pop() {
            if each(&newest)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// A query for a doc by number.
    fn prepare_one<'connection>(
        &self,
        connection: &'connection Connection,
    ) -> rusqlite::Result<OneDoc<'connection>> {
        let sql = format!("SELECT {COLUMNS} FROM doc WHERE doc.number = ?{}", self.sql);
        Ok(OneDoc { statement: connection.prepare_cached(&sql)?, values: self.with(&[Value::Null]) })
    }
}

struct OneDoc<'connection> {
    statement: rusqlite::CachedStatement<'connection>,
    values: Vec<Value>,
}

impl OneDoc<'_> {
    /// The doc, if the filter accepts it.
    fn get(&mut self, number: i64) -> rusqlite::Result<Option<Doc>> {
        self.values[0] = number.into();
        let mut rows = self.statement.query(params_from_iter(&self.values))?;
        rows.next()?.map(doc).transpose()
    }
}

fn doc(row: &Row<'_>) -> rusqlite::Result<Doc> {
    Ok(Doc {
        time: row.get(0)?,
        number: row.get(1)?,
        thread: row.get(2)?,
        entry: EntryId::from_bytes(row.get(3)?),
        version: ContentId::from_bytes(row.get(4)?),
    })
}
