//! Small writes of many callers in one transaction.
//!
//! A server writes down every request that it begins, and thirty of them may begin at once. The first caller leads, as
//! in `writer`: it runs all jobs that wait, commits once, tells the others, and calls the first of those who have come
//! since to lead next. Each job changes one row, so that one that fails leaves nothing behind it.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::Ledger;
use crate::StoreError;
use crate::writer::same_meaning;

/// The most jobs in one transaction: the first of them waits for the last.
const LARGEST_BATCH: usize = 256;

/// When a write is to be on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    /// Before it is acknowledged.
    AtOnce,
    /// A moment later: should the machine stop just then, what was lost can be found out again.
    Soon,
}

/// Jobs that wait.
#[derive(Default)]
pub(super) struct Gathered(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Whether some caller leads, or was called to.
    led: bool,
}

struct Waiting {
    lasting: Lasting,
    job: Job,
    /// Calls the caller to lead.
    call: Box<dyn Fn() + Send>,
}

/// Runs inside a transaction, if one could be begun; what it gives tells the caller, once it is known whether that was
/// committed.
type Job = Box<dyn FnOnce(Option<&Connection>) -> Ran + Send>;
type Tell = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// A job that was run.
struct Ran {
    tell: Tell,
    /// The panic that ended it: what it wrote until then must not stay.
    panicked: Option<StoreError>,
}

/// What a caller is told.
enum Told<T> {
    Lead,
    Done(Result<T, StoreError>),
}

impl fmt::Debug for Gathered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Gathered").field("waiting", &self.queue().waiting.len()).finish()
    }
}

impl Gathered {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing that could panic runs while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    /// Changes one row, together with whatever else is to be written just now.
    pub(super) fn write_with_others<T: Send + 'static>(
        &self,
        lasting: Lasting,
        job: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (tell, told) = channel();
        let caller = tell.clone();
        let job: Job = Box::new(move |connection| {
            let ran = connection.map(|connection| catch_unwind(AssertUnwindSafe(|| job(connection))));
            let (result, panicked) = match ran {
                None => (Err(StoreError::Poisoned), None),
                Some(Ok(result)) => (result, None),
                Some(Err(panic)) => {
                    let error = StoreError::panicked(&*panic);
                    (Err(same_meaning(&error)), Some(error))
                }
            };
            let tell: Tell = Box::new(move |committed| {
                // The caller waits for nothing else.
                let _ = tell.send(Told::Done(committed.and(result)));
            });
            Ran { tell, panicked }
        });
        let call = Box::new(move || drop(caller.send(Told::Lead)));
        let leads = {
            let mut queue = self.waiting.queue();
            queue.waiting.push_back(Waiting { lasting, job, call });
            !std::mem::replace(&mut queue.led, true)
        };
        if leads {
            self.lead();
        }
        loop {
            match told.recv() {
                Ok(Told::Lead) => self.lead(),
                Ok(Told::Done(answer)) => return answer,
                Err(_) => return Err(StoreError::Poisoned),
            }
        }
    }

    /// Runs what waits in one transaction, tells those who waited for it, and calls the next to lead.
    fn lead(&self) {
        let mut tell = Vec::new();
        // A defect outside the jobs takes the transaction with it, and must not leave the others without a leader.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.transact(&mut tell)));
        let committed = outcome.unwrap_or_else(|panic| Err(StoreError::panicked(&*panic)));
        {
            let mut queue = self.waiting.queue();
            match queue.waiting.front() {
                Some(next) => (next.call)(),
                None => queue.led = false,
            }
        }
        for tell in tell {
            tell(committed.as_ref().copied().map_err(same_meaning));
        }
    }

    fn transact(&self, tell: &mut Vec<Tell>) -> Result<(), StoreError> {
        let connection = self.connection();
        let jobs: Vec<Waiting> = {
            let mut queue = self.waiting.queue();
            let count = queue.waiting.len().min(LARGEST_BATCH);
            queue.waiting.drain(..count).collect()
        };
        let waits_for_disk = jobs.iter().any(|waiting| waiting.lasting == Lasting::AtOnce);
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
    tell: &mut Vec<Tell>,
) -> Result<(), StoreError> {
    match Transaction::new_unchecked(connection, TransactionBehavior::Immediate) {
        Ok(transaction) => {
            let mut panicked = None;
            for job in jobs {
                let ran = job(Some(&transaction));
                tell.push(ran.tell);
                panicked = panicked.or(ran.panicked);
            }
            // Jobs have no savepoints of their own: with one that was cut off, none of them is kept.
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

    fn tables(ledger: &Ledger, name: &'static str) -> i64 {
        let count = "SELECT count(*) FROM sqlite_master WHERE name = ?1";
        ledger
            .write_with_others(Lasting::AtOnce, move |connection| {
                Ok(connection.query_row(count, [name], |row| row.get(0))?)
            })
            .expect("the next one is carried out")
    }

    #[test]
    fn a_job_that_panics_is_reported_as_a_defect_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(&folder.path().join("store")).expect("a store");
        let ledger = store.ledger().expect("a ledger");
        for lasting in [Lasting::AtOnce, Lasting::Soon] {
            let refused = ledger.write_with_others(lasting, |connection| -> Result<(), StoreError> {
                connection.execute_batch("CREATE TABLE half (x)")?;
                panic!("a mistake, on purpose")
            });
            match refused {
                Err(StoreError::Panicked(text)) => assert_eq!(text, "a mistake, on purpose"),
                other => panic!("{other:?} is not reported as a defect of the program"),
            }
            assert_eq!(tables(&ledger, "half"), 0, "what it wrote is gone");
        }
        // The control: a job that ends is kept.
        let kept = |connection: &Connection| Ok(connection.execute_batch("CREATE TABLE whole (x)")?);
        ledger.write_with_others(Lasting::AtOnce, kept).expect("it is kept");
        assert_eq!(tables(&ledger, "whole"), 1);
    }
}
