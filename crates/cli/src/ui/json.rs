//! JSON output that is safe on a terminal.
//!
//! JSON only escapes ASCII control characters, but terminals also interpret C1 controls (U+009B starts a sequence like
//! `ESC [`), and bidirectional marks can make a line misleading. These are escaped too: the value is the same, and safe
//! to display.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Writes a value on one line.
pub(crate) fn write(out: impl Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, EscapingFormatter)).map_err(io::Error::from)
}

pub(crate) fn to_text(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes, value).expect("writing to memory cannot fail");
    String::from_utf8(bytes).expect("JSON is text")
}

struct EscapingFormatter;

impl Formatter for EscapingFormatter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        escape(out, fragment)
    }

    // A raw value. Characters that need escaping only occur in its strings.
    fn write_raw_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        escape(out, fragment)
    }
}

fn escape<W: ?Sized + Write>(out: &mut W, text: &str) -> io::Result<()> {
    let mut rest = text;
    while let Some(at) = rest.find(is_unsafe) {
        out.write_all(&rest.as_bytes()[..at])?;
        let mut characters = rest[at..].chars();
        let character = characters.next().map_or(0, u32::from);
        write!(out, "\\u{character:04x}")?;
        rest = characters.as_str();
    }
    out.write_all(rest.as_bytes())
}

fn is_unsafe(character: char) -> bool {
    matches!(
        character,
        '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn unsafe_characters_are_escaped_without_changing_the_value() {
        let value = json!({"a\u{9b}": "\u{1b}[2J\u{9b}2J\u{7f}\u{202e}evil\u{2028}", "plain": "日本 👩‍👩‍👧‍👦 é"});
        let text = to_text(&value);
        assert!(!text.chars().any(|character| character.is_control() || is_unsafe(character)), "{text}");
        assert!(text.contains("日本 👩‍👩‍👧‍👦 é"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);

        let raw = RawValue::from_string("{\"k\": \"\u{9d}0;x\u{9c}\"}".to_owned()).expect("JSON");
        assert_eq!(to_text(&raw), "{\"k\": \"\\u009d0;x\\u009c\"}");
    }
}
