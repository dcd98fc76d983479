//! Searches entries by words, with their locations.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use retake_model::content::ContentId;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::operation::Version;
use retake_model::time::Timestamp;
use retake_store::{
    DeletedFilter, Hit, SearchError, SearchIndex, SearchQuery, SearchScope, Snippet, StoreError, ThreadFilter,
};
use serde::Serialize;

use crate::read::entry_history::EntryHistory;
use crate::{ReadError, Reader};

/// Hits to read at least when only some of them may count.
const MIN_HITS: usize = 100;

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

impl FoundEntries {
    /// Searches the entries of a take as they were at a version of its thread. The filters of threads do not apply.
    pub fn search_at(
        reader: &Reader<'_>,
        index: &SearchIndex,
        query: &SearchQuery,
        (thread, take, version): (ThreadId, TakeId, Version),
    ) -> Result<Self, SearchError> {
        let damaged = |error: ReadError| match error {
            ReadError::Store(error) => SearchError::Store(error),
            other => SearchError::Store(StoreError::Damaged(other.to_string())),
        };
        let queries = reader.queries();
        let row = reader.thread(thread).map_err(damaged)?;
        let state = reader.state_at(thread, version).map_err(damaged)?;
        let take = match state.take(&queries, take).map_err(StoreError::from)? {
            Some(take) => take,
            // The take did not exist then.
            None => state.active_take(&queries).map_err(StoreError::from)?,
        };
        let wanted = query.offset.saturating_add(query.limit).saturating_add(1);
        let mut asked = wanted.max(MIN_HITS);
        loop {
            let wider = SearchQuery {
                thread: Some(thread),
                threads: ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() },
                scope: SearchScope::History,
                limit: asked,
                offset: 0,
                ..query.clone()
            };
            let hits = index.search(&queries, &wider)?;
            let complete = hits.len() < asked;
            let mut found = Vec::new();
            for hit in hits {
                let place = take.entries.find(&queries, hit.entry.bytes()).map_err(StoreError::from)?;
                let Some((position, _)) = place.filter(|(_, cell)| cell.version == hit.version) else {
                    continue;
                };
                found.push(FoundEntry {
                    thread,
                    title: row.summary.title.clone(),
                    take: take.id,
                    take_name: Some(take.name.clone()),
                    number: position + 1,
                    at: Some(version),
                    entry: hit.entry,
                    version: hit.version,
                    role: hit.role,
                    time: hit.time,
                    snippet: hit.snippet,
                    in_active_take: take.id == state.active,
                });
                if found.len() == wanted {
                    break;
                }
            }
            if complete || found.len() == wanted {
                let more = found.len() == wanted;
                let hits = found.into_iter().skip(query.offset).take(query.limit).collect();
                return Ok(Self { hits, more });
            }
            // Most versions were in other states; each round reads more of them.
            asked = asked.saturating_mul(4);
        }
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
