//! Hunks: changes with their context lines.

use std::ops::Range;

use super::{LineChange, WordRun, lines, words};

/// Neighboring changes with context lines around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The line range in the first text, from 0.
    pub before: Range<usize>,
    /// The line range in the second text, from 0.
    pub after: Range<usize>,
    /// The lines of both texts, in order.
    pub lines: Vec<HunkLine>,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkLine {
    /// The text or texts that contain the line.
    pub side: LineSide,
    /// The parts of the line, including the line feed, if any. Joined, they are the whole line.
    pub parts: Vec<LinePart>,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePart {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether the other text differs here. Always false if the whole line was added or removed.
    pub changed: bool,
}

/// The text or texts that contain a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LineSide"))]
#[serde(rename_all = "snake_case")]
pub enum LineSide {
    /// In both texts.
    Both,
    /// Only in the first text: removed.
    Removed,
    /// Only in the second text: added.
    Added,
}

/// Groups changes into hunks with up to `context` lines around each.
pub fn hunks(before: &[u8], after: &[u8], changes: &[LineChange], context: usize) -> Vec<Hunk> {
    let (old, new): (Vec<&[u8]>, Vec<&[u8]>) = (lines(before).collect(), lines(after).collect());
    // Two changes share a hunk if their context lines meet.
    let most_between = context.saturating_mul(2);
    changes
        .chunk_by(|above, below| below.before.start - above.before.end <= most_between)
        .map(|group| hunk(&old, &new, group, context))
        .collect()
}

impl Hunk {
    /// Returns the text of all lines on one side.
    pub fn text(&self, side: LineSide) -> Vec<u8> {
        let lines = self.lines.iter().filter(|line| line.side == side || line.side == LineSide::Both);
        lines.flat_map(HunkLine::bytes).collect()
    }
}

impl HunkLine {
    /// Returns the whole line, including its line feed, if any.
    pub fn bytes(&self) -> Vec<u8> {
        self.parts.iter().flat_map(|part| part.bytes.iter().copied()).collect()
    }

    /// Whether the line ends with a line feed; only the last line of a text may lack one.
    pub fn is_ended(&self) -> bool {
        self.parts.last().is_some_and(|part| part.bytes.ends_with(b"\n"))
    }
}

fn hunk(old: &[&[u8]], new: &[&[u8]], changes: &[LineChange], context: usize) -> Hunk {
    let (first, last) = (&changes[0], &changes[changes.len() - 1]);
    // Outside of changes both texts have the same lines, so the context has the same length in both.
    let above = context.min(first.before.start);
    let below = context.min(old.len() - last.before.end);
    let whole = Hunk {
        before: first.before.start - above..last.before.end + below,
        after: first.after.start - above..last.after.end + below,
        lines: Vec::new(),
    };
    let mut found = Vec::new();
    let mut done = whole.before.start;
    for change in changes {
        found.extend(old[done..change.before.start].iter().map(|line| plain(LineSide::Both, line)));
        found.extend(changed(&old[change.before.clone()], &new[change.after.clone()]));
        done = change.before.end;
    }
    found.extend(old[done..whole.before.end].iter().map(|line| plain(LineSide::Both, line)));
    Hunk { lines: found, ..whole }
}

fn plain(side: LineSide, line: &[u8]) -> HunkLine {
    HunkLine { side, parts: vec![LinePart { bytes: line.to_vec(), changed: false }] }
}

/// Returns the lines of one change: first the removed, then the added ones.
fn changed(old: &[&[u8]], new: &[&[u8]]) -> Vec<HunkLine> {
    let (before, after) = (old.concat(), new.concat());
    let Some(runs) = words(&before, &after) else {
        let went = old.iter().map(|line| plain(LineSide::Removed, line));
        return went.chain(new.iter().map(|line| plain(LineSide::Added, line))).collect();
    };
    let mut went = LineBuilder::new(LineSide::Removed);
    let mut came = LineBuilder::new(LineSide::Added);
    for run in runs {
        match run {
            WordRun::Same(text) => {
                went.push(text, false);
                came.push(text, false);
            }
            WordRun::Removed(text) => went.push(text, true),
            WordRun::Added(text) => came.push(text, true),
        }
    }
    went.lines.into_iter().chain(came.lines).collect()
}

/// Builds lines from parts.
struct LineBuilder {
    side: LineSide,
    lines: Vec<HunkLine>,
}

impl LineBuilder {
    fn new(side: LineSide) -> Self {
        Self { side, lines: Vec::new() }
    }

    fn push(&mut self, text: &[u8], changed: bool) {
        for piece in lines(text) {
            let part = LinePart { bytes: piece.to_vec(), changed };
            match self.lines.last_mut() {
                Some(line) if !line.is_ended() => match line.parts.last_mut() {
                    Some(last) if last.changed == changed => last.bytes.extend_from_slice(piece),
                    _ => line.parts.push(part),
                },
                _ => self.lines.push(HunkLine { side: self.side, parts: vec![part] }),
            }
        }
    }
}
