//! A thread to measure: created quickly, but with a realistic history.
//!
//! Most entries are added in batches, as by an import. The last two thousand are appended one by one, so that the log,
//! the index and the tables look like those of a conversation that grew.

use std::path::{Path, PathBuf};

use retake_model::id::{EntryId, ProjectId, TakeId, ThreadId};
use retake_model::operation::Version;
use retake_model::take::Take;
use retake_timeline::{Caller, ChangeOutcome, Command, InsertPosition, NewEntry, NewThread, Rules, Timeline};
use rusqlite::Connection;

use crate::Outcome;
use crate::messages::Messages;

/// Entries that are appended one by one.
const APPENDED_ENTRIES: u64 = 2_000;
/// Entries per batch.
const BATCH_ENTRIES: u64 = 1_000;
/// Entries of a second thread in the same store: enough to fill the log once.
const OTHER_THREAD_ENTRIES: u64 = 3_000;

/// The project of all threads.
pub(crate) const PROJECT: ProjectId = ProjectId::from_bytes([1; 16]);

/// A thread of a known size, open for changes.
pub(crate) struct MeasuredThread {
    pub(crate) size: u64,
    pub(crate) folder: PathBuf,
    pub(crate) timeline: Timeline,
    /// For lookups, without warming the caches of the measured timeline.
    pub(crate) lookup: Timeline,
    pub(crate) thread: ThreadId,
    /// The measured take.
    pub(crate) take: TakeId,
    /// A second take to switch to.
    pub(crate) other: TakeId,
    pub(crate) messages: Messages,
    /// Number of measurements so far, which varies the position in the middle.
    pub(crate) turn: u64,
    /// The version before the last jump.
    pub(crate) newest: Version,
}

/// A thread whose store is closed.
pub(crate) struct ClosedThread {
    pub(crate) size: u64,
    pub(crate) folder: PathBuf,
    pub(crate) thread: ThreadId,
}

impl MeasuredThread {
    /// Creates a store with such a thread.
    pub(crate) fn build(folder: &Path, size: u64) -> Outcome<Self> {
        eprintln!("making a thread of {size} entries");
        let folder = folder.join(format!("thread-{size}"));
        let timeline = Timeline::open(&folder, Rules::default())?;
        let mut messages = Messages::new(size);
        let beside = new_thread(&timeline, "beside")?;
        fill(&timeline, &beside, OTHER_THREAD_ENTRIES.min(size * 10), 0, &mut messages)?;
        let done = new_thread(&timeline, "measured")?;
        fill(&timeline, &done, size, APPENDED_ENTRIES, &mut messages)?;
        let take = done.summary.active.id;
        let thread = done.thread;
        let branch = Command::Branch { from: take, at: None, name: Some("other".to_owned()) };
        let other = timeline.change(thread, branch, Caller::human())?.summary.active.id;
        timeline.change(thread, Command::Switch { take }, Caller::human())?;
        let lookup = Timeline::open(&folder, Rules::default())?;
        Ok(Self { size, folder, timeline, lookup, thread, take, other, messages, turn: 0, newest: 0 })
    }

    pub(crate) fn close(self) -> ClosedThread {
        ClosedThread { size: self.size, folder: self.folder, thread: self.thread }
    }

    /// The current take.
    pub(crate) fn current_take(&self) -> Outcome<Take> {
        let reader = self.lookup.read()?;
        let take = reader.state(self.thread)?.take(&reader.queries(), self.take)?;
        Ok(take.ok_or("the measured take is gone")?)
    }

    /// The entry at this position.
    pub(crate) fn entry_at(&self, position: u64) -> Outcome<EntryId> {
        let cell = self.current_take()?.entries.get(&self.lookup.read()?.queries(), position)?;
        Ok(cell.ok_or("there is no entry at that position")?.entry)
    }

    /// A user message at or after this position.
    pub(crate) fn user_message_at(&self, position: u64) -> Outcome<EntryId> {
        let take = self.current_take()?;
        let reader = self.lookup.read()?;
        let end = take.entries.len();
        let start = position.min(end.saturating_sub(8));
        let page = reader.entries(self.thread, &take).page(start..end.min(start + 8))?;
        let found = page.iter().find(|view| view.entry.role == "User");
        Ok(found.ok_or("there is no user message near that position")?.id)
    }

    pub(crate) fn change(&self, command: Command) -> Outcome<ChangeOutcome> {
        Ok(self.timeline.change(self.thread, command, Caller::human())?)
    }
}

pub(crate) fn new_thread(timeline: &Timeline, title: &str) -> Outcome<ChangeOutcome> {
    Ok(timeline.create_thread(NewThread::in_project(PROJECT).titled(title), Caller::human())?)
}

/// Adds entries to a new thread, the last of them one by one.
pub(crate) fn fill(
    timeline: &Timeline,
    thread: &ChangeOutcome,
    size: u64,
    singly: u64,
    messages: &mut Messages,
) -> Outcome<()> {
    let mut left = size;
    while left > 0 {
        let batch = if left > singly { BATCH_ENTRIES.min(left - singly) } else { 1 };
        append(timeline, thread.thread, thread.summary.active.id, batch, messages)?;
        left -= batch;
    }
    Ok(())
}

/// Appends entries in one change.
pub(crate) fn append(
    timeline: &Timeline,
    thread: ThreadId,
    take: TakeId,
    count: u64,
    messages: &mut Messages,
) -> Outcome<ChangeOutcome> {
    let entries = (0..count).map(|_| NewEntry::from(messages.entry())).collect();
    let command = Command::AddEntries { take, at: InsertPosition::End, entries };
    Ok(timeline.change(thread, command, Caller::human())?)
}

/// Checkpoints a store's log and truncates it.
pub(crate) fn empty_log(folder: &Path) -> Outcome<()> {
    let connection = Connection::open(folder.join("retake.db"))?;
    let busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy == 0 { Ok(()) } else { Err("the log could not be emptied: the store is busy".into()) }
}
