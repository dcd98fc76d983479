//! The single writer of a process: batches waiting jobs into one transaction with one sync.
//!
//! ```text
//!   caller A ──┐                 ┌──────────── job A ─┐
//!   caller B ──┼──► queue ──► BEGIN ─ savepoint: job B ─ COMMIT (one sync) ──► answers to A, B, C
//!   caller C ──┘                 └─ savepoint: job C ─┘
//! ```
//!
//! There is no writer thread, since waking one takes as long as many jobs do. The first caller is the leader:
//! it runs its own job and all jobs queued by then, commits, sends the results, and makes the first caller
//! that has queued since the next leader.
//!
//! A failed job is rolled back to its savepoint (the first job: with the whole transaction) without affecting
//! the others. If the commit fails, no job took effect, and each caller gets the error. A job that panics is
//! rolled back like a failed one, and its caller gets the panic message: a panic is a bug in the job, not a
//! disk error.
//!
//! After a failed sync the content on disk is unknown, and a retry could falsely succeed. The writer then
//! refuses all writes until the store is reopened. So it does if SQLite rolled a transaction back by itself, after a
//! failed read for example, and the job went on: what it wrote then was committed at once.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::File;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, ErrorCode};

use crate::location::database;
use crate::log::high_water_mark;
use crate::log::queries::Queries;
use crate::objects::cache::Cache;
use crate::open::{Locked, connect};
use crate::schema::check_version;
use crate::{Store, StoreError};

/// Maximum number of jobs in a transaction: the first job waits for the last one.
const MAX_BATCH: usize = 256;

/// Why a write failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<E> {
    /// The job returned an error.
    #[error(transparent)]
    Refused(E),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A write transaction. Its reads see its own changes.
pub struct WriteTransaction<'transaction> {
    queries: Queries<'transaction>,
}

impl<'transaction> Deref for WriteTransaction<'transaction> {
    type Target = Queries<'transaction>;

    fn deref(&self) -> &Self::Target {
        &self.queries
    }
}

impl<'transaction> WriteTransaction<'transaction> {
    pub(crate) fn new(queries: Queries<'transaction>) -> Self {
        Self { queries }
    }
}

impl Store {
    /// Runs a job inside a write transaction and returns once it is durable.
    ///
    /// The job sees the newest state of the store, and no other writer runs at the same time, in this process
    /// or in another. It should compute and write, not wait.
    pub fn write<T, E>(
        &self,
        job: impl FnOnce(&WriteTransaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        self.writer.submit(job)
    }

    /// Runs a job inside a write transaction that is then rolled back. The job sees its own writes, and none
    /// of them persist, so a preview runs the same code as the change.
    pub fn dry_run<T, E>(
        &self,
        job: impl FnOnce(&WriteTransaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let run = move |writing: &WriteTransaction<'_>| {
            let outcome = job(writing);
            let whole = outcome.is_err() || !writing.connection.is_autocommit();
            Err::<Infallible, _>(whole.then_some(outcome))
        };
        match self.write(run) {
            Ok(never) => match never {},
            Err(WriteError::Refused(Some(outcome))) => outcome.map_err(WriteError::Refused),
            Err(WriteError::Refused(None)) => Err(WriteError::Store(self.writer.outcome_unknown())),
            Err(WriteError::Store(error)) => Err(WriteError::Store(error)),
        }
    }
}

pub(crate) struct Writer {
    folder: PathBuf,
    lock: File,
    cache: Arc<Cache>,
    poisoned: AtomicBool,
    queue: Mutex<Queue>,
    /// Opened by the first leader; only the leader uses it.
    connection: Mutex<Option<Connection>>,
    /// The schema version when the store was opened.
    schema: i64,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Box<dyn Job>>,
    /// Whether a caller is the leader or was signalled to become it.
    has_leader: bool,
}

/// A queued job and its waiting caller.
trait Job: Send {
    /// Runs the job; returns false if its writes must be rolled back.
    fn run(&mut self, writing: &WriteTransaction<'_>) -> bool;
    /// Sends the result to the caller after the commit.
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
    /// Signals the caller to become the leader.
    fn call(&self);
}

struct QueuedJob<J, T, E> {
    job: Option<J>,
    result: Option<Result<T, WriteError<E>>>,
    sender: Sender<Signal<T, E>>,
}

/// A message to a waiting caller.
enum Signal<T, E> {
    /// Become the leader: run the queue, starting with your own job.
    Lead,
    /// The result of the job.
    Done(Result<T, WriteError<E>>),
}

impl<J, T, E> Job for QueuedJob<J, T, E>
where
    J: FnOnce(&WriteTransaction<'_>) -> Result<T, E> + Send,
    T: Send,
    E: Send,
{
    fn run(&mut self, writing: &WriteTransaction<'_>) -> bool {
        self.result = self.job.take().map(|job| {
            // The writes of a panicking job are rolled back like those of a failed one, so the next job does
            // not see them.
            match catch_unwind(AssertUnwindSafe(|| job(writing))) {
                Ok(result) => result.map_err(WriteError::Refused),
                Err(panic) => Err(StoreError::panicked(&*panic).into()),
            }
        });
        matches!(self.result, Some(Ok(_)))
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        let answer = match (self.result, committed) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(WriteError::Store(error)),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(WriteError::Store(StoreError::Poisoned)),
        };
        // An error means that the caller no longer waits.
        let _ = self.sender.send(Signal::Done(answer));
    }

    fn call(&self) {
        let _ = self.sender.send(Signal::Lead);
    }
}

impl Writer {
    pub(crate) fn new(folder: PathBuf, lock: File, cache: Arc<Cache>, schema: i64) -> Self {
        Self {
            folder,
            lock,
            cache,
            poisoned: AtomicBool::new(false),
            queue: Mutex::default(),
            connection: Mutex::default(),
            schema,
        }
    }

    /// Refuses every write, as after a failed sync.
    pub(crate) fn refuse_all(&self) {
        self.poisoned.store(true, Ordering::SeqCst);
    }

    /// Fails after a failed sync.
    pub(crate) fn check_usable(&self) -> Result<(), StoreError> {
        if self.poisoned.load(Ordering::SeqCst) { Err(StoreError::Poisoned) } else { Ok(()) }
    }

    /// Converts a commit error; after a failed sync it also stops all later writes.
    pub(crate) fn commit_failed(&self, error: rusqlite::Error) -> StoreError {
        if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
            return self.outcome_unknown();
        }
        error.into()
    }

    fn outcome_unknown(&self) -> StoreError {
        self.refuse_all();
        StoreError::OutcomeUnknown
    }

    /// Fails if SQLite rolled back a transaction in which nothing was written yet.
    pub(crate) fn check_begun(connection: &Connection) -> Result<(), StoreError> {
        let failure = || rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_READ);
        if connection.is_autocommit() {
            Err(rusqlite::Error::SqliteFailure(failure(), None).into())
        } else {
            Ok(())
        }
    }

    /// Fails, and stops all later writes, if a successful job ran on after SQLite had rolled back its transaction.
    pub(crate) fn check_whole(&self, connection: &Connection) -> Result<(), StoreError> {
        if connection.is_autocommit() { Err(self.outcome_unknown()) } else { Ok(()) }
    }

    fn submit<T, E>(
        &self,
        job: impl FnOnce(&WriteTransaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        self.check_usable()?;
        let (sender, signals) = channel();
        let leads = {
            let mut queue = self.queue();
            queue.waiting.push_back(Box::new(QueuedJob { job: Some(job), result: None, sender }));
            !std::mem::replace(&mut queue.has_leader, true)
        };
        if leads {
            self.lead();
        }
        loop {
            match signals.recv() {
                Ok(Signal::Lead) => self.lead(),
                Ok(Signal::Done(answer)) => return answer,
                Err(_) => return Err(StoreError::Poisoned.into()),
            }
        }
    }

    /// Runs the queued jobs in one transaction, sends their results, and signals the next leader.
    fn lead(&self) {
        let mut jobs = Vec::new();
        // A panic outside the jobs rolls back the transaction; the writer must survive it.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.transact(&mut jobs)));
        let committed = outcome.unwrap_or_else(|panic| Err(StoreError::panicked(&*panic)));
        {
            let mut queue = self.queue();
            match queue.waiting.front() {
                Some(next) => next.call(),
                None => queue.has_leader = false,
            }
        }
        for job in jobs {
            job.finish(committed.as_ref().copied().map_err(duplicate_error));
        }
    }

    /// Runs the first job, and all jobs queued behind it, in one transaction.
    fn transact(&self, jobs: &mut Vec<Box<dyn Job>>) -> Result<(), StoreError> {
        // Take a job before anything can fail: each leader must answer at least one caller.
        jobs.extend(self.next());
        let Some(first) = jobs.first_mut() else { return Ok(()) };
        self.check_usable()?;
        let _guard = Locked::new(&self.lock, &self.folder)?;
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match &mut *connection {
            Some(connection) => connection,
            none => none.insert(connect(&database(&self.folder))?),
        };
        let transaction = Transaction::begin(connection)?;
        check_version(&transaction, self.schema)?;
        let queries = Queries::begin(&transaction, &self.cache);
        Self::check_begun(&transaction)?;
        let read_point = queries.read_point();
        // The first job needs no savepoint: if it fails, rolling back the transaction is cheaper.
        if !first.run(&WriteTransaction::new(queries)) {
            return transaction.roll_back();
        }
        self.check_whole(&transaction)?;
        while jobs.len() < MAX_BATCH
            && let Some(mut job) = self.next()
        {
            transaction.run("SAVEPOINT job")?;
            // New queries for each job: the previous job's reads may have been rolled back.
            let keep = job.run(&WriteTransaction::new(Queries::at(&transaction, &self.cache, read_point)));
            jobs.push(job);
            if keep {
                self.check_whole(&transaction)?;
            } else {
                transaction.run("ROLLBACK TO job")?;
            }
            transaction.run("RELEASE job")?;
        }
        let sequence = Queries::at(&transaction, &self.cache, read_point).last_sequence()?;
        transaction.commit().map_err(|error| self.commit_failed(error))?;
        high_water_mark::advance(&self.lock, sequence);
        Ok(())
    }

    /// The highest known sequence number of the log.
    pub(crate) fn high_water_mark(&self) -> Option<i64> {
        high_water_mark::read(&self.lock)
    }

    pub(crate) fn set_high_water_mark(&self, sequence: i64) {
        high_water_mark::write(&self.lock, sequence);
    }

    /// Takes the oldest queued job.
    fn next(&self) -> Option<Box<dyn Job>> {
        self.queue().waiting.pop_front()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No code that can panic runs under this lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write transaction, rolled back unless committed. Its statements are prepared once: preparing them takes
/// longer than running them.
struct Transaction<'connection>(&'connection Connection);

impl<'connection> Transaction<'connection> {
    fn begin(connection: &'connection Connection) -> Result<Self, StoreError> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self(connection))
    }

    fn run(&self, command: &str) -> rusqlite::Result<()> {
        self.0.prepare_cached(command)?.execute([]).map(drop)
    }

    fn commit(self) -> rusqlite::Result<()> {
        self.run("COMMIT")
    }

    fn roll_back(self) -> Result<(), StoreError> {
        Ok(self.run("ROLLBACK")?)
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            // If the rollback fails, closing the connection rolls back.
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }
}

/// Duplicates an error, because every caller of a batch gets one.
pub(crate) fn duplicate_error(error: &StoreError) -> StoreError {
    match error {
        StoreError::DiskFull => StoreError::DiskFull,
        StoreError::OutcomeUnknown => StoreError::OutcomeUnknown,
        StoreError::InUse => StoreError::InUse,
        StoreError::Panicked(text) => StoreError::Panicked(text.clone()),
        &StoreError::Newer { file, found, known } => StoreError::Newer { file, found, known },
        StoreError::Damaged(text) => StoreError::Damaged(text.clone()),
        StoreError::Unavailable(unavailable) => StoreError::Unavailable(unavailable.clone()),
        StoreError::Database(rusqlite::Error::SqliteFailure(code, text)) => {
            StoreError::Database(rusqlite::Error::SqliteFailure(*code, text.clone()))
        }
        StoreError::Poisoned | StoreError::Database(_) => StoreError::Poisoned,
        StoreError::File { path, error } => StoreError::File {
            path: path.clone(),
            error: std::io::Error::new(error.kind(), error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does what SQLite does after some failed reads, and writes.
    fn go_on_outside(writing: &WriteTransaction<'_>) -> rusqlite::Result<()> {
        writing.connection.execute_batch("ROLLBACK; INSERT INTO erasure (number) VALUES (7)")
    }

    /// Runs a job on a new store; returns whether the outcome is unknown, and whether the next job may write.
    fn check(job: impl FnOnce(&Store) -> Result<(), WriteError<rusqlite::Error>>) -> (bool, bool) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(&folder.path().join("store")).expect("a store");
        let unknown = matches!(job(&store), Err(WriteError::Store(StoreError::OutcomeUnknown)));
        (unknown, store.write(|_| Ok::<_, ()>(())).is_ok())
    }

    #[test]
    fn a_job_that_goes_on_after_its_transaction_has_an_unknown_outcome() {
        assert_eq!(check(|store| store.write(go_on_outside)), (true, false));
        assert_eq!(check(|store| store.dry_run(go_on_outside)), (true, false));
        // Controls: a job that stops at the failure has changed nothing.
        let stop = |writing: &WriteTransaction<'_>| {
            writing.connection.execute_batch("ROLLBACK; SELECT * FROM nothing")
        };
        assert_eq!(check(move |store| store.write(stop)), (false, true));
        assert_eq!(check(move |store| store.dry_run(stop)), (false, true));
    }
}
