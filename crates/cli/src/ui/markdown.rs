//! Renders Markdown for a terminal.
//!
//! ```text
//!   stored text ──► pulldown-cmark ──► blocks ──► flow (words into lines), grid (tables), code (colours) ──► labels
//!        │ too long, nested too deep
//!        └──► nothing: the caller shows the source
//! ```
//!
//! Every piece becomes a [`Label`], so all text goes through [`super::sanitize`], including control characters written
//! as `&#27;`, which only exist after parsing.
//!
//! Input can be crafted to be slow. Text longer than [`MAX_RENDERED_BYTES`] or nested deeper than [`MAX_NESTING`] is not rendered,
//! and code is highlighted only up to [`MAX_HIGHLIGHTED_BYTES`], which bounds the cost of an entry.

mod blocks;
mod code;
mod flow;
mod grid;
mod stream;

pub(crate) use stream::MarkdownStream;

use super::label::Label;
use super::style::Styles;

/// Longer texts are shown as source.
pub(crate) const MAX_RENDERED_BYTES: usize = 256 * 1024;
/// Texts with deeper nesting are shown as source.
pub(crate) const MAX_NESTING: usize = 32;
/// Code beyond this size is not highlighted.
pub(crate) const MAX_HIGHLIGHTED_BYTES: usize = 64 * 1024;
/// Code blocks with longer lines are not highlighted.
pub(crate) const MAX_HIGHLIGHTED_LINE_BYTES: usize = 2000;

/// How Markdown markers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkerStyle {
    /// As terminal styles: bold, italic, colours.
    Styled,
    /// As source characters, if the terminal shows no styles.
    Written,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RenderOptions<'styles> {
    pub(crate) columns: usize,
    pub(crate) styles: &'styles Styles,
    pub(crate) marks: MarkerStyle,
}

/// Renders the text; `None` if it should be shown as source.
pub(crate) fn render(text: &str, look: RenderOptions<'_>) -> Option<Vec<Label>> {
    if text.len() > MAX_RENDERED_BYTES || text.lines().any(is_deep) {
        return None;
    }
    blocks::lines(text, look)
}

/// Whether a single line nests too deeply. The parser would accept it, but each following blank line would cost as much
/// as there are lists.
fn is_deep(line: &str) -> bool {
    let mut opened = 0;
    let mut rest = line.bytes().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b'>' => opened += 1,
            b'-' | b'+' | b'*' | b'.' | b')' if matches!(rest.peek(), Some(b' ' | b'\t') | None) => {
                opened += 1;
            }
            b' ' | b'\t' | b'0'..=b'9' => {}
            _ => break,
        }
    }
    opened > MAX_NESTING
}

#[cfg(test)]
mod tests;
