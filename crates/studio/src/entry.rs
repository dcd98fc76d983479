//! One entry, as a person sees it.

use std::collections::HashMap;

use maud::{Markup, html};
use retake_agent::provider::prices::Prices;
use retake_model::entry::{Block, EntryVersion, RoleKind};
use retake_model::id::{EntryId, ThreadId};
use retake_timeline::{EntryView, Stat};
use retake_words::number::{count, counted};

use crate::draw::{dollars, exact, moment};
use crate::{diff, markdown};

/// A longer result of a tool is folded, and shown as far as this.
const SHOWN_OF_RESULT: usize = 20_000;

/// So much of a version's name tells it from another of the same entry.
const VERSION: usize = 16;
/// Fields that say what a summary stands for.
const KEPT_BY_SUMMARIES: [&str; 2] = ["summary_of_entries", "originals_at_version"];

/// Whether an entry can be acted on where it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acts {
    /// It is where work goes on.
    Offered,
    /// It is looked at: in the past, beside another take, or picked out from others.
    Withheld,
}

/// An entry. The module knows it by its id, and whether it is up to date by its version.
/// `moved` says what calls did to files.
pub(crate) fn draw(
    thread: ThreadId,
    view: &EntryView,
    prices: &Prices,
    moved: &HashMap<EntryId, Stat>,
    acts: Acts,
) -> Markup {
    let entry = &view.entry;
    let (id, kind) = (view.id.to_string(), class_of(&entry.role));
    let (collapsed, source) = (view.shown.collapsed, view.shown.source);
    let shown = format!("{}{}", u8::from(collapsed), u8::from(source));
    html! {
        article class=(format!("entry {kind}")) id=(format!("e-{id}")) data-role=(entry.role)
            data-version=(format!("{}-{shown}", &view.version.to_string()[..VERSION])) data-number=(view.number) tabindex="-1"
            aria-label=(format!("Entry {} by {}", view.number, entry.role)) {
            header {
                @if acts == Acts::Offered {
                    button class="role" type="button" data-act="dialog" data-about="role" title="Change the role" { (entry.role) }
                } @else {
                    span class="role" { (entry.role) }
                }
                span class="facts" {
                    (moment(entry.created))
                    @if entry.edited.is_some() { span class="edited" { "edited" } }
                    @if let Some(model) = &entry.model { span class="model" { (model) } }
                    (cost(entry, prices))
                }
                @if acts == Acts::Offered { span class="acts" {
                    (act("edit", "Edit", "Key E"))
                    (shown_as("collapse", if collapsed { "Expand" } else { "Collapse" }, "Key C", [!collapsed, source]))
                    (shown_as("source", if source { "Read" } else { "Source" }, "As it is written, or as it is read", [collapsed, !source]))
                    (act("copy", "Copy", "The text"))
                    (act("insert", "Insert", "Behind this one"))
                    (act("branch", "Branch", "A take from here, with its files (B)"))
                    @if RoleKind::of(&entry.role) == RoleKind::User { (act("retry", "Retry", "In a take of its own (R)")) }
                    (act("delete", "Delete", "An undo brings it back (Del)"))
                } }
            }
            @if view.shown.collapsed {
                p class="preview" { (entry.preview()) }
            } @else if view.shown.source {
                pre class="plain" { (source_of(entry)) }
            } @else {
                div class="said" {
                    @for block in &entry.blocks { (draw_block(thread, view, block)) }
                    (extra(thread, entry))
                    @if let Some(stat) = moved.get(&view.id) {
                        details class="files-of" data-src=(format!("/studio/threads/{thread}/call?entry={}", view.id)) {
                            summary title="What it did to files" { (diff::stat(stat)) }
                        }
                    }
                }
            }
        }
    }
}

/// An entry as it is written: its text, or all of it where there is none.
fn source_of(entry: &EntryVersion) -> String {
    match entry.editable() {
        text if text.is_empty() => serde_json::to_string_pretty(&entry.blocks).unwrap_or_default(),
        text => text,
    }
}

/// A button of an entry. There are many of them: they say no more than they must.
fn act(act: &str, label: &str, title: &str) -> Markup {
    html! { button data-act=(act) title=(title) { (label) } }
}

/// A button that shows an entry in another way.
fn shown_as(act: &str, label: &str, title: &str, [collapsed, source]: [bool; 2]) -> Markup {
    let shown = format!("{}{}", u8::from(collapsed), u8::from(source));
    html! { button data-act=(act) data-shown=(shown) title=(title) { (label) } }
}

/// Fields that came with an entry and that nobody here knows; and the way to what a summary stands for.
fn extra(thread: ThreadId, entry: &EntryVersion) -> Markup {
    let number = |name: &str| entry.extra.get(name).and_then(|value| value.as_str().parse::<u64>().ok());
    let summary = number("summary_of_entries").zip(number("originals_at_version"));
    let known = |name: &str| name == "provider" || summary.is_some() && KEPT_BY_SUMMARIES.contains(&name);
    let others: Vec<_> = entry.extra.iter().filter(|(name, _)| !known(name)).collect();
    html! {
        @if let Some((many, version)) = summary {
            p class="quiet" {
                "A summary of " (counted(many, "entry", "entries")) ". "
                a href=(format!("/studio/threads/{thread}?at={version}")) { "See the originals" }
            }
        }
        @if !others.is_empty() {
            details class="extra" {
                summary { "Other fields" }
                dl class="fields" {
                    @for (name, value) in others {
                        dt { (exact(name)) }
                        dd { code { (exact(&value.as_str().chars().take(SHOWN_OF_RESULT).collect::<String>())) } }
                    }
                }
            }
        }
    }
}

/// What a role looks like.
pub(crate) fn class_of(role: &str) -> &'static str {
    match RoleKind::of(role) {
        RoleKind::User => "user",
        RoleKind::Assistant => "assistant",
        RoleKind::System => "system",
        RoleKind::Other if role == "Tool" => "tool",
        RoleKind::Other => "other",
    }
}

fn cost(entry: &EntryVersion, prices: &Prices) -> Markup {
    let Some(usage) = &entry.usage else { return html! {} };
    let price =
        entry.model.as_deref().and_then(|model| prices.cost(entry.provider().as_deref(), model, usage));
    html! {
        span class="usage" title="Tokens read and written" {
            (count(usage.read())) " → " (count(usage.output_tokens))
            @if let Some(price) = price { " · " (dollars(price)) }
        }
    }
}

fn draw_block(thread: ThreadId, view: &EntryView, block: &Block) -> Markup {
    let entry = view.id;
    match block {
        // A prompt is shown as it was typed: `2*3*4` has its stars.
        Block::Text { text, .. } if is_prompt(&view.entry.role) => html! { div class="words" { (text) } },
        Block::Text { text, .. } => markdown::draw(text),
        Block::Thinking { text, .. } => html! {
            details class="thinking" { summary { "Thought" } (markdown::draw(text)) }
        },
        Block::ToolCall { name, input, .. } => call(name, input.as_str()),
        Block::ToolResult { text, failed, .. } => result(text, *failed),
        Block::Image { blob, media, .. } => html! {
            img class="picture" alt=(format!("A picture ({media})"))
                src=(format!("/studio/threads/{thread}/picture?entry={entry}&q={blob}"));
        },
        Block::Unknown { kind, .. } => html! { p class="quiet" { "A part of type " code { (kind) } "." } },
    }
}

/// Whether a role is a person's, whatever they call it: only models and tools write Markdown.
fn is_prompt(role: &str) -> bool {
    !matches!(class_of(role), "assistant" | "tool")
}

fn call(name: &str, input: &str) -> Markup {
    let fields: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
    let text = |field: &str| fields[field].as_str().unwrap_or_default().to_owned();
    let about = ["command", "path", "pattern", "directory"].iter().map(|field| text(field));
    let about = about.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
    html! {
        details class="call" {
            summary { span class="tool-name" { (name) } " " code { (exact(&first_line(&about))) } }
            @if !text("old").is_empty() || !text("new").is_empty() {
                pre class="diff" tabindex="0" {
                    @for line in text("old").lines() { span class="removed" { "-" (exact(line)) "\n" } }
                    @for line in text("new").lines() { span class="added" { "+" (exact(line)) "\n" } }
                }
            } @else if !text("content").is_empty() {
                pre tabindex="0" { (markdown::code(extension(&text("path")), &text("content"))) }
            } @else {
                pre tabindex="0" { (markdown::code("json", &serde_json::to_string_pretty(&fields).unwrap_or_default())) }
            }
        }
    }
}

fn result(text: &str, failed: bool) -> Markup {
    let cut = text.char_indices().nth(SHOWN_OF_RESULT).map_or(text.len(), |(at, _)| at);
    html! {
        details class=(if failed { "result failed" } else { "result" }) {
            summary { @if failed { "Failed: " } (first_line(text)) }
            pre class="plain" { (&text[..cut]) @if cut < text.len() { "\n…" } }
        }
    }
}

/// Whether an entry is what a tool answered.
pub(crate) fn answers(entry: &EntryVersion) -> bool {
    entry.blocks.iter().any(|block| matches!(block, Block::ToolResult { .. }))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(120).collect()
}

fn extension(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, extension)| extension)
}
