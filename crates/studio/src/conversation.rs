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
use retake_timeline::Looking;

use crate::draw::address;
use crate::entry::{self, Acts};
use crate::failed::Failed;
use crate::files;
use crate::studio::{Asked, Studio};

/// Entries per chunk.
pub(crate) const PIECE: u64 = 20;
/// Entries per page when filtering by role.
const PICKED: usize = 40;
/// Maximum entries to scan for a page.
const LOOKED_AT: u64 = 3_000;

/// One chunk.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let looking = studio.timeline.look()?;
    let take = take_of(&looking, thread, asked)?;
    let count = take.entries.len();
    let from = asked.from.unwrap_or(0).min(count) / PIECE * PIECE;
    piece(studio, &looking, thread, &take, asked, from)
}

/// The conversation with its last chunk, or the requested one.
pub(crate) fn whole(
    studio: &Studio,
    looking: &Looking<'_>,
    thread: ThreadId,
    take: &Take,
    asked: &Asked,
) -> Result<Markup, Failed> {
    let count = take.entries.len();
    let last = count.saturating_sub(1);
    let from = asked.from.map_or(last, |from| from.min(last)) / PIECE * PIECE;
    Ok(html! {
        div id="conversation" role="log" aria-label="Conversation" data-count=(count) data-piece=(PIECE) tabindex="-1" {
            div class="room" id="above" {}
            (empty(count))
            @if count > 0 { (piece(studio, looking, thread, take, asked, from)?) }
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
    looking: &Looking<'_>,
    thread: ThreadId,
    take: &Take,
    asked: &Asked,
    from: u64,
) -> Result<Markup, Failed> {
    let count = take.entries.len();
    let views = looking.page(thread, take, from..(from + PIECE).min(count))?;
    let moved = files::moved_by_calls(looking, thread, &views)?;
    let acts = if asked.at.is_some() { Acts::Withheld } else { Acts::Offered };
    Ok(html! {
        section class="piece" data-from=(from) data-count=(count) {
            @for view in &views { (entry::draw(thread, view, &studio.setup.prices, &moved, acts)) }
        }
    })
}

/// Entries of the selected roles, newest last, with a button to scan further back.
pub(crate) fn picked(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let looking = studio.timeline.look()?;
    let take = take_of(&looking, thread, asked)?;
    let is_chosen = |role: &String| asked.roles.iter().any(|chosen| chosen.eq_ignore_ascii_case(role));
    let mut end = asked.before.map_or(take.entries.len(), |before| before.min(take.entries.len()));
    let (mut found, mut looked_at) = (Vec::new(), 0);
    while end > 0 && found.len() < PICKED && looked_at < LOOKED_AT {
        let start = end.saturating_sub(PIECE * 5);
        let mut views = looking.page(thread, &take, start..end)?;
        views.retain(|view| is_chosen(&view.entry.role));
        found.extend(views.into_iter().rev());
        looked_at += end - start;
        end = start;
    }
    found.reverse();
    let moved = files::moved_by_calls(&looking, thread, &found)?;
    let (id, before) = (take.id.to_string(), end.to_string());
    let mut parameters = vec![("take", id.as_str()), ("before", before.as_str())];
    parameters.extend(asked.roles.iter().map(|role| ("role", role.as_str())));
    let further = address(&format!("/studio/threads/{thread}/picked"), &parameters);
    Ok(html! {
        div id="picked" tabindex="-1" {
            @if end > 0 { button type="button" data-act="more" data-src=(further) { "Search further back" } }
            @if found.is_empty() { p class="quiet" { "No entries by " (asked.roles.join(" or ")) @if end > 0 { " so far" } "." } }
            @for view in &found {
                a class="place" href=(format!("/studio/threads/{thread}?take={}&from={}#e-{}", take.id, view.number - 1, view.id)) { "#" (view.number) }
                (entry::draw(thread, view, &studio.setup.prices, &moved, Acts::Withheld))
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
pub(crate) fn take_of(looking: &Looking<'_>, thread: ThreadId, asked: &Asked) -> Result<Take, Failed> {
    let state = match asked.at {
        Some(version) => looking.state_at(thread, version)?,
        None => looking.state(thread)?,
    };
    let take = state.take(&looking.queries(), asked.take.unwrap_or(state.active))?;
    take.ok_or_else(|| Failed::not_found("No such take; it may have been deleted or undone."))
}
