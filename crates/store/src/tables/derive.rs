//! Rows derived from a thread's log, which lists, trees and filters read.
//!
//! Publishing updates these rows step by step. This module computes them from the whole log and the last state, so
//! that `verify` can compare them and `repair` can rebuild them. Both must agree:
//!
//! ```text
//!   first operation ──► project, created, first seen
//!   all operations  ──► branches, commits, folders
//!   last operation  ──► everything else, with its state
//! ```

use std::collections::BTreeSet;

use retake_model::content::ContentId;
use retake_model::environment::Environment;
use retake_model::object::{ObjectError, Objects, load};
use retake_model::operation::Operation;
use retake_model::sharing::Sharing;
use retake_model::state::ThreadState;
use retake_model::summary::{TakeSummary, ThreadSummary, summarize, summarize_thread};

use crate::tables::facets::{Facet, of_summary};

/// The environments of a thread's operations in order, without consecutive duplicates.
pub(crate) type EnvironmentHistory = [ContentId];

#[derive(Debug, PartialEq)]
pub(crate) struct DerivedRows {
    pub(crate) summary: ThreadSummary,
    pub(crate) takes: Vec<TakeSummary>,
    pub(crate) facets: BTreeSet<(Facet, String)>,
}

/// Computes the derived rows; `None` if the first operation names no project.
///
/// Visibility is not derived. The caller passes it; without it, that of the first state applies.
///
/// Environments that cannot be read are skipped: they must not decide whether a thread can be opened.
pub(crate) fn derive(
    first: &Operation,
    last: &Operation,
    seen: &EnvironmentHistory,
    sharing: Option<Sharing>,
    objects: &(impl Objects + ?Sized),
) -> Result<Option<DerivedRows>, ObjectError> {
    let state: ThreadState = load(objects, last.after)?;
    let readable = |operation: &Operation| Operation {
        environment: operation.environment.filter(|&id| load::<Environment>(objects, id).is_ok()),
        ..operation.clone()
    };
    // The summary needs only the project, time and environment of the first operation, so the last state stands in
    // for the first, which may be long.
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
    let created_with =
        || load(objects, first.after).map_or(summary.sharing(), |it| Sharing::from_first_state(&it));
    let sharing = sharing.unwrap_or_else(created_with);
    let summary = summary.with_sharing(sharing);
    facets.extend(of_summary(&summary));
    let takes =
        state.all_takes(objects)?.iter().map(|take| summarize(take, objects)).collect::<Result<_, _>>()?;
    Ok(Some(DerivedRows { summary, takes, facets }))
}
