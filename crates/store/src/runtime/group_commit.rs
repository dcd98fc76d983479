//! Group commit: small writes of many callers in one transaction.
//!
//! A server records every request, and many may arrive at once. The first caller leads, as in `writer`: it runs all
//! queued jobs, commits once, answers the other callers, and makes the first of the newly queued callers the next
//! leader. Each job changes one row, so that a failed job leaves nothing behind.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::RuntimeDatabase;
use crate::StoreError;
use crate::log::writer::duplicate_error;

/// The most jobs per transaction: the first of them waits for the last.
const MAX_BATCH: usize = 256;

/// When a write must be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// Before it is acknowledged.
    Immediate,
    /// Shortly after: a write that is lost in a power cut can be recomputed.
    Deferred,
}

#[derive(Default)]
pub(super) struct WriteQueue(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<QueuedJob>,
    /// Whether a caller leads, or was asked to.
    has_leader: bool,
}

struct QueuedJob {
    durability: Durability,
    job: Job,
    /// Asks the caller to lead.
    call: Box<dyn Fn() + Send>,
}

/// Runs inside a transaction, if one could begin. The result answers the caller once the commit has succeeded or
/// failed.
type Job = Box<dyn FnOnce(Option<&Connection>) -> JobResult + Send>;
type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

struct JobResult {
    tell: Reply,
    /// Set if the job panicked: its writes must be rolled back.
    panicked: Option<StoreError>,
}

/// A message to a waiting caller.
enum Signal<T> {
    Lead,
    Done(Result<T, StoreError>),
}

impl fmt::Debug for WriteQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Gathered").field("waiting", &self.queue().waiting.len()).finish()
    }
}

impl WriteQueue {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing that can panic runs while this is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RuntimeDatabase {
    /// Changes one row, in one transaction with other queued writes.
    pub(super) fn write_grouped<T: Send + 'static>(
        &self,
        durability: Durability,
        job: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (tell, signals) = channel();
        let caller = tell.clone();
        let job: Job = Box::new(move |connection| {
            let ran = connection.map(|connection| catch_unwind(AssertUnwindSafe(|| job(connection))));
            let (result, panicked) = match ran {
                None => (Err(StoreError::Poisoned), None),
                Some(Ok(result)) => (result, None),
                Some(Err(panic)) => {
                    let error = StoreError::panicked(&*panic);
                    (Err(duplicate_error(&error)), Some(error))
                }
            };
            let tell: Reply = Box::new(move |committed| {
                // The caller may have given up.
                let _ = tell.send(Signal::Done(committed.and(result)));
            });
            JobResult { tell, panicked }
        });
        let call = Box::new(move || drop(caller.send(Signal::Lead)));
        let leads = {
            let mut queue = self.waiting.queue();
            queue.waiting.push_back(QueuedJob { durability, job, call });
            !std::mem::replace(&mut queue.has_leader, true)
        };
        if leads {
            self.lead();
        }
        loop {
            match signals.recv() {
                Ok(Signal::Lead) => self.lead(),
                Ok(Signal::Done(answer)) => return answer,
                Err(_) => return Err(StoreError::Poisoned),
            }
        }
    }

    /// Runs queued jobs in one transaction, answers their callers, and makes the next caller lead.
    fn lead(&self) {
        let mut tell = Vec::new();
        // A panic outside the jobs rolls the transaction back, and must not leave the other callers without a leader.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.transact(&mut tell)));
        let committed = outcome.unwrap_or_else(|panic| Err(StoreError::panicked(&*panic)));
        {
            let mut queue = self.waiting.queue();
            match queue.waiting.front() {
                Some(next) => (next.call)(),
                None => queue.has_leader = false,
            }
        }
        for tell in tell {
            tell(committed.as_ref().copied().map_err(duplicate_error));
        }
    }

    fn transact(&self, tell: &mut Vec<Reply>) -> Result<(), StoreError> {
        let connection = self.connection();
        let jobs: Vec<QueuedJob> = {
            let mut queue = self.waiting.queue();
            let count = queue.waiting.len().min(MAX_BATCH);
            queue.waiting.drain(..count).collect()
        };
        let waits_for_disk = jobs.iter().any(|waiting| waiting.durability == Durability::Immediate);
        let jobs = jobs.into_iter().map(|waiting| waiting.job);
        if waits_for_disk {
            return run(&connection, jobs, tell);
        }
        let sync = |how: &str| connection.pragma_update(None, "synchronous", how);
        let lighter = sync("NORMAL");
        let outcome = run(&connection, jobs, tell);
        lighter.and_then(|()| sync("FULL"))?;
        outcome
    }
}

fn run(
    connection: &Connection,
    jobs: impl Iterator<Item = Job>,
    tell: &mut Vec<Reply>,
) -> Result<(), StoreError> {
    match Transaction::new_unchecked(connection, TransactionBehavior::Immediate) {
        Ok(transaction) => {
            let mut panicked = None;
            for job in jobs {
                let ran = job(Some(&transaction));
                tell.push(ran.tell);
                panicked = panicked.or(ran.panicked);
            }
            // Jobs have no savepoints: if one panics, all of them are rolled back.
            match panicked {
                Some(error) => Err(error),
                None => Ok(transaction.commit()?),
            }
        }
        Err(error) => {
            tell.extend(jobs.map(|job| job(None).tell));
            Err(error.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    fn tables(runtime_database: &RuntimeDatabase, name: &'static str) -> i64 {
        let count = "SELECT count(*) FROM sqlite_master WHERE name = ?1";
        runtime_database
            .write_grouped(Durability::Immediate, move |connection| {
                Ok(connection.query_row(count, [name], |row| row.get(0))?)
            })
            .expect("the next job succeeds")
    }

    #[test]
    fn a_job_that_panics_is_reported_as_a_defect_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(&folder.path().join("store")).expect("a store");
        let runtime_database = store.runtime_database().expect("a runtime database");
        for durability in [Durability::Immediate, Durability::Deferred] {
            let refused =
                runtime_database.write_grouped(durability, |connection| -> Result<(), StoreError> {
                    connection.execute_batch("CREATE TABLE half (x)")?;
                    panic!("a deliberate panic")
                });
            match refused {
                Err(StoreError::Panicked(text)) => assert_eq!(text, "a deliberate panic"),
                other => panic!("{other:?} is not reported as a panic"),
            }
            assert_eq!(tables(&runtime_database, "half"), 0, "its writes are rolled back");
        }
        // Control: a job that succeeds is committed.
        let kept = |connection: &Connection| Ok(connection.execute_batch("CREATE TABLE whole (x)")?);
        runtime_database.write_grouped(Durability::Immediate, kept).expect("a committed job");
        assert_eq!(tables(&runtime_database, "whole"), 1);
    }
}
