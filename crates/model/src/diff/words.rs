//! Diff of two texts by word.
//!
//! ```text
//!   let total = sum(items);
//!   let total: u64 = sum(items) + tax;
//!   ─────────                                      same
//!            : u64                                 came
//!                  = sum(items)                    same …
//! ```
//!
//! A word is a run of letters, digits and underscores. A run of white space is one piece, and so is every
//! other character. Scripts written without spaces are compared by character.

use super::{LineChange, compare};

/// The maximum length of a text that is compared by word, in bytes.
pub const MAX_WORD_BYTES: usize = 64 * 1024;
/// The maximum number of words in a text that is compared by word.
pub const MAX_WORDS: usize = 8 * 1024;
/// Texts that share less than this percentage of their bytes are treated as entirely different.
const MIN_COMMON_PERCENT: usize = 30;

/// A run of words in a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordRun<'text> {
    /// In both texts.
    Same(&'text [u8]),
    /// Only in the first text.
    Removed(&'text [u8]),
    /// Only in the second text.
    Added(&'text [u8]),
}

/// Compares two texts by word. Returns `None` if they are too long, or share so little that a diff by word
/// would not help the reader.
pub fn words<'text>(before: &'text [u8], after: &'text [u8]) -> Option<Vec<WordRun<'text>>> {
    if before.is_empty() || after.is_empty() || before.len().max(after.len()) > MAX_WORD_BYTES {
        return None;
    }
    let (old, new) = (split(before), split(after));
    if old.len().max(new.len()) > MAX_WORDS {
        return None;
    }
    let changes = compare(&old, &new);
    let visible = |pieces: &[&[u8]]| -> usize {
        pieces.iter().filter(|piece| !is_blank(piece)).map(|piece| piece.len()).sum()
    };
    let whole = visible(&old).max(visible(&new));
    let gone: usize = changes.iter().map(|change| visible(&old[change.before.clone()])).sum();
    if (visible(&old) - gone) * 100 < whole * MIN_COMMON_PERCENT {
        return None;
    }
    Some(runs(before, &old, &new, after, &changes))
}

fn runs<'text>(
    before: &'text [u8],
    old: &[&'text [u8]],
    new: &[&'text [u8]],
    after: &'text [u8],
    changes: &[LineChange],
) -> Vec<WordRun<'text>> {
    let (old_ends, new_ends) = (ends(old), ends(new));
    let mut runs = Vec::with_capacity(changes.len() * 3 + 1);
    let mut push = |run: WordRun<'text>| {
        let (WordRun::Same(text) | WordRun::Removed(text) | WordRun::Added(text)) = run;
        if !text.is_empty() {
            runs.push(run);
        }
    };
    let mut done = 0;
    for change in changes {
        push(WordRun::Same(&after[new_ends[done]..new_ends[change.after.start]]));
        push(WordRun::Removed(&before[old_ends[change.before.start]..old_ends[change.before.end]]));
        push(WordRun::Added(&after[new_ends[change.after.start]..new_ends[change.after.end]]));
        done = change.after.end;
    }
    push(WordRun::Same(&after[new_ends[done]..]));
    runs
}

/// Returns the start of each piece, and the end of the last one.
fn ends(pieces: &[&[u8]]) -> Vec<usize> {
    let mut ends = Vec::with_capacity(pieces.len() + 1);
    let mut end = 0;
    ends.push(end);
    for piece in pieces {
        end += piece.len();
        ends.push(end);
    }
    ends
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharacterClass {
    Word,
    Space,
    Single,
}

fn class(character: char) -> CharacterClass {
    match character {
        // Each line feed is a separate piece, so that a joined line does not look like changed indentation.
        '\n' => CharacterClass::Single,
        _ if character.is_whitespace() => CharacterClass::Space,
        '_' => CharacterClass::Word,
        _ if character.is_ascii() => {
            if character.is_ascii_alphanumeric() {
                CharacterClass::Word
            } else {
                CharacterClass::Single
            }
        }
        // Scripts from this code point on are mostly written without spaces.
        '\u{2e80}'.. => CharacterClass::Single,
        // Combining accents belong to the preceding letter.
        _ => CharacterClass::Word,
    }
}

fn split(text: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut last = CharacterClass::Single;
    for chunk in text.utf8_chunks() {
        let bytes = chunk.invalid().iter().map(|_| (CharacterClass::Single, 1));
        let characters = chunk.valid().chars().map(|character| (class(character), character.len_utf8()));
        for (class, length) in characters.chain(bytes) {
            if at > start && (class != last || class == CharacterClass::Single) {
                pieces.push(&text[start..at]);
                start = at;
            }
            at += length;
            last = class;
        }
    }
    if at > start {
        pieces.push(&text[start..at]);
    }
    pieces
}

fn is_blank(piece: &[u8]) -> bool {
    piece.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, expected: Option<&str>) {
        let found = words(before.as_bytes(), after.as_bytes()).map(|runs| {
            let described = runs.into_iter().map(|run| match run {
                WordRun::Same(text) => String::from_utf8_lossy(text).into_owned(),
                WordRun::Removed(text) => format!("[-{}-]", String::from_utf8_lossy(text)),
                WordRun::Added(text) => format!("{{+{}+}}", String::from_utf8_lossy(text)),
            });
            described.collect::<String>()
        });
        assert_eq!(found.as_deref(), expected, "{before:?} {after:?}");
    }

    #[test]
    fn unchanged_words_are_distinguished_from_changed_ones() {
        check("let old = 1;\n", "let new = 1;\n", Some("let [-old-]{+new+} = 1;\n"));
        check("sum(items)", "sum(items, tax)", Some("sum(items{+, tax+})"));
        check("one two three", "one three", Some("one [-two -]three"));
        check("naïve idea here", "naïf idea here", Some("[-naïve-]{+naïf+} idea here"));
        check("今日は晴れ", "今日は雨れ", Some("今日は[-晴-]{+雨+}れ"));
    }

    #[test]
    fn texts_with_nothing_in_common_have_no_word_diff() {
        check("alpha beta gamma", "delta epsilon zeta", None);
        check("", "something", None);
        check("a  \t  b", "c  \t  d", None);
    }

    #[test]
    fn oversized_texts_have_no_word_diff() {
        let long = "word ".repeat(MAX_WORD_BYTES / 5 + 1);
        check(&long, "word", None);
        let many = "+".repeat(MAX_WORDS + 1);
        check(&many, "+", None);
    }
}
