//! Highlights code with the sixteen basic colours.

use anstyle::Style;
use retake_render::code::{TokenKind, highlight};

use super::MAX_HIGHLIGHTED_LINE_BYTES;
use super::flow::StyledText;
use crate::ui::style::Styles;

/// Highlights code by line; `None` if the language is unknown.
pub(super) fn colour(language: &str, code: &str, styles: &Styles) -> Option<Vec<Vec<StyledText>>> {
    let lines = highlight(language, code, MAX_HIGHLIGHTED_LINE_BYTES)?;
    let piece = |(word, text): (TokenKind, &str)| (style_of(word, styles), text.to_owned());
    Some(lines.into_iter().map(|line| line.into_iter().map(piece).collect()).collect())
}

fn style_of(word: TokenKind, styles: &Styles) -> Style {
    match word {
        TokenKind::Plain => Style::new(),
        TokenKind::Comment => styles.muted,
        TokenKind::Text => styles.code_text,
        TokenKind::Value => styles.code_value,
        TokenKind::Keyword => styles.code_keyword,
        TokenKind::Name => styles.code_name,
        TokenKind::Added => styles.added,
        TokenKind::Removed => styles.removed,
    }
}
