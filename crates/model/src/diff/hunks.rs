//! Changes with the lines around them, as people read them.

use std::ops::Range;

use super::{Change, Run, lines, words};

/// Changes that stand close to each other, with lines around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The lines of the first text, counted from 0.
    pub before: Range<usize>,
    /// The lines of the second text, counted from 0.
    pub after: Range<usize>,
    /// The lines of both, in order.
    pub lines: Vec<HunkLine>,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkLine {
    /// Which text it is from.
    pub side: Side,
    /// The line in pieces, with its end, if it has one. Together they are the line.
    pub parts: Vec<Part>,
}

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether the other text has something else here. Always false where whole lines came or went.
    pub changed: bool,
}

/// Which of two texts a line is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LineSide"))]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Both.
    Both,
    /// The first only: the line went.
    Removed,
    /// The second only: the line came.
    Added,
}

/// Makes hunks of changes, with up to `context` lines around each.
pub fn hunks(before: &[u8], after: &[u8], changes: &[Change], context: usize) -> Vec<Hunk> {
    let (old, new): (Vec<&[u8]>, Vec<&[u8]>) = (lines(before).collect(), lines(after).collect());
    // Two changes share a hunk when the lines around them meet.
    let apart = context.saturating_mul(2);
    changes
        .chunk_by(|above, below| below.before.start - above.before.end <= apart)
        .map(|group| hunk(&old, &new, group, context))
        .collect()
}

impl Hunk {
    /// The text of the lines that a side has.
    pub fn text(&self, side: Side) -> Vec<u8> {
        let lines = self.lines.iter().filter(|line| line.side == side || line.side == Side::Both);
        lines.flat_map(HunkLine::bytes).collect()
    }
}

impl HunkLine {
    /// The whole line, with its end, if it has one.
    pub fn bytes(&self) -> Vec<u8> {
        self.parts.iter().flat_map(|part| part.bytes.iter().copied()).collect()
    }

    /// Whether the line ends with a line feed; only the last one of a text may not.
    pub fn is_ended(&self) -> bool {
        self.parts.last().is_some_and(|part| part.bytes.ends_with(b"\n"))
    }
}

fn hunk(old: &[&[u8]], new: &[&[u8]], changes: &[Change], context: usize) -> Hunk {
    let (first, last) = (&changes[0], &changes[changes.len() - 1]);
    // Outside of changes both texts have the same lines, so there is as much room above and below in either.
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
        found.extend(old[done..change.before.start].iter().map(|line| plain(Side::Both, line)));
        found.extend(changed(&old[change.before.clone()], &new[change.after.clone()]));
        done = change.before.end;
    }
    found.extend(old[done..whole.before.end].iter().map(|line| plain(Side::Both, line)));
    Hunk { lines: found, ..whole }
}

fn plain(side: Side, line: &[u8]) -> HunkLine {
    HunkLine { side, parts: vec![Part { bytes: line.to_vec(), changed: false }] }
}

/// The lines of one change: those that went, then those that came.
fn changed(old: &[&[u8]], new: &[&[u8]]) -> Vec<HunkLine> {
    let (before, after) = (old.concat(), new.concat());
    let Some(runs) = words(&before, &after) else {
        let went = old.iter().map(|line| plain(Side::Removed, line));
        return went.chain(new.iter().map(|line| plain(Side::Added, line))).collect();
    };
    let mut went = Pieces::new(Side::Removed);
    let mut came = Pieces::new(Side::Added);
    for run in runs {
        match run {
            Run::Same(text) => {
                went.push(text, false);
                came.push(text, false);
            }
            Run::Removed(text) => went.push(text, true),
            Run::Added(text) => came.push(text, true),
        }
    }
    went.lines.into_iter().chain(came.lines).collect()
}

/// Lines that grow piece by piece.
struct Pieces {
    side: Side,
    lines: Vec<HunkLine>,
}

impl Pieces {
    fn new(side: Side) -> Self {
        Self { side, lines: Vec::new() }
    }

    fn push(&mut self, text: &[u8], changed: bool) {
        for piece in lines(text) {
            let part = Part { bytes: piece.to_vec(), changed };
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
