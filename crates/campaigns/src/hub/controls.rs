//! Hubs with a known mistake, which the checks must notice.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use retake_model::id::ThreadId;
use retake_sync::wire::BundleRow;

use super::bundles::Push;
use super::load::{LoadTarget, PushAnswer};
use crate::violation::BoxError;

#[derive(Clone, Debug, Default)]
struct Rows {
    threads: BTreeMap<ThreadId, Vec<(BundleRow, Vec<u8>)>>,
    feed: Vec<(u64, ThreadId)>,
}

impl Rows {
    fn head(&self, thread: ThreadId) -> Option<&BundleRow> {
        self.threads.get(&thread)?.last().map(|(row, _)| row)
    }

    fn add(&mut self, push: &Push) {
        let rows = self.threads.entry(push.thread).or_default();
        rows.truncate(push.request.row.number as usize - 1);
        rows.push((push.request.row.clone(), push.bytes.clone()));
        self.feed.push((self.feed.len() as u64 + 1, push.thread));
    }

    /// What the compare of a compare-and-swap says.
    fn fits(&self, push: &Push) -> bool {
        self.head(push.thread).map(|row| row.head) == push.request.previous
    }

    fn answer(&self, push: &Push) -> PushAnswer {
        let head = self.head(push.thread);
        PushAnswer::Moved(head.map(|row| retake_sync::wire::ThreadHead {
            number: row.number,
            version: row.last,
            head: row.head,
        }))
    }
}

/// Gets, compares and puts without a condition: two writers both see the old head.
#[derive(Debug, Default)]
pub struct Upsert {
    rows: Mutex<Rows>,
}

/// Answers before it writes, and is killed between the two now and then.
#[derive(Debug, Default)]
pub struct EarlyAnswer {
    rows: Mutex<(Rows, u64)>,
}

impl LoadTarget for Upsert {
    fn push(&self, _: u64, push: &Push, _: &AtomicU64) -> Result<PushAnswer, BoxError> {
        let seen = self.rows.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !seen.fits(push) {
            return Ok(seen.answer(push));
        }
        std::thread::sleep(Duration::from_micros(200));
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).add(push);
        Ok(PushAnswer::Added)
    }

    fn log(&self, thread: ThreadId, _: &AtomicU64) -> Result<Vec<BundleRow>, BoxError> {
        Ok(log(&self.rows.lock().unwrap_or_else(PoisonError::into_inner), thread))
    }

    fn bundle(&self, thread: ThreadId, row: &BundleRow) -> Result<Vec<u8>, BoxError> {
        bundle(&self.rows.lock().unwrap_or_else(PoisonError::into_inner), thread, row)
    }

    fn feed(&self) -> Result<Vec<(u64, ThreadId)>, BoxError> {
        Ok(self.rows.lock().unwrap_or_else(PoisonError::into_inner).feed.clone())
    }
}

impl LoadTarget for EarlyAnswer {
    fn push(&self, _: u64, push: &Push, _: &AtomicU64) -> Result<PushAnswer, BoxError> {
        let mut guard = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, count) = &mut *guard;
        if !rows.fits(push) {
            return Ok(rows.answer(push));
        }
        *count += 1;
        if *count % 40 != 0 {
            rows.add(push);
        }
        Ok(PushAnswer::Added)
    }

    fn log(&self, thread: ThreadId, _: &AtomicU64) -> Result<Vec<BundleRow>, BoxError> {
        Ok(log(&self.rows.lock().unwrap_or_else(PoisonError::into_inner).0, thread))
    }

    fn bundle(&self, thread: ThreadId, row: &BundleRow) -> Result<Vec<u8>, BoxError> {
        bundle(&self.rows.lock().unwrap_or_else(PoisonError::into_inner).0, thread, row)
    }

    fn feed(&self) -> Result<Vec<(u64, ThreadId)>, BoxError> {
        Ok(self.rows.lock().unwrap_or_else(PoisonError::into_inner).0.feed.clone())
    }
}

fn log(rows: &Rows, thread: ThreadId) -> Vec<BundleRow> {
    rows.threads.get(&thread).into_iter().flatten().map(|(row, _)| row.clone()).collect()
}

fn bundle(rows: &Rows, thread: ThreadId, row: &BundleRow) -> Result<Vec<u8>, BoxError> {
    let found = rows.threads.get(&thread).and_then(|rows| rows.get(row.number as usize - 1));
    Ok(found.ok_or("no such bundle")?.1.clone())
}
