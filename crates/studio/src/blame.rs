//! Blame: the turn that wrote each line of a file, with a link to it.
//!
//! ```text
//!   make it faster    1  fn main() {         lines written together are one group,
//!                     2      run();          labelled with the prompt
//!   you               3      // soon
//! ```
//!
//! Rendered in the side panel, or as a full page.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use maud::{Markup, html};
use retake_model::id::{ThreadId, TurnId};
use retake_model::operation::Actor;
use retake_render::number::{count, counted};
use retake_timeline::{Blame, BlameLine, LineOrigin, Reader};

use crate::draw::{address, document, moment, with_visible_controls};
use crate::files::{latest, path_of};
use crate::page_error::PageError;
use crate::question::{self, Prompt};
use crate::studio::{PageQuery, Studio};

/// Lines per page.
const PAGE_LINES: usize = 2_000;

pub(crate) fn draw(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let path = path_of(query)?;
    let row = reader.thread(thread)?;
    let snapshot = latest(&reader, thread, query.take)?
        .ok_or_else(|| PageError::not_found("No files of this take are recorded yet."))?;
    let blame = reader.project(row.home).blame(&path, snapshot, None)?;
    let origins = origins(&reader, thread, &blame)?;
    let name = match path.root.as_str() {
        "" => path.path.to_string(),
        root => format!("{root}:{}", path.path),
    };
    let lines = html! {
        p class="quiet" {
            (counted(blame.lines.len() as u64, "line", "lines")) ", written by "
            (counted(origins.len() as u64, "step", "steps")) ". Click a prompt to see it in the conversation."
        }
        (draw_lines(thread, query, &blame, &origins))
    };
    if query.whole.is_none() {
        return Ok(html! {
            div id="blame" {
                h2 {
                    button type="button" data-act="tab" data-tab="files" aria-label="Back to the files" { "←" }
                    " " code { (with_visible_controls(&name)) }
                    a class="alone-link" href=(address_of(thread, query, &[("whole", "1")])) { "As a page" }
                }
                (lines)
            }
        });
    }
    Ok(document(
        &format!("{name} · {}", row.summary.title),
        &[("thread", thread.to_string()), ("sequence", reader.queries().last_sequence()?.to_string())],
        &html! {
            main id="whole" {
                header id="bar" {
                    a href=(format!("/studio/threads/{thread}")) { "← " (row.summary.title) }
                    h1 { code { (with_visible_controls(&name)) } }
                }
                div id="blame" { (lines) }
            }
        },
    ))
}

/// The address of this page with other parameters.
fn address_of(thread: ThreadId, query: &PageQuery, others: &[(&str, &str)]) -> String {
    let take = query.take.map(|take| take.to_string());
    let known = [("path", query.path.as_deref()), ("root", query.root.as_deref()), ("take", take.as_deref())];
    let known = known.iter().filter_map(|(name, value)| value.map(|value| (*name, value)));
    let all: Vec<(&str, &str)> = known.chain(others.iter().copied()).collect();
    address(&format!("/studio/threads/{thread}/blame"), &all)
}

/// The origin of some lines, as text and link.
struct OriginLabel {
    short: String,
    title: String,
    to: String,
    time: Markup,
}

fn origins(reader: &Reader<'_>, here: ThreadId, blame: &Blame) -> Result<Vec<OriginLabel>, PageError> {
    let mut asked: HashMap<TurnId, Option<Prompt>> = HashMap::new();
    let mut origins = Vec::with_capacity(blame.origins.len());
    for LineOrigin { by, .. } in &blame.origins {
        // All steps of a turn have the same prompt.
        let question = match asked.entry(by.turn) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(place) => {
                place.insert(question::of(reader, &reader.thread(by.thread)?, by.version)?).clone()
            }
        };
        let entry = match &question {
            Some(question) => question::address_of(reader, by.thread, question.entry)?,
            None => None,
        };
        let what = retake_render::operation(&by.kind);
        let who = match &by.actor {
            Actor::Human => "you".to_owned(),
            other => retake_render::actor(other),
        };
        let place = if by.thread == here { String::new() } else { format!(" in “{}”", by.title) };
        origins.push(OriginLabel {
            title: match &question {
                Some(question) => format!("“{}”: {what}{place}, operation {}", question.text, by.version),
                None => format!("{who}: {what}{place}, operation {}", by.version),
            },
            short: question.map_or(who, |question| question.text),
            to: entry.unwrap_or_else(|| format!("/studio/threads/{}?at={}", by.thread, by.version)),
            time: moment(by.time),
        });
    }
    Ok(origins)
}

fn draw_lines(thread: ThreadId, query: &PageQuery, blame: &Blame, origins: &[OriginLabel]) -> Markup {
    let all = blame.lines.len();
    let start = usize::try_from(query.from.unwrap_or(0)).unwrap_or(usize::MAX).min(all);
    let end = all.min(start.saturating_add(PAGE_LINES));
    let piece = |from: usize, words: &str| {
        let from = from.to_string();
        let part = address_of(thread, query, &[("from", &from)]);
        let page = address_of(thread, query, &[("from", &from), ("whole", "1")]);
        html! {
            @if query.whole.is_some() { a href=(page) { (words) } }
            @else { a href=(page) data-act="show" data-src=(part) { (words) } }
        }
    };
    html! {
        table class="blame" {
            thead { tr { @for name in ["Written by", "Line", "Text"] { th scope="col" { span class="hidden" { (name) } } } } }
            @for lines in blame.lines[start..end].chunk_by(|one, next| one.origin == next.origin) {
                tbody { (draw_group(lines, origins)) }
            }
        }
        @if end - start < all {
            p class="notice bounded" {
                "Lines " (count(start as u64 + 1)) " to " (count(end as u64)) " of " (count(all as u64)) " are shown. "
                @if start > 0 { (piece(start.saturating_sub(PAGE_LINES), "Previous lines")) " " }
                @if end < all { (piece(end, "Next lines")) }
            }
        }
    }
}

/// Lines of one origin, with a label next to the first one.
fn draw_group(lines: &[BlameLine], origins: &[OriginLabel]) -> Markup {
    let origin = lines.first().and_then(|line| line.origin).and_then(|index| origins.get(index));
    html! {
        @for (index, line) in lines.iter().enumerate() {
            tr {
                @if index == 0 {
                    th class="who" scope="rowgroup" rowspan=(lines.len()) {
                        div {
                            @match origin {
                                Some(origin) => {
                                    a href=(origin.to) title=(origin.title) { (origin.short) }
                                    @if lines.len() > 1 { span class="quiet" { (origin.time) } }
                                }
                                None => span class="quiet" title="Existed before the first snapshot" { "before Retake" },
                            }
                        }
                    }
                }
                td class="number" { (line.number) }
                td { code { (with_visible_controls(&line.text)) } }
            }
        }
    }
}
