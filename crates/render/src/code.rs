//! Splits code into tokens with their kinds, for syntax highlighting.
//!
//! Grammars know hundreds of kinds. The few below help a reader; everything else looks like plain text.

use std::str::FromStr;
use std::sync::LazyLock;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Anything else.
    Plain,
    /// A comment.
    Comment,
    /// A string literal.
    Text,
    /// A number or another constant.
    Value,
    /// A keyword.
    Keyword,
    /// A name that is defined or called.
    Name,
    /// An added line of a diff.
    Added,
    /// A removed line of a diff.
    Removed,
}

/// Kinds by the scopes of the grammars; the first match wins.
const TOKEN_KINDS: &[(&str, TokenKind)] = &[
    ("comment", TokenKind::Comment),
    ("string", TokenKind::Text),
    ("constant", TokenKind::Value),
    ("keyword.operator", TokenKind::Plain),
    ("keyword", TokenKind::Keyword),
    ("storage", TokenKind::Keyword),
    ("entity.name.tag", TokenKind::Keyword),
    ("entity.name", TokenKind::Name),
    ("support.function", TokenKind::Name),
    ("markup.inserted", TokenKind::Added),
    ("markup.deleted", TokenKind::Removed),
];

/// Loaded on first use, since loading takes a while.
static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);
static SCOPES: LazyLock<Vec<(Scope, TokenKind)>> = LazyLock::new(|| {
    TOKEN_KINDS.iter().filter_map(|(name, word)| Some((Scope::from_str(name).ok()?, *word))).collect()
});

/// Splits code into lines of tokens, without line feeds; `None` if a line is longer than `longest` bytes or the
/// language is unknown.
pub fn highlight<'a>(
    language: &str,
    code: &'a str,
    longest: usize,
) -> Option<Vec<Vec<(TokenKind, &'a str)>>> {
    if code.lines().any(|line| line.len() > longest) {
        return None;
    }
    let syntax = SYNTAXES.find_syntax_by_token(alias(language))?;
    let mut state = ParseState::new(syntax);
    let mut scopes = ScopeStack::new();
    let mut lines = Vec::new();
    for line in code.split_inclusive('\n') {
        let solid = line.trim_end_matches('\n');
        let mut pieces = Vec::new();
        let mut start = 0;
        for (at, change) in state.parse_line(line, &SYNTAXES).ok()? {
            let at = at.min(solid.len());
            pieces.push((token_kind(&scopes), solid.get(start..at)?));
            start = at;
            scopes.apply(&change).ok()?;
        }
        pieces.push((token_kind(&scopes), solid.get(start..)?));
        pieces.retain(|(_, text)| !text.is_empty());
        lines.push(pieces);
    }
    Some(lines)
}

/// The innermost scope with a known kind decides.
fn token_kind(scopes: &ScopeStack) -> TokenKind {
    let known = |scope: &Scope| SCOPES.iter().find(|(kind, _)| kind.is_prefix_of(*scope));
    scopes.as_slice().iter().rev().find_map(known).map_or(TokenKind::Plain, |(_, word)| *word)
}

/// Maps common names of languages to those of the grammars.
fn alias(language: &str) -> &str {
    match language {
        "typescript" | "ts" | "tsx" | "jsx" | "mjs" => "js",
        "shell" | "console" | "zsh" => "sh",
        "jsonc" | "json5" => "json",
        "c++" => "cpp",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_known_languages_is_split_into_tokens() {
        fn highlight<'a>(language: &str, code: &'a str) -> Option<Vec<Vec<(TokenKind, &'a str)>>> {
            super::highlight(language, code, 40)
        }
        let lines = highlight("rust", "fn a() {} // b\nlet x = \"c\";\n").expect("Rust is known");
        assert_eq!(lines.len(), 2);
        for (line, word, text) in [
            (0, TokenKind::Keyword, "fn"),
            (0, TokenKind::Name, "a"),
            (0, TokenKind::Comment, " b"),
            (1, TokenKind::Text, "c"),
        ] {
            assert!(lines[line].contains(&(word, text)), "{text}: {:?}", lines[line]);
        }
        let whole: Vec<String> =
            lines.iter().map(|line| line.iter().map(|(_, text)| *text).collect()).collect();
        assert_eq!(whole, ["fn a() {} // b", "let x = \"c\";"], "nothing is lost");
        assert_eq!(highlight("nothing known", "x"), None);
        assert_eq!(highlight("rust", &"x".repeat(41)), None, "a line is too long");
        assert!(highlight("typescript", "let a").is_some());
    }
}
