//! The filter of the thread list: search text and kind.
//!
//! The form is not part of the list, so that the list can be refreshed while the user types. Links in the list keep the
//! filter.

use std::collections::BTreeSet;

use maud::{Markup, html};
use retake_model::id::ThreadId;
use retake_timeline::{DeletedFilter, ThreadFilter, ThreadSelection};

use crate::draw::address;
use crate::studio::PageQuery;

/// The kinds: parameter value, label, and message for an empty list.
const KINDS: [(&str, &str, &str); 5] = [
    ("", "All", "No threads yet."),
    ("pinned", "Pinned", "No thread is pinned."),
    ("private", "Private", "No thread is private."),
    ("running", "Running", "No turn is running."),
    ("deleted", "Deleted", "No thread is deleted."),
];

/// The selected kind.
fn kind(query: &PageQuery) -> &'static str {
    let chosen = query.only.as_deref().unwrap_or_default();
    KINDS.iter().find(|(name, ..)| *name == chosen).map_or("", |(name, ..)| name)
}

/// The search text.
fn typed(query: &PageQuery) -> &str {
    query.q.as_deref().unwrap_or_default().trim()
}

/// The filter for the timeline.
pub(super) fn of(query: &PageQuery, running: impl Iterator<Item = ThreadId>) -> ThreadFilter {
    let (deleted, only) = match kind(query) {
        "pinned" => (DeletedFilter::Hidden, Some(ThreadSelection::Pinned)),
        "private" => (DeletedFilter::Hidden, Some(ThreadSelection::Private)),
        "running" => (DeletedFilter::Hidden, Some(ThreadSelection::Ids(running.collect::<BTreeSet<_>>()))),
        "deleted" => (DeletedFilter::Only, None),
        _ => (DeletedFilter::Hidden, None),
    };
    let name_query = Some(typed(query)).filter(|text| !text.is_empty()).map(str::to_owned);
    ThreadFilter { deleted, only, name_query, ..ThreadFilter::default() }
}

/// The message for an empty list.
pub(super) fn nothing(query: &PageQuery) -> &'static str {
    if !typed(query).is_empty() {
        return "No thread with this name. Press Enter to search conversations.";
    }
    KINDS.iter().find(|(name, ..)| *name == kind(query)).map_or("", |(.., nothing)| nothing)
}

/// An address that keeps the filter. A search by name ends with a click; a tag stays.
pub(super) fn with_filter(path: &str, query: &PageQuery, more: &[(&str, &str)]) -> String {
    let tag = Some(typed(query)).filter(|text| text.starts_with('#'));
    let mut fields = more.to_vec();
    fields.extend([("only", Some(kind(query))), ("q", tag)].into_iter().filter_map(|(name, value)| {
        let value = value.filter(|value| !value.is_empty())?;
        Some((name, value))
    }));
    if fields.is_empty() { path.to_owned() } else { address(path, &fields) }
}

/// The search field and the kinds, with hidden parameters for the list.
pub(super) fn draw(query: &PageQuery) -> Markup {
    let take = query.take.map(|take| take.to_string());
    html! {
        form id="filters" role="search" aria-label="Threads" autocomplete="off" {
            @for (name, value) in [("path", &query.path), ("take", &take)] {
                @if let Some(value) = value { input type="hidden" name=(name) value=(value); }
            }
            input type="search" id="find" name="q" placeholder="Find a thread or #tag" value=(typed(query))
                aria-label="Find a thread by name, take, tag or id; press Enter to search all conversations";
            fieldset class="kinds" {
                legend class="hidden" { "Show" }
                @for (name, label, _) in KINDS {
                    label { input type="radio" name="only" value=(name) checked[name == kind(query)]; span { (label) } }
                }
            }
        }
    }
}
