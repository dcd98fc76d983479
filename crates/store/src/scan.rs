//! Reading every row of a table that can still be read, around those that cannot.
//!
//! A damaged page makes SQLite give up at the first row behind it. Rows on other pages are whole, so the scan
//! comes back from the other end, and then halves what lies between until only the damage is left.
//!
//! ```text
//!   1 2 3 4 5 ✗ ✗ ✗ 9 10 11 12      forward: 1 to 5
//!                   ◄──────────     backward: 12 to 9
//!             └ halves of 6 to 8, each from both ends ┘
//! ```

use std::collections::VecDeque;

use rusqlite::{Connection, Row, params};

use crate::StoreError;

/// How often a damaged stretch is tried before the rest of it is given up. A page holds some dozens of rows,
/// so this reaches around hundreds of damaged pages.
const MOST_FAILURES: usize = 20_000;

/// What is scanned.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The whole-number key.
    pub(crate) key: &'static str,
    /// What is read besides the key.
    pub(crate) columns: &'static str,
}

pub(crate) const OBJECTS: Table =
    Table { name: "object", key: "number", columns: "kind, packing, born, body" };

pub(crate) const OPERATIONS: Table =
    Table { name: "operation", key: "sequence", columns: "thread, version, id, body" };

/// Rows that could not be read, first and last key included. There need not be a row for every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

/// Shows every row that can be read; the first column is the key. Returns what could not be read.
pub(crate) fn scan(
    connection: &Connection,
    table: Table,
    visit: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> Result<Vec<Gap>, StoreError> {
    let everything = Gap { first: 0, last: i64::MAX };
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
        if range.first == range.last || failures > MOST_FAILURES {
            gaps.push(range);
            continue;
        }
        let middle = range.first.midpoint(range.last);
        waiting.extend([Gap { last: middle, ..range }, Gap { first: middle + 1, ..range }]);
    }
    Ok(joined(gaps))
}

/// The highest key there can be. Where it cannot be read, no more rows are assumed than the file has room
/// for: halving all whole numbers would never end.
fn highest_key(
    connection: &Connection,
    Table { name, key, .. }: Table,
    unread: i64,
) -> Result<i64, StoreError> {
    const ROWS_OF_A_PAGE: i64 = 256;
    let sql = format!("SELECT max({key}) FROM {name}");
    match connection.query_row(&sql, [], |row| row.get::<_, Option<i64>>(0)) {
        Ok(Some(highest)) => Ok(highest.max(unread)),
        Ok(None) => Ok(unread),
        Err(error) if is_damage(&error) => {
            let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            Ok(unread.saturating_add(pages.saturating_mul(ROWS_OF_A_PAGE)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether an error says that bytes on disk are not what they should be, as opposed to any other failure.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, SystemIoFailure};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase | SystemIoFailure))
}

/// Reads upwards; returns what is left after the row at which it failed.
fn forward(
    connection: &Connection,
    Table { name, key, columns }: Table,
    range: Gap,
    visit: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> Result<Option<Gap>, StoreError> {
    let sql = format!("SELECT {key}, {columns} FROM {name} WHERE {key} BETWEEN ?1 AND ?2 ORDER BY {key}");
    let first = match read(connection, &sql, range, visit)? {
        Read::ToTheEnd => return Ok(None),
        // Damage can also break the order of rows; what was asked for never grows because of it.
        Read::Until(Some(last)) => last.saturating_add(1).max(range.first),
        Read::Until(None) => range.first,
    };
    Ok((first <= range.last).then_some(Gap { first, ..range }))
}

/// Reads downwards; returns what is left below the row at which it failed.
fn backward(
    connection: &Connection,
    Table { name, key, columns }: Table,
    range: Gap,
    visit: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> Result<Option<Gap>, StoreError> {
    let sql =
        format!("SELECT {key}, {columns} FROM {name} WHERE {key} BETWEEN ?1 AND ?2 ORDER BY {key} DESC");
    let last = match read(connection, &sql, range, visit)? {
        Read::ToTheEnd => return Ok(None),
        Read::Until(Some(last)) => last.saturating_sub(1).min(range.last),
        Read::Until(None) => range.last,
    };
    Ok((range.first <= last).then_some(Gap { last, ..range }))
}

/// How far a reading came.
enum Read {
    ToTheEnd,
    /// The key of the last row before the damage, if there was one.
    Until(Option<i64>),
}

/// Reads until the end, or until damage.
fn read(
    connection: &Connection,
    sql: &str,
    range: Gap,
    visit: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> Result<Read, StoreError> {
    let mut last = None;
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
        Ok(()) => Ok(Read::ToTheEnd),
        Err(error) if is_damage(&error) => Ok(Read::Until(last)),
        Err(error) => Err(error.into()),
    }
}

/// Stretches that touch are one.
fn joined(mut gaps: Vec<Gap>) -> Vec<Gap> {
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
