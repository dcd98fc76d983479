//! Conversations as they were last sent to a model, so that the next request of a take reads and encodes only what changed.
//!
//! ```text
//!   list of the take, then ─┐
//!                           ├─ difference ─► changed entries ─► Remembered ─► messages, JSON, tokens
//!   list of the take, now  ─┘   (shared nodes are not opened)
//! ```
//!
//! Programs that run many turns gain from it: `retake serve` and `retake chat`. A command that runs one turn begins with
//! nothing. The memory is bounded, and drops everything that it learned before content was erased from the store.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::list::{EntryCell, List};
use retake_model::object::load;
use retake_model::projection::Remembered;
use retake_model::take::Take;
use retake_store::{Queries, StoreError};

use crate::{Reader, Timeline};

/// The most takes to remember.
const MOST_TAKES: usize = 16;
/// The most memory of all together, about.
const MOST_BYTES: usize = 128 * 1024 * 1024;
/// Memory of an entry beside its text, about.
const ENTRY_BYTES: usize = 700;
/// How often the text of an entry is in memory: as entry, as message, and encoded.
const COPIES: usize = 3;
/// Entries per read.
const PAGE: u64 = 200;

/// The conversations of several takes, the last used one last.
#[derive(Debug, Default)]
pub(crate) struct SentConversations(Mutex<Vec<SentConversation>>);

/// The entries of a take with what is known of their requests.
#[derive(Debug)]
pub struct SentConversation {
    key: (ThreadId, TakeId),
    /// The number of erasures when the entries were read.
    erasures: Option<i64>,
    list: List<EntryCell>,
    entries: Vec<(EntryId, Arc<EntryVersion>)>,
    bytes: usize,
    /// Messages and JSON.
    pub remembered: Remembered,
}

/// Entries that are larger than asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Their bytes, as far as they were read.
    pub bytes: usize,
}

impl Timeline {
    /// Remembers a conversation for the next request of its take.
    pub fn remember(&self, sent: SentConversation) {
        let mut known = self.sent.lock();
        known.retain(|other| other.key != sent.key);
        known.push(sent);
        let mut memory: usize = known.iter().map(SentConversation::memory).sum();
        while known.len() > MOST_TAKES || (memory > MOST_BYTES && !known.is_empty()) {
            memory -= known.remove(0).memory();
        }
    }
}

impl Reader<'_> {
    /// The entries of a take, if they have at most so many bytes. What the last request knew is
    /// [remembered](Timeline::remember).
    pub fn conversation(
        &self,
        thread: ThreadId,
        take: &Take,
        most_bytes: usize,
    ) -> Result<Result<SentConversation, TooLarge>, StoreError> {
        let queries = self.queries();
        let key = (thread, take.id);
        let erasures = queries.erasures();
        let known = self.sent().take(key).filter(|sent| erasures.is_some() && sent.erasures == erasures);
        // Nodes of a list that is no longer used may have been collected.
        let known = known.and_then(|mut sent| sent.advance(&queries, take.entries).is_ok().then_some(sent));
        if let Some(sent) = known {
            let bytes = sent.bytes;
            return Ok(if bytes > most_bytes { Err(TooLarge { bytes }) } else { Ok(sent) });
        }
        SentConversation::read(&queries, key, take.entries, most_bytes)
    }
}

impl SentConversations {
    /// Takes a conversation out: its lock is not held while it is used.
    fn take(&self, key: (ThreadId, TakeId)) -> Option<SentConversation> {
        let mut known = self.lock();
        let place = known.iter().position(|sent| sent.key == key)?;
        Some(known.remove(place))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SentConversation>> {
        // Every change is complete, even if a later one panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SentConversation {
    /// The entries.
    pub fn entries(&self) -> &[(EntryId, Arc<EntryVersion>)] {
        &self.entries
    }

    /// Messages and JSON, and the entries that they come from.
    pub fn parts(&mut self) -> (&mut Remembered, &[(EntryId, Arc<EntryVersion>)]) {
        (&mut self.remembered, &self.entries)
    }

    /// The bytes of the entries, without the parts that are not in the context.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn memory(&self) -> usize {
        self.bytes * COPIES + self.entries.len() * ENTRY_BYTES
    }

    /// Reads the entries from the end, until they are too large.
    fn read(
        queries: &Queries<'_>,
        key: (ThreadId, TakeId),
        list: List<EntryCell>,
        most_bytes: usize,
    ) -> Result<Result<Self, TooLarge>, StoreError> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let mut end = list.len();
        while end > 0 {
            let start = end.saturating_sub(PAGE);
            for cell in list.page(queries, start..end)?.into_iter().rev() {
                let entry = read(queries, &cell)?;
                bytes += entry.1.size_in_context();
                entries.push(entry);
            }
            if bytes > most_bytes {
                return Ok(Err(TooLarge { bytes }));
            }
            end = start;
        }
        entries.reverse();
        let erasures = queries.erasures();
        Ok(Ok(Self { key, erasures, list, entries, bytes, remembered: Remembered::default() }))
    }

    /// Reads the entries that changed.
    fn advance(&mut self, queries: &Queries<'_>, list: List<EntryCell>) -> Result<(), StoreError> {
        let hunks = List::diff(queries, &self.list, &list)?;
        // From the end, so that the places in the old list stay the same.
        for hunk in hunks.into_iter().rev() {
            let added = hunk.added.iter().map(|cell| read(queries, cell)).collect::<Result<Vec<_>, _>>()?;
            let start = hunk.old_start as usize;
            self.bytes += added.iter().map(|(_, entry)| entry.size_in_context()).sum::<usize>();
            let removed = self.entries.splice(start..start + hunk.removed.len(), added);
            self.bytes -= removed.map(|(_, entry)| entry.size_in_context()).sum::<usize>();
        }
        self.list = list;
        Ok(())
    }
}

fn read(queries: &Queries<'_>, cell: &EntryCell) -> Result<(EntryId, Arc<EntryVersion>), StoreError> {
    Ok((cell.entry, Arc::new(load(queries, cell.version)?)))
}
