//! The content of an entry as lines of a given width.

use anstyle::Style;
use retake_model::entry::{Block, preview};
use retake_timeline::EntryView;

use super::{EntryFormat, in_words};
use crate::context::Context;
use crate::ui::label::Label;
use crate::ui::markdown::{MarkerStyle, RenderOptions, render};
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::screen::Screen;
use crate::ui::width::wrap;

/// The blocks of an entry and the fields that Retake does not know.
///
/// Running text is wrapped at `columns`; one-line summaries of tool calls and results may be longer.
pub(crate) fn entry_lines(
    context: &Context,
    view: &EntryView,
    manner: EntryFormat,
    columns: usize,
) -> Vec<Label> {
    let mut lines = EntryLines { context, manner, columns, lines: Vec::new() };
    for block in &view.entry.blocks {
        lines.block(block);
        // An unknown block has nothing else to show.
        for (name, value) in block.extra().iter() {
            lines.field(name, value.as_str());
        }
    }
    for (name, value) in view.entry.usage.iter().flat_map(|usage| usage.extra.iter()) {
        lines.field(&format!("usage.{name}"), value.as_str());
    }
    for (name, value) in &view.entry.extra {
        // The model usually implies the provider.
        if in_words(name, value).is_none() && (name != "provider" || manner.full) {
            lines.field(name, value.as_str());
        }
    }
    lines.lines
}

struct EntryLines<'a> {
    context: &'a Context,
    manner: EntryFormat,
    columns: usize,
    lines: Vec<Label>,
}

impl EntryLines<'_> {
    fn line(&mut self, style: Style, text: &str) {
        self.lines.push(Label::new().with(style, text));
    }

    fn field(&mut self, name: &str, value: &str) {
        let line = format!("{name}: {value}");
        let line = if self.manner.full { line } else { preview(&line) };
        self.line(self.context.styles.muted, &line);
    }

    fn block(&mut self, block: &Block) {
        let full = self.manner.full;
        let styles = &self.context.styles;
        let (muted, tool) = (styles.muted, styles.tool);
        match block {
            Block::Text { text, .. } => self.markdown(text),
            Block::Thinking { text, .. } if full => {
                self.line(muted, "thinking:");
                self.text(text);
            }
            Block::Thinking { text, .. } => self.line(muted, &format!("▸ thinking: {}", preview(text))),
            Block::ToolCall { name, input, .. } => {
                let call = format!("{name} {}", input.as_str());
                let call = if full { call } else { preview(&call) };
                self.line(tool, &format!("⚒ {call}"));
            }
            Block::ToolResult { text, failed, .. } => {
                let style = if *failed { styles.error } else { tool };
                let arrow = if *failed { "✗" } else { "→" };
                if full {
                    self.line(style, arrow);
                    self.text(text);
                } else {
                    self.line(style, &format!("{arrow} {}", preview(text)));
                }
            }
            Block::Image { media, .. } => self.line(muted, &format!("[{media}]")),
            Block::Unknown { kind, .. } => self.line(muted, &format!("[unknown block: {kind}]")),
        }
    }

    fn markdown(&mut self, text: &str) {
        // A pipe gets the stored Markdown, for programs and for saving.
        if self.manner.source || self.context.screen == Screen::None {
            return self.text(text);
        }
        let marks = match self.context.colours() {
            anstream::ColorChoice::Never => MarkerStyle::Written,
            _ => MarkerStyle::Styled,
        };
        let look = RenderOptions { columns: self.columns, styles: &self.context.styles, marks };
        match render(text, look) {
            Some(lines) => self.lines.extend(lines),
            None => self.text(text),
        }
    }

    fn text(&mut self, text: &str) {
        let text = sanitize(text, LineBreaks::Keep);
        self.lines.extend(wrap(&text, self.columns).iter().map(|line| Label::from(line.as_str())));
    }
}
