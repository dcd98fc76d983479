//! Which of the files that went are those that came, under another name.
//!
//! ```text
//!   src/old.rs  went          the same content          src/old.rs ──► src/new.rs
//!   src/new.rs  came     ──►  else the most alike   ──►
//!   notes.md    changed       else two files            notes.md   changed
//! ```
//!
//! A pair is found by its content first, then by its likeness: the share of the larger file's bytes that stand
//! in lines which both have. That takes reading, so it is done for at most [`MOST_COMPARED`] files on each side
//! of at most [`LARGEST_COMPARED`] bytes, and [`MOST_READ`] bytes in all; others stay a file that went and one
//! that came, which is not wrong, only less told.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::{Difference, Node, read};
use crate::object::{Objects, Unavailable};
use crate::path::TreePath;

/// The most files on each side that are compared by likeness.
pub const MOST_COMPARED: usize = 256;
/// The largest file that is compared by likeness, in bytes.
pub const LARGEST_COMPARED: u64 = 1024 * 1024;
/// How many bytes are read for it in all.
pub const MOST_READ: u64 = 64 * 1024 * 1024;
/// Files are one and the same from this likeness on, of 100.
pub const LIKE: u64 = 50;
/// Content without line ends is compared in pieces of this size.
const LONGEST_PIECE: usize = 64;

/// One path that differs between two trees, with the name that it had before if that was another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// Where it is; where it was, if it is gone.
    pub path: TreePath,
    /// The path that it had before, if it was renamed.
    pub from: Option<TreePath>,
    /// What was there; for a renamed file, under its former name.
    pub before: Option<Node>,
    /// What is there.
    pub after: Option<Node>,
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Happened {
    /// It came.
    Added,
    /// Its content changed; perhaps its permissions too.
    Changed,
    /// It went.
    Removed,
    /// It got another name; perhaps another content too.
    Renamed,
    /// Only its permissions changed.
    ModeChanged,
    /// A file became a link or a folder, or the other way round.
    TypeChanged,
}

impl PathChange {
    /// What happened to it.
    pub fn happened(&self) -> Happened {
        match (&self.before, &self.after) {
            _ if self.from.is_some() => Happened::Renamed,
            (None, _) => Happened::Added,
            (_, None) => Happened::Removed,
            (Some(Node::File { content: old, .. }), Some(Node::File { content: new, .. })) if old == new => {
                Happened::ModeChanged
            }
            (Some(Node::Folder { .. }), Some(Node::Folder { .. })) => Happened::ModeChanged,
            (Some(Node::File { .. }), Some(Node::File { .. }))
            | (Some(Node::Link { .. }), Some(Node::Link { .. })) => Happened::Changed,
            _ => Happened::TypeChanged,
        }
    }
}

impl From<Difference> for PathChange {
    fn from(Difference { path, before, after }: Difference) -> Self {
        Self { path, from: None, before, after }
    }
}

/// Pairs files and links that went with those that came. The rest stays as it is; the order is that of the
/// paths where things are now.
pub fn pair_renames(
    objects: &(impl Objects + ?Sized),
    differences: Vec<Difference>,
) -> Result<Vec<PathChange>, Unavailable> {
    let held = |node: &Option<Node>| node.as_ref().is_some_and(|node| !node.is_folder());
    let (mut went, mut came, mut rest) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for difference in differences {
        match difference {
            Difference { path, before, after: None } if held(&before) => {
                went.extend(before.map(|node| (path, node)));
            }
            Difference { path, before: None, after } if held(&after) => {
                came.extend(after.map(|node| (path, node)));
            }
            other => rest.push(PathChange::from(other)),
        }
    }
    let mut pairs = same_content(&went, &came);
    take_out(&pairs, &mut went, &mut came, &mut rest);
    pairs = alike(objects, &went, &came)?;
    take_out(&pairs, &mut went, &mut came, &mut rest);
    let gone =
        went.into_iter().map(|(path, node)| PathChange { path, from: None, before: Some(node), after: None });
    rest.extend(gone);
    rest.extend(came.into_iter().map(|(path, node)| PathChange {
        path,
        from: None,
        before: None,
        after: Some(node),
    }));
    rest.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(rest)
}

type Nodes = BTreeMap<TreePath, Node>;
/// The former name and the new one.
type Pair = (TreePath, TreePath);

fn take_out(pairs: &[Pair], went: &mut Nodes, came: &mut Nodes, done: &mut Vec<PathChange>) {
    for (from, path) in pairs {
        let (before, after) = (went.remove(from), came.remove(path));
        done.push(PathChange { path: path.clone(), from: Some(from.clone()), before, after });
    }
}

/// Two nodes of the same key hold the same.
#[derive(PartialEq, Eq, Hash)]
enum Key<'node> {
    Content(crate::content::ContentId),
    Target(&'node [u8]),
    /// Empty files are all alike: only one of the same name in another folder was renamed.
    Empty(&'node crate::path::FileName),
}

fn key<'node>(path: &'node TreePath, node: &'node Node) -> Option<Key<'node>> {
    match node {
        Node::File { size: 0, .. } => Some(Key::Empty(path.name())),
        Node::File { content, .. } => Some(Key::Content(*content)),
        Node::Link { target } => Some(Key::Target(target)),
        Node::Folder { .. } => None,
    }
}

fn same_content(went: &Nodes, came: &Nodes) -> Vec<Pair> {
    let mut known: HashMap<Key<'_>, Vec<&TreePath>> = HashMap::new();
    for (path, node) in went {
        if let Some(key) = key(path, node) {
            known.entry(key).or_default().push(path);
        }
    }
    let mut pairs = Vec::new();
    for (path, node) in came {
        let Some(candidates) = key(path, node).and_then(|key| known.get_mut(&key)) else { continue };
        let closest = (0..candidates.len()).max_by_key(|&index| nearness(candidates[index], path));
        if let Some(closest) = closest {
            pairs.push((candidates.swap_remove(closest).clone(), path.clone()));
        }
    }
    pairs
}

/// How near two paths are: the same name first, then the folders that they share.
fn nearness(left: &TreePath, right: &TreePath) -> (bool, usize, std::cmp::Reverse<TreePath>) {
    let shared = left.names().iter().zip(right.names()).take_while(|(left, right)| left == right).count();
    (left.name() == right.name(), shared, std::cmp::Reverse(left.clone()))
}

fn alike(objects: &(impl Objects + ?Sized), went: &Nodes, came: &Nodes) -> Result<Vec<Pair>, Unavailable> {
    let worth = |nodes: &Nodes| -> Vec<(TreePath, Node, u64)> {
        let sized = nodes.iter().filter_map(|(path, node)| match node {
            Node::File { size, .. } if (1..=LARGEST_COMPARED).contains(size) => {
                Some((path.clone(), node.clone(), *size))
            }
            _ => None,
        });
        sized.collect()
    };
    let (went, came) = (worth(went), worth(came));
    let bytes: u64 = went.iter().chain(&came).map(|(_, _, size)| size).sum();
    if went.is_empty() || came.is_empty() || went.len().max(came.len()) > MOST_COMPARED || bytes > MOST_READ {
        return Ok(Vec::new());
    }
    let sketch = |nodes: &[(TreePath, Node, u64)]| -> Result<Vec<Sketch>, Unavailable> {
        nodes.iter().map(|(_, node, _)| Ok(Sketch::of(&read(objects, node)?))).collect()
    };
    let (old, new) = (sketch(&went)?, sketch(&came)?);
    let mut found = Vec::new();
    for (left, (from, _, _)) in went.iter().enumerate() {
        for (right, (path, _, _)) in came.iter().enumerate() {
            let likeness = old[left].likeness(&new[right]);
            if likeness >= LIKE {
                found.push((likeness, nearness(from, path), left, right));
            }
        }
    }
    // The most alike first; the order of the paths decides where nothing else does, so the answer is always the
    // same.
    found.sort_by(|one, other| {
        (other.0, &other.1).cmp(&(one.0, &one.1)).then((one.2, one.3).cmp(&(other.2, other.3)))
    });
    let (mut left_taken, mut right_taken) = (vec![false; went.len()], vec![false; came.len()]);
    let mut pairs = Vec::new();
    for (_, _, left, right) in found {
        if !left_taken[left] && !right_taken[right] {
            (left_taken[left], right_taken[right]) = (true, true);
            pairs.push((went[left].0.clone(), came[right].0.clone()));
        }
    }
    Ok(pairs)
}

/// How many bytes of a content stand in which lines.
struct Sketch {
    bytes: u64,
    lines: HashMap<[u8; 32], u64>,
}

impl Sketch {
    fn of(content: &[u8]) -> Self {
        let mut lines: HashMap<[u8; 32], u64> = HashMap::new();
        for line in crate::diff::lines(content) {
            for piece in line.chunks(LONGEST_PIECE) {
                *lines.entry(*blake3::hash(piece).as_bytes()).or_default() += piece.len() as u64;
            }
        }
        Self { bytes: content.len() as u64, lines }
    }

    /// The share of the larger content that both have, of 100.
    fn likeness(&self, other: &Self) -> u64 {
        let larger = self.bytes.max(other.bytes).max(1);
        if self.bytes.min(other.bytes) * 100 < larger * LIKE {
            return 0;
        }
        let (fewer, more) = if self.lines.len() <= other.lines.len() { (self, other) } else { (other, self) };
        let common = fewer
            .lines
            .iter()
            .map(|(line, bytes)| more.lines.get(line).map_or(0, |others| (*bytes).min(*others)));
        common.sum::<u64>() * 100 / larger
    }
}
