//! Reads every readable row of a table, around damaged ones.
//!
//! SQLite stops at the first row after a damaged page. Rows on other pages are intact, so the scan continues from the
//! other end, and then bisects the rest until only the damage remains.
//!
//! ```text
//!   1 2 3 4 5 ✗ ✗ ✗ 9 10 11 12      forward: 1 to 5
//!                   ◄──────────     backward: 12 to 9
//!             └ halves of 6 to 8, each from both ends ┘
//! ```

use std::collections::VecDeque;

use rusqlite::{Connection, Row, params};

use crate::StoreError;

/// How often a damaged range is retried before the rest is given up. A page contains some dozens of rows, so this
/// covers hundreds of damaged pages.
const MAX_FAILURES: usize = 20_000;

#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The integer key.
    pub(crate) key: &'static str,
    /// The other columns to read.
    pub(crate) columns: &'static str,
}

pub(crate) const OBJECTS: Table =
    Table { name: "object", key: "number", columns: "kind, packing, born, body" };

pub(crate) const OPERATIONS: Table =
    Table { name: "operation", key: "sequence", columns: "thread, version, id, body" };

pub(crate) const BUNDLES: Table = Table { name: "operation", key: "sequence", columns: "bundle" };

/// Unreadable rows, from the first to the last key. Not every key need have a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

/// Passes every readable row to `visit`, with the key as first column. Returns the gaps.
pub(crate) fn scan(
    connection: &Connection,
    table: Table,
    visit: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> Result<Vec<Gap>, StoreError> {
    scan_after(connection, table, -1, visit)
}

/// The same for the rows after a key.
pub(crate) fn scan_after(
    connection: &Connection,
    table: Table,
    key: i64,
    visit: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> Result<Vec<Gap>, StoreError> {
    let everything = Gap { first: key.saturating_add(1), last: i64::MAX };
    let Some(mut unread) = forward(connection, table, everything, visit)? else {
        return Ok(Vec::new());
    };
    unread.last = highest_key(connection, table, unread.first)?;
    let mut gaps = Vec::new();
    let mut failures = 0;
    let mut waiting = VecDeque::from([unread]);
    while let Some(range) = waiting.pop_front() {
        let Some(range) = forward(connection, table, range, visit)? else {
            continue;
        };
        let Some(range) = backward(connection, table, range, visit)? else {
            continue;
        };
        failures += 1;
        if range.first == range.last || failures > MAX_FAILURES {
            gaps.push(range);
            continue;
        }
        let middle = range.first.midpoint(range.last);
        waiting.extend([Gap { last: middle, ..range }, Gap { first: middle + 1, ..range }]);
    }
    Ok(merge_adjacent(gaps))
}

/// An upper bound for keys. If it cannot be read, it is estimated from the file size: bisecting all integers would
/// never end.
fn highest_key(
    connection: &Connection,
    Table { name, key, .. }: Table,
    unread: i64,
) -> Result<i64, StoreError> {
    const ROWS_OF_A_PAGE: i64 = 256;
    let sql = format!("SELECT max({key}) FROM {name}");
    let outside = connection.is_autocommit();
    match connection.query_row(&sql, [], |row| row.get::<_, Option<i64>>(0)) {
        Ok(Some(highest)) => Ok(highest.max(unread)),
        Ok(None) => Ok(unread),
        Err(error) if can_skip(connection, outside, &error) => {
            let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            Ok(unread.saturating_add(pages.saturating_mul(ROWS_OF_A_PAGE)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a failed read may be passed over, in a connection that was in a transaction or outside of one. After some
/// failures SQLite rolls a transaction back by itself, and whatever is written then is committed at once.
fn can_skip(connection: &Connection, outside: bool, error: &rusqlite::Error) -> bool {
    is_damage(error) && connection.is_autocommit() == outside
}

/// Whether an error means damaged bytes, as opposed to any other failure.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, SystemIoFailure};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase | SystemIoFailure))
}

/// Reads upwards; returns the range after the row at which it failed.
fn forward(
    connection: &Connection,
    Table { name, key, columns }: Table,
    range: Gap,
    visit: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> Result<Option<Gap>, StoreError> {
    let sql = format!("SELECT {key}, {columns} FROM {name} WHERE {key} BETWEEN ?1 AND ?2 ORDER BY {key}");
    let first = match read(connection, &sql, range, visit)? {
        ReadEnd::ToTheEnd => return Ok(None),
        // Damage may break the row order; the range must never grow.
        ReadEnd::Until(Some(last)) => last.saturating_add(1).max(range.first),
        ReadEnd::Until(None) => range.first,
    };
    Ok((first <= range.last).then_some(Gap { first, ..range }))
}

/// Reads downwards; returns the range before the row at which it failed.
fn backward(
    connection: &Connection,
    Table { name, key, columns }: Table,
    range: Gap,
    visit: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> Result<Option<Gap>, StoreError> {
    let sql =
        format!("SELECT {key}, {columns} FROM {name} WHERE {key} BETWEEN ?1 AND ?2 ORDER BY {key} DESC");
    let last = match read(connection, &sql, range, visit)? {
        ReadEnd::ToTheEnd => return Ok(None),
        ReadEnd::Until(Some(last)) => last.saturating_sub(1).min(range.last),
        ReadEnd::Until(None) => range.last,
    };
    Ok((range.first <= last).then_some(Gap { last, ..range }))
}

/// How a read ended.
enum ReadEnd {
    ToTheEnd,
    /// The last key before the damage, if any.
    Until(Option<i64>),
}

fn read(
    connection: &Connection,
    sql: &str,
    range: Gap,
    visit: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> Result<ReadEnd, StoreError> {
    let mut last = None;
    let outside = connection.is_autocommit();
    let mut go = || -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![range.first, range.last])?;
        while let Some(row) = rows.next()? {
            visit(row)?;
            last = Some(row.get(0)?);
        }
        Ok(())
    };
    match go() {
        Ok(()) => Ok(ReadEnd::ToTheEnd),
        Err(error) if can_skip(connection, outside, &error) => Ok(ReadEnd::Until(last)),
        Err(error) => Err(error.into()),
    }
}

/// Merges adjacent gaps.
fn merge_adjacent(mut gaps: Vec<Gap>) -> Vec<Gap> {
    gaps.sort_by_key(|gap| gap.first);
    let mut result: Vec<Gap> = Vec::new();
    for gap in gaps {
        match result.last_mut() {
            Some(before) if before.last.saturating_add(1) >= gap.first => before.last = gap.last,
            _ => result.push(gap),
        }
    }
    result
}
