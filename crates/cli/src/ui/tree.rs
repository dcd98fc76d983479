//! Draws a forest that stays readable when it is long and deep.
//!
//! A conversation is mostly linear, so an only child is drawn directly below its parent: indents appear only at branch
//! points.
//!
//! ```text
//!   Fix the parser                 a straight run stays flat
//!   Done, fourteen files
//!   ├─ Only the dates, please      a branch point; the active branch comes first
//!   │  Done, one file
//!   └─ Undo that
//!      Done
//! ```
//!
//! A node may have a tail, such as counts and times, in an aligned column at the right, which stays visible when a long
//! label is cut.
//!
//! Gutters take at most half of the width. Beyond that, outer levels are replaced by `⋯`, since the inner levels show
//! where a node hangs. Several roots are drawn as if they had a common parent, to tell flat runs apart.

use std::fmt::Write;

use anstyle::Style;

use super::label::Label;
use super::width::Align;

const LEVEL_WIDTH: usize = 3;
/// The maximum width of gutters if the screen width is unlimited.
const MAX_GUTTER_WIDTH: usize = 60;
/// The gap between a label and its tail.
const GAP: usize = 2;
/// If the label would get narrower than this, the tail is dropped.
const MIN_LABEL_WIDTH: usize = 16;
/// The maximum position of tails without a screen, so that one long label does not push them away.
const MAX_TAIL_COLUMN: usize = 100;

/// Nodes under zero or more roots. Nodes are added below existing ones, so there are no cycles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forest {
    nodes: Vec<Node>,
    roots: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Node {
    label: Label,
    tail: Label,
    /// The user is at this node or below it.
    active: bool,
    /// Branches off from its parent instead of continuing it.
    aside: bool,
    parent: Option<usize>,
    children: Vec<usize>,
}

impl Node {
    fn new(label: Label, tail: Label, position: NodePosition) -> Self {
        let active = position == NodePosition::Yes;
        Self { label, tail, active, aside: false, parent: None, children: Vec::new() }
    }
}

/// A handle to a node of this forest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeKey(usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodePosition {
    Yes,
    No,
}

impl Forest {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a node after its siblings, below `parent` or as a root.
    pub(crate) fn add(&mut self, parent: Option<NodeKey>, label: Label, position: NodePosition) -> NodeKey {
        self.add_with_tail(parent, label, Label::new(), position)
    }

    /// Adds a node with a tail.
    pub(crate) fn add_with_tail(
        &mut self,
        parent: Option<NodeKey>,
        label: Label,
        tail: Label,
        position: NodePosition,
    ) -> NodeKey {
        self.insert(parent, Node::new(label, tail, position))
    }

    /// Adds a node that is indented even if it is an only child.
    pub(crate) fn add_aside(
        &mut self,
        parent: NodeKey,
        label: Label,
        tail: Label,
        position: NodePosition,
    ) -> NodeKey {
        self.insert(Some(parent), Node { aside: true, ..Node::new(label, tail, position) })
    }

    fn insert(&mut self, parent: Option<NodeKey>, node: Node) -> NodeKey {
        let index = self.nodes.len();
        let parent = parent.map(|NodeKey(parent)| parent);
        match parent {
            Some(parent) => self.nodes[parent].children.push(index),
            None => self.roots.push(index),
        }
        self.nodes.push(Node { parent, ..node });
        NodeKey(index)
    }

    /// Draws one line per node, within `columns` if there is a limit.
    pub(crate) fn draw(mut self, columns: Option<usize>, gutter: Style) -> String {
        self.mark_paths();
        let room = columns.map_or(MAX_GUTTER_WIDTH, |columns| columns / 2);
        let tails = self.tails(columns, room);
        let mut drawing = String::new();
        for_each_node(&self, |node, levels| {
            let (gutters, used) = gutters(levels, room);
            if used > 0 {
                write!(drawing, "{gutter}{gutters}{gutter:#}").expect("writing to a string cannot fail");
            }
            let line = match &tails {
                Some(tails) => tails.line(node, used, columns),
                None => fit(node.label.clone(), used, columns),
            };
            writeln!(drawing, "{line}").expect("writing to a string cannot fail");
        });
        drawing
    }

    /// The column of the tails: after the widest label, but on the screen; `None` if it is too narrow.
    fn tails(&self, columns: Option<usize>, room: usize) -> Option<Tails> {
        let mut widest = 0;
        for_each_node(self, |node, levels| {
            if node.tail.width() > 0 {
                widest = widest.max(gutters(levels, room).1 + node.label.width());
            }
        });
        let width = self.nodes.iter().map(|node| node.tail.width()).max().unwrap_or(0);
        let latest = columns.map_or(MAX_TAIL_COLUMN, |columns| columns.saturating_sub(width));
        let start = (widest + GAP).min(latest);
        (start >= widest.min(MIN_LABEL_WIDTH) + GAP).then_some(Tails { start, width })
    }

    /// Marks the ancestors of the current node, and moves that branch to the front.
    fn mark_paths(&mut self) {
        // Children have greater indexes than their parents, so one pass from the end is enough.
        for index in (0..self.nodes.len()).rev() {
            let node = &self.nodes[index];
            if let (true, Some(parent)) = (node.active, node.parent) {
                self.nodes[parent].active = true;
            }
        }
        let active: Vec<bool> = self.nodes.iter().map(|node| node.active).collect();
        let order = |children: &mut Vec<usize>| children.sort_by_key(|&child| !active[child]);
        order(&mut self.roots);
        self.nodes.iter_mut().for_each(|node| order(&mut node.children));
    }
}

struct Tails {
    start: usize,
    width: usize,
}

impl Tails {
    /// The label and tail of a node after a gutter of this width.
    fn line(&self, node: &Node, used: usize, columns: Option<usize>) -> Label {
        let label = node.label.clone();
        let left = self.start.saturating_sub(GAP + used);
        // If there is no room for both, the label wins.
        let crowded = columns.is_some() && left < label.width().min(MIN_LABEL_WIDTH);
        if node.tail.width() == 0 || crowded {
            return fit(label, used, columns);
        }
        let label = if columns.is_some() { label.truncate(left) } else { label };
        self.join(label, node, used)
    }

    fn join(&self, label: Label, node: &Node, used: usize) -> Label {
        let label = label.plain(&" ".repeat(GAP)).pad(self.start.saturating_sub(used), Align::Left);
        label.join(node.tail.clone().pad(self.width, Align::Right))
    }
}

/// Cuts the label to the width left beside the gutter.
fn fit(label: Label, used: usize, columns: Option<usize>) -> Label {
    match columns {
        Some(columns) => label.truncate(columns - used),
        None => label,
    }
}

/// One level of the gutter on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// More siblings follow below.
    Passing,
    /// No more siblings.
    Over,
    /// The node of this line, with more siblings.
    Fork,
    /// The node of this line, the last of its siblings.
    Corner,
}

impl Level {
    fn text(self) -> &'static str {
        match self {
            Self::Passing => "│  ",
            Self::Over => "   ",
            Self::Fork => "├─ ",
            Self::Corner => "└─ ",
        }
    }

    /// The same level on the next lines.
    fn below(self) -> Self {
        match self {
            Self::Passing | Self::Fork => Self::Passing,
            Self::Over | Self::Corner => Self::Over,
        }
    }
}

struct PendingNode {
    node: usize,
    /// Number of levels, including its own.
    depth: usize,
    /// Its own level, if it has siblings.
    own: Option<Level>,
}

/// Visits nodes in drawing order. Uses an explicit stack, because a thread can be a million entries deep.
fn for_each_node(forest: &Forest, mut visit: impl FnMut(&Node, &[Level])) {
    let mut levels: Vec<Level> = Vec::new();
    let mut pending = Vec::new();
    // Bare roots are unambiguous; only roots with children need a common parent.
    let bare = forest.roots.iter().all(|&root| forest.nodes[root].children.is_empty());
    if bare {
        pending.extend(forest.roots.iter().rev().map(|&node| PendingNode { node, depth: 0, own: None }));
    } else {
        push_siblings(forest, &mut pending, &forest.roots, 0);
    }
    while let Some(PendingNode { node, depth, own }) = pending.pop() {
        match own {
            Some(own) => {
                levels.truncate(depth - 1);
                levels.push(own);
            }
            None => levels.truncate(depth),
        }
        let node = &forest.nodes[node];
        visit(node, &levels);
        if let Some(last) = levels.last_mut() {
            *last = last.below();
        }
        push_siblings(forest, &mut pending, &node.children, depth);
    }
}

fn push_siblings(forest: &Forest, pending: &mut Vec<PendingNode>, siblings: &[usize], depth: usize) {
    match *siblings {
        [] => {}
        [only] if !forest.nodes[only].aside => pending.push(PendingNode { node: only, depth, own: None }),
        [.., last] => pending.extend(siblings.iter().rev().map(|&node| {
            let own = if node == last { Level::Corner } else { Level::Fork };
            PendingNode { node, depth: depth + 1, own: Some(own) }
        })),
    }
}

/// The gutters of a line and their width: all levels, or the innermost that fit.
fn gutters(levels: &[Level], room: usize) -> (String, usize) {
    let mut text = String::new();
    let mut used = levels.len() * LEVEL_WIDTH;
    let mut shown = levels;
    if used > room {
        let fit = room.saturating_sub(1) / LEVEL_WIDTH;
        shown = &levels[levels.len() - fit..];
        used = fit * LEVEL_WIDTH;
        if room > 0 {
            text.push('⋯');
            used += 1;
        }
    }
    text.extend(shown.iter().map(|level| level.text()));
    (text, used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::width;

    /// Builds a forest from an outline: two spaces per level, `*` marks the current node.
    fn forest(outline: &str) -> Forest {
        let mut forest = Forest::new();
        let mut ancestors: Vec<NodeKey> = Vec::new();
        for line in outline.lines() {
            let text = line.trim_start();
            ancestors.truncate((line.len() - text.len()) / 2);
            let position = if text.ends_with('*') { NodePosition::Yes } else { NodePosition::No };
            ancestors.push(forest.add(
                ancestors.last().copied(),
                text.trim_end_matches('*').into(),
                position,
            ));
        }
        forest
    }

    fn check(outline: &str, columns: Option<usize>, wanted: &str) {
        let drawn = forest(outline).draw(columns, Style::new());
        assert_eq!(drawn, wanted.trim_start_matches('\n'), "\n{drawn}");
    }

    #[test]
    fn a_chain_without_branches_is_not_indented() {
        check("", None, "");
        check("a", None, "a\n");
        check("a\n  b\n    c", None, "a\nb\nc\n");
    }

    #[test]
    fn only_branch_points_are_indented() {
        check(
            "a\n  b\n    c\n      d\n    e\n      f\n        g\n        h\n          i\n    j",
            Some(40),
            "
a
b
├─ c
│  d
├─ e
│  f
│  ├─ g
│  └─ h
│     i
└─ j
",
        );
    }

    #[test]
    fn the_active_branch_comes_first_and_the_rest_keep_their_order() {
        check(
            "a\n  b\n  c\n    d\n    e\n      f*\n  g",
            None,
            "
a
├─ c
│  ├─ e
│  │  f
│  └─ d
├─ b
└─ g
",
        );
    }

    #[test]
    fn several_roots_are_drawn() {
        check("a\nb*\nc", None, "b\na\nc\n");
        check("a\n  b\nc\n  d\n  e", None, "├─ a\n│  b\n└─ c\n   ├─ d\n   └─ e\n");
    }

    #[test]
    fn labels_are_cut_after_their_gutter() {
        check("a\n  a long label\n  日本語日本語", Some(12), "a\n├─ a long l…\n└─ 日本語日…\n");
    }

    /// The same, with `|` before a tail.
    fn with_tails(outline: &str) -> Forest {
        let mut forest = forest(outline);
        for node in &mut forest.nodes {
            let text = node.label.text();
            if let Some((label, tail)) = text.split_once('|') {
                (node.label, node.tail) = (label.into(), tail.into());
            }
        }
        forest
    }

    #[test]
    fn trailing_columns_are_aligned() {
        let outline = "a title\n  main, with a rather long label|10 entries\n  日本語|9\n    c|8";
        for (columns, wanted) in [
            (
                None,
                "
a title
├─ main, with a rather long label  10 entries
└─ 日本語                                   9
   c                                        8
",
            ),
            (
                Some(40),
                "
a title
├─ main, with a rather long…  10 entries
└─ 日本語                              9
   c                                   8
",
            ),
            // Too narrow for tails.
            (Some(20), "\na title\n├─ main, with a rat…\n└─ 日本語\n   c\n"),
        ] {
            let drawn = with_tails(outline).draw(columns, Style::new());
            assert_eq!(drawn, wanted.trim_start_matches('\n'), "\n{drawn}");
        }
        for columns in 0..60 {
            for line in with_tails(outline).draw(Some(columns), Style::new()).lines() {
                assert!(width::width(line) <= columns, "{line:?} at {columns}");
            }
        }
    }

    #[test]
    fn outer_levels_are_elided() {
        let deep =
            "a\n  b\n    c\n      d\n        e\n          f\n          g\n        h\n      i\n    j\n  k";
        check(
            deep,
            Some(16),
            "
a
├─ b
│  ├─ c
⋯│  ├─ d
⋯│  ├─ e
⋯│  ├─ f
⋯│  └─ g
⋯│  └─ h
⋯│  └─ i
│  └─ j
└─ k
",
        );
        for columns in 0..20 {
            for line in forest(deep).draw(Some(columns), Style::new()).lines() {
                assert!(width::width(line) <= columns, "{line:?} at {columns}");
                let gutter = line.trim_end_matches(char::is_alphabetic).trim_end_matches('…');
                assert!(width::width(gutter) <= columns / 2, "{line:?} at {columns}");
            }
        }
    }

    #[test]
    fn a_hundred_thousand_nodes_of_any_shape_are_drawn() {
        let straight = |index: usize| index.checked_sub(1);
        let broad = |index: usize| (index > 0).then_some(0);
        // Every second node continues the chain, so each generation is one level deeper.
        let comb = |index: usize| index.checked_sub(1).map(|before| before / 2 * 2);
        for parent in [&straight as &dyn Fn(usize) -> Option<usize>, &broad, &comb] {
            let mut forest = Forest::new();
            for index in 0..100_000 {
                forest.add(parent(index).map(NodeKey), "node".into(), NodePosition::No);
            }
            assert_eq!(forest.draw(None, Style::new()).lines().count(), 100_000);
        }
    }
}
