//! Markdown as a person reads it: read mode.
//!
//! ```text
//!   stored text ──► pulldown-cmark ──► blocks ──► flow (words into lines), grid (tables), code (colours) ──► labels
//!        │ too long, nested too deep
//!        └──► nothing: the caller shows the source
//! ```
//!
//! Every piece becomes a [`Label`], so nothing gets past [`super::sanitize`]: not what stands in the text, and not
//! what the text spells as `&#27;`, which is only there once the Markdown has been read.
//!
//! Text may be made to be slow. What is longer than [`READ_BYTES`] or nested deeper than [`DEEPEST`] is therefore not
//! rendered at all, and code is coloured up to [`CODE_BYTES`] only: the cost of an entry has a bound.

mod blocks;
mod code;
mod flow;
mod grid;

use super::label::Label;
use super::style::Styles;

/// Texts beyond this many bytes are shown as they are.
pub(crate) const READ_BYTES: usize = 256 * 1024;
/// Texts with quotes and lists nested deeper than this are shown as they are.
pub(crate) const DEEPEST: usize = 32;
/// Code of one text beyond this many bytes is not coloured.
pub(crate) const CODE_BYTES: usize = 64 * 1024;
/// A block of code that has a longer line is not coloured.
pub(crate) const CODE_LINE_BYTES: usize = 2000;

/// How the marks of Markdown are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    /// By what the terminal can do: bold, italic, colours.
    Styled,
    /// As they are written, since the terminal shows no styles.
    Written,
}

/// What a text is rendered for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look<'styles> {
    /// The columns that lines must fit into.
    pub(crate) columns: usize,
    pub(crate) styles: &'styles Styles,
    pub(crate) marks: Marks,
}

/// The text in lines, or nothing if it is one that is better shown as it is.
pub(crate) fn render(text: &str, look: Look<'_>) -> Option<Vec<Label>> {
    if text.len() > READ_BYTES || text.lines().any(is_deep) {
        return None;
    }
    blocks::lines(text, look)
}

/// Whether one line alone opens more quotes and lists than are rendered. The parser would take it, but every blank
/// line that follows would cost as much as there are lists.
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
    opened > DEEPEST
}

#[cfg(test)]
mod tests;
