//! Words in several styles, flowing into lines.
//!
//! The unit that is never torn is the word, even where its style changes inside it; a word that is longer than a
//! line is broken between clusters.

use anstyle::Style;
use unicode_segmentation::UnicodeSegmentation;

use crate::ui::label::Label;
use crate::ui::sanitize::{Lines, sanitize};
use crate::ui::width::{expand_tabs, width};

/// Text with its style. A line break in it is one that is wanted.
pub(super) type Piece = (Style, String);

/// The text in lines of at most that many columns, broken between words.
pub(super) fn wrap(pieces: &[Piece], columns: usize) -> Vec<Label> {
    let mut flow = Flow::new(columns);
    for (style, text) in pieces {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                flow.end_word();
                flow.end_line();
            }
            // Safe before it is measured: what is made visible takes more columns than it seemed to.
            flow.add(*style, &sanitize(line, Lines::Fold));
        }
    }
    flow.finish()
}

/// The same for text whose blanks matter: broken only where a line is full.
pub(super) fn chop(pieces: &[Piece], columns: usize) -> Vec<Label> {
    let mut flow = Flow::new(columns);
    for (style, text) in pieces {
        flow.add_clusters(*style, &sanitize(&expand_tabs(text), Lines::Fold));
    }
    flow.finish()
}

struct Flow {
    columns: usize,
    lines: Vec<Label>,
    line: Label,
    used: usize,
    word: Vec<Piece>,
    word_width: usize,
    /// The blank between the line and the word, if there is one.
    blank: Option<Style>,
}

impl Flow {
    fn new(columns: usize) -> Self {
        Self {
            columns: columns.max(1),
            lines: Vec::new(),
            line: Label::new(),
            used: 0,
            word: Vec::new(),
            word_width: 0,
            blank: None,
        }
    }

    fn add(&mut self, style: Style, text: &str) {
        for (index, part) in text.split(' ').enumerate() {
            if index > 0 {
                self.end_word();
                if self.used > 0 {
                    self.blank = Some(style);
                }
            }
            if !part.is_empty() {
                self.word_width += width(part);
                self.word.push((style, part.to_owned()));
            }
        }
    }

    fn add_clusters(&mut self, style: Style, text: &str) {
        let mut start = 0;
        for (at, cluster) in text.grapheme_indices(true) {
            let cell = width(cluster);
            if self.used + cell > self.columns && self.used > 0 {
                self.push(style, &text[start..at]);
                self.end_line();
                start = at;
            }
            self.used += cell;
        }
        self.push(style, &text[start..]);
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let needed = std::mem::take(&mut self.word_width) + usize::from(self.blank.is_some());
        if self.used > 0 && self.used + needed > self.columns {
            self.end_line();
        } else if let Some(style) = self.blank.take() {
            self.push(style, " ");
            self.used += 1;
        }
        for (style, text) in word {
            self.add_clusters(style, &text);
        }
    }

    fn push(&mut self, style: Style, text: &str) {
        self.line = std::mem::take(&mut self.line).with(style, text);
    }

    fn end_line(&mut self) {
        self.lines.push(std::mem::take(&mut self.line));
        self.used = 0;
        self.blank = None;
    }

    fn finish(mut self) -> Vec<Label> {
        self.end_word();
        self.end_line();
        self.lines
    }
}
