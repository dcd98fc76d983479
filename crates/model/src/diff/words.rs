//! What differs between two stretches of text, word by word.
//!
//! ```text
//!   let total = sum(items);
//!   let total: u64 = sum(items) + tax;
//!   ─────────                                      same
//!            : u64                                 came
//!                  = sum(items)                    same …
//! ```
//!
//! A word is a run of letters, digits and underscores; a run of white space is one piece, and so is every other
//! character. Scripts that are written without spaces are compared character by character.

use super::{Change, compare};

/// The longest stretch that is compared by words, in bytes.
pub const LONGEST_WORDS: usize = 64 * 1024;
/// The most words that a stretch to be compared has.
pub const MOST_WORDS: usize = 8 * 1024;
/// Stretches that have less than this share of their bytes in common, in percent, are simply different.
const LEAST_COMMON: usize = 30;

/// A piece of the two stretches, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run<'text> {
    /// It is in both.
    Same(&'text [u8]),
    /// It was only in the first.
    Removed(&'text [u8]),
    /// It is only in the second.
    Added(&'text [u8]),
}

/// What differs between two stretches of text; `None` where they are too long, or have so little in common that
/// the words say no more than the lines do.
pub fn words<'text>(before: &'text [u8], after: &'text [u8]) -> Option<Vec<Run<'text>>> {
    if before.is_empty() || after.is_empty() || before.len().max(after.len()) > LONGEST_WORDS {
        return None;
    }
    let (old, new) = (split(before), split(after));
    if old.len().max(new.len()) > MOST_WORDS {
        return None;
    }
    let changes = compare(&old, &new);
    let visible = |pieces: &[&[u8]]| -> usize {
        pieces.iter().filter(|piece| !is_blank(piece)).map(|piece| piece.len()).sum()
    };
    let whole = visible(&old).max(visible(&new));
    let gone: usize = changes.iter().map(|change| visible(&old[change.before.clone()])).sum();
    if (visible(&old) - gone) * 100 < whole * LEAST_COMMON {
        return None;
    }
    Some(runs(before, &old, &new, after, &changes))
}

fn runs<'text>(
    before: &'text [u8],
    old: &[&'text [u8]],
    new: &[&'text [u8]],
    after: &'text [u8],
    changes: &[Change],
) -> Vec<Run<'text>> {
    let (old_ends, new_ends) = (ends(old), ends(new));
    let mut runs = Vec::with_capacity(changes.len() * 3 + 1);
    let mut push = |run: Run<'text>| {
        let (Run::Same(text) | Run::Removed(text) | Run::Added(text)) = run;
        if !text.is_empty() {
            runs.push(run);
        }
    };
    let mut done = 0;
    for change in changes {
        push(Run::Same(&after[new_ends[done]..new_ends[change.after.start]]));
        push(Run::Removed(&before[old_ends[change.before.start]..old_ends[change.before.end]]));
        push(Run::Added(&after[new_ends[change.after.start]..new_ends[change.after.end]]));
        done = change.after.end;
    }
    push(Run::Same(&after[new_ends[done]..]));
    runs
}

/// Where each piece begins, and where the last one ends.
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
enum Class {
    Word,
    Space,
    Single,
}

fn class(character: char) -> Class {
    match character {
        // An end of line stands for itself: a joined line must not look like changed indentation.
        '\n' => Class::Single,
        _ if character.is_whitespace() => Class::Space,
        '_' => Class::Word,
        _ if character.is_ascii() => {
            if character.is_ascii_alphanumeric() {
                Class::Word
            } else {
                Class::Single
            }
        }
        // From here on scripts are mostly written without spaces.
        '\u{2e80}'.. => Class::Single,
        // Accents that stand alone belong to the letter before them.
        _ => Class::Word,
    }
}

fn split(text: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut last = Class::Single;
    for chunk in text.utf8_chunks() {
        let bytes = chunk.invalid().iter().map(|_| (Class::Single, 1));
        let characters = chunk.valid().chars().map(|character| (class(character), character.len_utf8()));
        for (class, length) in characters.chain(bytes) {
            if at > start && (class != last || class == Class::Single) {
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
            let told = runs.into_iter().map(|run| match run {
                Run::Same(text) => String::from_utf8_lossy(text).into_owned(),
                Run::Removed(text) => format!("[-{}-]", String::from_utf8_lossy(text)),
                Run::Added(text) => format!("{{+{}+}}", String::from_utf8_lossy(text)),
            });
            told.collect::<String>()
        });
        assert_eq!(found.as_deref(), expected, "{before:?} {after:?}");
    }

    #[test]
    fn words_that_stay_are_told_from_words_that_change() {
        check("let old = 1;\n", "let new = 1;\n", Some("let [-old-]{+new+} = 1;\n"));
        check("sum(items)", "sum(items, tax)", Some("sum(items{+, tax+})"));
        check("one two three", "one three", Some("one [-two -]three"));
        check("naïve idea here", "naïf idea here", Some("[-naïve-]{+naïf+} idea here"));
        check("今日は晴れ", "今日は雨れ", Some("今日は[-晴-]{+雨+}れ"));
    }

    #[test]
    fn what_has_nothing_in_common_is_simply_different() {
        check("alpha beta gamma", "delta epsilon zeta", None);
        check("", "something", None);
        check("a  \t  b", "c  \t  d", None);
    }

    #[test]
    fn what_is_too_long_is_not_compared() {
        let long = "word ".repeat(LONGEST_WORDS / 5 + 1);
        check(&long, "word", None);
        let many = "+".repeat(MOST_WORDS + 1);
        check(&many, "+", None);
    }
}
