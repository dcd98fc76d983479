//! Two takes side by side, aligned where they diverge.
//!
//! ```text
//!   shared    1 … 14                          collapsed, with the last shared entry shown
//!   ─────────────────────────┬──────────────
//!   prompt and answer        │ prompt and      one row per turn, so that prompts align
//!                            │ answer
//!   ─────────────────────────┴──────────────
//!   differences of files                      each can be copied into the active take
//! ```

use std::collections::HashMap;

use maud::{Markup, html};
use retake_agent::compare::{ComparedTake, Comparison, compare as compare_takes, turns};
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::take::Take;
use retake_model::tree::PathChangeKind;
use retake_render::number::{count, counted};
use retake_timeline::{Changes, DEFAULT_CONTEXT, Detail, DiffOptions, EntryView, FileDiff, Reader, Stat};
use serde_json::json;

use crate::conversation::take_of;
use crate::draw::{address, document, dollars};
use crate::entry::{self, EntryActions};
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};
use crate::{diff, files};

/// Maximum entries per side. The style sheet has this many rows.
const MAX_ENTRIES: usize = 200;
/// Maximum shared entries to list.
const MAX_SHARED_ENTRIES: u64 = 30;

pub(crate) fn draw(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let title = reader.thread(thread)?.summary.title;
    let one = take_of(&reader, thread, query)?;
    let other = take_of(&reader, thread, &PageQuery { take: query.other, ..PageQuery::default() })?;
    if one.id == other.id {
        return Err(PageError::not_found("Both takes are the same; choose another one."));
    }
    let comparison = compare_takes(&reader, thread, &[&one, &other], &studio.setup.prices)?;
    let page = ComparePage { studio, reader: &reader, thread, active: reader.state(thread)?.active };
    // No default take: every action on this page names its take.
    let facts = [("thread", thread.to_string()), ("sequence", reader.queries().last_sequence()?.to_string())];
    let (both, differ) = (page.shared(&one, comparison.shared)?, page.files(&comparison)?);
    Ok(document(
        &format!("Compare · {title}"),
        &facts,
        &html! {
            main id="compare" {
                header id="bar" {
                    a href=(format!("/studio/threads/{thread}")) { "← " (title) }
                    h1 { (one.name) " and " (other.name) }
                }
                div class="top" { (table(&comparison)) (both) }
                div class="sides" {
                    @for side in &comparison.takes { (page.side(side)?) }
                }
                (differ)
            }
        },
    ))
}

/// The data of the page.
struct ComparePage<'a> {
    studio: &'a Studio,
    reader: &'a Reader<'a>,
    thread: ThreadId,
    /// The active take.
    active: TakeId,
}

impl ComparePage<'_> {
    /// The shared entries, collapsed, and the last of them.
    fn shared(&self, take: &Take, shared: u64) -> Result<Markup, PageError> {
        let Some(last) = shared.checked_sub(1) else {
            return Ok(html! { p class="both quiet" { "The takes share no entries." } });
        };
        let views =
            self.reader.entries(self.thread, take).page(shared.saturating_sub(MAX_SHARED_ENTRIES)..shared)?;
        let to = |view: &EntryView| {
            format!("/studio/threads/{}?take={}&from={}#e-{}", self.thread, take.id, view.number - 1, view.id)
        };
        Ok(html! {
            section class="both" {
                h2 class="hidden" { "Shared entries" }
                details {
                    summary { (counted(shared, "shared entry", "shared entries")) }
                    @if last >= MAX_SHARED_ENTRIES { p class="quiet" { "The last " (MAX_SHARED_ENTRIES) " are listed." } }
                    ol start=(shared - views.len() as u64 + 1) {
                        @for view in &views {
                            li { a href=(to(view)) { span class="role" { (view.entry.role) } " " span class="preview" { (view.entry.preview()) } } }
                        }
                    }
                }
                @if let Some(view) = views.last() { (self.entry(view, &self.moved(&views[views.len() - 1..])?)) }
            }
        })
    }

    fn side(&self, side: &ComparedTake) -> Result<Markup, PageError> {
        let (thread, take) = (self.thread, side.take.to_string());
        let shown = &side.entries[..side.entries.len().min(MAX_ENTRIES)];
        // A prompt starts a row, so that prompts of both sides align.
        let turns = turns(shown);
        let moved = self.moved(shown)?;
        Ok(html! {
            section class="side" data-take=(take) aria-label=(format!("Take {}", side.name)) {
                h2 {
                    a href=(format!("/studio/threads/{thread}?take={take}")) { (side.name) }
                    @if side.take == self.active { " " span class="label" { "active" } }
                }
                p class="acts" {
                    button type="button" data-act="switch" data-take=(take) { @if side.take == self.active { "Open" } @else { "Switch to it" } }
                    // The active take cannot be promoted here.
                    @if side.take != self.active {
                        button type="button" data-act="ask" data-about="promote" data-method="POST" data-ask=(format!("/v1/threads/{thread}/takes/{take}/promote"))
                            data-then="/studio/threads/{thread}" title="Turn the take into a separate thread" { "Promote to thread" }
                    }
                }
                @if shown.is_empty() { p class="quiet" { "No entries of its own." } }
                @for turn in turns { div class="cell" { @for view in turn { (self.entry(view, &moved)) } } }
                @if side.entries.len() > MAX_ENTRIES {
                    p class="quiet" { "The first " (MAX_ENTRIES) " of " (counted(side.count, "entry", "entries")) " are shown." }
                }
            }
        })
    }

    /// The file changes of the tool calls in some entries.
    fn moved(&self, views: &[EntryView]) -> Result<HashMap<EntryId, Stat>, PageError> {
        files::changes_by_calls(self.reader, self.thread, views)
    }

    fn entry(&self, view: &EntryView, moved: &HashMap<EntryId, Stat>) -> Markup {
        entry::draw(self.thread, view, &self.studio.setup.prices, moved, EntryActions::Disabled)
    }

    /// The differences between the files of both takes.
    fn files(&self, comparison: &Comparison) -> Result<Markup, PageError> {
        let (one, other) = sides(comparison);
        let files = match (one.files, other.files) {
            (Some(before), Some(after)) => {
                let question = DiffOptions::all(Detail::Hunks(DEFAULT_CONTEXT));
                Some(self.reader.snapshot(before).changes(after, &question)?)
            }
            _ => None,
        };
        Ok(html! {
            section class="differ" {
                h2 { "Files, from " (one.name) " to " (other.name) }
                @match &files {
                    None => p class="quiet" { "The files of one take are not recorded." },
                    Some(files) if files.files.is_empty() => p class="quiet" { "The files are the same." },
                    Some(files) => (self.differing(comparison, files)),
                }
            }
        })
    }

    fn differing(&self, comparison: &Comparison, files: &Changes) -> Markup {
        let (one, other) = sides(comparison);
        // Files can be copied into the active take only.
        let from = [other, one].into_iter().zip([one, other]).find(|(_, into)| into.take == self.active);
        let from = from.map(|(from, _)| from);
        let all = from.map(|from| {
            let title = format!("Restore all files as in {}; an undo reverts it", from.name);
            self.take_over((one, other), from, &[], ("Use all files", &title))
        });
        html! {
            @if let Some(from) = from {
                p class="acts" { (all.unwrap_or_default()) span class="quiet" { "Or single files, from " (from.name) " into the active take." } }
            }
            (diff::draw_with(files, |file| html! {
                @if file.change != PathChangeKind::Removed { (self.blame(file, other.take)) }
                @if let Some(from) = from {
                    (self.take_over((one, other), from, &paths(file), ("Use this file", &format!("Restore it as in {}; an undo reverts it", from.name))))
                }
            }))
        }
    }

    fn blame(&self, file: &FileDiff, take: TakeId) -> Markup {
        let (path, take) = (file.path.path.to_string(), take.to_string());
        let query = [("path", path.as_str()), ("root", &file.path.root), ("take", &take), ("whole", "1")];
        let to = address(&format!("/studio/threads/{}/blame", self.thread), &query);
        html! { a class="blame-of" href=(to) title="Which turn wrote each line" { "Blame" } }
    }

    /// A button that restores files from one of the takes; all of them if `paths` is empty.
    fn take_over(
        &self,
        (one, other): (&ComparedTake, &ComparedTake),
        from: &ComparedTake,
        paths: &[serde_json::Value],
        (label, title): (&str, &str),
    ) -> Markup {
        let Some(snapshot) = from.files else { return html! {} };
        let body = json!({"thread": self.thread, "paths": paths}).to_string();
        let here = format!("/studio/threads/{}/compare?take={}&other={}", self.thread, one.take, other.take);
        html! {
            button type="button" class="take-over" data-act="restore" data-ask=(format!("/v1/snapshots/{snapshot}/restore"))
                data-body=(body) data-then=(here) title=(title) { (label) }
        }
    }
}

/// Both takes.
fn sides(comparison: &Comparison) -> (&ComparedTake, &ComparedTake) {
    match comparison.takes.as_slice() {
        [one, other, ..] => (one, other),
        _ => unreachable!("two takes were compared"),
    }
}

/// The paths of a file in both takes, as API parameters.
fn paths(file: &FileDiff) -> Vec<serde_json::Value> {
    let names = std::iter::once(&file.path.path).chain(&file.from);
    names.map(|path| json!({"root": file.path.root, "path": path.to_string()})).collect()
}

/// A table of the statistics of both takes.
fn table(comparison: &Comparison) -> Markup {
    let row = |name: &str, tell: &dyn Fn(&ComparedTake) -> String| {
        html! { tr { th scope="row" { (name) } @for side in &comparison.takes { td { (tell(side)) } } } }
    };
    html! {
        table class="took" aria-label="Statistics since the takes diverged" {
            thead { tr { td {} @for side in &comparison.takes { th scope="col" { (side.name) } } } }
            tbody {
                (row("Entries", &|side| count(side.count)))
                (row("Tool calls", &|side| match side.calls.failed {
                    0 => count(side.calls.made),
                    failed => format!("{}, {} failed", count(side.calls.made), count(failed)),
                }))
                (row("Tokens", &|side| format!("{} → {}", count(side.usage.total_input()), count(side.usage.output_tokens))))
                (row("Cost", &|side| side.micro_dollars.map_or_else(|| "unknown".to_owned(), dollars)))
                (row("Time", &|side| duration(side.millis)))
                (row("Models", &|side| if side.models.is_empty() { "–".to_owned() } else { side.models.join(", ") }))
            }
        }
    }
}

/// A duration in its two largest units.
fn duration(millis: i64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..10 => format!("{}.{} s", seconds, millis % 1000 / 100),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        let check = |millis: i64, wanted: &str| assert_eq!(duration(millis), wanted, "{millis}");
        check(0, "0.0 s");
        check(9_999, "9.9 s");
        check(59_999, "59 s");
        check(61_000, "1 min 1 s");
        check(7_260_000, "2 h 1 min");
    }
}
