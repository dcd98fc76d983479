//! Renders an answer while it arrives.
//!
//! ```text
//!   the answer so far   │ block │ block │ unfinished block │
//!   on the screen         stays   stays   drawn again with every piece, from the first line that changed
//! ```
//!
//! Only the unfinished block is parsed again, and it is cut when it grows long, so that a piece costs the same at the end of
//! a long answer as at its start. Lines that have left the screen cannot be drawn again: they stay as they are.

use std::fmt::Write;

use super::{RenderOptions, render};
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::width;

/// A longer block is continued as a new one.
const MAX_BLOCK_BYTES: usize = 2048;

/// The state of an answer on the screen.
#[derive(Debug, Default)]
pub(crate) struct MarkdownStream {
    /// The source of the unfinished block.
    source: String,
    /// Its lines on the screen, with styles. The cursor is at the end of the last one.
    drawn: Vec<String>,
}

impl MarkdownStream {
    /// Adds a piece of the answer, and returns what to write to a terminal with this many rows. Lines must be shorter than
    /// its width: after a full line, terminals differ in where the cursor is.
    pub(crate) fn push(&mut self, piece: &str, rows: usize, options: RenderOptions<'_>) -> String {
        self.source.push_str(piece);
        let mut out = String::new();
        while let Some((end, next)) = block_end(&self.source) {
            let rest = self.source.split_off(end);
            self.draw(rows, options, &mut out);
            let has_lines = !self.drawn.is_empty();
            self.drawn.clear();
            self.source = next.start + &rest[next.skipped..];
            if has_lines {
                out.push_str(if next.is_same_block { "\n" } else { "\n\n" });
            }
        }
        self.draw(rows, options, &mut out);
        out
    }

    /// Ends the answer, and returns whether the cursor is in a line with text.
    pub(crate) fn finish(&mut self) -> bool {
        self.source.clear();
        !std::mem::take(&mut self.drawn).is_empty()
    }

    fn draw(&mut self, rows: usize, options: RenderOptions<'_>, out: &mut String) {
        let lines = lines(&self.source, options);
        let Some(last) = lines.len().checked_sub(1) else { return };
        let same = lines.iter().zip(&self.drawn).take_while(|(line, drawn)| line == drawn).count();
        let visible = self.drawn.len().saturating_sub(rows.max(1));
        let from = same.min(last).max(visible).min(lines.len());
        if from >= self.drawn.len() {
            if !self.drawn.is_empty() {
                out.push('\n');
            }
        } else if same == lines.len() && lines.len() == self.drawn.len() {
            return;
        } else {
            match self.drawn.len() - 1 - from {
                0 => out.push('\r'),
                up => write!(out, "\r\u{1b}[{up}A").expect("a string takes all text"),
            }
            out.push_str("\u{1b}[J");
        }
        out.push_str(&lines[from..].join("\n"));
        self.drawn = lines;
    }
}

/// How the source goes on after a complete block.
struct NextBlock {
    /// What the next block starts with: the opening line of a code block that was cut.
    start: String,
    /// Line breaks to leave out.
    skipped: usize,
    is_same_block: bool,
}

/// Where the first complete block ends, if one is. A blank line ends a block if the next line is not indented, except in
/// fenced code.
fn block_end(source: &str) -> Option<(usize, NextBlock)> {
    let mut fence: Option<&str> = None;
    let (mut start, mut blank) = (0, None);
    for line in source.split_inclusive('\n') {
        let is_complete = line.ends_with('\n');
        let text = line.trim_end();
        if start >= MAX_BLOCK_BYTES {
            let reopened = fence.map(|opening| format!("{opening}\n")).unwrap_or_default();
            return Some((start, NextBlock { start: reopened, skipped: 0, is_same_block: true }));
        }
        match (fence, blank) {
            (None, Some(_)) if text.is_empty() => {}
            (None, Some(end)) if !line.starts_with([' ', '\t']) => {
                return Some((
                    end,
                    NextBlock { start: String::new(), skipped: start - end, is_same_block: false },
                ));
            }
            (None, _) if text.is_empty() && is_complete && start > 0 => blank = Some(start),
            (None, _) => {
                blank = None;
                if is_complete && fence_mark(text).is_some() {
                    fence = Some(text);
                }
            }
            (Some(opening), _) => {
                let closes = fence_mark(text).zip(fence_mark(opening)).is_some_and(|(mark, opened)| {
                    mark.starts_with(opened) && text.trim_start().len() == mark.len()
                });
                if closes && is_complete {
                    fence = None;
                }
            }
        }
        start += line.len();
    }
    None
}

/// The run of backticks or tildes that a line opens or closes fenced code with.
fn fence_mark(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let mark = text.chars().next().filter(|first| matches!(first, '`' | '~'))?;
    let length = text.len() - text.trim_start_matches(mark).len();
    (length >= 3).then(|| &text[..length])
}

fn lines(source: &str, options: RenderOptions<'_>) -> Vec<String> {
    if source.trim().is_empty() {
        return Vec::new();
    }
    match render(source, options) {
        Some(lines) => lines.iter().map(ToString::to_string).collect(),
        None => width::wrap(&sanitize(source.trim_end(), LineBreaks::Keep), options.columns),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;
    use crate::ui::markdown::MarkerStyle;
    use crate::ui::style::Styles;

    const ANSWER: &str = "# Title\n\nA *first* paragraph with `code`, long enough to be wrapped into lines.\n\n\
        - one\n- two **bold\n  words**\n\n  more of two\n\n```rust\nfn main() {\n\n    let x = 1;\n}\n```\n\n\
        | a | b |\n|---|---|\n| 1 | 2 |\n\nThe end: 漢字 é \u{1b}[2J.";

    fn terminal(rows: u16, columns: u16) -> vt100::Parser {
        let size = |value| NonZero::new(value).expect("a terminal has a size");
        vt100::Parser::new(size(rows), size(columns), 5000)
    }

    /// The rows of a terminal after the pieces of an answer.
    fn shown(pieces: &[&str], (rows, columns): (u16, u16)) -> Vec<String> {
        let mut terminal = terminal(rows, columns);
        let styles = Styles::new();
        let options =
            RenderOptions { columns: usize::from(columns) - 1, styles: &styles, marks: MarkerStyle::Styled };
        let mut stream = MarkdownStream::default();
        for piece in pieces {
            let written = stream.push(piece, rows.into(), options);
            terminal.process(written.replace('\n', "\r\n").as_bytes());
        }
        stream.finish();
        let mut rows: Vec<String> =
            terminal.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    fn whole(text: &str, columns: usize) -> Vec<String> {
        let styles = Styles::new();
        let options = RenderOptions { columns, styles: &styles, marks: MarkerStyle::Styled };
        let lines = render(text, options).expect("a text that is rendered");
        lines.iter().map(|line| line.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn pieces_of_any_size_look_like_the_whole_answer() {
        for columns in [16, 30, 100] {
            let expected = whole(ANSWER, columns - 1);
            for size in [1, 2, 3, 7, 40, 1000] {
                let characters: Vec<char> = ANSWER.chars().collect();
                let pieces: Vec<String> =
                    characters.chunks(size).map(|piece| piece.iter().collect()).collect();
                let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
                assert_eq!(shown(&pieces, (60, columns as u16)), expected, "{size} at {columns}");
            }
        }
    }

    #[test]
    fn a_small_screen_shows_the_end_of_the_answer() {
        let expected = whole(ANSWER, 29);
        let pieces: Vec<String> = ANSWER.chars().map(String::from).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert_eq!(shown(&pieces, (4, 30)), expected[expected.len() - 4..]);
    }

    #[test]
    fn a_long_block_costs_no_more_than_a_short_one_and_keeps_its_lines() {
        let lines: Vec<String> = (0..500).map(|number| format!("let line_{number} = {number};")).collect();
        let code = lines.join("\n") + "\n";
        for (answer, last) in [
            (format!("```rust\n{code}```\n\nend"), "end"),
            (format!("```rust\n{code}"), "    let line_499 = 499;"),
            (code.replace('\n', "  \n"), "let line_499 = 499;"),
        ] {
            let styles = Styles::new();
            let options = RenderOptions { columns: 80, styles: &styles, marks: MarkerStyle::Styled };
            let (mut stream, mut written) = (MarkdownStream::default(), 0);
            let mut terminal = terminal(24, 80);
            for piece in answer.split_inclusive('=') {
                let out = stream.push(piece, 24, options);
                assert!(stream.source.len() < 2 * MAX_BLOCK_BYTES, "the unfinished block is bounded");
                written += out.len();
                terminal.process(out.replace('\n', "\r\n").as_bytes());
            }
            assert!(written < 60 * answer.len(), "{written} bytes for {}", answer.len());
            let screen = terminal.screen().contents();
            assert_eq!(screen.lines().last().map(str::trim_end), Some(last));
            assert!(!screen.contains("```"), "{screen}");
        }
    }

    #[test]
    fn nothing_but_cursor_moves_and_styles_reaches_the_terminal() {
        let styles = Styles::new();
        let options = RenderOptions { columns: 20, styles: &styles, marks: MarkerStyle::Styled };
        let mut stream = MarkdownStream::default();
        for piece in ["a \u{1b}", "]0;title\u{7}", "\u{9b}2J\r", "\n\n&#27;[2J `\u{202e}`"] {
            let out = stream.push(piece, 24, options);
            let mut rest = out.as_str();
            while let Some(at) = rest.find(|c: char| c.is_control() && c != '\n' && c != '\r') {
                let sequence = rest[at..].strip_prefix("\u{1b}[").expect("only control sequences");
                let end = sequence.find(|c: char| c.is_ascii_alphabetic()).expect("a whole sequence");
                assert!(matches!(&sequence[end..=end], "m" | "A" | "J"), "{out:?}");
                assert!(&sequence[..=end] != "2J", "{out:?}");
                rest = &sequence[end + 1..];
            }
        }
    }
}
