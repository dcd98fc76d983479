//! Segments text for the index, so that scripts without spaces can be searched.
//!
//! FTS5 splits words at spaces and punctuation. Chinese, Japanese, Thai and other scripts have neither between words,
//! so each of their characters becomes a word, and a search for such text becomes a phrase of characters. Queries and
//! indexed texts are segmented by the same function, so they always agree.
//!
//! ```text
//!   "修正 bug🐛"      ►  " 修  正  bug uemoji1f41b "
//!   "cafe\u{301}"     ►  "cafe"                          (unicode61 itself makes "e" of "é")
//!   "Ｆｏｏ"            ►  "Foo"
//!   "a parseHistory"  ►  "a parseHistory parse History"  (the parts of such names follow the text)
//! ```
//!
//! `snake_case`, `a::b` and paths need nothing: FTS5 splits them at their punctuation.
//!
//! The result is never displayed. [`SegmentedText`] maps its parts back to the original.

use std::fmt::Write;
use std::ops::Range;

/// The FTS5 tokenizer. Marks are part of words: otherwise every Hindi word would be split at its vowels.
pub(super) const TOKENIZER: &str = "unicode61 remove_diacritics 2 categories ''L* M* N* Co''";

/// How a character is segmented.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharacterClass {
    /// Unchanged.
    Plain,
    /// Removed: diacritics, variation selectors and joiners.
    Dropped,
    /// Replaced by a space: control characters must not be mistaken for match markers.
    Blank,
    /// A word by itself.
    Alone,
    /// Replaced by a word, because FTS5 treats emoji as punctuation.
    Emoji,
    /// Replaced by its narrow form.
    Wide,
}

fn class(character: char) -> CharacterClass {
    if matches!(character, ' '..='~') {
        return CharacterClass::Plain;
    }
    match u32::from(character) {
        0..=0x1f | 0x7f => CharacterClass::Blank,
        0xad
        | 0x300..=0x36f
        | 0x1ab0..=0x1aff
        | 0x1dc0..=0x1dff
        | 0x200b..=0x200f
        | 0x202a..=0x202e
        | 0x2060..=0x206f
        | 0x20d0..=0x20ff
        | 0xfe00..=0xfe0f
        | 0xfe20..=0xfe2f
        | 0xfeff
        | 0xe0000..=0xe01ef => CharacterClass::Dropped,
        // Thai, Lao, Tibetan, Burmese; Korean letters; Khmer; the Tai scripts.
        0x0e00..=0x109f
        | 0x1100..=0x11ff
        | 0x1780..=0x17ff
        | 0x1950..=0x19ff
        | 0x1a20..=0x1aaf
        // Chinese, Japanese, Korean, Yi. Korean has spaces, but attaches particles to words.
        | 0x2e80..=0x2fdf
        | 0x3005..=0x3007
        | 0x3021..=0x3029
        | 0x3031..=0x3035
        | 0x3041..=0x318f
        | 0x31a0..=0x31ff
        | 0x3400..=0x4dbf
        | 0x4e00..=0xa4cf
        | 0xa960..=0xa9ff
        | 0xaa60..=0xaadf
        | 0xac00..=0xd7ff
        | 0xf900..=0xfaff
        | 0xff66..=0xffdc
        | 0x1aff0..=0x1b16f
        | 0x20000..=0x3ffff => CharacterClass::Alone,
        0x2300..=0x23ff | 0x2600..=0x27bf | 0x2b00..=0x2bff | 0x1f000..=0x1faff => CharacterClass::Emoji,
        0xff01..=0xff5e => CharacterClass::Wide,
        _ => CharacterClass::Plain,
    }
}

/// Longer names in mixed case are hashes or encoded data, not names.
const MAX_NAME: usize = 64;
/// Likewise names of more parts.
const MAX_PARTS: usize = 8;

/// Segments a text for the index.
pub(super) fn segment(text: &str) -> String {
    let mut segmented = String::with_capacity(text.len() + text.len() / 8);
    copy(text, &mut segmented, |_, _| ());
    append_parts(text, &mut segmented, |_, _| ());
    segmented
}

/// Segments a query, without the parts of names.
pub(super) fn segment_query(text: &str) -> String {
    let mut segmented = String::with_capacity(text.len());
    copy(text, &mut segmented, |_, _| ());
    segmented
}

/// A query with its names in mixed case split into their parts; `None` if there are none.
pub(super) fn split_names(text: &str) -> Option<String> {
    let mut split = String::new();
    let mut copied = 0;
    each_name(text, |parts| {
        for part in parts {
            split.push_str(&text[copied..part.start]);
            split.push(' ');
            copied = part.start;
        }
    });
    (copied > 0 || !split.is_empty()).then(|| split + &text[copied..])
}

/// A segmented text with a mapping to the original.
pub(super) struct SegmentedText<'text> {
    original: &'text str,
    text: String,
    /// Offsets in the segmented and original text, wherever their distance changes.
    shifts: Vec<(usize, usize)>,
    /// The same for the parts of names, which follow the text.
    parts: Vec<(usize, usize)>,
}

impl<'text> SegmentedText<'text> {
    pub(super) fn new(original: &'text str) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut shifts = Vec::new();
        copy(original, &mut text, |here, there| shifts.push((here, there)));
        shifts.push((text.len(), original.len()));
        let mut parts = Vec::new();
        append_parts(original, &mut text, |here, there| parts.push((here, there)));
        Self { original, text, shifts, parts }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The range of the original text for a range of the segmented text.
    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        if let Some(place) = self.place_in_name(range.start) {
            return place..self.place_in_name(range.end).unwrap_or(place);
        }
        let end = self.place(range.end);
        // Removed diacritics belong to the preceding letter.
        let marks = self.original[end..].chars();
        let marks = marks.take_while(|&mark| class(mark) == CharacterClass::Dropped);
        self.place(range.start)..end + marks.map(char::len_utf8).sum::<usize>()
    }

    /// The place of an offset within the parts of names.
    fn place_in_name(&self, offset: usize) -> Option<usize> {
        let after = self.parts.partition_point(|&(here, _)| here <= offset);
        let (here, there) = self.parts[after.checked_sub(1)?];
        Some((there + (offset - here)).min(self.original.len()))
    }

    fn place(&self, offset: usize) -> usize {
        let after = self.shifts.partition_point(|&(here, _)| here <= offset);
        let (here, there) = after.checked_sub(1).map_or((0, 0), |index| self.shifts[index]);
        let next = self.shifts.get(after).map_or(self.original.len(), |&(_, there)| there);
        let mut place = (there + (offset - here)).min(next);
        while !self.original.is_char_boundary(place) {
            place -= 1;
        }
        place
    }
}

fn copy(text: &str, segmented: &mut String, mut shifted: impl FnMut(usize, usize)) {
    // Plain text is copied in runs, because most text is plain.
    let mut run = 0;
    for (place, character) in text.char_indices() {
        let class = class(character);
        if class == CharacterClass::Plain {
            continue;
        }
        if run < place {
            shifted(segmented.len(), run);
            segmented.push_str(&text[run..place]);
        }
        run = place + character.len_utf8();
        match class {
            CharacterClass::Plain | CharacterClass::Dropped => {}
            CharacterClass::Blank => {
                shifted(segmented.len(), place);
                segmented.push(' ');
            }
            CharacterClass::Alone => {
                segmented.push(' ');
                shifted(segmented.len(), place);
                segmented.push(character);
                segmented.push(' ');
            }
            CharacterClass::Emoji => {
                segmented.push(' ');
                shifted(segmented.len(), place);
                let written = write!(segmented, "uemoji{:x} ", u32::from(character));
                written.expect("writing into memory cannot fail");
            }
            CharacterClass::Wide => {
                shifted(segmented.len(), place);
                let narrow = char::from_u32(u32::from(character) - 0xfee0);
                segmented.push(narrow.expect("wide forms are in ASCII order"));
            }
        }
    }
    if run < text.len() {
        shifted(segmented.len(), run);
        segmented.push_str(&text[run..]);
    }
}

/// Appends the parts of all names in mixed case, so that `history` finds `parseHistory`.
fn append_parts(text: &str, segmented: &mut String, mut shifted: impl FnMut(usize, usize)) {
    each_name(text, |parts| {
        for part in parts {
            segmented.push(' ');
            shifted(segmented.len(), part.start);
            segmented.push_str(&text[part.clone()]);
        }
    });
}

/// Passes the parts of each name in mixed case: `parseHistory`, `HTTPServer`, `utf8Text`.
fn each_name(text: &str, mut each: impl FnMut(&[Range<usize>])) {
    let bytes = text.as_bytes();
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let start = at;
        parts.clear();
        let mut part = start;
        at += 1;
        while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
            let (before, here) = (bytes[at - 1], bytes[at]);
            let begins = here.is_ascii_uppercase()
                && (!before.is_ascii_uppercase() || bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase));
            if begins {
                parts.push(part..at);
                part = at;
            }
            at += 1;
        }
        if !parts.is_empty() && parts.len() < MAX_PARTS && at - start <= MAX_NAME {
            parts.push(part..at);
            each(&parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_mixed_case_have_parts() {
        let check = |text: &str, expected: &[&str]| {
            let mut found = Vec::new();
            each_name(text, |parts| found.extend(parts.iter().map(|part| text[part.clone()].to_owned())));
            assert_eq!(found, expected, "{text:?}");
        };
        check("call parseHistory() of HTTPServer", &["parse", "History", "HTTP", "Server"]);
        check("utf8Text iPhone GitHub", &["utf8", "Text", "i", "Phone", "Git", "Hub"]);
        check("snake_case SCREAMING plain Title 42 été", &[]);
        check("größeMaß HTML", &["e", "Ma"]);
        check(&"aB".repeat(MAX_PARTS), &[]);
        check("", &[]);
        assert_eq!(split_names("foo::parseHistory").as_deref(), Some("foo:: parse History"));
        assert_eq!(split_names("parse_history"), None);
    }

    #[test]
    fn characters_of_scripts_without_spaces_are_words() {
        let check = |text: &str, expected: &str| {
            let segmented = segment(text);
            let words: Vec<&str> = segmented.split_whitespace().collect();
            assert_eq!(words.join(" "), expected, "{text:?}");
            assert_eq!(SegmentedText::new(text).text(), segmented);
        };
        check("plain text", "plain text");
        check("修正bug", "修 正 bug");
        check("ไทย", "ไ ท ย");
        check("서버가", "서 버 가");
        check("cafe\u{301}", "cafe");
        check("done\u{2705}", "done uemoji2705");
        check("❤\u{fe0f}", "uemoji2764");
        check("Ｆｏｏ１", "Foo1");
        check("a\0b\u{1}c", "a b c");
        check("", "");
    }

    #[test]
    fn ranges_map_back_to_the_original() {
        let check = |text: &str, part: &str, expected: &str| {
            let segmented = SegmentedText::new(text);
            let start = segmented.text().find(part).expect("a part of the text");
            let range = segmented.original(&(start..start + part.len()));
            assert_eq!(&text[range], expected, "{part:?} in {text:?}");
        };
        check("fix 修正 it", "修  正", "修正");
        check("fix 修正 it", "it", "it");
        check("a cafe\u{301} here", "cafe", "cafe\u{301}");
        check("ok🐛bug", "uemoji1f41b", "🐛");
        check("ok🐛bug", "bug", "bug");
        check("x\nＦｏｏ y", "Foo", "Ｆｏｏ");
        check("修 parseHistory it", " History", "History");
        check("a parseHistory it", "parse History", "parseHistory");
    }
}
