//! Wraps styled text into lines.
//!
//! Lines break between words, even if the style changes within a word. A word longer than a line breaks between
//! grapheme clusters.

use anstyle::Style;
use unicode_segmentation::UnicodeSegmentation;

use crate::ui::label::Label;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::width::{expand_tabs, width};

/// Text with a style. Preserves line breaks.
pub(super) type StyledText = (Style, String);

/// Wraps text between words.
pub(super) fn wrap(pieces: &[StyledText], columns: usize) -> Vec<Label> {
    let mut flow = LineWrapper::new(columns);
    for (style, text) in pieces {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                flow.end_word();
                flow.end_line();
            }
            // Sanitized before measuring: escaped characters are wider.
            flow.add(*style, &sanitize(line, LineBreaks::Fold));
        }
    }
    flow.finish()
}

/// Wraps text whose white space matters, only at the full width.
pub(super) fn chop(pieces: &[StyledText], columns: usize) -> Vec<Label> {
    let mut flow = LineWrapper::new(columns);
    for (style, text) in pieces {
        flow.add_clusters(*style, &sanitize(&expand_tabs(text), LineBreaks::Fold));
    }
    flow.finish()
}

struct LineWrapper {
    columns: usize,
    lines: Vec<Label>,
    line: Label,
    used: usize,
    word: Vec<StyledText>,
    word_width: usize,
    /// The style of the blank between line and word, if there is one.
    blank: Option<Style>,
}

impl LineWrapper {
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
