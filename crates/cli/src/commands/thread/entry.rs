//! Prints one entry: rendered Markdown on a terminal, the stored text elsewhere.

mod lines;

use std::io::{self, Write};

use retake_model::entry::RoleKind;
use retake_model::json::Json;
use retake_timeline::EntryView;

pub(crate) use self::lines::entry_lines;
use crate::agent::dollars;
use crate::context::Context;
use crate::ui::bytes::count;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;

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
    let columns = context.screen.text_columns().saturating_sub(5).max(20);
    for line in entry_lines(context, view, manner, columns) {
        if line.is_empty() { writeln!(out)? } else { writeln!(out, "     {line}")? }
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

pub(crate) fn role_style(styles: &Styles, role: &str) -> anstyle::Style {
    match RoleKind::of(role) {
        RoleKind::User => styles.user,
        RoleKind::Assistant => styles.assistant,
        RoleKind::System => styles.system,
        RoleKind::Other => styles.tool,
    }
}
