//! Searches entries by words, with their locations.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use retake_model::content::ContentId;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::operation::Version;
use retake_model::time::Timestamp;
use retake_store::{Hit, SearchError, SearchIndex, SearchQuery, Snippet, StoreError};
use serde::Serialize;

use crate::read::entry_history::EntryHistory;
use crate::{ReadError, Reader};

/// Results of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoundEntries {
    /// The entries, in order.
    pub hits: Vec<FoundEntry>,
    /// Whether there are more results than the limit.
    pub more: bool,
}

/// A found entry with its location.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundEntry {
    /// The thread.
    pub thread: ThreadId,
    /// Title of the thread.
    pub title: String,
    /// The take that contains it, or first contained it.
    pub take: TakeId,
    /// Name of the take; `null` if it no longer exists.
    pub take_name: Option<String>,
    /// Position in the take, counted from 1.
    pub number: u64,
    /// For an entry that no take contains any more: the version in which it first appeared.
    pub at: Option<Version>,
    /// The entry.
    pub entry: EntryId,
    /// The version of the entry.
    pub version: ContentId,
    /// Its role.
    pub role: String,
    /// When that version was created.
    pub time: Timestamp,
    /// A line of its text.
    pub snippet: Snippet,
    /// Whether the take is the active one of its thread.
    #[serde(skip)]
    pub in_active_take: bool,
}

impl FoundEntries {
    /// Searches entries. `progress` receives the progress of reading histories, if that is necessary.
    pub fn search(
        reader: &Reader<'_>,
        index: &SearchIndex,
        query: &SearchQuery,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, SearchError> {
        // One more than the limit, to know whether there are more.
        let wider = SearchQuery { limit: query.limit.saturating_add(1), ..query.clone() };
        let mut hits = index.search(&reader.queries(), &wider)?;
        let more = hits.len() > query.limit;
        hits.truncate(query.limit);
        let entry_histories = entry_histories(reader, &hits, progress).map_err(|error| match error {
            ReadError::Store(error) => SearchError::Store(error),
            // The thread was found in the same transaction.
            other => SearchError::Store(StoreError::Damaged(other.to_string())),
        })?;
        let mut names: HashMap<i64, HashMap<TakeId, String>> = HashMap::new();
        let mut found = Vec::new();
        for hit in hits {
            let number = hit.thread.number;
            let names = match names.entry(number) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(empty) => {
                    let takes = reader.queries().takes_of(number)?;
                    empty.insert(takes.into_iter().map(|take| (take.summary.id, take.summary.name)).collect())
                }
            };
            let past =
                entry_histories.get(&number).and_then(|past| past.versions.get(&(hit.entry, hit.version)));
            let (take, place, at) = match (hit.take, hit.position, past) {
                (Some(take), Some(position), _) => (take, position + 1, None),
                (_, _, Some(arrival)) => (arrival.take, arrival.number, Some(arrival.at)),
                // The index is ahead of the log, and will be corrected.
                _ => continue,
            };
            let summary = hit.thread.summary;
            found.push(FoundEntry {
                thread: summary.id,
                title: summary.title,
                take,
                take_name: names.get(&take).cloned(),
                number: place,
                at,
                entry: hit.entry,
                version: hit.version,
                role: hit.role,
                time: hit.time,
                snippet: hit.snippet,
                in_active_take: take == summary.active.id,
            });
        }
        Ok(Self { hits: found, more })
    }
}

/// Histories of the threads with hits that no take contains any more.
fn entry_histories(
    reader: &Reader<'_>,
    hits: &[Hit],
    progress: &mut dyn FnMut(u64, u64),
) -> Result<HashMap<i64, EntryHistory>, ReadError> {
    let mut wanted: HashMap<i64, BTreeSet<EntryId>> = HashMap::new();
    for hit in hits.iter().filter(|hit| hit.take.is_none()) {
        wanted.entry(hit.thread.number).or_default().insert(hit.entry);
    }
    let mut entry_histories = HashMap::new();
    for hit in hits {
        if let Some(entries) = wanted.remove(&hit.thread.number) {
            entry_histories
                .insert(hit.thread.number, EntryHistory::of(reader, &hit.thread, &entries, progress)?);
        }
    }
    Ok(entry_histories)
}
