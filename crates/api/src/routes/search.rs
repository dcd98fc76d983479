//! Search: entries by their words.

use retake_model::id::{ProjectId, ThreadId};
use retake_model::time::Timestamp;
use retake_timeline::FoundEntry;
use retake_timeline::store::{Deleted, Facet, Order, Scope, SearchIndex, SearchQuery, ThreadFilter};
use schemars::JsonSchema;
use serde::Deserialize;

use super::common::{Page, limit, number};
use crate::endpoint::{Answer, Call, Endpoint, NoPath, get};
use crate::problem::Problem;

/// The longest page of hits.
const MOST_HITS: usize = 100;

pub(super) fn all() -> Vec<Endpoint> {
    vec![get("/v1/search", search).about(
        "Search",
        "Find entries by their words",
        "In all takes of all threads that the filters let through. `q` has words that must all be there, phrases in \
         quotes, beginnings with `*`, and words that must not be there with `-` before them.",
    )]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindQuery {
    /// What to look for; everything that the filters let through if nothing is said.
    #[serde(default)]
    q: String,
    /// Only threads of this project.
    project: Option<ProjectId>,
    /// Only this thread.
    thread: Option<ThreadId>,
    /// Only what that role said; several if it is given several times.
    #[serde(default)]
    role: Vec<String>,
    /// Only threads whose title has this text in it.
    title: Option<String>,
    /// Only threads with this tag.
    tag: Option<String>,
    /// Only threads with changes made on this git branch.
    branch: Option<String>,
    /// Only threads with changes made at this git commit.
    commit: Option<String>,
    /// Only threads with changes made in this folder.
    directory: Option<String>,
    /// Only what was said or edited then or later.
    since: Option<Timestamp>,
    /// Only what was said or edited then or earlier.
    until: Option<Timestamp>,
    /// Whether versions count that no take holds any more: edited away, deleted, undone.
    #[serde(default)]
    history: bool,
    /// Whether threads count that were put away.
    #[serde(default)]
    deleted: bool,
    /// What comes first.
    #[serde(default)]
    order: WhichOrder,
    /// Page size: 1 to 100, 20 by default.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
    /// Where the last page ended: how many hits to pass over.
    cursor: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WhichOrder {
    /// What matches best.
    #[default]
    Relevance,
    /// The newest.
    Newest,
}

fn search(call: &Call<'_, NoPath, FindQuery>) -> Result<Answer<Page<FoundEntry>>, Problem> {
    let asked = &call.query;
    let offset = usize::try_from(number(asked.cursor.as_deref())?.unwrap_or(0)).unwrap_or(usize::MAX);
    let facets = [
        (Facet::Tag, &asked.tag),
        (Facet::Branch, &asked.branch),
        (Facet::Commit, &asked.commit),
        (Facet::Directory, &asked.directory),
    ];
    let threads = ThreadFilter {
        project: asked.project,
        deleted: if asked.deleted { Deleted::Shown } else { Deleted::Hidden },
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
        scope: if asked.history { Scope::History } else { Scope::Now },
        order: match asked.order {
            WhichOrder::Relevance => Order::Relevance,
            WhichOrder::Newest => Order::Newest,
        },
        limit: limit(asked.limit, 20, MOST_HITS)?,
        offset,
    };
    let timeline = &call.service.timeline;
    let looking = timeline.look()?;
    if let Some(thread) = asked.thread {
        looking.thread(thread)?;
    }
    let index = SearchIndex::open(timeline.store().folder())?;
    let found = looking.search(&index, &query, &mut |_, _| ())?;
    let next = found.more.then(|| offset.saturating_add(query.limit).to_string());
    Ok(Answer::of(Page { items: found.hits, next }))
}
