//! The snippet of a hit: one line around the best match.

use std::ops::Range;

use serde::Serialize;

/// The usual length of a snippet, in characters.
const LENGTH: usize = 160;
/// The usual number of characters before the first match.
const LEAD: usize = 40;
/// Matches considered for the best position.
const MAX_MATCHES: usize = 1000;
const CUT: char = '…';

/// One line of an entry's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snippet {
    pub pieces: Vec<SnippetPiece>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SnippetPiece"))]
pub struct SnippetPiece {
    /// Whether this part matched.
    pub matched: bool,
    pub text: String,
}

impl Snippet {
    /// The line as plain text.
    pub fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    /// The line around the densest matches, or the beginning if there are none.
    pub(super) fn new(text: &str, matches: &[Range<usize>]) -> Self {
        let matches = &matches[..matches.len().min(MAX_MATCHES)];
        let window = window(text, best(text, matches));
        let mut line = Line::default();
        if !text[..window.start].trim().is_empty() {
            line.push(CUT, false);
        }
        let mut matches = matches.iter().skip_while(|found| found.end <= window.start).peekable();
        for (place, character) in text[window.clone()].char_indices() {
            let place = window.start + place;
            while matches.next_if(|found| found.end <= place).is_some() {}
            let inside = matches.peek().is_some_and(|found| found.contains(&place));
            line.push(character, inside);
        }
        if !text[window.end..].trim().is_empty() {
            line.push(CUT, false);
        }
        Self { pieces: line.pieces }
    }
}

/// Text with collapsed whitespace.
#[derive(Default)]
struct Line {
    pieces: Vec<SnippetPiece>,
    /// A pending space, and whether it is inside a match.
    space: Option<bool>,
}

impl Line {
    fn push(&mut self, character: char, matched: bool) {
        if character.is_whitespace() || character == '\0' {
            if !self.pieces.is_empty() {
                self.space.get_or_insert(matched);
            }
            return;
        }
        if let Some(inside) = self.space.take() {
            self.add(' ', inside);
        }
        self.add(character, matched);
    }

    fn add(&mut self, character: char, matched: bool) {
        match self.pieces.last_mut() {
            Some(piece) if piece.matched == matched => piece.text.push(character),
            _ => self.pieces.push(SnippetPiece { matched, text: character.to_string() }),
        }
    }
}

/// The range of matches to display: those closely following the match with the most different neighbours.
fn best(text: &str, matches: &[Range<usize>]) -> Range<usize> {
    let mut best = 0..0;
    let mut most = (0, 0);
    for (index, first) in matches.iter().enumerate() {
        let limit = first.start + (LENGTH - LEAD);
        let close = matches[index..].iter().take_while(|found| found.end <= limit);
        let close: Vec<&Range<usize>> = close.collect();
        let mut different: Vec<String> =
            close.iter().map(|&found| text[found.clone()].to_lowercase()).collect();
        different.sort();
        different.dedup();
        let score = (different.len(), close.len());
        if score > most || index == 0 {
            most = score;
            best = first.start..close.last().map_or(first.end, |last| last.end);
        }
    }
    best
}

/// The part of the text to display around a range, cut at word boundaries if possible.
fn window(text: &str, shown: Range<usize>) -> Range<usize> {
    let start = back(text, shown.start, LEAD);
    let start = if start == 0 || starts_word(text, start) {
        start
    } else {
        let gap = text[start..shown.start].find(char::is_whitespace);
        gap.map_or(start, |gap| start + gap)
    };
    let end = forward(text, start, LENGTH);
    if end == text.len() || starts_word(text, end) || text[end..].starts_with(char::is_whitespace) {
        return start..end;
    }
    let least = shown.end.clamp(start, end);
    let gap = text[least..end].rfind(char::is_whitespace);
    start..gap.map_or(end, |gap| least + gap)
}

fn starts_word(text: &str, place: usize) -> bool {
    text[..place].ends_with(char::is_whitespace)
}

fn back(text: &str, place: usize, characters: usize) -> usize {
    let before = text[..place].char_indices().rev();
    before.take(characters).last().map_or(place, |(place, _)| place)
}

fn forward(text: &str, place: usize, characters: usize) -> usize {
    let after = text[place..].char_indices().nth(characters);
    after.map_or(text.len(), |(offset, _)| place + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, sought: &[&str]) -> String {
        let mut matches: Vec<Range<usize>> = sought
            .iter()
            .flat_map(|part| text.match_indices(part).map(|(start, _)| start..start + part.len()))
            .collect();
        matches.sort_by_key(|range| range.start);
        let snippet = Snippet::new(text, &matches);
        snippet
            .pieces
            .iter()
            .map(|piece| if piece.matched { format!("[{}]", piece.text) } else { piece.text.clone() })
            .collect()
    }

    #[test]
    fn a_short_text_fits_on_one_line() {
        assert_eq!(shown("fix\n  the\tbug\n", &["the"]), "fix [the] bug");
        assert_eq!(shown("", &[]), "");
        assert_eq!(shown("a b", &["a", "b"]), "[a] [b]");
        assert_eq!(shown("a\nb c", &["a\nb"]), "[a b] c");
    }

    #[test]
    fn a_long_text_is_cut_between_words_around_the_best_match() {
        let text = format!(
            "{}needle {}needle and thread {}",
            "word ".repeat(90),
            "word ".repeat(90),
            "word ".repeat(90)
        );
        let line = shown(&text, &["needle", "thread"]);
        assert!(line.contains("[needle] and [thread] word"), "{line}");
        assert!(line.starts_with("… word") || line.starts_with("…word"), "{line}");
        assert!(line.ends_with("word…") || line.ends_with("word …"), "{line}");
        assert!((100..=170).contains(&line.chars().count()), "{line}");
    }

    #[test]
    fn text_without_spaces_is_cut_between_characters() {
        let text = "修".repeat(500) + "正" + &"修".repeat(500);
        let line = shown(&text, &["正"]);
        assert!(line.contains("[正]"), "{line}");
        assert_eq!(line.chars().count(), LENGTH + 4);
    }

    #[test]
    fn a_match_longer_than_the_line_is_cut() {
        let text = "ab".repeat(5000);
        let line = shown(&text, &[&text]);
        assert_eq!(line.chars().count(), LENGTH + 3, "{line}");
    }
}
