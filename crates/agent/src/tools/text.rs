//! Limits the length of text for models.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

use super::Output;

/// An output with limited text and, if it was cut, the full text.
pub(super) fn capped(text: String, most: usize) -> Output {
    match head_and_tail(&text, most) {
        None => Output { text, ..Output::default() },
        Some(cut) => Output { text: cut, whole: Some(text.into_bytes()), ..Output::default() },
    }
}

/// The start and the end of a text that is too long. The end gets more, because errors and totals are there.
pub(super) fn head_and_tail(text: &str, most: usize) -> Option<String> {
    if text.len() <= most {
        return None;
    }
    let count = text.chars().count();
    if count <= most {
        return None;
    }
    let head = most * 2 / 5;
    let tail = most - head;
    let at = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    let excluded = count - head - tail;
    Some(format!(
        "{}\n[… {excluded} characters left out here; the whole output is kept …]\n{}",
        &text[..at(head)],
        &text[at(count - tail)..]
    ))
}

/// Shortens a line.
pub(super) fn short_line(line: &str, most: usize) -> Cow<'_, str> {
    match line.char_indices().nth(most) {
        None => Cow::Borrowed(line),
        Some((end, _)) => {
            let more = line[end..].chars().count();
            Cow::Owned(format!("{}[… {more} more characters in this line]", &line[..end]))
        }
    }
}

/// Escapes line breaks in a name.
pub(super) fn one_line(name: &dyn Display) -> String {
    let mut line = String::new();
    for character in name.to_string().chars() {
        if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') {
            let _ = write!(line, "\\u{{{:x}}}", u32::from(character));
        } else {
            line.push(character);
        }
    }
    line
}

/// `1 file`, `2 files`.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Decodes UTF-8 from chunks; an incomplete character waits for the next chunk.
#[derive(Default)]
pub(super) struct Decoder {
    waiting: Vec<u8>,
}

impl Decoder {
    /// Returns the complete characters.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.waiting.extend_from_slice(bytes);
        let whole = match str::from_utf8(&self.waiting) {
            Ok(_) => self.waiting.len(),
            Err(_) => self.waiting.len() - unfinished(&self.waiting),
        };
        let text = String::from_utf8_lossy(&self.waiting[..whole]).into_owned();
        self.waiting.drain(..whole);
        text
    }

    /// Returns the rest.
    pub(super) fn finish(self) -> String {
        String::from_utf8_lossy(&self.waiting).into_owned()
    }
}

/// The length of an incomplete character at the end.
fn unfinished(bytes: &[u8]) -> usize {
    bytes
        .utf8_chunks()
        .last()
        .map(|chunk| chunk.invalid())
        .filter(|invalid| bytes.ends_with(invalid))
        .filter(|invalid| matches!(str::from_utf8(invalid), Err(error) if error.error_len().is_none()))
        .map_or(0, <[u8]>::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_keeps_both_ends_and_counts_the_rest() {
        assert_eq!(head_and_tail("short", 5), None);
        assert_eq!(head_and_tail("ééééé", 5), None);
        let cut = head_and_tail(&format!("{}{}", "é".repeat(100), "ß".repeat(100)), 10).expect("it is long");
        assert!(cut.starts_with("éééé\n[… 190 characters"), "{cut}");
        assert!(cut.ends_with("\nßßßßßß"), "{cut}");
        assert_eq!(short_line("abc", 3), "abc");
        assert_eq!(short_line("abcdé", 3), "abc[… 2 more characters in this line]");
        assert_eq!(one_line(&"a\nb\u{1b}[2J"), "a\\u{a}b\\u{1b}[2J");
    }

    #[test]
    fn appending_pieces_gives_the_same_text_as_the_whole() {
        let bytes = "aé日本𝄞z".bytes().chain([0xff, b'x', 0xe6, 0x97]).collect::<Vec<_>>();
        for size in 1..=bytes.len() {
            let mut decoder = Decoder::default();
            let mut text: String = bytes.chunks(size).map(|piece| decoder.push(piece)).collect();
            text.push_str(&decoder.finish());
            assert_eq!(text, String::from_utf8_lossy(&bytes), "in pieces of {size}");
        }
    }
}
