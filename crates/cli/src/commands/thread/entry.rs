//! Prints one entry: rendered Markdown on a terminal, the stored text elsewhere.

use std::io::{self, Write};

use retake_model::entry::{Block, RoleKind};
use retake_model::json::Json;
use retake_timeline::EntryView;

use crate::agent::dollars;
use crate::context::Context;
use crate::ui::bytes::count;
use crate::ui::markdown::{MarkerStyle, RenderOptions, render};
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::screen::Screen;
use crate::ui::style::Styles;
use crate::ui::width::wrap;

/// Options for one listing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryFormat {
    /// Include thinking, tool output and collapsed entries.
    pub(crate) full: bool,
    /// Show the source text even on a terminal.
    pub(crate) source: bool,
}

/// Writes a header line, then the blocks.
pub(crate) fn write_entry(
    out: &mut dyn Write,
    context: &Context,
    view: &EntryView,
    manner: EntryFormat,
) -> io::Result<()> {
    let styles = &context.styles;
    let (role, muted, number) = (role_style(styles, &view.entry.role), styles.muted, styles.count);
    write!(out, "{number}{:>4}{number:#} ", view.number)?;
    write!(out, "{role}{}{role:#}", sanitize(&view.entry.role, LineBreaks::Fold))?;
    write!(out, "{muted}  {}", context.ago(view.entry.created))?;
    if view.entry.edited.is_some() {
        write!(out, ", edited")?;
    }
    if let Some(model) = &view.entry.model {
        write!(out, ", {}", sanitize(model, LineBreaks::Fold))?;
    }
    if let Some(usage) = &view.entry.usage {
        write!(out, ", {} in, {} out", count(usage.input_tokens), count(usage.output_tokens))?;
        if usage.cache_read_input_tokens + usage.cache_creation_input_tokens > 0 {
            let (read, written) = (usage.cache_read_input_tokens, usage.cache_creation_input_tokens);
            write!(out, " (cache: {} read, {} written)", count(read), count(written))?;
        }
    }
    for (name, value) in &view.entry.extra {
        if let Some(words) = in_words(name, value) {
            write!(out, ", {words}")?;
        }
    }
    writeln!(out, "{muted:#}")?;
    if view.shown.collapsed && !manner.full {
        return writeln!(
            out,
            "     {muted}▸ {}{muted:#}\n",
            sanitize(&view.entry.preview(), LineBreaks::Fold)
        );
    }
    let manner = EntryFormat { source: manner.source || view.shown.source, ..manner };
    for block in &view.entry.blocks {
        write_block(out, context, block, manner)?;
        // An unknown block has nothing else to show.
        for (name, value) in block.extra().iter() {
            write_field(out, context, name, value, manner)?;
        }
    }
    for (name, value) in view.entry.usage.iter().flat_map(|usage| usage.extra.iter()) {
        write_field(out, context, &format!("usage.{name}"), value, manner)?;
    }
    for (name, value) in &view.entry.extra {
        // The model usually implies the provider.
        if in_words(name, value).is_none() && (name != "provider" || manner.full) {
            write_field(out, context, name, value, manner)?;
        }
    }
    writeln!(out)
}

/// Formats fields of an answer that belong in the header line.
fn in_words(name: &str, value: &Json) -> Option<String> {
    match (name, value.as_str()) {
        ("interrupted", "true") => Some("interrupted".to_owned()),
        ("micro_dollars", text) => text.parse().ok().map(dollars),
        _ => None,
    }
}

/// Writes a field that Retake does not know.
fn write_field(
    out: &mut dyn Write,
    context: &Context,
    name: &str,
    value: &Json,
    manner: EntryFormat,
) -> io::Result<()> {
    let muted = context.styles.muted;
    let line = format!("{name}: {}", value.as_str());
    let line = if manner.full { line } else { retake_model::entry::preview(&line) };
    writeln!(out, "     {muted}{}{muted:#}", sanitize(&line, LineBreaks::Fold))
}

fn write_block(out: &mut dyn Write, context: &Context, block: &Block, manner: EntryFormat) -> io::Result<()> {
    let full = manner.full;
    let styles = &context.styles;
    let (muted, tool) = (styles.muted, styles.tool);
    match block {
        Block::Text { text, .. } => write_markdown(out, context, text, manner),
        Block::Thinking { text, .. } if full => {
            writeln!(out, "     {muted}thinking:{muted:#}")?;
            write_text(out, context, text)
        }
        Block::Thinking { text, .. } => {
            let preview = retake_model::entry::preview(text);
            writeln!(out, "     {muted}▸ thinking: {}{muted:#}", sanitize(&preview, LineBreaks::Fold))
        }
        Block::ToolCall { name, input, .. } => {
            let call = format!("{name} {}", input.as_str());
            let call = if full { call } else { retake_model::entry::preview(&call) };
            writeln!(out, "     {tool}⚒ {}{tool:#}", sanitize(&call, LineBreaks::Fold))
        }
        Block::ToolResult { text, failed, .. } => {
            let style = if *failed { styles.error } else { tool };
            let arrow = if *failed { "✗" } else { "→" };
            if full {
                writeln!(out, "     {style}{arrow}{style:#}")?;
                return write_text(out, context, text);
            }
            let preview = retake_model::entry::preview(text);
            writeln!(out, "     {style}{arrow} {}{style:#}", sanitize(&preview, LineBreaks::Fold))
        }
        Block::Image { media, .. } => {
            writeln!(out, "     {muted}[{}]{muted:#}", sanitize(media, LineBreaks::Fold))
        }
        Block::Unknown { kind, .. } => {
            writeln!(out, "     {muted}[unknown block: {}]{muted:#}", sanitize(kind, LineBreaks::Fold))
        }
    }
}

fn write_markdown(out: &mut dyn Write, context: &Context, text: &str, manner: EntryFormat) -> io::Result<()> {
    // A pipe gets the stored Markdown, for programs and for saving.
    if manner.source || context.screen == Screen::None {
        return write_text(out, context, text);
    }
    let marks = match context.colours() {
        anstream::ColorChoice::Never => MarkerStyle::Written,
        _ => MarkerStyle::Styled,
    };
    let look = RenderOptions { columns: columns(context), styles: &context.styles, marks };
    let Some(lines) = render(text, look) else { return write_text(out, context, text) };
    for line in lines {
        if line.is_empty() { writeln!(out)? } else { writeln!(out, "     {line}")? }
    }
    Ok(())
}

/// The width available beside the indent.
fn columns(context: &Context) -> usize {
    context.screen.text_columns().saturating_sub(5).max(20)
}

fn write_text(out: &mut dyn Write, context: &Context, text: &str) -> io::Result<()> {
    let width = columns(context);
    for line in wrap(&sanitize(text, LineBreaks::Keep), width) {
        if line.is_empty() { writeln!(out)? } else { writeln!(out, "     {line}")? }
    }
    Ok(())
}

pub(crate) fn role_style(styles: &Styles, role: &str) -> anstyle::Style {
    match RoleKind::of(role) {
        RoleKind::User => styles.user,
        RoleKind::Assistant => styles.assistant,
        RoleKind::System => styles.system,
        RoleKind::Other => styles.tool,
    }
}
