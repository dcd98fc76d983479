//! The picture beside the history: one line for what is, and lanes beside it for what was undone.
//!
//! ```text
//!   ○          redo leads here       Rows are drawn from the newest to the oldest. Each lane knows the change that
//!   ●          the present           it waits for: the parent of what was drawn last in it. A change that nobody
//!   ├─○        undone                waits for begins a lane. One whose parent is waited for already joins that
//!   │ undo     only moves: no point  lane at once, so that however much was tried and undone, few lanes are needed.
//!   ○
//! ```
//!
//! A row is as high as its text, so each has a picture of its own; what a row needs to know of those above it are
//! the lanes, which go along in the address where a list goes on.

use maud::{Markup, html};
use retake_model::operation::Version;

/// How far lanes are apart, in pixels.
const STEP: usize = 12;
/// Where the first lane is.
const FIRST: usize = 8;
/// How far down a row its point is.
const DOWN: usize = 17;
/// Further lanes are drawn over the last one.
const MOST_DRAWN: usize = 5;
/// More lanes are not read from an address.
const MOST_READ: usize = 64;

/// The change that each lane waits for. The first lane is the line of the present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lanes(Vec<Option<Version>>);

/// What a row shows of the tree of changes.
pub(super) struct Node<'a> {
    /// The changes in it, each the parent of the one before it.
    pub(super) versions: &'a [Version],
    /// What the last of them was made on; 0 for the first of all.
    pub(super) parent: Version,
    /// Whether the present contains them, or redo leads to them.
    pub(super) on_line: bool,
}

/// The picture of one row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Strip {
    /// Lanes that only pass by.
    pub(super) passing: Vec<usize>,
    /// The point of the row; none where it only moves.
    pub(super) point: Option<Point>,
    /// The change that the first lane waits for, above the row and below it.
    pub(super) line: (Option<Version>, Option<Version>),
}

/// The point of a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Point {
    /// Its lane.
    pub(super) lane: usize,
    /// Lanes that end in it. Its own is among them if something came after it.
    pub(super) from: Vec<usize>,
    /// The lane in which it goes on; none for the first of all.
    pub(super) to: Option<usize>,
}

impl Lanes {
    /// The lanes that an address holds; none where it holds something else.
    pub(super) fn read(text: &str) -> Self {
        let lanes =
            text.split('.').take(MOST_READ).map(|lane| lane.parse().ok().filter(|version| *version > 0));
        Self(lanes.collect())
    }

    /// The same as a text.
    pub(super) fn write(&self) -> String {
        let lanes: Vec<String> = self.0.iter().map(|lane| lane.unwrap_or(0).to_string()).collect();
        lanes.join(".")
    }

    /// The picture of the next row, which is older than all before it.
    pub(super) fn next(&mut self, node: Option<&Node<'_>>) -> Strip {
        if self.0.is_empty() {
            self.0.push(None);
        }
        let above = self.0[0];
        let waiting = |lane: &Option<Version>, versions: &[Version]| {
            lane.is_some_and(|version| versions.contains(&version))
        };
        let versions = node.map_or(&[][..], |node| node.versions);
        let from: Vec<usize> = (0..self.0.len()).filter(|lane| waiting(&self.0[*lane], versions)).collect();
        let passing =
            (0..self.0.len()).filter(|lane| self.0[*lane].is_some() && !from.contains(lane)).collect();
        let point = node.map(|node| {
            let lane = match from.iter().find(|lane| **lane > 0) {
                _ if node.on_line => 0,
                Some(lane) => *lane,
                None => self.free(),
            };
            for ended in &from {
                self.0[*ended] = None;
            }
            let known = self.0.iter().position(|other| *other == Some(node.parent));
            let to = match known {
                _ if node.parent == 0 => None,
                Some(other) if !node.on_line => Some(other),
                _ => {
                    self.0[lane] = Some(node.parent);
                    Some(lane)
                }
            };
            Point { lane, from, to }
        });
        Strip { passing, point, line: (above, self.0[0]) }
    }

    /// A lane beside the line that nobody is in.
    fn free(&mut self) -> usize {
        let found = (1..self.0.len()).find(|lane| self.0[*lane].is_none());
        found.unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        })
    }
}

impl Strip {
    /// How wide the picture is at least.
    pub(super) fn width(&self) -> usize {
        let point = self.point.as_ref().map(|point| point.lane);
        let last = self.passing.iter().copied().chain(point).max().unwrap_or(0);
        across(last) + FIRST
    }

    /// Draws it. `class` is that of the point, and `position` the change that is the present.
    pub(super) fn draw(&self, class: &str, position: Version, width: usize) -> Markup {
        let class_of = |lane: usize, line: Option<Version>| match lane {
            0 if line.is_some_and(|waits_for| waits_for >= position) => "ahead",
            0 => "line",
            _ => "aside",
        };
        let straight = |lane: usize, from: &str, to: &str, class: &str| {
            let x = across(lane);
            html! { line x1=(x) x2=(x) y1=(from) y2=(to) class=(class) {} }
        };
        let middle = DOWN.to_string();
        html! {
            svg class="lanes" width=(width) aria-hidden="true" {
                @for lane in &self.passing { (straight(*lane, "0", "100%", class_of(*lane, self.line.0))) }
                @if let Some(Point { lane, from, to }) = &self.point {
                    @let x = across(*lane);
                    @for other in from {
                        @if other == lane {
                            (straight(*lane, "0", &middle, class_of(*lane, self.line.0)))
                        } @else {
                            @let start = across(*other);
                            path d=(format!("M{start} 0Q{start} {DOWN} {x} {DOWN}")) class="aside" {}
                        }
                    }
                    @match to {
                        Some(same) if same == lane => (straight(*lane, &middle, "100%", class_of(*lane, self.line.1))),
                        Some(other) => {
                            @let (end, below) = (across(*other), DOWN + 14);
                            path d=(format!("M{x} {DOWN}C{x} {} {end} {} {end} {below}", DOWN + 9, DOWN + 4)) class="aside" {}
                        }
                        None => {}
                    }
                    circle cx=(x) cy=(DOWN) r="4.5" class=(class) {}
                }
            }
        }
    }
}

fn across(lane: usize) -> usize {
    FIRST + lane.min(MOST_DRAWN) * STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws rows (versions, parent, whether on the line; nothing for a move) with letters: `*` is the point, `|` a lane that
    /// passes, `/` one that ends in the point, and `>` says in which lane it goes on.
    fn drawn(rows: &[Option<(&[Version], Version, bool)>]) -> Vec<String> {
        let mut lanes = Lanes::default();
        let mut drawn = Vec::new();
        for row in rows {
            let node = row.map(|(versions, parent, on_line)| Node { versions, parent, on_line });
            let strip = lanes.next(node.as_ref());
            let count = lanes.0.len();
            let letter = |lane: usize| match &strip.point {
                Some(point) if point.lane == lane => '*',
                Some(point) if point.from.contains(&lane) => '/',
                _ if strip.passing.contains(&lane) => '|',
                _ => ' ',
            };
            let text: String = (0..count).map(letter).collect();
            let to = strip.point.as_ref().and_then(|point| point.to);
            drawn.push(to.map_or(text.clone(), |to| format!("{text}>{to}")));
            // What goes along in an address is all that is to be known.
            lanes = Lanes::read(&lanes.write());
        }
        drawn
    }

    #[test]
    fn what_was_undone_stands_beside_the_line() {
        let check =
            |rows: &[Option<(&[Version], Version, bool)>], wanted: &[&str]| assert_eq!(drawn(rows), wanted);
        // Nothing undone: one line.
        check(&[Some((&[3], 2, true)), Some((&[2], 1, true)), Some((&[1], 0, true))], &["*>0", "*>0", "*"]);
        // 3 and 4 were undone (5), then 6 was made: they join the line at once.
        check(
            &[
                Some((&[6], 2, true)),
                None,
                Some((&[4], 3, false)),
                Some((&[3], 2, false)),
                Some((&[2], 1, true)),
            ],
            &["*>0", "|", "|*>1", "|*>0", "* >0"],
        );
        // Tried three times on one moment: one lane is enough.
        check(
            &[
                Some((&[6], 1, true)),
                None,
                Some((&[4], 1, false)),
                None,
                Some((&[2], 1, false)),
                Some((&[1], 0, true)),
            ],
            &["*>0", "|", "|*>0", "| ", "|*>0", "* "],
        );
        // Back at 1, and what was made since lies above: nothing is on the line there, and the lane ends in its parent.
        check(
            &[None, Some((&[3], 2, false)), Some((&[2], 1, false)), Some((&[1], 0, true))],
            &[" ", " *>1", " *>1", "*/"],
        );
        // Something was made on the middle of a turn that is one row.
        check(
            &[Some((&[5], 3, true)), None, Some((&[4], 3, false)), Some((&[3, 2], 1, true))],
            &["*>0", "|", "|*>0", "* >0"],
        );
        // A branch of a branch.
        check(
            &[Some((&[9], 1, true)), Some((&[7], 3, false)), Some((&[5], 3, false)), Some((&[3], 1, false))],
            &["*>0", "|*>1", "||*>1", "|* >0"],
        );
    }

    #[test]
    fn an_address_that_holds_something_else_holds_no_lanes() {
        for text in ["", "x", "-1", "0", "18446744073709551616"] {
            assert_eq!(Lanes::read(text), Lanes(vec![None]), "{text:?}");
        }
        assert_eq!(Lanes::read("7.0.9").write(), "7.0.9");
        assert_eq!(Lanes::read(&"1.".repeat(1000)).0.len(), MOST_READ);
    }
}
