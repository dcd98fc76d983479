//! Compares every index with the data that it derives from.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use retake_model::check::{self, InvalidContentError, StateChecker};
use retake_model::content::{ContentId, Kind};
use retake_model::id::ProjectId;
use retake_model::object::{ObjectError, Objects, load};
use retake_model::state::ThreadState;
use retake_model::summary::TakeSummary;
use rusqlite::OptionalExtension;
use rusqlite::types::Value;

use super::log::{Log, Logs};
use super::{Problem, ThreadRef, VerifyReport, read_or_report};
use crate::StoreError;
use crate::log::queries::{Queries, digest, hexadecimal};
use crate::tables::derive::{DerivedRows, derive};
use crate::tables::facets::Facet;
use crate::tables::projects;
use crate::tables::threads::{columns, key_of};

/// Compares the rows of a thread with a complete log to the data that they derive from.
pub(super) fn check(
    queries: &Queries<'_>,
    log: &Log,
    seen_nodes: &mut HashSet<ContentId>,
    verified: &mut VerifyReport,
) -> Result<(), StoreError> {
    match check_readable(queries, log, seen_nodes, verified) {
        Err(error) if error.is_damage() => {
            verified
                .problems
                .push(Problem::ThreadUnreadable { thread: log.thread_ref(), message: error.to_string() });
            Ok(())
        }
        other => other,
    }
}

fn check_readable(
    queries: &Queries<'_>,
    log: &Log,
    seen_nodes: &mut HashSet<ContentId>,
    verified: &mut VerifyReport,
) -> Result<(), StoreError> {
    let thread = log.thread_ref();
    let first = queries.operation(log.thread, 1)?;
    let last = queries.head(log.thread)?;
    let Some((first, last)) = first.zip(last) else {
        // The rows exist, but the table's index does not find them. SQLite's check reports that index.
        verified.problems.push(Problem::LogGap { thread, first: 1, last: 1 });
        return Ok(());
    };
    match derive(&first.operation, &last.operation, &log.environments(), log.sharing(queries), queries) {
        Ok(Some(derived)) => {
            verified.takes += derived.takes.len() as u64;
            let differences = differences(queries, thread, &derived)?;
            verified.problems.extend(differences);
            if !lists_agree(queries, last.operation.after, seen_nodes)? {
                verified.problems.push(Problem::ListContradicts { thread });
            } else if let Some(message) = broken_rule(queries, last.operation.after)? {
                verified.problems.push(Problem::StateBreaksRule { thread, message });
            }
        }
        Ok(None) => verified.problems.push(Problem::OperationMisplaced { thread, version: 1 }),
        Err(error @ ObjectError::Unreadable(_)) => return Err(error.into()),
        // Already reported as missing or damaged content.
        Err(_) => {}
    }
    Ok(())
}

/// The rows of a thread that differ from the expected ones.
pub(crate) fn differences(
    queries: &Queries<'_>,
    thread: ThreadRef,
    derived: &DerivedRows,
) -> Result<Vec<Problem>, StoreError> {
    let mut problems = Vec::new();
    let row = read_or_report(&mut problems, "thread", || {
        queries
            .connection
            .prepare_cached("SELECT key, project, title, record, digest FROM thread WHERE number = ?1")?
            .query_row([thread.number], |row| {
                (0..5).map(|column| row.get(column)).collect::<Result<Vec<Value>, _>>()
            })
            .optional()
    })?;
    match row {
        None => problems.push(Problem::ThreadNotIndexed { thread }),
        Some(row) if row != columns(&derived.summary, home_in(&row)) => {
            problems.push(Problem::ThreadIndexDiffers { thread });
        }
        Some(_) => {}
    }
    let takes = read_or_report(&mut problems, "take", || {
        let mut statement = queries.connection.prepare_cached(
            "SELECT key, name, record, digest FROM take INDEXED BY take_name WHERE thread = ?1",
        )?;
        let rows = statement
            .query_map([thread.number], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?, row.get(3)?))))?;
        rows.collect::<Result<BTreeMap<Vec<u8>, TakeColumns>, _>>()
    })?;
    let mut expected: BTreeMap<_, _> = derived.takes.iter().map(take_columns).collect();
    let active = derived.summary.active.id.key();
    // Nothing reads the record of the active take: that in the thread's row counts.
    if let (Some(expected), Some(found)) = (expected.get_mut(active.as_slice()), takes.get(active.as_slice()))
    {
        (expected.1, expected.2) = (found.1.clone(), found.2);
    }
    if takes != expected {
        problems.push(Problem::TakeIndexDiffers { thread });
    }
    let facets = read_or_report(&mut problems, "facet", || {
        let mut statement =
            queries.connection.prepare_cached("SELECT kind, value FROM facet WHERE thread = ?1")?;
        let rows = statement.query_map([thread.number], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<Result<BTreeSet<(i64, String)>, _>>()
    })?;
    let expected = |(facet, value): &(Facet, String)| (*facet as i64, value.clone());
    if facets != derived.facets.iter().map(expected).collect() {
        problems.push(Problem::FacetsDiffer { thread });
    }
    Ok(problems)
}

/// The project in the thread's row. Nothing else stores it, so only the row's digest can verify it.
fn home_in(row: &[Value]) -> ProjectId {
    match row.get(1) {
        Some(Value::Blob(key)) => key_of(key).map(ProjectId::from_key),
        _ => None,
    }
    .unwrap_or(ProjectId::from_bytes([0; 16]))
}

type TakeColumns = (String, Vec<u8>, i64);

fn take_columns(summary: &TakeSummary) -> (Vec<u8>, TakeColumns) {
    let record = minicbor::to_vec(summary).expect("encoding into memory cannot fail");
    let guard = digest(&record);
    (summary.id.key().to_vec(), (summary.name.clone(), record, guard))
}

/// Whether every node of the current lists matches its description in the parent node.
fn lists_agree(
    queries: &Queries<'_>,
    state: ContentId,
    seen: &mut HashSet<ContentId>,
) -> Result<bool, StoreError> {
    let mut walk = || -> Result<(), ObjectError> {
        let state: ThreadState = load(queries, state)?;
        state.takes.visit_nodes(queries, &mut |id| seen.insert(id), &mut |_| {})?;
        for take in state.all_takes(queries)? {
            take.entries.visit_nodes(queries, &mut |id| seen.insert(id), &mut |_| {})?;
        }
        Ok(())
    };
    match walk() {
        Err(ObjectError::Damaged { .. }) => Ok(false),
        Err(error @ ObjectError::Unreadable(_)) => Err(error.into()),
        // Missing content is reported separately.
        Ok(()) | Err(ObjectError::Missing { .. }) => Ok(true),
    }
}

/// The invariant that a state violates, if any.
fn broken_rule(queries: &Queries<'_>, id: ContentId) -> Result<Option<String>, StoreError> {
    let look = || -> Result<(), InvalidContentError> {
        check::content(Kind::State, &queries.bytes(Kind::State, id)?)?;
        let state: ThreadState = load(queries, id)?;
        check::content(Kind::Settings, &queries.bytes(Kind::Settings, state.settings)?)?;
        for cell in state.takes.iter(queries, 0) {
            check::content(Kind::Take, &queries.bytes(Kind::Take, cell?.content)?)?;
        }
        StateChecker::default().state(queries, id)
    };
    match look() {
        Err(InvalidContentError::Unavailable(error @ ObjectError::Unreadable(_))) => Err(error.into()),
        // Missing or damaged content is already reported.
        Ok(()) | Err(InvalidContentError::Unavailable(_)) => Ok(None),
        Err(broken) => Ok(Some(broken.to_string())),
    }
}

/// Reports rows of threads that have no log.
pub(super) fn check_strays(
    queries: &Queries<'_>,
    logs: &Logs,
    problems: &mut Vec<Problem>,
) -> Result<(), StoreError> {
    for (table, column) in
        [("thread", "number"), ("take", "thread"), ("facet", "thread"), ("presentation", "thread")]
    {
        let numbers: Vec<i64> = read_or_report(problems, table, || {
            let sql = format!("SELECT DISTINCT {column} FROM {table}");
            let mut statement = queries.connection.prepare(&sql)?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect()
        })?;
        for number in numbers {
            let has_log = logs.threads.get(&number).is_some_and(|log| !log.operations.is_empty());
            if !has_log {
                problems.push(Problem::StrayRows { table, thread: ThreadRef { number, id: None } });
            }
        }
    }
    Ok(())
}

/// Compares the row checksums with the rows.
pub(super) fn check_row_checksums(
    queries: &Queries<'_>,
    problems: &mut Vec<Problem>,
) -> Result<(), StoreError> {
    let expected = read_or_report(problems, "tally", || {
        Ok((queries.compute_row_checksums()?, queries.stored_row_checksums()?))
    })?;
    let (expected, kept) = expected;
    let missing = expected.keys().filter(|key| !kept.contains_key(key)).count();
    let wrong = kept.iter().filter(|(key, hash)| expected.get(key) != Some(hash)).count();
    if missing + wrong > 0 {
        problems.push(Problem::RowChecksumsDiffer { count: (missing + wrong) as u64 });
    }
    Ok(())
}

/// Checks project rows against their digests, since no other data confirms them.
pub(super) fn check_projects(queries: &Queries<'_>, problems: &mut Vec<Problem>) -> Result<(), StoreError> {
    let damaged = read_or_report(problems, "project", || {
        let sql = format!("SELECT {} FROM project", projects::COLUMNS);
        let mut statement = queries.connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        let mut damaged = Vec::new();
        while let Some(row) = rows.next()? {
            let intact = projects::raw(row).is_ok_and(|raw| projects::checked(raw).is_ok());
            if !intact {
                let key = row.get_ref(0)?.as_blob().unwrap_or_default();
                damaged.push(hexadecimal(key));
            }
        }
        Ok(damaged)
    })?;
    problems.extend(damaged.into_iter().map(|project| Problem::ProjectDamaged { project }));
    Ok(())
}
