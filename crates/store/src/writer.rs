//! The one writer of this process: jobs that wait are gathered into one transaction with one sync.
//!
//! ```text
//!   caller A ──┐                 ┌────────────  job A ─┐
//!   caller B ──┼──► queue ──► BEGIN ─ savepoint: job B ─ COMMIT (one sync) ──► answers to A, B, C
//!   caller C ──┘                 └─ savepoint: job C ─┘
//! ```
//!
//! A job that fails is rolled back to its savepoint, or with the whole transaction if it is the first, and takes
//! nothing of the others with it. If the commit
//! fails, none of them happened, and each caller is told so. After a failed sync what is on disk is not
//! known, and a second try could succeed falsely: the writer then refuses until the store is opened again.

use std::fs::File;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

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
}

pub(crate) struct Writer {
    folder: PathBuf,
    lock: Arc<File>,
    cache: Arc<Cache>,
    poisoned: Arc<AtomicBool>,
    running: Mutex<Option<Running>>,
}

struct Running {
    queue: Sender<Box<dyn Job>>,
    thread: JoinHandle<()>,
}

/// A job that waits to be run inside a transaction, and a caller who waits to be told.
trait Job: Send {
    /// Runs the job; says whether what it wrote is to be kept.
    fn run(&mut self, writing: &Writing<'_>) -> bool;
    /// Tells the caller, once it is known whether the transaction was committed.
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Waiting<J, T, E> {
    job: Option<J>,
    result: Option<Result<T, E>>,
    tell: Sender<Result<T, WriteError<E>>>,
}

impl<J, T, E> Job for Waiting<J, T, E>
where
    J: FnOnce(&Writing<'_>) -> Result<T, E> + Send,
    T: Send,
    E: Send,
{
    fn run(&mut self, writing: &Writing<'_>) -> bool {
        self.result = self.job.take().map(|job| job(writing));
        matches!(self.result, Some(Ok(_)))
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        let answer = match (self.result, committed) {
            (Some(Err(error)), _) => Err(WriteError::Refused(error)),
            (_, Err(error)) => Err(WriteError::Store(error)),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(WriteError::Store(StoreError::Poisoned)),
        };
        // A caller that stopped waiting does not need the answer.
        let _ = self.tell.send(answer);
    }
}

impl Writer {
    pub(crate) fn new(folder: PathBuf, lock: File, cache: Arc<Cache>) -> Self {
        Self { folder, lock: Arc::new(lock), cache, poisoned: Arc::default(), running: Mutex::default() }
    }

    /// Refuses after a failed sync.
    pub(crate) fn check_usable(&self) -> Result<(), StoreError> {
        if self.poisoned.load(Ordering::SeqCst) { Err(StoreError::Poisoned) } else { Ok(()) }
    }

    /// What a failed commit means; after a failed sync nothing more is written.
    pub(crate) fn commit_failed(&self, error: rusqlite::Error) -> StoreError {
        commit_failed(&self.poisoned, error)
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
        self.enqueue(Box::new(Waiting { job: Some(job), result: None, tell }))?;
        // An unanswered job is one that panicked, and took the writer's thread with it.
        told.recv().unwrap_or_else(|_| Err(StoreError::Poisoned.into()))
    }

    /// Hands a job to the writer's thread, which is started by the first one.
    fn enqueue(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.as_ref().is_none_or(|running| running.thread.is_finished()) {
            *running = Some(self.start()?);
        }
        let queue = &running.as_ref().expect("started just above").queue;
        queue.send(job).map_err(|_| StoreError::Poisoned)
    }

    fn start(&self) -> Result<Running, StoreError> {
        let connection = connect(&database(&self.folder))?;
        let (queue, jobs) = channel();
        let worker = Worker {
            connection,
            folder: self.folder.clone(),
            lock: Arc::clone(&self.lock),
            cache: Arc::clone(&self.cache),
            poisoned: Arc::clone(&self.poisoned),
        };
        let thread = std::thread::Builder::new()
            .name("retake-writer".to_owned())
            .spawn(move || worker.run(&jobs))
            .map_err(|error| StoreError::File { path: self.folder.clone(), error })?;
        Ok(Running { queue, thread })
    }
}

impl Writer {
    /// How far the log has been, as far as is known.
    pub(crate) fn mark(&self) -> Option<i64> {
        mark::read(&self.lock)
    }

    /// Says how far the log has been.
    pub(crate) fn leave_mark(&self, sequence: i64) {
        mark::leave(&self.lock, sequence);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { queue, thread }) = running {
            drop(queue);
            // The thread closes its connection, which moves the log into the database.
            let _ = thread.join();
        }
    }
}

struct Worker {
    connection: Connection,
    folder: PathBuf,
    lock: Arc<File>,
    cache: Arc<Cache>,
    poisoned: Arc<AtomicBool>,
}

impl Worker {
    fn run(mut self, queue: &Receiver<Box<dyn Job>>) {
        while let Ok(first) = queue.recv() {
            let mut jobs = vec![first];
            let committed = self.transact(&mut jobs, queue);
            for job in jobs {
                job.finish(committed.as_ref().copied().map_err(same_meaning));
            }
        }
    }

    /// Runs the first job, and all that wait behind it, in one transaction.
    fn transact(
        &mut self,
        jobs: &mut Vec<Box<dyn Job>>,
        queue: &Receiver<Box<dyn Job>>,
    ) -> Result<(), StoreError> {
        if self.poisoned.load(Ordering::SeqCst) {
            return Err(StoreError::Poisoned);
        }
        let _guard = Locked::new(&self.lock, &self.folder)?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Alone so far: if the first says no, the transaction goes, which is cheaper than a savepoint.
        if !jobs[0].run(&Writing::new(Queries::new(&transaction, &self.cache))) {
            return Ok(transaction.rollback()?);
        }
        while jobs.len() < LARGEST_BATCH
            && let Ok(next) = queue.try_recv()
        {
            jobs.push(next);
            let job = jobs.last_mut().expect("just pushed");
            transaction.execute_batch("SAVEPOINT job")?;
            let keep = job.run(&Writing::new(Queries::new(&transaction, &self.cache)));
            transaction.execute_batch(if keep { "RELEASE job" } else { "ROLLBACK TO job; RELEASE job" })?;
        }
        let sequence = Queries::new(&transaction, &self.cache).last_sequence()?;
        transaction.commit().map_err(|error| commit_failed(&self.poisoned, error))?;
        mark::leave(&self.lock, sequence);
        Ok(())
    }
}

fn commit_failed(poisoned: &AtomicBool, error: rusqlite::Error) -> StoreError {
    if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
        poisoned.store(true, Ordering::SeqCst);
        return StoreError::Unsure;
    }
    error.into()
}

/// The same error once more: every caller of a batch is told.
fn same_meaning(error: &StoreError) -> StoreError {
    match error {
        StoreError::DiskFull => StoreError::DiskFull,
        StoreError::Unsure => StoreError::Unsure,
        StoreError::InUse => StoreError::InUse,
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
