//! Verification: everything that is stored is read, and everything that can be known twice is compared.
//!
//! ```text
//!   the file         SQLite's own check of its pages and indexes
//!   every object     unpacked, hashed, found in the index under its name, well-formed
//!   every reference  leads to an object, or to one that was redacted or is a known loss
//!   every log        versions in a row, each operation naming the one before, each in its place
//!   every folder     and every move of files that has begun: guarded, in step with its log, all content there
//!   every index      equal to what it is derived from
//! ```
//!
//! Nothing is changed and nothing stops the check early: a row that cannot be read is a problem like any
//! other. It all happens on one [`Reading`](crate::Reading), so writers may go on beside it.

mod derived;
mod folders;
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

use crate::queries::Queries;
use crate::scan::is_damage;
use crate::schema;
use crate::whole::Wholeness;
use crate::{Store, StoreError};

pub(crate) use problem::kind_name;
pub use problem::{Holder, Problem, WhichThread};

pub(crate) use derived::differences;
pub(crate) use folders::{FolderRows, is_next};
pub(crate) use log::{Log, Logs, gather};
pub(crate) use objects::read_index;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verified {
    /// Objects that were read.
    pub objects: u64,
    /// Bytes of their content, unpacked.
    pub object_bytes: u64,
    /// Operations that were read.
    pub operations: u64,
    /// Threads that have a log.
    pub threads: u64,
    /// Takes of all threads, as they are now.
    pub takes: u64,
    /// Pieces of content that an earlier repair found gone. They are no problem any more, and still a loss.
    pub known_losses: u64,
    /// All that is wrong.
    pub problems: Vec<Problem>,
}

/// How far a long run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceProgress {
    /// How many are done.
    pub done: u64,
    /// How many there are, as far as is known.
    pub total: u64,
    /// What is being looked at.
    pub what: Stage,
}

/// What a long run is looking at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "VerifyStage"))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The database file.
    Database,
    /// Content.
    Objects,
    /// The log.
    Operations,
    /// What is derived of each thread.
    Threads,
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Database => "database",
            Self::Objects => "objects",
            Self::Operations => "operations",
            Self::Threads => "threads",
        })
    }
}

impl Verified {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Store {
    /// Checks everything that is stored. Only a failure of the check itself is an error.
    pub fn verify(&self, progress: &mut dyn FnMut(MaintenanceProgress)) -> Result<Verified, StoreError> {
        let lost_end = self.lost_end()?;
        let reading = self.read()?;
        let mut verified = verify(&reading.queries(), progress)?;
        verified.problems.extend(lost_end.map(Problem::LogEndLost));
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
) -> Result<Verified, StoreError> {
    let mut verified = Verified::default();
    progress(MaintenanceProgress { done: 0, total: 1, what: Stage::Database });
    let database = check_file(queries.connection)?;
    verified.problems.extend(database);
    let lost = losses(queries, &mut verified.problems)?;
    verified.known_losses = lost.len() as u64;
    let mut objects = objects::check(queries, &mut verified, progress)?;
    let logs = gather(queries, progress)?;
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
    let mut wholeness = Wholeness::new(queries, &lost, &objects.present);
    let mut seen_nodes = HashSet::new();
    let total = logs.threads.len() as u64;
    for (done, log) in logs.threads.values().enumerate() {
        progress(MaintenanceProgress { done: done as u64, total, what: Stage::Threads });
        if log.operations.is_empty() {
            continue;
        }
        verified.threads += 1;
        let sound = log.check(&mut verified.problems);
        if !missing.is_empty() {
            verified.problems.extend(incomplete(log, &mut wholeness)?);
            verified.problems.extend(files_incomplete(log, &mut wholeness)?);
        }
        if sound {
            derived::check(queries, log, &mut seen_nodes, &mut verified)?;
        }
    }
    verified.problems.extend(missing);
    derived::check_strays(queries, &logs, &mut verified.problems)?;
    derived::check_projects(queries, &mut verified.problems)?;
    derived::check_tallies(queries, &mut verified.problems)?;
    Ok(verified)
}

/// What is wrong with the file as such: with SQLite's own structures, or with what it says of our tables.
pub(crate) fn check_file(connection: &Connection) -> Result<Vec<Problem>, StoreError> {
    let mut problems = check_structures(connection)?;
    let expected = schema::described()?;
    let found = tolerate(&mut problems, "sqlite_schema", || schema::descriptions(connection))?;
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

/// Content that an earlier repair found gone.
fn losses(queries: &Queries<'_>, problems: &mut Vec<Problem>) -> Result<HashSet<ContentId>, StoreError> {
    tolerate(problems, "lost", || {
        let mut statement = queries.connection.prepare("SELECT id FROM lost")?;
        let rows = statement.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
        let ids = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(ids.iter().filter_map(|id| id.as_slice().try_into().ok().map(ContentId::from_bytes)).collect())
    })
}

/// Says of a thread that not all of its states can be read, and which is the newest that can.
fn incomplete(log: &Log, wholeness: &mut Wholeness<'_, '_>) -> Result<Option<Problem>, StoreError> {
    let states = log.sound().map(|(version, operation)| (version, (Kind::State, operation.after)));
    let (versions, newest_whole) = count_broken(states, wholeness)?;
    Ok((versions > 0).then(|| Problem::ThreadIncomplete { thread: log.which(), versions, newest_whole }))
}

/// Says of a thread that not all of its files can be had back, and which are the newest that can.
fn files_incomplete(log: &Log, wholeness: &mut Wholeness<'_, '_>) -> Result<Option<Problem>, StoreError> {
    let files = log
        .sound()
        .filter_map(|(version, operation)| Some((version, (Kind::Snapshot, operation.files?.after))));
    let (versions, newest_whole) = count_broken(files, wholeness)?;
    Ok((versions > 0).then(|| Problem::FilesIncomplete { thread: log.which(), versions, newest_whole }))
}

/// How many versions need content that cannot be read in full, and the newest that does not.
fn count_broken(
    needs: impl Iterator<Item = (Version, Reference)>,
    wholeness: &mut Wholeness<'_, '_>,
) -> Result<(u64, Option<Version>), StoreError> {
    let mut versions = 0;
    let mut newest_whole = None;
    for (version, (kind, id)) in needs {
        if wholeness.is_whole(kind, id)? {
            newest_whole = Some(version);
        } else {
            versions += 1;
        }
    }
    Ok((versions, newest_whole))
}

/// What a query gives, or nothing and a problem where the table cannot be read.
fn tolerate<T: Default>(
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

/// A column that holds something else than its type was damaged.
fn unexpected_type(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(
        error,
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..)
    )
}
