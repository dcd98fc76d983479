//! Three-way merge of texts, by lines.
//!
//! ```text
//!   base      a b c d e
//!   ours      a B c d e        b changed to B
//!   theirs    a b c d e f      f added
//!             ─────────────
//!   merged    a B c d e f      the changes do not touch: both apply
//! ```
//!
//! Different changes that touch each other are a conflict, and so are texts too large to compare: a merge
//! never guesses. If a change has several possible positions (a line added between equal lines), it touches
//! all of them, so that the result does not depend on the position that the diff algorithm picks.
//!
//! A line ends with a line feed or at the end of the text. A carriage return is part of its line, so line
//! ends and a missing final line end are preserved byte by byte.

use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Maximum size of a text that is merged by lines, in bytes.
pub const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of lines of a text that is merged.
pub const MAX_LINES: usize = 400_000;

/// Result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeResult {
    /// The merged text with both changes.
    Clean(Vec<u8>),
    /// Some changes contradict each other.
    Conflict {
        /// The text with both versions of each conflict between markers.
        marked: Vec<u8>,
        /// Number of conflicts.
        count: usize,
    },
    /// Both sides changed bytes that are not text.
    Binary,
}

/// Labels of the two sides in conflict markers.
#[derive(Clone, Copy, Debug)]
pub struct MergeLabels<'text> {
    /// The current side.
    pub ours: &'text str,
    /// The incoming side.
    pub theirs: &'text str,
}

/// Merges the changes from `base` to `ours` and from `base` to `theirs`.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8], labels: MergeLabels<'_>) -> MergeResult {
    if ours == theirs || theirs == base {
        return MergeResult::Clean(ours.to_vec());
    }
    if ours == base {
        return MergeResult::Clean(theirs.to_vec());
    }
    if [base, ours, theirs].iter().any(|bytes| bytes.contains(&0)) {
        return MergeResult::Binary;
    }
    let mut output = Output { bytes: Vec::with_capacity(ours.len().max(theirs.len())), count: 0, labels };
    let fits = |bytes: &&[u8]| bytes.len() <= MAX_TEXT_BYTES && lines(bytes).count() <= MAX_LINES;
    if [base, ours, theirs].iter().all(fits) {
        merge_lines(&lines(base).collect::<Vec<_>>(), [&collect(ours), &collect(theirs)], &mut output);
    } else {
        output.conflict(&[ours], &[theirs]);
    }
    match output.count {
        0 => MergeResult::Clean(output.bytes),
        count => MergeResult::Conflict { marked: output.bytes, count },
    }
}

/// Splits a text into lines, each with its line end.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n')
}

fn collect(text: &[u8]) -> Vec<&[u8]> {
    lines(text).collect()
}

#[derive(Clone, Debug)]
struct SideChange {
    /// The replaced lines of the base.
    base: Range<usize>,
    /// The replacing lines of the side.
    side: Range<usize>,
    /// The lines of the base among which the change could equally be placed.
    movable_range: Range<usize>,
}

fn merge_lines<'text>(base: &[&'text [u8]], sides: [&[&'text [u8]]; 2], output: &mut Output<'_>) {
    let mut numbers = HashMap::new();
    let mut number = |lines: &[&'text [u8]]| -> Vec<u32> {
        lines
            .iter()
            .map(|line| {
                let next = u32::try_from(numbers.len()).expect("lines are bounded");
                *numbers.entry(*line).or_insert(next)
            })
            .collect()
    };
    let base_numbers = number(base);
    let changes = sides.map(|side| changes(&base_numbers, &number(side)));

    let mut next = [0, 0];
    let mut done = 0;
    while let Some(group) = next_group(&changes, &mut next) {
        output.lines(&base[done..group.base.start]);
        done = group.base.end;
        let text = |side: usize| group.sides[side].clone().map(|range| &sides[side][range]);
        match (text(0), text(1)) {
            (Some(only), None) | (None, Some(only)) => output.lines(only),
            (Some(ours), Some(theirs)) => {
                let before = &base[group.base.clone()];
                if ours == theirs || theirs == before {
                    output.lines(ours);
                } else if ours == before {
                    output.lines(theirs);
                } else {
                    output.conflict(ours, theirs);
                }
            }
            (None, None) => {}
        }
    }
    output.lines(&base[done..]);
}

/// The changes of one side, in order.
fn changes(base: &[u32], side: &[u32]) -> Vec<SideChange> {
    // This algorithm accepts a longer diff when the shortest would take too long. It counts steps instead of
    // time, so the same texts always give the same result.
    let mut changes: Vec<SideChange> = Vec::new();
    for operation in capture_diff_slices(Algorithm::Myers, base, side) {
        if matches!(operation, DiffOp::Equal { .. }) {
            continue;
        }
        let (base, side) = (operation.old_range(), operation.new_range());
        match changes.last_mut() {
            Some(last) if last.base.end == base.start && last.side.end == side.start => {
                last.base.end = base.end;
                last.side.end = side.end;
            }
            _ => changes.push(SideChange { movable_range: base.clone(), base, side }),
        }
    }
    for index in 0..changes.len() {
        let above = index.checked_sub(1).map_or(0, |above| changes[above].base.end);
        let below = changes.get(index + 1).map_or(base.len(), |below| below.base.start);
        changes[index].movable_range = movable_range(base, side, &changes[index], above..below);
    }
    changes
}

/// How far a pure insertion or removal can move up and down without changing its meaning.
fn movable_range(base: &[u32], side: &[u32], change: &SideChange, within: Range<usize>) -> Range<usize> {
    let (text, moved) = if change.base.is_empty() {
        (side, change.side.clone())
    } else if change.side.is_empty() {
        (base, change.base.clone())
    } else {
        return change.base.clone();
    };
    let room_above = change.base.start - within.start;
    let room_below = within.end - change.base.end;
    let up = (0..room_above).take_while(|by| text[moved.start - 1 - by] == text[moved.end - 1 - by]).count();
    let down = (0..room_below).take_while(|by| text[moved.start + by] == text[moved.end + by]).count();
    change.base.start - up..change.base.end + down
}

/// Changes that touch each other, and the lines they affect.
struct Group {
    base: Range<usize>,
    /// The lines of each side that has a change here.
    sides: [Option<Range<usize>>; 2],
}

/// Takes the next group of changes that touch each other.
fn next_group(changes: &[Vec<SideChange>; 2], next: &mut [usize; 2]) -> Option<Group> {
    let first =
        [0, 1].into_iter().filter_map(|side| changes[side].get(next[side])).map(|c| c.movable_range.start);
    let mut base = first.min().map(|start| start..start)?;
    let started = *next;
    loop {
        let touching = (0..2).find(|&side| {
            changes[side].get(next[side]).is_some_and(|change| change.movable_range.start <= base.end)
        });
        let Some(side) = touching else { break };
        base.end = base.end.max(changes[side][next[side]].movable_range.end);
        next[side] += 1;
    }
    let range = |side: usize| {
        let (first, last) = match &changes[side][started[side]..next[side]] {
            [] => return None,
            [only] => (only, only),
            [first, .., last] => (first, last),
        };
        // Between and around its changes, a side equals the base.
        let above = first.base.start - base.start;
        let below = base.end - last.base.end;
        Some(first.side.start - above..last.side.end + below)
    };
    let sides = [range(0), range(1)];
    Some(Group { base, sides })
}

struct Output<'text> {
    bytes: Vec<u8>,
    count: usize,
    labels: MergeLabels<'text>,
}

impl Output<'_> {
    fn lines(&mut self, lines: &[&[u8]]) {
        for line in lines {
            self.bytes.extend_from_slice(line);
        }
    }

    fn conflict(&mut self, ours: &[&[u8]], theirs: &[&[u8]]) {
        let above = ours.iter().zip(theirs).take_while(|(ours, theirs)| ours == theirs).count();
        let (same, ours) = ours.split_at(above);
        let theirs = &theirs[above..];
        let pairs = ours.iter().rev().zip(theirs.iter().rev());
        let below = pairs.take_while(|(ours, theirs)| ours == theirs).count();
        let (ours, same_below) = ours.split_at(ours.len() - below);
        let theirs = &theirs[..theirs.len() - below];

        self.count += 1;
        let end: &[u8] = match ours.first().or(theirs.first()) {
            Some(line) if line.ends_with(b"\r\n") => b"\r\n",
            _ => b"\n",
        };
        self.lines(same);
        self.marker(b"<<<<<<<", self.labels.ours, end);
        self.lines(ours);
        self.marker(b"=======", "", end);
        self.lines(theirs);
        self.marker(b">>>>>>>", self.labels.theirs, end);
        self.lines(same_below);
    }

    fn marker(&mut self, marker: &[u8], label: &str, end: &[u8]) {
        if self.bytes.last().is_some_and(|&last| last != b'\n') {
            self.bytes.extend_from_slice(end);
        }
        self.bytes.extend_from_slice(marker);
        if !label.is_empty() {
            self.bytes.push(b' ');
            self.bytes.extend_from_slice(label.as_bytes());
        }
        self.bytes.extend_from_slice(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: MergeLabels<'static> = MergeLabels { ours: "ours", theirs: "theirs" };

    #[track_caller]
    fn check(base: &str, ours: &str, theirs: &str, expected: Result<&str, &str>) {
        let found = merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes(), LABELS);
        let found = match &found {
            MergeResult::Clean(bytes) => Ok(str::from_utf8(bytes).expect("valid UTF-8")),
            MergeResult::Conflict { marked, .. } => Err(str::from_utf8(marked).expect("valid UTF-8")),
            MergeResult::Binary => Err("binary"),
        };
        assert_eq!(found, expected, "{base:?} {ours:?} {theirs:?}");
    }

    #[test]
    fn changes_that_do_not_touch_are_both_applied() {
        check("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", Ok("A\nb\nC\n"));
        check("a\nb\nc\n", "a\nb\nc\nd\n", "b\nc\n", Ok("b\nc\nd\n"));
        check("a\nb\nc\n", "a\nx\nb\nc\n", "a\nb\ny\nc\n", Ok("a\nx\nb\ny\nc\n"));
        check("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\n", Ok("a\nB\nc\n"));
        check("a\nb\nc\nd\n", "A\nb\nc\nD\n", "A\nb\nc\nd\n", Ok("A\nb\nc\nD\n"));
        check("", "a\n", "", Ok("a\n"));
        check("a\n", "", "a\n", Ok(""));
    }

    #[test]
    fn changes_that_touch_are_a_conflict() {
        check("a\n", "b\n", "c\n", Err("<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n"));
        check("a\nb\n", "A\nb\n", "a\nB\n", Err("<<<<<<< ours\nA\nb\n=======\na\nB\n>>>>>>> theirs\n"));
        check("", "a\n", "b\n", Err("<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"));
        check("a\n", "", "b\n", Err("<<<<<<< ours\n=======\nb\n>>>>>>> theirs\n"));
        // Which of the two lines was removed is unknown, so the position of an insertion between them is
        // ambiguous.
        check("a\na\n", "a\n", "a\nx\na\n", Err("a\n<<<<<<< ours\n=======\nx\na\n>>>>>>> theirs\n"));
    }

    #[test]
    fn line_ends_and_a_missing_final_newline_are_preserved() {
        check("a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nc", Ok("A\r\nb\r\nc"));
        check("a\nb\nc", "a\nb\nc", "A\nb\nc", Ok("A\nb\nc"));
        check("a\nb\nc", "A\nb\nc", "a\nb\nc\n", Ok("A\nb\nc\n"));
        check("a\r\n", "b\r\n", "c", Err("<<<<<<< ours\r\nb\r\n=======\r\nc\r\n>>>>>>> theirs\r\n"));
        check("a\n\n\nb", "a\n\n\nc", "x\n\n\nb", Ok("x\n\n\nc"));
    }

    #[test]
    fn binary_content_is_not_merged() {
        check("a\0", "b\0", "c\0", Err("binary"));
        check("a\0", "a\0", "c\0", Ok("c\0"));
    }

    #[test]
    fn oversized_texts_are_one_conflict() {
        let long = "x".repeat(MAX_TEXT_BYTES + 1);
        let many = "\n".repeat(MAX_LINES + 1);
        for text in [long, many] {
            let MergeResult::Conflict { count, .. } = merge(b"a", text.as_bytes(), b"b", LABELS) else {
                panic!("it is too large");
            };
            assert_eq!(count, 1);
        }
    }
}
