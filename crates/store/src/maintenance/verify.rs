//! Verification: reads everything stored and compares all redundant data.
//!
//! ```text
//!   the file         SQLite's check of its pages and indexes
//!   every object     decompressed, hashed, found in the index by name, well-formed
//!   every reference  points to an object, or to a redacted one or a known loss
//!   every log        consecutive versions, each operation refers to the previous one
//!   every folder     and every pending move of files: checksum, matches its log, all content available
//!   every index      equal to the data that it derives from
//! ```
//!
//! Verification changes nothing and never stops early: an unreadable row is a problem like any other. It runs
//! in one [`ReadTransaction`](crate::ReadTransaction), so writers are not blocked.

mod derived;
mod folders;
mod hashing;
mod log;
mod objects;
mod problem;

use std::collections::HashSet;
use std::fmt;

use retake_model::content::{ContentId, Kind};
use retake_model::operation::Version;
use retake_model::reference::Reference;
use rusqlite::Connection;
use serde::Serialize;

use crate::log::queries::Queries;
use crate::maintenance::completeness::CompletenessChecker;
use crate::maintenance::scan::is_damage;
use crate::schema;
use crate::{Store, StoreError};

pub use problem::{Problem, Referrer, ThreadRef};
pub(crate) use problem::{kind_name, object};

pub(crate) use derived::differences;
pub(crate) use folders::{FolderRows, is_next};
pub(crate) use log::{Log, Logs, read_logs};
pub(crate) use objects::read_index;

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerifyReport {
    /// Objects read.
    pub objects: u64,
    /// Their decompressed size.
    pub object_bytes: u64,
    /// Operations read.
    pub operations: u64,
    /// Threads with a log.
    pub threads: u64,
    /// Takes of all threads, in their current states.
    pub takes: u64,
    /// Objects that an earlier repair recorded as lost. They no longer count as problems.
    pub known_losses: u64,
    /// All problems found.
    pub problems: Vec<Problem>,
}

/// Progress of a long maintenance run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceProgress {
    /// Items done.
    pub done: u64,
    /// Estimated total number of items.
    pub total: u64,
    /// The current stage.
    pub stage: MaintenanceStage,
}

/// A stage of a maintenance run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "VerifyStage"))]
#[serde(rename_all = "snake_case")]
pub enum MaintenanceStage {
    /// The database file.
    Database,
    /// Objects.
    Objects,
    /// The log.
    Operations,
    /// The derived rows of each thread.
    Threads,
}

impl fmt::Display for MaintenanceStage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Database => "database",
            Self::Objects => "objects",
            Self::Operations => "operations",
            Self::Threads => "threads",
        })
    }
}

impl VerifyReport {
    /// True if there are no problems.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Store {
    /// Checks the whole store. Returns an error only if the check itself fails.
    pub fn verify(&self, progress: &mut dyn FnMut(MaintenanceProgress)) -> Result<VerifyReport, StoreError> {
        let lost_log_end = self.lost_log_end()?;
        let reading = self.read()?;
        let mut verified = verify(&reading.queries(), progress)?;
        verified.problems.extend(lost_log_end.map(Problem::LogEndLost));
        let damaged = self.damaged_shared_settings()?.into_iter();
        verified
            .problems
            .extend(damaged.map(|path| Problem::SharedSettingsDamaged { path: path.display().to_string() }));
        Ok(verified)
    }
}

fn verify(
    queries: &Queries<'_>,
    progress: &mut dyn FnMut(MaintenanceProgress),
) -> Result<VerifyReport, StoreError> {
    let mut verified = VerifyReport::default();
    progress(MaintenanceProgress { done: 0, total: 1, stage: MaintenanceStage::Database });
    let database = check_file(queries.connection)?;
    verified.problems.extend(database);
    let lost = losses(queries, &mut verified.problems)?;
    verified.known_losses = lost.len() as u64;
    let mut objects = objects::check(queries, &mut verified, progress)?;
    let logs = read_logs(queries, progress)?;
    verified.operations = logs.operations;
    verified.problems.extend(logs.gaps());
    for log in logs.threads.values() {
        objects.need_operations(log);
    }
    let folders = FolderRows::read(queries, &mut verified.problems)?;
    verified.problems.extend(folders.check(&logs));
    for (reference, by) in folders.needs() {
        objects.need(reference, by);
    }
    let missing = objects.missing(queries, &lost)?;
    let mut completeness = CompletenessChecker::new(queries, &lost, &objects.present);
    let mut seen_nodes = HashSet::new();
    let total = logs.threads.len() as u64;
    for (done, log) in logs.threads.values().enumerate() {
        progress(MaintenanceProgress { done: done as u64, total, stage: MaintenanceStage::Threads });
        if log.operations.is_empty() {
            continue;
        }
        verified.threads += 1;
        let intact = log.check(&mut verified.problems);
        if !missing.is_empty() {
            verified.problems.extend(incomplete(log, &mut completeness)?);
            verified.problems.extend(files_incomplete(log, &mut completeness)?);
        }
        if intact {
            derived::check(queries, log, &mut seen_nodes, &mut verified)?;
        }
    }
    verified.problems.extend(missing);
    derived::check_strays(queries, &logs, &mut verified.problems)?;
    derived::check_projects(queries, &mut verified.problems)?;
    derived::check_row_checksums(queries, &mut verified.problems)?;
    Ok(verified)
}

/// Problems of the file: damaged SQLite structures, or a schema that differs from ours.
pub(crate) fn check_file(connection: &Connection) -> Result<Vec<Problem>, StoreError> {
    let mut problems = check_structures(connection)?;
    let expected = schema::expected_schema()?;
    let found = read_or_report(&mut problems, "sqlite_schema", || schema::read_schema(connection))?;
    for (name, description) in expected {
        if found.get(&name) != Some(&description) {
            problems.push(Problem::SchemaAltered { name });
        }
    }
    Ok(problems)
}

fn check_structures(connection: &Connection) -> Result<Vec<Problem>, StoreError> {
    let run = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
        let lines = statement.query_map([], |row| row.get(0))?;
        lines.collect()
    };
    match run() {
        Ok(lines) => Ok(lines
            .into_iter()
            .filter(|line| line != "ok")
            .map(|message| Problem::Database { message })
            .collect()),
        Err(error) if is_damage(&error) => Ok(vec![Problem::Database { message: error.to_string() }]),
        Err(error) => Err(error.into()),
    }
}

/// Content that an earlier repair recorded as lost.
fn losses(queries: &Queries<'_>, problems: &mut Vec<Problem>) -> Result<HashSet<ContentId>, StoreError> {
    read_or_report(problems, "lost", || {
        let mut statement = queries.connection.prepare("SELECT id FROM lost")?;
        let rows = statement.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
        let ids = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(ids.iter().filter_map(|id| id.as_slice().try_into().ok().map(ContentId::from_bytes)).collect())
    })
}

/// Reports a thread with states that cannot be read, and its newest complete version.
fn incomplete(
    log: &Log,
    completeness: &mut CompletenessChecker<'_, '_>,
) -> Result<Option<Problem>, StoreError> {
    let states = log.intact().map(|(version, operation)| (version, (Kind::State, operation.after)));
    let (versions, newest_complete) = count_broken(states, completeness)?;
    Ok((versions > 0).then(|| Problem::ThreadIncomplete {
        thread: log.thread_ref(),
        versions,
        newest_complete,
    }))
}

/// Reports a thread with files that cannot be restored, and the newest version with complete files.
fn files_incomplete(
    log: &Log,
    completeness: &mut CompletenessChecker<'_, '_>,
) -> Result<Option<Problem>, StoreError> {
    let files = log
        .intact()
        .filter_map(|(version, operation)| Some((version, (Kind::Snapshot, operation.files?.after))));
    let (versions, newest_complete) = count_broken(files, completeness)?;
    Ok((versions > 0).then(|| Problem::FilesIncomplete {
        thread: log.thread_ref(),
        versions,
        newest_complete,
    }))
}

/// Counts the versions with incomplete content, and finds the newest complete one.
fn count_broken(
    needs: impl Iterator<Item = (Version, Reference)>,
    completeness: &mut CompletenessChecker<'_, '_>,
) -> Result<(u64, Option<Version>), StoreError> {
    let mut versions = 0;
    let mut newest_complete = None;
    for (version, (kind, id)) in needs {
        if completeness.is_complete(kind, id)? {
            newest_complete = Some(version);
        } else {
            versions += 1;
        }
    }
    Ok((versions, newest_complete))
}

/// Runs a query; if the table cannot be read, reports a problem and returns the default.
fn read_or_report<T: Default>(
    problems: &mut Vec<Problem>,
    table: &'static str,
    query: impl FnOnce() -> rusqlite::Result<T>,
) -> Result<T, StoreError> {
    match query() {
        Ok(found) => Ok(found),
        Err(error) if is_damage(&error) || unexpected_type(&error) => {
            problems.push(Problem::TableUnreadable { table, message: error.to_string() });
            Ok(T::default())
        }
        Err(error) => Err(error.into()),
    }
}

/// A column with an unexpected type is damaged.
fn unexpected_type(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(
        error,
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..)
    )
}
