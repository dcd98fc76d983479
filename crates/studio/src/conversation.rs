//! The conversation, rendered in chunks.
//!
//! ```text
//!   spacer above        ─┐
//!   chunk (20 entries)   │  the page holds a few chunks around the viewport and spacers for the rest,
//!   chunk                │  so that 100,000 entries cost as much as 100
//!   spacer below        ─┘
//! ```

use maud::{Markup, html};
use retake_model::id::ThreadId;
use retake_model::take::Take;
use retake_timeline::Reader;

use crate::draw::address;
use crate::entry::{self, EntryActions};
use crate::files;
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};

/// Entries per chunk.
pub(crate) const CHUNK: u64 = 20;
/// Entries per page when filtering by role.
const MAX_FILTERED: usize = 40;
/// Maximum entries to scan for a page.
const MAX_SCANNED: u64 = 3_000;

/// One chunk.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let take = take_of(&reader, thread, query)?;
    let count = take.entries.len();
    let from = query.from.unwrap_or(0).min(count) / CHUNK * CHUNK;
    piece(studio, &reader, thread, &take, query, from)
}

/// The conversation with its last chunk, or the requested one.
pub(crate) fn whole(
    studio: &Studio,
    reader: &Reader<'_>,
    thread: ThreadId,
    take: &Take,
    query: &PageQuery,
) -> Result<Markup, PageError> {
    let count = take.entries.len();
    let last = count.saturating_sub(1);
    let from = query.from.map_or(last, |from| from.min(last)) / CHUNK * CHUNK;
    Ok(html! {
        div id="conversation" role="log" aria-label="Conversation" data-count=(count) data-piece=(CHUNK) tabindex="-1" {
            div class="room" id="above" {}
            (empty(count))
            @if count > 0 { (piece(studio, reader, thread, take, query, from)?) }
            div class="room" id="below" {}
            article class="entry assistant" id="live" hidden aria-live="polite" {
                header { span class="role" { "AI" } span class="facts" { "writing…" } }
                details class="thinking" id="live-thinking" hidden { summary { "Thinking" } pre class="plain" {} }
                pre class="plain" id="live-text" {}
                p id="live-tool" class="quiet" {}
            }
        }
    })
}

fn piece(
    studio: &Studio,
    reader: &Reader<'_>,
    thread: ThreadId,
    take: &Take,
    query: &PageQuery,
    from: u64,
) -> Result<Markup, PageError> {
    let count = take.entries.len();
    let views = reader.entries(thread, take).page(from..(from + CHUNK).min(count))?;
    let moved = files::changes_by_calls(reader, thread, &views)?;
    let acts = if query.at.is_some() { EntryActions::Disabled } else { EntryActions::Enabled };
    Ok(html! {
        section class="piece" data-from=(from) data-count=(count) {
            @for view in &views { (entry::draw(thread, view, &studio.setup.prices, &moved, acts)) }
        }
    })
}

/// Entries of the selected roles, newest last, with a button to scan further back.
pub(crate) fn filtered(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let take = take_of(&reader, thread, query)?;
    let is_chosen = |role: &String| query.roles.iter().any(|chosen| chosen.eq_ignore_ascii_case(role));
    let mut end = query.before.map_or(take.entries.len(), |before| before.min(take.entries.len()));
    let (mut found, mut looked_at) = (Vec::new(), 0);
    while end > 0 && found.len() < MAX_FILTERED && looked_at < MAX_SCANNED {
        let start = end.saturating_sub(CHUNK * 5);
        let mut views = reader.entries(thread, &take).page(start..end)?;
        views.retain(|view| is_chosen(&view.entry.role));
        found.extend(views.into_iter().rev());
        looked_at += end - start;
        end = start;
    }
    found.reverse();
    let moved = files::changes_by_calls(&reader, thread, &found)?;
    let (id, before) = (take.id.to_string(), end.to_string());
    let mut parameters = vec![("take", id.as_str()), ("before", before.as_str())];
    parameters.extend(query.roles.iter().map(|role| ("role", role.as_str())));
    let further = address(&format!("/studio/threads/{thread}/picked"), &parameters);
    Ok(html! {
        div id="picked" tabindex="-1" {
            @if end > 0 { button type="button" data-act="more" data-src=(further) { "Search further back" } }
            @if found.is_empty() { p class="quiet" { "No entries by " (query.roles.join(" or ")) @if end > 0 { " so far" } "." } }
            @for view in &found {
                a class="place" href=(format!("/studio/threads/{thread}?take={}&from={}#e-{}", take.id, view.number - 1, view.id)) { "#" (view.number) }
                (entry::draw(thread, view, &studio.setup.prices, &moved, EntryActions::Disabled))
            }
        }
    })
}

/// Hints for an empty conversation. Always rendered, because an undo may empty it again.
fn empty(count: u64) -> Markup {
    html! {
        div class="empty" hidden[count > 0] {
            h2 { "No messages yet" }
            p { "Write a message below. Without an API key the built-in assistant answers; try one of these:" }
            ul class="try" {
                @for text in [
                    "create hello.txt with Hello from Retake",
                    "edit hello.txt: replace \"Hello\" with \"Good morning\"",
                    "run ls -l",
                ] {
                    li { button type="button" data-act="try" data-text=(text) { (text) } }
                }
            }
            p { "Then undo it (" kbd { "Ctrl" } " " kbd { "Z" } "): message and file are undone together." }
        }
    }
}

/// The take of a query.
pub(crate) fn take_of(reader: &Reader<'_>, thread: ThreadId, query: &PageQuery) -> Result<Take, PageError> {
    let state = match query.at {
        Some(version) => reader.state_at(thread, version)?,
        None => reader.state(thread)?,
    };
    let take = state.take(&reader.queries(), query.take.unwrap_or(state.active))?;
    take.ok_or_else(|| PageError::not_found("No such take; it may have been deleted or undone."))
}
