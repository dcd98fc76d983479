//! Text diff by line, and by word within lines.
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
//! [`changes`] is sufficient for counting, attribution and display; [`hunks`] formats changes for reading.
//! A line includes its line feed; the last line may lack one, and a carriage return belongs to its line.
//! Texts are bytes here; callers that display them handle the character encoding.
//!
//! Texts of up to [`MAX_TEXT_BYTES`] bytes and [`MAX_LINES`] lines are compared; larger ones are only
//! reported as different. Content with a zero byte counts as binary.

mod hunks;
mod words;

use std::collections::HashMap;
use std::ops::Range;

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};

pub use crate::merge::{MAX_LINES, MAX_TEXT_BYTES};
pub use hunks::{Hunk, HunkLine, LinePart, LineSide, hunks};
pub use words::{MAX_WORD_BYTES, MAX_WORDS, WordRun, words};

/// A range of lines that replaces another range. Lines are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineChange {
    /// The removed lines.
    pub before: Range<usize>,
    /// The added lines.
    pub after: Range<usize>,
}

/// The numbers of added and removed lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LineCounts"))]
pub struct LineCounts {
    /// Added lines.
    pub added: u64,
    /// Removed lines.
    pub removed: u64,
}

/// Why two contents cannot be compared by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DiffError {
    /// One of them is binary.
    #[error("the file is not text")]
    Binary,
    /// One of them exceeds [`MAX_TEXT_BYTES`] or [`MAX_LINES`].
    #[error("the file is too large to compare")]
    TooLarge,
}

/// Returns the changes between two texts, from top to bottom. Changes are never adjacent.
pub fn changes(before: &[u8], after: &[u8]) -> Result<Vec<LineChange>, DiffError> {
    check(before)?;
    check(after)?;
    let (before, after): (Vec<&[u8]>, Vec<&[u8]>) = (lines(before).collect(), lines(after).collect());
    if before.len().max(after.len()) > MAX_LINES {
        return Err(DiffError::TooLarge);
    }
    Ok(compare(&before, &after))
}

/// Checks that bytes are text within the size limits.
pub fn check(bytes: &[u8]) -> Result<(), DiffError> {
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(DiffError::TooLarge);
    }
    if bytes.contains(&0) { Err(DiffError::Binary) } else { Ok(()) }
}

/// Returns the lines of a text, each including its line feed.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n')
}

impl LineCounts {
    /// Counts the lines that these changes add and remove.
    pub fn of(changes: &[LineChange]) -> Self {
        changes.iter().fold(Self::default(), |counts, change| Self {
            added: counts.added + change.after.len() as u64,
            removed: counts.removed + change.before.len() as u64,
        })
    }
}

/// Compares two sequences of lines or words.
fn compare<'text>(before: &[&'text [u8]], after: &[&'text [u8]]) -> Vec<LineChange> {
    // Comparing numbers is faster than comparing texts, and most pieces occur more than once.
    let mut numbers = HashMap::new();
    let mut number = |pieces: &[&'text [u8]]| -> Vec<u32> {
        let numbered = pieces.iter().map(|piece| {
            let next = u32::try_from(numbers.len()).expect("the number of pieces is bounded");
            *numbers.entry(*piece).or_insert(next)
        });
        numbered.collect()
    };
    let (before, after) = (number(before), number(after));
    let mut changes: Vec<LineChange> = Vec::new();
    // This algorithm bounds its work by counting steps, not by a clock, so the result is deterministic.
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
            _ => changes.push(LineChange { before, after }),
        }
    }
    changes
}
