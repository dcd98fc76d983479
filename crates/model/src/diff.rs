//! What differs between two texts, line by line, and word by word within lines.
//!
//! ```text
//!   before   after        changes                     hunks (with one line around)
//!   a        a
//!   b        B            lines 2..3 became 2..3  ┐    @@ 1,4 +1,5 @@   a  -b +B  c  +x  d
//!   c        c                                    ├─►
//!   d        x            before 4 came 4..5      ┘
//!            d
//! ```
//!
//! [`changes`] is all that counting, attributing and showing need; [`hunks`] makes what people read of it. A
//! line is what ends with a line feed, or the rest: a carriage return belongs to its line, and so does a missing
//! last line end. Texts are bytes here; whether they are UTF-8 is a question for whoever shows them.
//!
//! Two texts are compared up to [`LONGEST_TEXT`] bytes and [`MOST_LINES`] lines each; beyond, it is only said
//! that they differ. Whatever has a zero byte is not text.

mod hunks;
mod words;

use std::collections::HashMap;
use std::ops::Range;

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};

pub use crate::merge::{LONGEST_TEXT, MOST_LINES};
pub use hunks::{Hunk, HunkLine, Part, Side, hunks};
pub use words::{LONGEST_WORDS, MOST_WORDS, Run, words};

/// Lines of one text that stand where other lines stood. Lines are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The lines that went.
    pub before: Range<usize>,
    /// The lines that came.
    pub after: Range<usize>,
}

/// How many lines came and went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LineCounts"))]
pub struct Counts {
    /// Lines that came.
    pub added: u64,
    /// Lines that went.
    pub removed: u64,
}

/// Why two contents are not compared line by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Incomparable {
    /// One of them is not text.
    #[error("it is not text")]
    Binary,
    /// One of them is longer than [`LONGEST_TEXT`] or has more lines than [`MOST_LINES`].
    #[error("it is too large to compare")]
    TooLarge,
}

/// What differs between two texts, from the top down. Changes never touch each other.
pub fn changes(before: &[u8], after: &[u8]) -> Result<Vec<Change>, Incomparable> {
    check(before)?;
    check(after)?;
    let (before, after): (Vec<&[u8]>, Vec<&[u8]>) = (lines(before).collect(), lines(after).collect());
    if before.len().max(after.len()) > MOST_LINES {
        return Err(Incomparable::TooLarge);
    }
    Ok(compare(&before, &after))
}

/// Whether bytes are text that is short enough to be compared.
pub fn check(bytes: &[u8]) -> Result<(), Incomparable> {
    if bytes.len() > LONGEST_TEXT {
        return Err(Incomparable::TooLarge);
    }
    if bytes.contains(&0) { Err(Incomparable::Binary) } else { Ok(()) }
}

/// The lines of a text, each with its end.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n')
}

impl Counts {
    /// How many lines came and went with these changes.
    pub fn of(changes: &[Change]) -> Self {
        changes.iter().fold(Self::default(), |counts, change| Self {
            added: counts.added + change.after.len() as u64,
            removed: counts.removed + change.before.len() as u64,
        })
    }
}

/// What differs between two rows of pieces: lines, or words.
fn compare<'text>(before: &[&'text [u8]], after: &[&'text [u8]]) -> Vec<Change> {
    // Numbers are compared faster than texts, and most pieces are met more than once.
    let mut numbers = HashMap::new();
    let mut number = |pieces: &[&'text [u8]]| -> Vec<u32> {
        let numbered = pieces.iter().map(|piece| {
            let next = u32::try_from(numbers.len()).expect("the number of pieces is bounded");
            *numbers.entry(*piece).or_insert(next)
        });
        numbered.collect()
    };
    let (before, after) = (number(before), number(after));
    let mut changes: Vec<Change> = Vec::new();
    // This algorithm bounds its own work by counting steps, not by a clock: the same texts always give the same
    // answer.
    for operation in capture_diff_slices(Algorithm::Myers, &before, &after) {
        if matches!(operation, DiffOp::Equal { .. }) {
            continue;
        }
        let (before, after) = (operation.old_range(), operation.new_range());
        match changes.last_mut() {
            Some(last) if last.before.end == before.start && last.after.end == after.start => {
                last.before.end = before.end;
                last.after.end = after.end;
            }
            _ => changes.push(Change { before, after }),
        }
    }
    changes
}
