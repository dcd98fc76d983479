//! Translates a typed query into an FTS5 expression that cannot be misread.
//!
//! ```text
//!   fix parser         both words, anywhere              "fix" AND "parser"
//!   "fix the parser"   consecutive words                 "fix the parser"
//!   parse_history      punctuation inside: likewise      "parse history"
//!   parseHistory       a name, or its parts              ("parsehistory" OR "parse history")
//!   pars*              words with this prefix            "pars" *
//!   fix -parser        the first without the second      ("fix") NOT ("parser")
//! ```
//!
//! Everything that FTS5 treats as an operator (`OR`, `NEAR(`, `^`, `:`, brackets) is ordinary text. An expression
//! contains only quoted words that FTS5 itself has found in the text, which contain no quotes.

use super::SearchError;
use super::scratch::Scratch;
use super::segment::{segment_query, split_names};

/// More words than a person types, and few enough for FTS5.
pub(super) const MAX_WORDS: usize = 256;
/// More text than that many words have.
const MAX_TEXT: usize = 16 * 1024;

/// A query as FTS5 expressions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expression {
    /// What must match; `None` if there is no condition.
    pub(super) wanted: Option<String>,
    /// What must not match, if `wanted` is `None`; otherwise part of `wanted`.
    pub(super) unwanted: Option<String>,
    /// Whether the query contains text but no words, such as `!?`, and so cannot match.
    pub(super) unmatchable: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Term<'text> {
    text: &'text str,
    excluded: bool,
    prefix: bool,
}

impl Expression {
    pub(super) fn new(typed: &str, scratch: &Scratch) -> Result<Self, SearchError> {
        let too_long = SearchError::TooManyWords { limit: MAX_WORDS };
        if typed.len() > MAX_TEXT {
            return Err(too_long);
        }
        let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
        let mut count = 0;
        for term in terms(typed) {
            let words = scratch.words(&segment_query(term.text))?;
            let parts = match split_names(term.text) {
                Some(split) => scratch.words(&segment_query(&split))?,
                None => Vec::new(),
            };
            count += words.len() + parts.len();
            if count > MAX_WORDS {
                return Err(too_long);
            }
            // Punctuation by itself, as in `a && b`, is ignored.
            if words.is_empty() {
                continue;
            }
            let star = if term.prefix { " *" } else { "" };
            let mut phrase = format!("\"{}\"{star}", words.join(" "));
            if !parts.is_empty() {
                phrase = format!("({phrase} OR \"{}\"{star})", parts.join(" "));
            }
            if term.excluded { &mut unwanted } else { &mut wanted }.push(phrase);
        }
        let unmatchable = wanted.is_empty() && unwanted.is_empty() && !typed.trim().is_empty();
        let unwanted = (!unwanted.is_empty()).then(|| unwanted.join(" OR "));
        if wanted.is_empty() {
            return Ok(Self { wanted: None, unwanted, unmatchable });
        }
        let wanted = wanted.join(" AND ");
        let wanted =
            unwanted.map_or_else(|| wanted.clone(), |unwanted| format!("({wanted}) NOT ({unwanted})"));
        Ok(Self { wanted: Some(wanted), unwanted: None, unmatchable: false })
    }
}

/// Splits a query into words and quoted phrases.
fn terms(typed: &str) -> Vec<Term<'_>> {
    let mut terms = Vec::new();
    let mut rest = typed.trim_start();
    while !rest.is_empty() {
        let excluded = is_exclusion(rest);
        if excluded {
            rest = &rest[1..];
        }
        let (text, after) = if let Some(inside) = rest.strip_prefix(is_quote) {
            // An unclosed quote extends to the end.
            inside.split_once(is_quote).unwrap_or((inside, ""))
        } else {
            let end = rest
                .find(|character: char| character.is_whitespace() || character == '*' || is_quote(character));
            rest.split_at(end.unwrap_or(rest.len()))
        };
        let star = after.strip_prefix('*');
        terms.push(Term { text, excluded, prefix: star.is_some() });
        rest = star.unwrap_or(after).trim_start();
    }
    terms
}

/// `-word` and `-"words"` exclude; a single dash, `--flag` and `->` do not.
fn is_exclusion(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next() == Some('-')
        && characters.next().is_some_and(|next| next.is_alphanumeric() || is_quote(next) || !next.is_ascii())
}

fn is_quote(character: char) -> bool {
    matches!(character, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(typed: &str) -> Expression {
        let scratch = Scratch::new().expect("a database in memory");
        Expression::new(typed, &scratch).expect("short enough")
    }

    #[test]
    fn queries_become_quoted_words() {
        let check = |typed: &str, expected: &str| {
            assert_eq!(expression(typed).wanted.as_deref(), Some(expected), "{typed:?}");
        };
        check("fix parser", r#""fix" AND "parser""#);
        check(r#""fix the" parser"#, r#""fix the" AND "parser""#);
        check("“fix the” parser", r#""fix the" AND "parser""#);
        check("parse_history", r#""parse history""#);
        check("foo::bar", r#""foo bar""#);
        check("parseHistory x", r#"("parsehistory" OR "parse history") AND "x""#);
        check("parseHi*", r#"("parsehi" * OR "parse hi" *)"#);
        check("x -GitHub", r#"("x") NOT (("github" OR "git hub"))"#);
        check("pars*", r#""pars" *"#);
        check(r#""fix the pars"* x"#, r#""fix the pars" * AND "x""#);
        check("fix -parser", r#"("fix") NOT ("parser")"#);
        check(r#"fix -"a b" -c"#, r#"("fix") NOT ("a b" OR "c")"#);
        check("--all-targets", r#""all targets""#);
        check("a - b -> c && d", r#""a" AND "b" AND "c" AND "d""#);
        check(r#"" OR NEAR( *"#, r#""or near""#);
        check("a*b *c", r#""a" * AND "b" AND "c""#);
        check("a OR b NOT c", r#""a" AND "or" AND "b" AND "not" AND "c""#);
        check(r#"a"b"c"#, r#""a" AND "b" AND "c""#);
        check("x\0y", r#""x y""#);
        check("修正", r#""修 正""#);
        check("Ünï", r#""uni""#);
    }

    #[test]
    fn some_queries_have_no_words() {
        assert_eq!(expression(" \t"), Expression::default());
        assert!(expression("!? \" \" *").unmatchable);
        let excluding = expression("-fix -\"a b\"");
        assert_eq!(excluding.wanted, None);
        assert_eq!(excluding.unwanted.as_deref(), Some(r#""fix" OR "a b""#));
    }

    #[test]
    fn queries_are_limited() {
        let scratch = Scratch::new().expect("a database in memory");
        for typed in ["word ".repeat(1000), "x".repeat(100_000), "\"".repeat(100_000)] {
            let refused = Expression::new(&typed, &scratch);
            assert!(matches!(refused, Err(SearchError::TooManyWords { .. })), "{}", &typed[..10]);
        }
    }
}
