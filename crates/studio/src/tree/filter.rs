//! Which threads are shown: what somebody typed, and which kind they chose.
//!
//! The form stands beside the list and not in it, so that the list can be drawn again while somebody types. A link in the
//! list leads to a page with the same filter.

use std::collections::BTreeSet;

use maud::{Markup, html};
use retake_model::id::ThreadId;
use retake_timeline::store::{Deleted, Only, ThreadFilter};

use crate::draw::address;
use crate::studio::Asked;

/// The kinds to choose from: as an address names them, as people do, and what is said where there is none.
const KINDS: [(&str, &str, &str); 5] = [
    ("", "All", "No threads yet."),
    ("pinned", "Pinned", "No thread is pinned."),
    ("private", "Private", "No thread is private."),
    ("running", "Running", "Nothing runs."),
    ("put-away", "Put away", "No thread is put away."),
];

/// The kind that is chosen.
fn kind(asked: &Asked) -> &'static str {
    let chosen = asked.only.as_deref().unwrap_or_default();
    KINDS.iter().find(|(name, ..)| *name == chosen).map_or("", |(name, ..)| name)
}

/// What was typed.
fn typed(asked: &Asked) -> &str {
    asked.q.as_deref().unwrap_or_default().trim()
}

/// The filter as the timeline knows it.
pub(super) fn of(asked: &Asked, running: impl Iterator<Item = ThreadId>) -> ThreadFilter {
    let (deleted, only) = match kind(asked) {
        "pinned" => (Deleted::Hidden, Some(Only::Pinned)),
        "private" => (Deleted::Hidden, Some(Only::Private)),
        "running" => (Deleted::Hidden, Some(Only::These(running.collect::<BTreeSet<_>>()))),
        "put-away" => (Deleted::Only, None),
        _ => (Deleted::Hidden, None),
    };
    let called = Some(typed(asked)).filter(|text| !text.is_empty()).map(str::to_owned);
    ThreadFilter { deleted, only, called, ..ThreadFilter::default() }
}

/// What is said where nothing is shown.
pub(super) fn nothing(asked: &Asked) -> &'static str {
    if !typed(asked).is_empty() {
        return "No thread is called that. Enter looks for it in what was said.";
    }
    KINDS.iter().find(|(name, ..)| *name == kind(asked)).map_or("", |(.., nothing)| nothing)
}

/// An address with the filter, so that a page keeps it. What was looked for by name is found then; a tag stays.
pub(super) fn kept(path: &str, asked: &Asked, more: &[(&str, &str)]) -> String {
    let tag = Some(typed(asked)).filter(|text| text.starts_with('#'));
    let mut fields = more.to_vec();
    fields.extend([("only", Some(kind(asked))), ("q", tag)].into_iter().filter_map(|(name, value)| {
        let value = value.filter(|value| !value.is_empty())?;
        Some((name, value))
    }));
    if fields.is_empty() { path.to_owned() } else { address(path, &fields) }
}

/// The field, and below it the kinds. What else the list must know goes along.
pub(super) fn draw(asked: &Asked) -> Markup {
    let take = asked.take.map(|take| take.to_string());
    html! {
        form id="filters" role="search" aria-label="Threads" autocomplete="off" {
            @for (name, value) in [("path", &asked.path), ("take", &take)] {
                @if let Some(value) = value { input type="hidden" name=(name) value=(value); }
            }
            input type="search" id="find" name="q" placeholder="Find a thread or #tag" value=(typed(asked))
                aria-label="Find a thread by its name, a take, a tag or an id; Enter finds words in all of them";
            fieldset class="kinds" {
                legend class="hidden" { "Show" }
                @for (name, label, _) in KINDS {
                    label { input type="radio" name="only" value=(name) checked[name == kind(asked)]; span { (label) } }
                }
            }
        }
    }
}
