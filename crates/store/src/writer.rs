//! The one writer of this process: jobs that wait are gathered into one transaction with one sync.
//!
//! ```text
//!   caller A ──┐                 ┌──────────── job A ─┐
//!   caller B ──┼──► queue ──► BEGIN ─ savepoint: job B ─ COMMIT (one sync) ──► answers to A, B, C
//!   caller C ──┘                 └─ savepoint: job C ─┘
//! ```
//!
//! There is no thread of the writer's own, since waking one takes as long as many a job. The first caller
//! leads: it runs its job and all that come to wait meanwhile, commits, tells the others, and calls the first
//! of those who have come since to lead next.
//!
//! A job that fails is rolled back, to its savepoint or, as the first, with the whole transaction, and takes
//! nothing of the others with it. If the commit fails, none of them happened, and each caller is told so.
//! A job that panics is rolled back like one that fails, and its caller gets the panic's message: that is a defect of
//! the program and says nothing about the disk.
//!
//! After a failed sync what is on disk is not known, and a second try could succeed falsely: the writer then
//! refuses until the store is opened again.

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

use crate::cache::Cache;
use crate::location::database;
use crate::mark;
use crate::open::{Locked, connect};
use crate::queries::Queries;
use crate::{Store, StoreError};

/// The most jobs in one transaction: the first of them waits for the last.
const LARGEST_BATCH: usize = 256;

/// Why a write did not happen. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<E> {
    /// The job itself said no.
    #[error(transparent)]
    Refused(E),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The store as one write sees it, its own changes included.
pub struct Writing<'transaction> {
    queries: Queries<'transaction>,
}

impl<'transaction> Deref for Writing<'transaction> {
    type Target = Queries<'transaction>;

    fn deref(&self) -> &Self::Target {
        &self.queries
    }
}

impl<'transaction> Writing<'transaction> {
    pub(crate) fn new(queries: Queries<'transaction>) -> Self {
        Self { queries }
    }
}

impl Store {
    /// Runs a job inside a write transaction and returns once it is durable.
    ///
    /// The job sees the newest state of the store and no other writer runs beside it, in this process or in
    /// another. It should compute and write, not wait.
    pub fn write<T, E>(
        &self,
        job: impl FnOnce(&Writing<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        self.writer.submit(job)
    }

    /// Runs a job inside a write transaction that is rolled back afterwards: the job sees what it writes, and nothing
    /// of it stays. So a preview runs the very code that the change itself runs.
    pub fn rehearse<T, E>(
        &self,
        job: impl FnOnce(&Writing<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        match self.write(move |writing| Err::<Infallible, _>(job(writing))) {
            Ok(never) => match never {},
            Err(WriteError::Refused(outcome)) => outcome.map_err(WriteError::Refused),
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
    /// Opened by the first who leads; nobody else touches it.
    connection: Mutex<Option<Connection>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Box<dyn Job>>,
    /// Whether some caller leads, or was called to.
    led: bool,
}

/// A job that waits to be run inside a transaction, and a caller who waits to be told.
trait Job: Send {
    /// Runs the job; says whether what it wrote is to be kept.
    fn run(&mut self, writing: &Writing<'_>) -> bool;
    /// Tells the caller, once it is known whether the transaction was committed.
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
    /// Calls the caller to lead.
    fn call(&self);
}

struct Waiting<J, T, E> {
    job: Option<J>,
    result: Option<Result<T, WriteError<E>>>,
    tell: Sender<Told<T, E>>,
}

/// What a caller is told.
enum Told<T, E> {
    /// Its turn has come to run what waits, its own job first.
    Lead,
    /// What came of its job.
    Done(Result<T, WriteError<E>>),
}

impl<J, T, E> Job for Waiting<J, T, E>
where
    J: FnOnce(&Writing<'_>) -> Result<T, E> + Send,
    T: Send,
    E: Send,
{
    fn run(&mut self, writing: &Writing<'_>) -> bool {
        self.result = self.job.take().map(|job| {
            // What it wrote is rolled back, as for a job that fails: nothing half-done is seen by the next.
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
        // The caller waits for nothing else.
        let _ = self.tell.send(Told::Done(answer));
    }

    fn call(&self) {
        let _ = self.tell.send(Told::Lead);
    }
}

impl Writer {
    pub(crate) fn new(folder: PathBuf, lock: File, cache: Arc<Cache>) -> Self {
        Self {
            folder,
            lock,
            cache,
            poisoned: AtomicBool::new(false),
            queue: Mutex::default(),
            connection: Mutex::default(),
        }
    }

    /// Refuses after a failed sync.
    pub(crate) fn check_usable(&self) -> Result<(), StoreError> {
        if self.poisoned.load(Ordering::SeqCst) { Err(StoreError::Poisoned) } else { Ok(()) }
    }

    /// What a failed commit means; after a failed sync nothing more is written.
    pub(crate) fn commit_failed(&self, error: rusqlite::Error) -> StoreError {
        if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
            self.poisoned.store(true, Ordering::SeqCst);
            return StoreError::Unsure;
        }
        error.into()
    }

    fn submit<T, E>(
        &self,
        job: impl FnOnce(&Writing<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        self.check_usable()?;
        let (tell, told) = channel();
        let leads = {
            let mut queue = self.queue();
            queue.waiting.push_back(Box::new(Waiting { job: Some(job), result: None, tell }));
            !std::mem::replace(&mut queue.led, true)
        };
        if leads {
            self.lead();
        }
        loop {
            match told.recv() {
                Ok(Told::Lead) => self.lead(),
                Ok(Told::Done(answer)) => return answer,
                Err(_) => return Err(StoreError::Poisoned.into()),
            }
        }
    }

    /// Runs what waits in one transaction, tells those who waited for it, and calls the next to lead.
    fn lead(&self) {
        let mut jobs = Vec::new();
        // A defect outside the jobs takes the transaction with it, and must not take the writer with it too.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.transact(&mut jobs)));
        let committed = outcome.unwrap_or_else(|panic| Err(StoreError::panicked(&*panic)));
        {
            let mut queue = self.queue();
            match queue.waiting.front() {
                Some(next) => next.call(),
                None => queue.led = false,
            }
        }
        for job in jobs {
            job.finish(committed.as_ref().copied().map_err(same_meaning));
        }
    }

    /// Runs the first job, and all that wait behind it, in one transaction.
    fn transact(&self, jobs: &mut Vec<Box<dyn Job>>) -> Result<(), StoreError> {
        // Taken before anything can fail: whoever leads answers at least one.
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
        let queries = Queries::begin(&transaction, &self.cache);
        let moment = queries.moment();
        // Alone so far: if the first says no, the transaction goes, which is cheaper than a savepoint.
        if !first.run(&Writing::new(queries)) {
            return transaction.roll_back();
        }
        while jobs.len() < LARGEST_BATCH
            && let Some(mut job) = self.next()
        {
            transaction.run("SAVEPOINT job")?;
            // Queries of its own: what the last job read may have been rolled back.
            let keep = job.run(&Writing::new(Queries::at(&transaction, &self.cache, moment)));
            jobs.push(job);
            if !keep {
                transaction.run("ROLLBACK TO job")?;
            }
            transaction.run("RELEASE job")?;
        }
        let sequence = Queries::at(&transaction, &self.cache, moment).last_sequence()?;
        transaction.commit().map_err(|error| self.commit_failed(error))?;
        mark::advance(&self.lock, sequence);
        Ok(())
    }

    /// How far the log has been, as far as is known.
    pub(crate) fn mark(&self) -> Option<i64> {
        mark::read(&self.lock)
    }

    /// Says how far the log has been.
    pub(crate) fn leave_mark(&self, sequence: i64) {
        mark::leave(&self.lock, sequence);
    }

    /// The job that has waited longest.
    fn next(&self) -> Option<Box<dyn Job>> {
        self.queue().waiting.pop_front()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing that could panic runs while it is held.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write transaction, rolled back if it is not committed. Its few commands are prepared once and kept: preparing
/// them takes longer than running them.
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
            // What cannot be rolled back is when the connection is closed.
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }
}

/// The same error once more: every caller of a batch is told.
pub(crate) fn same_meaning(error: &StoreError) -> StoreError {
    match error {
        StoreError::DiskFull => StoreError::DiskFull,
        StoreError::Unsure => StoreError::Unsure,
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
