//! Makes stored text safe to print.
//!
//! Text from a model, a tool, a file or another person may contain sequences that move the cursor, set the window
//! title, write to the clipboard, or make a line misleading. Such characters are not dropped, which would hide them,
//! but made visible: an escape becomes `␛`, a bidirectional override becomes `\u{202e}`.
//!
//! Some invisible characters are dangerous in one context and needed in another:
//!
//! | character | stays | is shown |
//! |---|---|---|
//! | joiners U+200C, U+200D | after a letter or sign outside ASCII (emoji families, Persian, Indic) | elsewhere, as in `pay\u{200d}pal` |
//! | variation selectors, U+034F | one after a visible character | in runs, which can smuggle whole texts |
//! | tag characters U+E0020.. | in a flag: 🏴, at most six tags, the cancel tag | elsewhere, for the same reason |
//!
//! The decision depends only on text already written, so sanitizing is idempotent.

use std::borrow::Cow;
use std::fmt::Write;

/// How line breaks and tabs are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineBreaks {
    /// Kept, for multi-line text. `\r\n` becomes `\n`.
    Keep,
    /// Line breaks with surrounding blanks, and tabs, become one space, for single lines.
    Fold,
}

/// Makes everything visible that could affect the terminal or deceive the reader.
pub(crate) fn sanitize(text: &str, lines: LineBreaks) -> Cow<'_, str> {
    if is_plain(text, lines) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut after_fold = false;
    while let Some(character) = rest.chars().next() {
        let tail = &rest[character.len_utf8()..];
        rest = tail;
        let character = match character {
            '\r' if tail.starts_with('\n') => {
                rest = &tail[1..];
                '\n'
            }
            other => other,
        };
        if after_fold && matches!(character, ' ' | '\t' | '\n') {
            continue;
        }
        after_fold = false;
        match (character, lines) {
            ('\n' | '\t', LineBreaks::Keep) => safe.push(character),
            ('\t', LineBreaks::Fold) => safe.push(' '),
            ('\n', LineBreaks::Fold) => {
                safe.truncate(safe.trim_end_matches(' ').len());
                safe.push(' ');
                after_fold = true;
            }
            _ => {
                let stays = match kind(character) {
                    CharacterClass::Visible => character.len_utf8(),
                    CharacterClass::Unsafe => 0,
                    CharacterClass::Joiner => length_if(may_join(safe.chars().next_back()), character),
                    CharacterClass::Selector => length_if(may_select(safe.chars().next_back()), character),
                    CharacterClass::Tag => flag_length(safe.chars().next_back(), character, tail),
                };
                if stays == 0 {
                    show(&mut safe, character);
                } else {
                    let start = text.len() - tail.len() - character.len_utf8();
                    safe.push_str(&text[start..start + stays]);
                    rest = &text[start + stays..];
                }
            }
        }
    }
    Cow::Owned(safe)
}

/// Fast path: printable ASCII is returned without a copy.
fn is_plain(text: &str, lines: LineBreaks) -> bool {
    text.bytes().all(|byte| {
        matches!(byte, b' '..=b'~') || (lines == LineBreaks::Keep && matches!(byte, b'\n' | b'\t'))
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CharacterClass {
    Visible,
    Unsafe,
    Joiner,
    Selector,
    Tag,
}

fn kind(character: char) -> CharacterClass {
    match character {
        // C0, DEL and C1: terminal control, including 8-bit CSI and OSC.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Bidirectional marks, embeddings, overrides and isolates.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Line and paragraph separators, which programs treat inconsistently.
        | '\u{2028}' | '\u{2029}'
        // Invisible characters: soft hyphen, zero-width space, word joiner, invisible operators, byte order mark,
        // deprecated format controls, annotations.
        | '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
        | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
        // Blank letters: Hangul fillers, inherent Khmer vowels.
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{17b4}' | '\u{17b5}'
        // Format controls of shorthand and musical notation.
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => CharacterClass::Unsafe,
        '\u{200c}' | '\u{200d}' => CharacterClass::Joiner,
        '\u{34f}' | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0100}'..='\u{e01ef}' => CharacterClass::Selector,
        '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}' => CharacterClass::Tag,
        _ => CharacterClass::Visible,
    }
}

fn length_if(allowed: bool, character: char) -> usize {
    if allowed { character.len_utf8() } else { 0 }
}

fn may_join(before: Option<char>) -> bool {
    before.is_some_and(|before| {
        !before.is_ascii()
            && !before.is_whitespace()
            && !matches!(kind(before), CharacterClass::Joiner | CharacterClass::Tag)
            // An emoji may have a variation selector before its joiner: ❤️‍🔥.
            && (kind(before) != CharacterClass::Selector || before == '\u{fe0f}')
    })
}

fn may_select(before: Option<char>) -> bool {
    // ASCII too: the keycap 1️⃣ is a digit, a selector and a frame.
    before.is_some_and(|before| !before.is_whitespace() && kind(before) == CharacterClass::Visible)
}

/// The length in bytes of a regional flag's tags that start with `character`, or 0.
fn flag_length(before: Option<char>, character: char, tail: &str) -> usize {
    const BLACK_FLAG: char = '\u{1f3f4}';
    const CANCEL: char = '\u{e007f}';
    const MAX_REGION_TAGS: usize = 6;
    let is_region = |tag: char| matches!(tag, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    if before != Some(BLACK_FLAG) || !is_region(character) {
        return 0;
    }
    let region = tail.chars().take_while(|&tag| is_region(tag)).count();
    let ends = tail.chars().nth(region) == Some(CANCEL);
    if ends && region < MAX_REGION_TAGS { (region + 2) * CANCEL.len_utf8() } else { 0 }
}

fn show(safe: &mut String, character: char) {
    match character {
        // The control pictures are in the order of the controls.
        '\0'..='\u{1f}' => safe.extend(char::from_u32(0x2400 + u32::from(character))),
        '\u{7f}' => safe.push('␡'),
        _ => write!(safe, "\\u{{{:x}}}", u32::from(character)).expect("writing to a string cannot fail"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_characters_are_made_visible() {
        for (text, shown) in [
            ("plain", "plain"),
            ("\u{1b}[31mred\u{1b}[0m", "␛[31mred␛[0m"),
            ("\u{1b}]0;title\u{7}", "␛]0;title␇"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("\u{9d}52;c;aGk=\u{9c}", "\\u{9d}52;c;aGk=\\u{9c}"),
            ("good\rbad", "good␍bad"),
            ("pass\u{8}\u{8}", "pass␈␈"),
            ("\u{7f}\0", "␡␀"),
            ("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c"),
            ("a\u{2028}b\u{85}c", "a\\u{2028}b\\u{85}c"),
            ("pay\u{200b}pal \u{feff}", "pay\\u{200b}pal \\u{feff}"),
        ] {
            assert_eq!(sanitize(text, LineBreaks::Keep), shown, "{text:?}");
        }
    }

    #[test]
    fn writing_systems_and_emoji_survive() {
        for text in [
            "👩‍👩‍👧‍👦 ❤️‍🔥 1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🇵🇱 👍🏽",
            "e\u{301}\u{323} a\u{308}",
            "می‌خواهم",
            "क्‍ष श्रीमान्",
            "日本語 葛\u{e0100} 한국어",
            "עברית العربية",
            "␛ is a picture",
        ] {
            assert_eq!(sanitize(text, LineBreaks::Keep), text);
            assert_eq!(sanitize(text, LineBreaks::Fold), text);
        }
    }

    #[test]
    fn misplaced_invisible_characters_are_made_visible() {
        for (text, shown) in [
            ("pay\u{200d}pal", "pay\\u{200d}pal"),
            ("\u{200d}a", "\\u{200d}a"),
            ("é\u{200d}\u{200d}", "é\u{200d}\\u{200d}"),
            ("a\u{fe0f}\u{fe01}", "a\u{fe0f}\\u{fe01}"),
            ("\u{fe0f}", "\\u{fe0f}"),
            ("hi\u{e0068}\u{e0069}", "hi\\u{e0068}\\u{e0069}"),
            ("🏴\u{e0067}", "🏴\\u{e0067}"),
        ] {
            assert_eq!(sanitize(text, LineBreaks::Keep), shown, "{text:?}");
        }
    }

    #[test]
    fn lines_are_kept_or_folded() {
        for (text, kept, folded) in [
            ("a\nb", "a\nb", "a b"),
            ("a\r\nb", "a\nb", "a b"),
            ("a \n\n\t b", "a \n\n\t b", "a b"),
            ("a\tb", "a\tb", "a b"),
            ("a  b", "a  b", "a  b"),
            ("\n", "\n", " "),
        ] {
            assert_eq!(sanitize(text, LineBreaks::Keep), kept, "{text:?}");
            assert_eq!(sanitize(text, LineBreaks::Fold), folded, "{text:?}");
        }
    }

    /// Random text with many relevant characters.
    fn hostile() -> impl Strategy<Value = String> {
        let character = prop_oneof![
            any::<char>(),
            prop::char::range('\0', '\u{a0}'),
            prop::char::range('\u{2000}', '\u{2070}'),
            prop::char::range('\u{fe00}', '\u{fe0f}'),
            prop::char::range('\u{e0060}', '\u{e0080}'),
            prop::sample::select(vec!['🏴', 'é', '👩', '\u{200d}', '\u{e007f}', '\n', '\r', ' ', '\u{34f}']),
        ];
        prop::collection::vec(character, 0..40).prop_map(|characters| characters.into_iter().collect())
    }

    proptest! {
        #[test]
        fn nothing_unsafe_remains(text in hostile()) {
            for lines in [LineBreaks::Keep, LineBreaks::Fold] {
                let safe = sanitize(&text, lines);
                let mut before = None;
                for character in safe.chars() {
                    let allowed = match kind(character) {
                        CharacterClass::Visible => true,
                        CharacterClass::Unsafe => lines == LineBreaks::Keep && matches!(character, '\n' | '\t'),
                        CharacterClass::Joiner => may_join(before),
                        CharacterClass::Selector => may_select(before),
                        CharacterClass::Tag => before.is_some_and(|before| before == '🏴' || kind(before) == CharacterClass::Tag),
                    };
                    prop_assert!(allowed, "{character:?} in {safe:?}");
                    before = Some(character);
                }
            }
        }

        #[test]
        fn safe_text_stays_as_it_is(text in hostile()) {
            for lines in [LineBreaks::Keep, LineBreaks::Fold] {
                let once = sanitize(&text, lines).into_owned();
                prop_assert_eq!(sanitize(&once, lines), once.as_str());
            }
        }
    }
}
