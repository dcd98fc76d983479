//! Full-text search of entries.

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::time::Timestamp;
use retake_timeline::{
    DeletedFilter, Facet, FoundEntries, FoundEntry, SearchIndex, SearchOrder, SearchQuery, SearchScope,
    ThreadFilter,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::common::{Page, cursor, limit, take_of};
use crate::endpoint::{Answer, Call, Endpoint, NoPath, get};
use crate::problem::Problem;

/// Maximum page size.
const MAX_HITS: usize = 100;

pub(super) fn all() -> Vec<Endpoint> {
    vec![get("/v1/search", search).about(
        "Search",
        "Search entries",
        "In all takes of all threads that match the filters. `q` has words, all of which must match, \"phrases\", \
         prefixes (`wor*`) and excluded words (`-word`).",
    )]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchParameters {
    /// The search terms; without any, everything that matches the filters.
    #[serde(default)]
    q: String,
    /// Only threads of this project.
    project: Option<ProjectId>,
    /// Only this thread.
    thread: Option<ThreadId>,
    /// Only entries of this role; repeat it for several roles.
    #[serde(default)]
    role: Vec<String>,
    /// Only threads whose title contains this text.
    title: Option<String>,
    /// Only threads with this tag.
    tag: Option<String>,
    /// Only threads with changes made on this git branch.
    branch: Option<String>,
    /// Only threads with changes made at this git commit.
    commit: Option<String>,
    /// Only threads with changes made in this folder.
    directory: Option<String>,
    /// Only entries created or edited at this time or later.
    since: Option<Timestamp>,
    /// Only entries created or edited at this time or earlier.
    until: Option<Timestamp>,
    /// Include versions that are no longer in any take: edited, deleted or undone.
    #[serde(default)]
    history: bool,
    /// Search the entries of one take of `thread` as they were at this version: a number, a saved name or `turn:NUMBER`. The
    /// filters of threads do not apply.
    at: Option<String>,
    /// The take for `at`; the active one by default.
    take: Option<TakeId>,
    /// Include deleted threads.
    #[serde(default)]
    deleted: bool,
    /// Sort order.
    #[serde(default)]
    order: SearchOrder,
    /// Page size: 1 to 100, 20 by default.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
    /// `next` of the previous page: the number of hits to skip.
    cursor: Option<String>,
}

fn search(call: &Call<'_, NoPath, SearchParameters>) -> Result<Answer<Page<FoundEntry>>, Problem> {
    let asked = &call.query;
    let offset = usize::try_from(cursor::<u64>(asked.cursor.as_deref())?.unwrap_or(0)).unwrap_or(usize::MAX);
    let facets = [
        (Facet::Tag, &asked.tag),
        (Facet::Branch, &asked.branch),
        (Facet::Commit, &asked.commit),
        (Facet::Directory, &asked.directory),
    ];
    let threads = ThreadFilter {
        project: asked.project,
        deleted: if asked.deleted { DeletedFilter::Shown } else { DeletedFilter::Hidden },
        facets: facets.into_iter().filter_map(|(facet, text)| Some((facet, text.clone()?))).collect(),
        title: asked.title.clone(),
        ..ThreadFilter::default()
    };
    let query = SearchQuery {
        words: asked.q.clone(),
        roles: asked.role.clone(),
        thread: asked.thread,
        threads,
        since: asked.since,
        until: asked.until,
        scope: if asked.history { SearchScope::History } else { SearchScope::Now },
        order: asked.order,
        limit: limit(asked.limit, 20, MAX_HITS)?,
        offset,
    };
    let timeline = &call.service.timeline;
    let reader = timeline.read()?;
    if let Some(thread) = asked.thread {
        reader.thread(thread)?;
    }
    let index = SearchIndex::open(timeline.store().folder())?;
    let found = match (&asked.at, asked.thread) {
        (None, _) if asked.take.is_some() => return Err(Problem::refused("`take` needs `at`")),
        (None, _) => FoundEntries::search(&reader, &index, &query, &mut |_, _| ())?,
        (Some(_), None) => return Err(Problem::refused("`at` needs `thread`")),
        (Some(text), Some(thread)) => {
            let take = take_of(&reader, &reader.state(thread)?, asked.take)?.id;
            let version = reader.history(thread).in_take(Some(take)).version_named(text)?;
            FoundEntries::search_at(&reader, &index, &query, (thread, take, version))?
        }
    };
    let next = found.more.then(|| offset.saturating_add(query.limit).to_string());
    Ok(Answer::of(Page { items: found.hits, next }))
}
