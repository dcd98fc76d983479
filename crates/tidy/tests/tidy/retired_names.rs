//! Names that were replaced must not come back: as identifiers, flags, routes or JSON keys.
//!
//! Prose is free: comments and sentences in strings are not checked, only strings that are a single name, a flag, or a path.

use std::path::Path;

use super::Violation;

/// Retired identifiers. Ordinary words that still have an ordinary meaning somewhere (`once`, `mark`) are not listed.
const IDENTIFIERS: &[&str] = &[
    "Looking",
    "LookError",
    "Desk",
    "Workshop",
    "Brain",
    "Letter",
    "Unreached",
    "Ledger",
    "Halves",
    "Handling",
    "Foreseen",
    "foresee",
    "Standing",
    "let_loose",
    "take_stock",
    "carry_out",
    "glance",
    "Glance",
    "Meant",
    "Told",
    "Around",
    "Surroundings",
    "Resuming",
    "Audience",
    "Fared",
    "Filed",
    "filed",
    "comms",
    "Comms",
    "tally",
    "Tally",
    "farewell",
    "left_out",
    "LeftOut",
    "halves",
];

/// Retired names in what programs and users type or read: flags, segments of routes, JSON keys, commands.
const SURFACE: &[&str] = &[
    "halves",
    "left_out",
    "left-out",
    "standing",
    "would",
    "comms",
    "entries-shown",
    "letters",
    "entries_came",
    "entries_went",
    "files_held",
];

/// The retired names in a source file.
pub(super) fn retired(path: &Path, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for token in tokens(text) {
        let bad = match token {
            Token::Identifier(name) => IDENTIFIERS.contains(&name).then_some(name),
            Token::Text(text) => surface_names(text).find(|name| SURFACE.contains(name)),
        };
        if let Some(name) = bad {
            found
                .push(format!("{}: `{name}` is retired; see docs/glossary.md for the words", path.display()));
        }
    }
    found
}

/// The names in a string that is a key, a command, a flag or a route. A sentence has none.
fn surface_names(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let route = text.strip_prefix('/').filter(|rest| !rest.contains(char::is_whitespace));
    let flag = text.strip_prefix("--");
    let parts: Vec<&str> = match (route, flag) {
        (Some(route), _) => route.split(['/', '?', '&', '=']).collect(),
        (None, Some(flag)) => vec![flag],
        (None, None) => vec![text],
    };
    parts.into_iter().filter(move |part| is_name(part))
}

enum Token<'text> {
    Identifier(&'text str),
    Text(&'text str),
}

/// Identifiers and string literals of Rust code, without comments.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(raw) = raw_string(rest) {
            found.push(Token::Text(raw.content));
            raw.length
        } else if rest.starts_with('"') {
            let end = string_end(rest);
            found.push(Token::Text(&rest[1..end.max(1)]));
            end + 1
        } else if rest.starts_with('\'') {
            character(rest)
        } else if bytes[at].is_ascii_alphabetic() || bytes[at] == b'_' {
            let end = rest
                .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
                .unwrap_or(rest.len());
            found.push(Token::Identifier(&rest[..end]));
            end
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        at += length;
    }
    found
}

struct RawString<'text> {
    content: &'text str,
    length: usize,
}

fn raw_string(text: &str) -> Option<RawString<'_>> {
    let opening = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = opening.bytes().take_while(|byte| *byte == b'#').count();
    let body = opening[hashes..].strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(hashes));
    let end = body.find(&closing)?;
    let length = text.len() - body.len() + end + closing.len();
    Some(RawString { content: &body[..end], length })
}

/// Where the string literal that `text` starts with ends: the position of its closing quote.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character literal, or of the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    match letters.next() {
        Some((_, '\\')) => {
            text[2..].char_indices().skip(1).find(|(_, letter)| *letter == '\'').map_or(1, |(at, _)| at + 3)
        }
        Some((_, letter)) if text[1 + letter.len_utf8()..].starts_with('\'') => letter.len_utf8() + 2,
        _ => 1,
    }
}

#[test]
fn retired_names_are_caught() {
    let check = |text: &str, expected: bool| {
        assert_eq!(!retired(Path::new("x.rs"), text).is_empty(), expected, "{text}");
    };
    check("struct Desk;", true);
    check("// A Desk of old, and 'static", false);
    check("let desk_of = \"take a look at the Desk\";", false);
    check("json!({\"halves\": 1})", true);
    check("route(\"/v1/threads/{thread}/comms\")", true);
    check("call(&[\"--left-out\"])", true);
    check("let quote = '\"'; let x: Desk;", true);
    check("let quote = '\\''; /* Desk */", false);
    check("let raw = r#\"halves\"#;", true);
    check("fn f<'a>(x: &'a str) -> Desk { }", true);
}
