//! Searching: entries by their words, with what leads to them.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use retake_model::content::ContentId;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::operation::Version;
use retake_model::time::Timestamp;
use retake_store::{Hit, SearchError, SearchIndex, SearchQuery, Snippet, StoreError};
use serde::Serialize;

use crate::past::Past;
use crate::{LookError, Looking};

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoundEntries {
    /// The entries, in order.
    pub hits: Vec<FoundEntry>,
    /// Whether there are more than the limit let through.
    pub more: bool,
}

/// An entry that was found, and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundEntry {
    /// The thread.
    pub thread: ThreadId,
    /// What it is called.
    pub title: String,
    /// The take that holds it, or held it first.
    pub take: TakeId,
    /// What that is called; none if it is gone.
    pub take_name: Option<String>,
    /// Its place in that take, counted from 1.
    pub number: u64,
    /// For what no take holds any more: the version of the thread that it came with.
    pub at: Option<Version>,
    /// The entry.
    pub entry: EntryId,
    /// Which version of it.
    pub version: ContentId,
    /// Its role.
    pub role: String,
    /// When that version was made.
    pub time: Timestamp,
    /// A line of its text.
    pub snippet: Snippet,
    /// Whether the take is the active one of its thread.
    #[serde(skip)]
    pub in_active_take: bool,
}

impl Looking<'_> {
    /// Finds entries. `progress` hears how far the history of threads was looked through, where that is needed.
    pub fn search(
        &self,
        index: &SearchIndex,
        query: &SearchQuery,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<FoundEntries, SearchError> {
        // One more, to know whether there are more.
        let wider = SearchQuery { limit: query.limit.saturating_add(1), ..query.clone() };
        let mut hits = index.search(&self.queries(), &wider)?;
        let more = hits.len() > query.limit;
        hits.truncate(query.limit);
        let pasts = self.pasts(&hits, progress).map_err(|error| match error {
            LookError::Store(error) => SearchError::Store(error),
            // The thread was found in this very moment.
            other => SearchError::Store(StoreError::Damaged(other.to_string())),
        })?;
        let mut names: HashMap<i64, HashMap<TakeId, String>> = HashMap::new();
        let mut found = Vec::new();
        for hit in hits {
            let number = hit.thread.number;
            let names = match names.entry(number) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(empty) => {
                    let takes = self.queries().takes_of(number)?;
                    empty.insert(takes.into_iter().map(|take| (take.summary.id, take.summary.name)).collect())
                }
            };
            let past = pasts.get(&number).and_then(|past| past.versions.get(&(hit.entry, hit.version)));
            let (take, place, at) = match (hit.take, hit.position, past) {
                (Some(take), Some(position), _) => (take, position + 1, None),
                (_, _, Some(arrival)) => (arrival.take, arrival.number, Some(arrival.at)),
                // The index knows what the log no longer has: it will be checked out of it.
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
        Ok(FoundEntries { hits: found, more })
    }

    /// The history of the threads with hits that no take holds any more.
    fn pasts(
        &self,
        hits: &[Hit],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<HashMap<i64, Past>, LookError> {
        let mut wanted: HashMap<i64, BTreeSet<EntryId>> = HashMap::new();
        for hit in hits.iter().filter(|hit| hit.take.is_none()) {
            wanted.entry(hit.thread.number).or_default().insert(hit.entry);
        }
        let mut pasts = HashMap::new();
        for hit in hits {
            if let Some(entries) = wanted.remove(&hit.thread.number) {
                pasts.insert(hit.thread.number, Past::of(self, &hit.thread, &entries, progress)?);
            }
        }
        Ok(pasts)
    }
}
