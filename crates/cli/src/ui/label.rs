//! A line of styled text.
//!
//! Every piece goes through [`sanitize`] when it is added, so a label is always safe to print. Its width excludes
//! styles, so tables and trees can cut and align it.

use std::fmt;

use anstyle::Style;

use super::sanitize::{LineBreaks, sanitize};
use super::width;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    pieces: Vec<(Style, String)>,
}

impl Label {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Appends text in this style.
    #[must_use]
    pub(crate) fn with(mut self, style: Style, text: &str) -> Self {
        if !text.is_empty() {
            self.pieces.push((style, sanitize(text, LineBreaks::Fold).into_owned()));
        }
        self
    }

    /// Appends unstyled text.
    #[must_use]
    pub(crate) fn plain(self, text: &str) -> Self {
        self.with(Style::new(), text)
    }

    /// The display width in columns.
    pub(crate) fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| width::width(text)).sum()
    }

    /// Cuts the label to a width and marks the cut with `…`.
    #[must_use]
    pub(crate) fn truncate(mut self, columns: usize) -> Self {
        if self.width() <= columns {
            return self;
        }
        // The cut piece leaves room for the mark, even if it would fit without it.
        let mut left = columns;
        let mut kept = 0;
        while kept < self.pieces.len() {
            let (_, text) = &mut self.pieces[kept];
            let used = width::width(text);
            kept += 1;
            if used >= left {
                *text = width::truncate(&format!("{text}  "), left);
                break;
            }
            left -= used;
        }
        self.pieces.truncate(kept);
        self
    }

    /// Pads the label to a width.
    #[must_use]
    pub(crate) fn pad(mut self, columns: usize, align: width::Align) -> Self {
        let fill = " ".repeat(columns.saturating_sub(self.width()));
        if !fill.is_empty() {
            let at = match align {
                width::Align::Left => self.pieces.len(),
                width::Align::Right => 0,
            };
            self.pieces.insert(at, (Style::new(), fill));
        }
        self
    }

    #[must_use]
    pub(crate) fn join(mut self, other: Self) -> Self {
        self.pieces.extend(other.pieces);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The text without styles.
    pub(crate) fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Self::new().plain(text)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (style, text) in &self.pieces {
            write!(formatter, "{style}{text}{style:#}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ui::width::Align;

    fn three() -> Label {
        Label::from("one ").with(Style::new().bold(), "two").plain(" three")
    }

    #[test]
    fn hostile_text_is_sanitized() {
        let label = Label::new().with(Style::new(), "a\u{1b}[2Jb\nc");
        assert_eq!(label.to_string(), "a␛[2Jb c");
    }

    #[test]
    fn labels_are_cut_across_pieces() {
        for (columns, cut) in [
            (20, "one two three"),
            (13, "one two three"),
            (12, "one two thr…"),
            (7, "one tw…"),
            (4, "one…"),
            (1, "…"),
            (0, ""),
        ] {
            assert_eq!(three().truncate(columns).text(), cut, "at {columns}");
        }
    }

    #[test]
    fn each_piece_closes_its_style() {
        assert_eq!(three().truncate(6).to_string(), "one \u{1b}[1mt…\u{1b}[0m");
        assert_eq!(Label::from("7").pad(3, Align::Right).to_string(), "  7");
    }

    proptest! {
        #[test]
        fn a_cut_label_is_never_wider_than_requested(texts in prop::collection::vec(any::<String>(), 0..4), columns in 0_usize..20) {
            let label = texts.iter().fold(Label::new(), |label, text| label.plain(text));
            let fits = label.width() <= columns;
            let cut = label.clone().truncate(columns);
            prop_assert!(cut.width() <= columns);
            prop_assert_eq!(fits, cut == label);
        }
    }
}
