//! What is derived from a thread's log: the rows that lists, trees and filters read.
//!
//! Publishing brings these rows along step by step. Here they are worked out at once, from the log and the
//! last state, so that `verify` can compare and `repair` can write them anew. Both must agree:
//!
//! ```text
//!   first operation ──► project, created, first seen
//!   all operations  ──► branches, commits, folders
//!   last operation  ──► everything else, with its state
//! ```

use std::collections::BTreeSet;

use retake_model::content::ContentId;
use retake_model::object::{Objects, Unavailable, load};
use retake_model::operation::Operation;
use retake_model::sharing::Sharing;
use retake_model::state::ThreadState;
use retake_model::summary::{TakeSummary, ThreadSummary, summarize, summarize_thread};
use retake_model::surroundings::Surroundings;

use crate::facets::{Facet, of_summary};

/// What the log says of where a thread was worked on: the surroundings of its operations, in their order,
/// each only where it differs from the one before.
pub(crate) type Seen = [ContentId];

/// The derived rows of one thread.
#[derive(Debug, PartialEq)]
pub(crate) struct Derived {
    pub(crate) summary: ThreadSummary,
    pub(crate) takes: Vec<TakeSummary>,
    pub(crate) facets: BTreeSet<(Facet, String)>,
}

/// Works out the derived rows; `None` if the first operation does not say which project it belongs to.
///
/// Who may see a thread is not derived, and given by the caller; without it, the marks are those of the first state.
///
/// Surroundings that cannot be read are passed over: where a thread was worked on must not decide whether it
/// can be opened.
pub(crate) fn derive(
    first: &Operation,
    last: &Operation,
    seen: &Seen,
    sharing: Option<Sharing>,
    objects: &(impl Objects + ?Sized),
) -> Result<Option<Derived>, Unavailable> {
    let state: ThreadState = load(objects, last.after)?;
    let readable = |operation: &Operation| Operation {
        surroundings: operation.surroundings.filter(|&id| load::<Surroundings>(objects, id).is_ok()),
        ..operation.clone()
    };
    // Of the first operation, a summary keeps the project, the time and the surroundings. Its state, which
    // may be long and far away, is not needed for any of them.
    let beginning = Operation { after: last.after, ..readable(first) };
    let Some(mut before) = summarize_thread(None, &beginning, &state, objects)? else {
        return Ok(None);
    };
    let mut facets = BTreeSet::new();
    for &id in seen {
        let Ok(around) = load(objects, id) else {
            continue;
        };
        before.last_seen = around;
        facets.extend(of_summary(&before).into_iter().filter(|(facet, _)| *facet != Facet::Tag));
    }
    let Some(summary) = summarize_thread(Some(&before), &readable(last), &state, objects)? else {
        return Ok(None);
    };
    let created_with = || load(objects, first.after).map_or(summary.sharing(), |it| Sharing::of_first(&it));
    let sharing = sharing.unwrap_or_else(created_with);
    let summary = summary.with_sharing(sharing);
    facets.extend(of_summary(&summary));
    let takes =
        state.all_takes(objects)?.iter().map(|take| summarize(take, objects)).collect::<Result<_, _>>()?;
    Ok(Some(Derived { summary, takes, facets }))
}
