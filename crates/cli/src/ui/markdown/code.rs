//! Highlights code with the sixteen basic colours.

use anstyle::Style;
use retake_words::code::{Word, read};

use super::CODE_LINE_BYTES;
use super::flow::Piece;
use crate::ui::style::Styles;

/// Highlights code by line; `None` if the language is unknown.
pub(super) fn colour(language: &str, code: &str, styles: &Styles) -> Option<Vec<Vec<Piece>>> {
    let lines = read(language, code, CODE_LINE_BYTES)?;
    let piece = |(word, text): (Word, &str)| (style_of(word, styles), text.to_owned());
    Some(lines.into_iter().map(|line| line.into_iter().map(piece).collect()).collect())
}

fn style_of(word: Word, styles: &Styles) -> Style {
    match word {
        Word::Plain => Style::new(),
        Word::Comment => styles.muted,
        Word::Text => styles.code_text,
        Word::Value => styles.code_value,
        Word::Keyword => styles.code_keyword,
        Word::Name => styles.code_name,
        Word::Added => styles.added,
        Word::Removed => styles.removed,
    }
}
