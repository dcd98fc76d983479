//! Measures, cuts and wraps text by display width.
//!
//! The unit is the grapheme cluster, which is never split and usually takes one or two columns. Text is measured as it
//! is, so it must go through [`super::sanitize`] first; styles are added after measuring.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

const ELLIPSIS: &str = "…";
const TAB_STOP: usize = 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Align {
    #[default]
    Left,
    Right,
}

/// The display width of a line.
pub(crate) fn width(text: &str) -> usize {
    // Cluster by cluster, consistent with cutting and wrapping.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        text.len()
    } else {
        text.graphemes(true).map(cell).sum()
    }
}

/// Cuts the text to a width and marks the cut with `…`.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    if columns == 0 {
        return String::new();
    }
    let kept = &text[..prefix(text, columns - 1)];
    format!("{}{ELLIPSIS}", kept.trim_end_matches(' '))
}

/// Wraps text between words, or inside words longer than a line. Preserves line breaks, indents and empty lines; tabs
/// become spaces.
///
/// A cluster wider than a line gets its own line.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for line in text.split('\n') {
        wrap_line(&expand_tabs(line), columns, &mut lines);
    }
    lines
}

/// How many bytes of the text fit, in whole clusters.
pub(crate) fn prefix(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (start, cluster) in text.grapheme_indices(true) {
        used += cell(cluster);
        if used > columns {
            return start;
        }
    }
    text.len()
}

fn cell(cluster: &str) -> usize {
    cluster.width()
}

/// Replaces tabs by spaces.
pub(crate) fn expand_tabs(line: &str) -> Cow<'_, str> {
    if !line.contains('\t') {
        return Cow::Borrowed(line);
    }
    let mut expanded = String::with_capacity(line.len() * 2);
    let mut column = 0;
    for (index, part) in line.split('\t').enumerate() {
        if index > 0 {
            let fill = TAB_STOP - column % TAB_STOP;
            expanded.extend(std::iter::repeat_n(' ', fill));
            column += fill;
        }
        expanded.push_str(part);
        column += width(part);
    }
    Cow::Owned(expanded)
}

fn wrap_line(line: &str, columns: usize, lines: &mut Vec<String>) {
    let mut current = String::new();
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        let solid = word.trim_end_matches(' ');
        let solid_width = width(solid);
        if used > 0 && used + solid_width > columns {
            lines.push(finish(&mut current));
            used = 0;
            if solid.is_empty() {
                // The blank at a line break is dropped.
                continue;
            }
        }
        if solid_width <= columns {
            current.push_str(solid);
            used += solid_width;
        } else {
            for cluster in solid.graphemes(true) {
                let cell = cell(cluster);
                if used + cell > columns && !current.is_empty() {
                    lines.push(std::mem::take(&mut current));
                    used = 0;
                }
                current.push_str(cluster);
                used += cell;
            }
        }
        current.push_str(&word[solid.len()..]);
        used += word.len() - solid.len();
    }
    lines.push(finish(&mut current));
}

fn finish(line: &mut String) -> String {
    line.truncate(line.trim_end_matches(' ').len());
    std::mem::take(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns() {
        for (text, columns) in [("", 0), ("abc", 3), ("日本", 4), ("e\u{301}", 1), ("👩‍👩‍👧‍👦", 2), ("…", 1)]
        {
            assert_eq!(width(text), columns, "{text}");
        }
    }

    #[test]
    fn text_is_cut_between_grapheme_clusters() {
        for (text, columns, cut) in [
            ("hello", 5, "hello"),
            ("hello", 4, "hel…"),
            ("hello", 1, "…"),
            ("hello", 0, ""),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("ab 👩‍👩‍👧‍👦 c", 4, "ab…"),
            ("cafe\u{301}s", 5, "cafe\u{301}s"),
            ("cafe\u{301}s!", 5, "cafe\u{301}…"),
        ] {
            assert_eq!(truncate(text, columns), cut, "{text} at {columns}");
        }
    }

    #[test]
    fn text_is_wrapped_at_words() {
        for (text, columns, lines) in [
            ("", 10, vec![""]),
            ("one two three", 8, vec!["one two", "three"]),
            ("one two", 7, vec!["one two"]),
            ("one\n\ntwo", 10, vec!["one", "", "two"]),
            ("    indented code", 12, vec!["    indented", "code"]),
            ("abcdefgh ij", 3, vec!["abc", "def", "gh", "ij"]),
            ("日本語の文", 5, vec!["日本", "語の", "文"]),
            ("a\tb", 10, vec!["a   b"]),
            ("日", 1, vec!["日"]),
            ("a b", 0, vec!["a", "b"]),
            ("ends \n", 10, vec!["ends", ""]),
        ] {
            assert_eq!(wrap(text, columns), lines, "{text:?} at {columns}");
        }
    }

    proptest! {
        #[test]
        fn any_text_fits_any_width(text in "\\PC{0,60}", columns in 0_usize..30) {
            prop_assert!(width(&truncate(&text, columns)) <= columns);
            for line in wrap(&text, columns) {
                prop_assert!(width(&line) <= columns.max(1) || line.graphemes(true).count() == 1, "{line:?}");
            }
        }

        #[test]
        fn wrapping_drops_only_spaces(text in any::<String>(), columns in 0_usize..30) {
            let solid = |text: &str| text.replace([' ', '\n', '\t'], "");
            prop_assert_eq!(solid(&wrap(&text, columns).concat()), solid(&text));
        }
    }
}
