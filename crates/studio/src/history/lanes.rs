//! The graph of the history: one line for the current state, and lanes for undone operations.
//!
//! ```text
//!   ○          next redo             Rows go from newest to oldest. Each lane stores the version that it expects
//!   ●          current               next: the parent of its last node. A version that no lane expects starts a new
//!   ├─○        undone                lane. If its parent is expected by another lane, it joins that lane at once, so
//!   │ undo     a move: no node       that many undone attempts need few lanes.
//!   ○
//! ```
//!
//! Rows have different heights, so that each has its own SVG. The state between rows is the list of lanes, which the
//! address of the next page contains.

use maud::{Markup, html};
use retake_model::operation::Version;

/// Distance of lanes in pixels.
const LANE_WIDTH: usize = 12;
/// Position of the first lane.
const FIRST_LANE_X: usize = 8;
/// Vertical position of the node in a row.
const NODE_Y: usize = 17;
/// Maximum visible lanes; further ones overlap the last.
const MAX_DRAWN_LANES: usize = 5;
/// Maximum lanes parsed from an address.
const MAX_PARSED_LANES: usize = 64;

/// The version that each lane expects next. The first lane is the current line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lanes(Vec<Option<Version>>);

/// The node of a row in the tree of versions.
pub(super) struct Node<'a> {
    /// The versions in it, each the parent of the one before.
    pub(super) versions: &'a [Version],
    /// The parent of the oldest one; 0 for the first version.
    pub(super) parent: Version,
    /// Whether they are on the current line: applied or redoable.
    pub(super) on_line: bool,
}

/// The graph of one row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RowGraph {
    /// Lanes without a node in this row.
    pub(super) passing: Vec<usize>,
    /// The node; `None` for moves.
    pub(super) point: Option<RowPoint>,
    /// The version that the first lane expects, above and below the row.
    pub(super) line: (Option<Version>, Option<Version>),
}

/// The node of a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RowPoint {
    /// Its lane.
    pub(super) lane: usize,
    /// Lanes that end in it, including its own if it has a child.
    pub(super) from: Vec<usize>,
    /// The lane in which its parent continues; `None` for the first version.
    pub(super) to: Option<usize>,
}

impl Lanes {
    /// Parses lanes; invalid text gives an empty list.
    pub(super) fn read(text: &str) -> Self {
        let lanes = text
            .split('.')
            .take(MAX_PARSED_LANES)
            .map(|lane| lane.parse().ok().filter(|version| *version > 0));
        Self(lanes.collect())
    }

    pub(super) fn write(&self) -> String {
        let lanes: Vec<String> = self.0.iter().map(|lane| lane.unwrap_or(0).to_string()).collect();
        lanes.join(".")
    }

    /// The graph of the next older row.
    pub(super) fn next(&mut self, node: Option<&Node<'_>>) -> RowGraph {
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
            RowPoint { lane, from, to }
        });
        RowGraph { passing, point, line: (above, self.0[0]) }
    }

    /// A free lane next to the line.
    fn free(&mut self) -> usize {
        let found = (1..self.0.len()).find(|lane| self.0[*lane].is_none());
        found.unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        })
    }
}

impl RowGraph {
    /// Minimum width of the graph.
    pub(super) fn width(&self) -> usize {
        let point = self.point.as_ref().map(|point| point.lane);
        let last = self.passing.iter().copied().chain(point).max().unwrap_or(0);
        lane_x(last) + FIRST_LANE_X
    }

    /// Renders the row. `class` is that of the node, `position` the current version.
    pub(super) fn draw(&self, class: &str, position: Version, width: usize) -> Markup {
        let class_of = |lane: usize, line: Option<Version>| match lane {
            0 if line.is_some_and(|waits_for| waits_for >= position) => "ahead",
            0 => "line",
            _ => "aside",
        };
        let straight = |lane: usize, from: &str, to: &str, class: &str| {
            let x = lane_x(lane);
            html! { line x1=(x) x2=(x) y1=(from) y2=(to) class=(class) {} }
        };
        let middle = NODE_Y.to_string();
        html! {
            svg class="lanes" width=(width) aria-hidden="true" {
                @for lane in &self.passing { (straight(*lane, "0", "100%", class_of(*lane, self.line.0))) }
                @if let Some(RowPoint { lane, from, to }) = &self.point {
                    @let x = lane_x(*lane);
                    @for other in from {
                        @if other == lane {
                            (straight(*lane, "0", &middle, class_of(*lane, self.line.0)))
                        } @else {
                            @let start = lane_x(*other);
                            path d=(format!("M{start} 0Q{start} {NODE_Y} {x} {NODE_Y}")) class="aside" {}
                        }
                    }
                    @match to {
                        Some(same) if same == lane => (straight(*lane, &middle, "100%", class_of(*lane, self.line.1))),
                        Some(other) => {
                            @let (end, below) = (lane_x(*other), NODE_Y + 14);
                            path d=(format!("M{x} {NODE_Y}C{x} {} {end} {} {end} {below}", NODE_Y + 9, NODE_Y + 4)) class="aside" {}
                        }
                        None => {}
                    }
                    circle cx=(x) cy=(NODE_Y) r="4.5" class=(class) {}
                }
            }
        }
    }
}

fn lane_x(lane: usize) -> usize {
    FIRST_LANE_X + lane.min(MAX_DRAWN_LANES) * LANE_WIDTH
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders rows (versions, parent, whether on the line; `None` for a move) as text: `*` is the node, `|` a passing lane,
    /// `/` a lane that ends in the node, and `>` precedes the lane of its parent.
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
            // The address must carry the complete state.
            lanes = Lanes::read(&lanes.write());
        }
        drawn
    }

    #[test]
    fn undone_versions_are_next_to_the_line() {
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
        // Three attempts on one version need one lane.
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
        // Back at 1 with newer versions above: no node is on the line, and the lane ends in its parent.
        check(
            &[None, Some((&[3], 2, false)), Some((&[2], 1, false)), Some((&[1], 0, true))],
            &[" ", " *>1", " *>1", "*/"],
        );
        // A version was made in the middle of a turn that is one row.
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
    fn invalid_text_has_no_lanes() {
        for text in ["", "x", "-1", "0", "18446744073709551616"] {
            assert_eq!(Lanes::read(text), Lanes(vec![None]), "{text:?}");
        }
        assert_eq!(Lanes::read("7.0.9").write(), "7.0.9");
        assert_eq!(Lanes::read(&"1.".repeat(1000)).0.len(), MAX_PARSED_LANES);
    }
}
