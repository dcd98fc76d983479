//! A search: the query and its hits.
//!
//! ```text
//!   words ─► expression ─► index: ordered docs ─┬─► thread matches? ─► in a take now? ─► text ─► hit
//!                                               └── one after another, until there are enough
//! ```
//!
//! A search with more matches than [`MOST_RANKED`] shows the last indexed of them first: its words are so common that they
//! say little about an entry, and ranking reads every match. Otherwise hits are ranked by bm25, which favours rare words, repeated words and short entries, times a factor for recency: 2 for the newest entry, 1.5 for one a month older, approaching 1 for old ones. So the newer of two similar matches comes first, but a much better match is never hidden by its age.

use serde::Deserialize;
use std::collections::HashMap;
use std::ops::ControlFlow;

use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::object::load;
use retake_model::time::Timestamp;

use super::SearchError;
use super::docs::{Doc, each_doc};
use super::expression::Expression;
use super::file::IndexFile;
use super::follow::indexed_text;
use super::new_versions::unless_damaged;
use super::positions::PositionLookup;
use super::segment::SegmentedText;
use super::snippet::Snippet;
use crate::StoreError;
use crate::log::queries::Queries;
use crate::tables::threads::{DeletedFilter, ThreadFilter, ThreadRow};

/// A search query.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    /// Words, phrases in quotes, prefixes with `*`, exclusions with `-`. An empty query matches everything.
    pub words: String,
    /// Only entries with these roles, ignoring case; all if empty.
    pub roles: Vec<String>,
    pub thread: Option<ThreadId>,
    pub threads: ThreadFilter,
    /// Only entries created or last edited at this time or later.
    pub since: Option<Timestamp>,
    /// Only entries created or last edited at this time or earlier.
    pub until: Option<Timestamp>,
    /// Current versions or all.
    pub scope: SearchScope,
    pub order: SearchOrder,
    /// The most hits to return.
    pub limit: usize,
    /// Hits to skip.
    pub offset: usize,
}

/// Which versions of entries to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchScope {
    /// Those in some take now.
    #[default]
    Now,
    /// All versions ever.
    History,
}

/// The order of hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchOrder {
    /// Best matches first, with a slight preference for newer ones. Without words, newest first.
    #[default]
    Relevance,
    /// Newest first.
    Newest,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    pub thread: ThreadRow,
    /// The take that contains it now, preferably the active one; `None` if no take does.
    pub take: Option<TakeId>,
    /// Its position in that take, counted from 0.
    pub position: Option<u64>,
    pub entry: EntryId,
    pub version: ContentId,
    pub role: String,
    /// When this version was created.
    pub time: Timestamp,
    pub snippet: Snippet,
}

impl Default for SearchQuery {
    fn default() -> Self {
        Self {
            words: String::new(),
            roles: Vec::new(),
            thread: None,
            threads: ThreadFilter::default(),
            since: None,
            until: None,
            scope: SearchScope::default(),
            order: SearchOrder::default(),
            limit: 20,
            offset: 0,
        }
    }
}

impl SearchQuery {
    /// Searches current entries for these words.
    pub fn words(words: impl Into<String>) -> Self {
        Self { words: words.into(), ..Self::default() }
    }
}

pub(super) fn run(
    file: &IndexFile,
    reading: &Queries<'_>,
    query: &SearchQuery,
) -> Result<Vec<Hit>, SearchError> {
    let expression = Expression::new(&query.words, &file.scratch)?;
    let mut hits = Vec::new();
    if expression.unmatchable || query.limit == 0 {
        return Ok(hits);
    }
    let mut threads = ThreadLookup::new(reading, &query.threads, query.thread)?;
    let mut presence = PositionLookup::new(reading);
    let mut skipped = 0;
    let numbers = threads.numbers();
    each_doc(&file.connection, query, &expression, numbers.as_deref(), &mut |doc| {
        let Some(thread) = threads.get(doc.thread)? else {
            return Ok(ControlFlow::Continue(()));
        };
        let place = presence.place(doc.thread, doc.entry, doc.version)?;
        if place.is_none() && query.scope == SearchScope::Now {
            return Ok(ControlFlow::Continue(()));
        }
        if skipped < query.offset {
            skipped += 1;
            return Ok(ControlFlow::Continue(()));
        }
        let Some((version, snippet)) = shown(file, reading, &expression, doc)? else {
            return Ok(ControlFlow::Continue(()));
        };
        hits.push(Hit {
            thread: thread.clone(),
            take: place.map(|place| place.take),
            position: place.map(|place| place.position),
            entry: doc.entry,
            version: doc.version,
            time: version.edited.unwrap_or(version.created),
            role: version.role,
            snippet,
        });
        Ok(if hits.len() == query.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(hits)
}

/// Loads a hit and its snippet; `None` if it cannot be read, or does not match after all.
fn shown(
    file: &IndexFile,
    reading: &Queries<'_>,
    expression: &Expression,
    doc: &Doc,
) -> Result<Option<(EntryVersion, Snippet)>, SearchError> {
    let version = load::<EntryVersion>(reading, doc.version).map_err(StoreError::from);
    let Some(version) = unless_damaged(version)? else {
        return Ok(None);
    };
    let text = indexed_text(&version);
    let matches = match &expression.wanted {
        Some(wanted) => file.scratch.matches(wanted, &SegmentedText::new(&text))?,
        None => Some(Vec::new()),
    };
    Ok(matches.map(|matches| (version, Snippet::new(&text, &matches))))
}

/// The threads in which hits may be.
struct ThreadLookup<'search, 'reading> {
    reading: &'search Queries<'reading>,
    known: HashMap<i64, Option<ThreadRow>>,
    /// The filter for unknown threads; `None` if all matching threads are known.
    others: Option<DeletedFilter>,
}

impl<'search, 'reading> ThreadLookup<'search, 'reading> {
    fn new(
        reading: &'search Queries<'reading>,
        filter: &ThreadFilter,
        only: Option<ThreadId>,
    ) -> Result<Self, StoreError> {
        let restricted = filter.project.is_some()
            || !filter.facets.is_empty()
            || filter.title.is_some()
            || filter.deleted == DeletedFilter::Only;
        let rows = match only {
            // One thread is decided by its row, unless facets are filtered.
            Some(id) if filter.facets.is_empty() => {
                reading.thread(id)?.into_iter().filter(|row| filter.matches(row)).collect()
            }
            Some(id) => {
                let mut rows = reading.threads(filter)?;
                rows.retain(|row| row.summary.id == id);
                rows
            }
            None if restricted => reading.threads(filter)?,
            None => Vec::new(),
        };
        let known = rows.into_iter().map(|row| (row.number, Some(row))).collect();
        let others = (!restricted && only.is_none()).then_some(filter.deleted);
        Ok(Self { reading, known, others })
    }

    /// The row numbers of the threads; `None` if not all are known.
    fn numbers(&self) -> Option<Vec<i64>> {
        self.others.is_none().then(|| self.known.keys().copied().collect())
    }

    /// The thread with this row number, if it matches.
    fn get(&mut self, number: i64) -> Result<Option<&ThreadRow>, StoreError> {
        if let Some(deleted) = self.others
            && !self.known.contains_key(&number)
        {
            let row = self.reading.thread_by_number(number)?;
            let row = row.filter(|row| deleted == DeletedFilter::Shown || row.summary.deleted.is_none());
            self.known.insert(number, row);
        }
        Ok(self.known.get(&number).and_then(Option::as_ref))
    }
}
