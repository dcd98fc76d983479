//! Finds and replaces text: a pure function.
//!
//! ```text
//!   exact match        once, or everywhere with `all`        otherwise an error with the line numbers
//!   ignoring           whole lines, one candidate only       the new lines get the indentation of the file
//!   whitespace
//!   no match           an error with the nearest lines
//! ```

use std::fmt::Write as _;

/// A replacement.
pub(super) struct Replacement<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    pub(super) all: bool,
}

/// The result of a replacement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReplaceResult {
    pub(super) text: String,
    /// Line numbers of the matches, from 1.
    pub(super) lines: Vec<usize>,
    pub(super) how: MatchKind,
}

/// How the text matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchKind {
    Exact,
    IgnoringWhitespace,
}

/// Why a replacement failed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditError {
    #[error("`old` is empty. To write a whole file, use `write`.")]
    Empty,
    #[error("`old` and `new` are the same, so there is nothing to do.")]
    Same,
    #[error("`old` is found in {count} places (lines {lines}). Give more lines around it, or set `all`.")]
    Ambiguous { count: usize, lines: String },
    #[error(
        "`old` is not found exactly, and without regard to white space it is found in {count} places \
         (lines {lines}). Read those lines again and give `old` exactly."
    )]
    AmbiguousLoosely { count: usize, lines: String },
    #[error("`old` is not found. Read the file again and give it exactly.{nearest}")]
    NotFound { nearest: String },
    #[error("Interrupted before it was done.")]
    Cancelled,
}

/// Replaces text; cancellable, because a file may have millions of lines.
pub(super) fn replace(
    text: &str,
    replacement: &Replacement<'_>,
    cancelled: &dyn Fn() -> bool,
) -> Result<ReplaceResult, EditError> {
    if replacement.old.is_empty() {
        return Err(EditError::Empty);
    }
    if replacement.old == replacement.new {
        return Err(EditError::Same);
    }
    // Models write LF; preserve the line endings of the file.
    let (old, new) = if ends_with_carriage_returns(text)
        && !replacement.old.contains('\r')
        && !replacement.new.contains('\r')
    {
        (replacement.old.replace('\n', "\r\n"), replacement.new.replace('\n', "\r\n"))
    } else {
        (replacement.old.to_owned(), replacement.new.to_owned())
    };
    let places: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
    match places.len() {
        0 => replace_loosely(text, &old, &new, cancelled),
        1 => Ok(replace_exactly(text, &old, &new, &places)),
        _ if replacement.all => Ok(replace_exactly(text, &old, &new, &places)),
        count => Err(EditError::Ambiguous { count, lines: numbers(&line_numbers(text, &places)) }),
    }
}

fn replace_exactly(text: &str, old: &str, new: &str, places: &[usize]) -> ReplaceResult {
    ReplaceResult { text: text.replace(old, new), lines: line_numbers(text, places), how: MatchKind::Exact }
}

/// Whether every line ends with CRLF.
fn ends_with_carriage_returns(text: &str) -> bool {
    let feeds = text.matches('\n').count();
    feeds > 0 && text.matches("\r\n").count() == feeds
}

/// The line numbers of sorted positions, from 1.
fn line_numbers(text: &str, places: &[usize]) -> Vec<usize> {
    let (mut line, mut counted) = (1, 0);
    places
        .iter()
        .map(|&place| {
            line += text[counted..place].matches('\n').count();
            counted = place;
            line
        })
        .collect()
}

fn numbers(lines: &[usize]) -> String {
    const MOST: usize = 10;
    let mut text = lines.iter().take(MOST).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if lines.len() > MOST {
        text.push_str(", …");
    }
    text
}

fn replace_loosely(
    text: &str,
    old: &str,
    new: &str,
    cancelled: &dyn Fn() -> bool,
) -> Result<ReplaceResult, EditError> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    // Ignore blank lines at both ends.
    let wanted: Vec<String> = old.trim_matches(['\n', '\r']).lines().map(collapse_whitespace).collect();
    if wanted.iter().all(String::is_empty) {
        return Err(EditError::NotFound { nearest: String::new() });
    }
    let squeezed_lines: Vec<String> =
        lines.iter().take_while(|_| !cancelled()).map(|line| collapse_whitespace(line)).collect();
    let places: Vec<usize> = squeezed_lines
        .windows(wanted.len())
        .take_while(|_| !cancelled())
        .enumerate()
        .filter(|(_, window)| *window == wanted.as_slice())
        .map(|(index, _)| index)
        .collect();
    if cancelled() {
        return Err(EditError::Cancelled);
    }
    let at = match places.as_slice() {
        [] => return Err(EditError::NotFound { nearest: nearest(&lines, &squeezed_lines, &wanted) }),
        [at] => *at,
        _ => {
            let found: Vec<usize> = places.iter().map(|index| index + 1).collect();
            return Err(EditError::AmbiguousLoosely { count: found.len(), lines: numbers(&found) });
        }
    };
    let there = &lines[at..at + wanted.len()];
    let mut result: String = lines[..at].concat();
    result.push_str(&reindent(there, old, new));
    result.push_str(&lines[at + wanted.len()..].concat());
    Ok(ReplaceResult { text: result, lines: vec![at + 1], how: MatchKind::IgnoringWhitespace })
}

/// Reduces whitespace to single spaces.
fn collapse_whitespace(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// The new lines with the indentation and line endings of the file.
fn reindent(there: &[&str], old: &str, new: &str) -> String {
    let is_blank = |line: &&str| line.trim().is_empty();
    let given = old.lines().find(|line| !is_blank(line)).map_or("", indentation);
    let found = there.iter().copied().find(|line| !is_blank(line)).map_or("", indentation);
    let last = there.last().copied().unwrap_or_default();
    let end = if last.ends_with("\r\n") {
        "\r\n"
    } else if last.ends_with('\n') {
        "\n"
    } else {
        ""
    };
    let new = new.trim_matches(['\n', '\r']);
    if new.is_empty() {
        return String::new();
    }
    let separator = if new.contains("\r\n") || end == "\r\n" { "\r\n" } else { "\n" };
    let lines: Vec<String> = new
        .lines()
        .map(|line| match line.strip_prefix(given) {
            Some(rest) if !line.trim().is_empty() => format!("{found}{rest}"),
            _ => line.to_owned(),
        })
        .collect();
    lines.join(separator) + end
}

/// The lines most similar to the first line of the text, with numbers; empty if none is similar.
fn nearest(lines: &[&str], squeezed_lines: &[String], wanted: &[String]) -> String {
    const AROUND: usize = 3;
    const LONGEST: usize = 200;
    let Some(first) = wanted.iter().find(|line| !line.is_empty()) else { return String::new() };
    let best = squeezed_lines
        .iter()
        .enumerate()
        .map(|(index, line)| (similarity(line, first), index))
        .max_by(|(one, i), (other, j)| one.total_cmp(other).then(j.cmp(i)));
    let Some((similarity, index)) = best else { return String::new() };
    if similarity < 0.5 {
        return String::new();
    }
    let mut text = String::from(" The nearest lines are:\n");
    let from = index.saturating_sub(AROUND);
    for (number, line) in lines.iter().enumerate().take(index + wanted.len().min(AROUND) + AROUND).skip(from)
    {
        let shown: String = line.trim_end().chars().take(LONGEST).collect();
        let _ = writeln!(text, "{:>6}\t{shown}", number + 1);
    }
    text.truncate(text.trim_end().len());
    text
}

/// Similarity of two lines from 0 to 1, by common prefix and suffix.
fn similarity(one: &str, other: &str) -> f64 {
    let longer = one.len().max(other.len());
    let shorter = one.len().min(other.len());
    if shorter == 0 {
        return 0.0;
    }
    let front = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let back = one.bytes().rev().zip(other.bytes().rev()).take_while(|(a, b)| a == b).count();
    (front + back).min(shorter) as f64 / longer as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_replacement_succeeds_or_explains_why_not() {
        let check = |text: &str, old: &str, new: &str, expected: Result<&str, &str>| {
            for all in [false, true] {
                let found = replace(text, &Replacement { old, new, all }, &|| false);
                match (&found, expected) {
                    (Ok(replaced), Ok(expected)) => assert_eq!(replaced.text, expected, "{text:?} {old:?}"),
                    (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                    _ => panic!("{text:?} with {old:?} gave {found:?}, not {expected:?}"),
                }
            }
        };
        check("a b c", "b", "x", Ok("a x c"));
        check("a\nb\n", "b\n", "", Ok("a\n"));
        check("", "x", "y", Err("not found"));
        check("a", "", "y", Err("empty"));
        check("a", "a", "a", Err("the same"));
        // Keeps the indentation of the file and the relative indentation of the new text.
        check(
            "    if a {\n        b\n    }\n",
            "if a {\n    b\n}",
            "if c {\n    d\n}",
            Ok("    if c {\n        d\n    }\n"),
        );
        check("\tone two\n", "  one  two", "  three", Ok("\tthree\n"));
        check("one\ntwo  \nthree", "two\nthree", "2\n3", Ok("one\n2\n3"));
        check("x\n  gone\ny\n", "gone \n", "\n", Ok("x\ny\n"));
        // Two candidates are ambiguous.
        check("  a;\n\ta;\n", "    a;", "b;", Err("2 places (lines 1, 2)"));
        check("fn main() {}\n", "fn mein() {}", "x", Err("     1\tfn main() {}"));
        check("completely other\n", "zzz", "x", Err("give it exactly."));
        check("text\n", "  \n \n", "x", Err("not found"));
        // Preserves line endings.
        check("a\r\nb\r\nc\r\n", "a\nb", "x\ny", Ok("x\r\ny\r\nc\r\n"));
        check("a\r\n  b\r\n", "a\nb", "x\ny", Ok("x\r\ny\r\n"));
        check("a\r\nb\nc\n", "a\nb", "x\ny", Ok("x\ny\nc\n"));
        check("ünï 日本\n", "日本", "é", Ok("ünï é\n"));
        check("aXbXc", "X\0", "y", Err("not found"));
    }

    #[test]
    fn several_matches_require_the_option_all() {
        let replacement = |all| Replacement { old: "x", new: "yy", all };
        let error = replace("x\na\nx x\n", &replacement(false), &|| false).expect_err("three places");
        assert_eq!(error, EditError::Ambiguous { count: 3, lines: "1, 3, 3".to_owned() });
        let replaced = replace("x\na\nx x\n", &replacement(true), &|| false).expect("all of them");
        assert_eq!(replaced.text, "yy\na\nyy yy\n");
        assert_eq!(replaced.lines, [1, 3, 3]);
    }

    proptest! {
        /// For any texts: no panic, exact matches are replaced exactly, and other lines do not change.
        #[test]
        fn text_outside_the_match_is_unchanged(text in "[ab \t\r\n{é]{0,40}", old in "[ab \t\r\n{é]{0,8}", new in "[ab \t\nx]{0,8}", all: bool) {
            let Ok(replaced) = replace(&text, &Replacement { old: &old, new: &new, all }, &|| false) else { return Ok(()) };
            let first = replaced.lines[0];
            let before: Vec<&str> = text.split_inclusive('\n').take(first - 1).collect();
            prop_assert!(replaced.text.starts_with(&before.concat()));
            if replaced.how == MatchKind::IgnoringWhitespace {
                prop_assert_eq!(replaced.lines.len(), 1);
                let height = old.trim_matches(['\n', '\r']).lines().count();
                let after: String = text.split_inclusive('\n').skip(first - 1 + height).collect();
                prop_assert!(replaced.text.ends_with(&after));
            } else if !text.contains('\r') {
                prop_assert!(all || replaced.lines.len() == 1);
                prop_assert_eq!(replaced.text, text.replace(&old, &new));
            }
        }
    }
}
