//! Renders an entry.

use std::collections::HashMap;

use maud::{Markup, html};
use retake_agent::provider::prices::Prices;
use retake_model::entry::{Block, EntryVersion, PDF, RoleKind};
use retake_model::id::{EntryId, ThreadId};
use retake_render::number::{count, counted};
use retake_timeline::{EntryView, Stat};

use crate::draw::{dollars, moment, with_visible_controls};
use crate::{diff, markdown};

/// Maximum characters of a tool result.
const MAX_RESULT_CHARS: usize = 20_000;

/// Length of the version prefix that identifies a version of an entry.
const VERSION_CHARS: usize = 16;
/// Fields of summaries.
const SUMMARY_FIELDS: [&str; 2] = ["summary_of_entries", "originals_at_version"];

/// Whether an entry has action buttons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryActions {
    /// In the current conversation.
    Enabled,
    /// In past versions, comparisons and filtered lists.
    Disabled,
}

/// Renders an entry. The script identifies it by its id and checks its version. `moved` has the file changes of calls.
pub(crate) fn draw(
    thread: ThreadId,
    view: &EntryView,
    prices: &Prices,
    moved: &HashMap<EntryId, Stat>,
    acts: EntryActions,
) -> Markup {
    let entry = &view.entry;
    let (id, kind) = (view.id.to_string(), class_of(&entry.role));
    let (collapsed, source) = (view.shown.collapsed, view.shown.source);
    let shown = format!("{}{}", u8::from(collapsed), u8::from(source));
    html! {
        article class=(format!("entry {kind}")) id=(format!("e-{id}")) data-role=(entry.role)
            data-version=(format!("{}-{shown}", &view.version.to_string()[..VERSION_CHARS])) data-number=(view.number) tabindex="-1"
            aria-label=(format!("Entry {} by {}", view.number, entry.role)) {
            header {
                @if acts == EntryActions::Enabled {
                    button class="role" type="button" data-act="dialog" data-about="role" title="Change role" { (entry.role) }
                } @else {
                    span class="role" { (entry.role) }
                }
                span class="facts" {
                    (moment(entry.created))
                    @if entry.edited.is_some() { span class="edited" { "edited" } }
                    @if let Some(model) = &entry.model { span class="model" { (model) } }
                    (cost(entry, prices))
                }
                @if acts == EntryActions::Enabled { span class="acts" {
                    (act("edit", "Edit", "Key E"))
                    (shown_as("collapse", if collapsed { "Expand" } else { "Collapse" }, "Key C", [!collapsed, source]))
                    (shown_as("source", if source { "Read" } else { "Source" }, "Source or rendered text", [collapsed, !source]))
                    (act("copy", "Copy", "Copy the text"))
                    (act("insert", "Insert", "Insert an entry after this one"))
                    (act("branch", "Branch", "New take from here, with its files (B)"))
                    @if RoleKind::of(&entry.role) == RoleKind::User { (act("retry", "Retry", "Retry in a new take (R)")) }
                    (act("delete", "Delete", "Delete; an undo restores it (Del)"))
                } }
            }
            @if view.shown.collapsed {
                p class="preview" { (entry.preview()) }
            } @else if view.shown.source {
                pre class="plain" { (source_of(entry)) }
            } @else {
                div class="entry-body" {
                    @for block in &entry.blocks { (draw_block(thread, view, block)) }
                    (extra(thread, entry))
                    @if let Some(stat) = moved.get(&view.id) {
                        details class="files-of" data-src=(format!("/studio/threads/{thread}/call?entry={}", view.id)) {
                            summary title="File changes of this call" { (diff::stat(stat)) }
                        }
                    }
                }
            }
        }
    }
}

/// The source of an entry: its text, or its blocks as JSON if it has none.
fn source_of(entry: &EntryVersion) -> String {
    match entry.editable_text() {
        text if text.is_empty() => serde_json::to_string_pretty(&entry.blocks).unwrap_or_default(),
        text => text,
    }
}

/// An action button. Kept small, because a page has many.
fn act(act: &str, label: &str, title: &str) -> Markup {
    html! { button data-act=(act) title=(title) { (label) } }
}

/// A button that changes the view state of an entry.
fn shown_as(act: &str, label: &str, title: &str, [collapsed, source]: [bool; 2]) -> Markup {
    let shown = format!("{}{}", u8::from(collapsed), u8::from(source));
    html! { button data-act=(act) data-shown=(shown) title=(title) { (label) } }
}

/// Unknown fields of an entry, and a link to the originals of a summary.
fn extra(thread: ThreadId, entry: &EntryVersion) -> Markup {
    let number = |name: &str| entry.extra.get(name).and_then(|value| value.as_str().parse::<u64>().ok());
    let summary = number("summary_of_entries").zip(number("originals_at_version"));
    let known = |name: &str| name == "provider" || summary.is_some() && SUMMARY_FIELDS.contains(&name);
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
                        dt { (with_visible_controls(name)) }
                        dd { code { (with_visible_controls(&value.as_str().chars().take(MAX_RESULT_CHARS).collect::<String>())) } }
                    }
                }
            }
        }
    }
}

/// The CSS class of a role.
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
        span class="usage" title="Input and output tokens" {
            (count(usage.total_input())) " → " (count(usage.output_tokens))
            @if let Some(price) = price { " · " (dollars(price)) }
        }
    }
}

fn draw_block(thread: ThreadId, view: &EntryView, block: &Block) -> Markup {
    let entry = view.id;
    match block {
        // Prompts are shown as typed, not as Markdown: `2*3*4` keeps its asterisks.
        Block::Text { text, .. } if is_prompt(&view.entry.role) => html! { div class="words" { (text) } },
        Block::Text { text, .. } => markdown::draw(text),
        Block::Thinking { text, .. } => html! {
            details class="thinking" { summary { "Thinking" } (markdown::draw(text)) }
        },
        Block::ToolCall { name, input, .. } => call(name, input.as_str()),
        Block::ToolResult { text, failed, .. } => result(text, *failed),
        Block::Image { blob, media, .. } if media == PDF => html! {
            p { a class="document" download="document.pdf"
                href=(format!("/studio/threads/{thread}/picture?entry={entry}&q={blob}")) { "PDF document" } }
        },
        Block::Image { blob, media, .. } => html! {
            img class="picture" alt=(format!("Picture ({media})"))
                src=(format!("/studio/threads/{thread}/picture?entry={entry}&q={blob}"));
        },
        Block::Unknown { kind, .. } => {
            html! { p class="quiet" { "Unknown block of type " code { (kind) } "." } }
        }
    }
}

/// Whether entries of a role are plain text: only models and tools write Markdown.
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
            summary { span class="tool-name" { (name) } " " code { (with_visible_controls(&first_line(&about))) } }
            @if !text("old").is_empty() || !text("new").is_empty() {
                pre class="diff" tabindex="0" {
                    @for line in text("old").lines() { span class="removed" { "-" (with_visible_controls(line)) "\n" } }
                    @for line in text("new").lines() { span class="added" { "+" (with_visible_controls(line)) "\n" } }
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
    let cut = text.char_indices().nth(MAX_RESULT_CHARS).map_or(text.len(), |(at, _)| at);
    html! {
        details class=(if failed { "result failed" } else { "result" }) {
            summary { @if failed { "Failed: " } (first_line(text)) }
            pre class="plain" { (&text[..cut]) @if cut < text.len() { "\n…" } }
        }
    }
}

/// Whether an entry is a tool result.
pub(crate) fn answers(entry: &EntryVersion) -> bool {
    entry.blocks.iter().any(|block| matches!(block, Block::ToolResult { .. }))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(120).collect()
}

fn extension(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, extension)| extension)
}
