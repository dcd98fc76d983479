//! Detects renamed files among added and removed ones.
//!
//! ```text
//!   src/old.rs  removed       equal content             src/old.rs ──► src/new.rs
//!   src/new.rs  added    ──►  else the most similar ──►
//!   notes.md    changed       else not renamed          notes.md   changed
//! ```
//!
//! Files are paired by equal content first, then by similarity: the share of the larger file's bytes in lines
//! that both have. That requires reading, so it is limited to `MAX_COMPARED` files on each side,
//! `MAX_COMPARED_BYTES` bytes per file and `MAX_READ` bytes in total. Other files are reported as removed and
//! added.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::{Difference, Node, read};
use crate::object::{ObjectError, Objects};
use crate::path::TreePath;

/// Maximum number of files on each side to compare by similarity.
pub const MAX_COMPARED: usize = 256;
/// Maximum size of a file to compare by similarity, in bytes.
pub const MAX_COMPARED_BYTES: u64 = 1024 * 1024;
/// Maximum number of bytes to read in total.
pub const MAX_READ: u64 = 64 * 1024 * 1024;
/// Minimum similarity of a renamed file, in percent.
pub const MIN_SIMILARITY: u64 = 50;
/// Size of the pieces in which content without line ends is compared.
const MAX_PIECE: usize = 64;

/// One path that differs between two trees, with its previous name if it was renamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// Its path; the previous path if it was removed.
    pub path: TreePath,
    /// Its previous path, if it was renamed.
    pub from: Option<TreePath>,
    /// The node before; for a renamed file, at its previous path.
    pub before: Option<Node>,
    /// The node after.
    pub after: Option<Node>,
}

/// The kind of a path change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PathChangeKind {
    /// The path was added.
    Added,
    /// Its content changed, and possibly its permissions.
    Changed,
    /// The path was removed.
    Removed,
    /// It was renamed, and possibly its content changed.
    Renamed,
    /// Only its permissions changed.
    ModeChanged,
    /// Its type changed, for example from file to link or folder.
    TypeChanged,
}

impl PathChange {
    /// The kind of this change.
    pub fn kind(&self) -> PathChangeKind {
        match (&self.before, &self.after) {
            _ if self.from.is_some() => PathChangeKind::Renamed,
            (None, _) => PathChangeKind::Added,
            (_, None) => PathChangeKind::Removed,
            (Some(Node::File { content: old, .. }), Some(Node::File { content: new, .. })) if old == new => {
                PathChangeKind::ModeChanged
            }
            (Some(Node::Folder { .. }), Some(Node::Folder { .. })) => PathChangeKind::ModeChanged,
            (Some(Node::File { .. }), Some(Node::File { .. }))
            | (Some(Node::Link { .. }), Some(Node::Link { .. })) => PathChangeKind::Changed,
            _ => PathChangeKind::TypeChanged,
        }
    }
}

impl From<Difference> for PathChange {
    fn from(Difference { path, before, after }: Difference) -> Self {
        Self { path, from: None, before, after }
    }
}

/// Pairs removed files and links with added ones. Other differences stay as they are. The result is sorted by
/// current path.
pub fn pair_renames(
    objects: &(impl Objects + ?Sized),
    differences: Vec<Difference>,
) -> Result<Vec<PathChange>, ObjectError> {
    let is_leaf = |node: &Option<Node>| node.as_ref().is_some_and(|node| !node.is_folder());
    let (mut went, mut came, mut rest) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for difference in differences {
        match difference {
            Difference { path, before, after: None } if is_leaf(&before) => {
                went.extend(before.map(|node| (path, node)));
            }
            Difference { path, before: None, after } if is_leaf(&after) => {
                came.extend(after.map(|node| (path, node)));
            }
            other => rest.push(PathChange::from(other)),
        }
    }
    let mut pairs = same_content(&went, &came);
    move_pairs(&pairs, &mut went, &mut came, &mut rest);
    pairs = similar_content(objects, &went, &came)?;
    move_pairs(&pairs, &mut went, &mut came, &mut rest);
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
/// The previous path and the new one.
type Pair = (TreePath, TreePath);

fn move_pairs(pairs: &[Pair], went: &mut Nodes, came: &mut Nodes, done: &mut Vec<PathChange>) {
    for (from, path) in pairs {
        let (before, after) = (went.remove(from), came.remove(path));
        done.push(PathChange { path: path.clone(), from: Some(from.clone()), before, after });
    }
}

/// Nodes with the same key have the same content.
#[derive(PartialEq, Eq, Hash)]
enum ContentKey<'node> {
    Content(crate::content::ContentId),
    Target(&'node [u8]),
    /// Empty files all have the same content, so they count as renamed only if the file name is the same.
    Empty(&'node crate::path::FileName),
}

fn key<'node>(path: &'node TreePath, node: &'node Node) -> Option<ContentKey<'node>> {
    match node {
        Node::File { size: 0, .. } => Some(ContentKey::Empty(path.name())),
        Node::File { content, .. } => Some(ContentKey::Content(*content)),
        Node::Link { target } => Some(ContentKey::Target(target)),
        Node::Folder { .. } => None,
    }
}

fn same_content(went: &Nodes, came: &Nodes) -> Vec<Pair> {
    let mut known: HashMap<ContentKey<'_>, Vec<&TreePath>> = HashMap::new();
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

/// How close two paths are: same file name first, then the number of shared folders.
fn nearness(left: &TreePath, right: &TreePath) -> (bool, usize, std::cmp::Reverse<TreePath>) {
    let shared = left.names().iter().zip(right.names()).take_while(|(left, right)| left == right).count();
    (left.name() == right.name(), shared, std::cmp::Reverse(left.clone()))
}

fn similar_content(
    objects: &(impl Objects + ?Sized),
    went: &Nodes,
    came: &Nodes,
) -> Result<Vec<Pair>, ObjectError> {
    let worth = |nodes: &Nodes| -> Vec<(TreePath, Node, u64)> {
        let sized = nodes.iter().filter_map(|(path, node)| match node {
            Node::File { size, .. } if (1..=MAX_COMPARED_BYTES).contains(size) => {
                Some((path.clone(), node.clone(), *size))
            }
            _ => None,
        });
        sized.collect()
    };
    let (went, came) = (worth(went), worth(came));
    let bytes: u64 = went.iter().chain(&came).map(|(_, _, size)| size).sum();
    if went.is_empty() || came.is_empty() || went.len().max(came.len()) > MAX_COMPARED || bytes > MAX_READ {
        return Ok(Vec::new());
    }
    let sketch = |nodes: &[(TreePath, Node, u64)]| -> Result<Vec<Sketch>, ObjectError> {
        nodes.iter().map(|(_, node, _)| Ok(Sketch::of(&read(objects, node)?))).collect()
    };
    let (old, new) = (sketch(&went)?, sketch(&came)?);
    let mut found = Vec::new();
    for (left, (from, _, _)) in went.iter().enumerate() {
        for (right, (path, _, _)) in came.iter().enumerate() {
            let similarity = old[left].similarity(&new[right]);
            if similarity >= MIN_SIMILARITY {
                found.push((similarity, nearness(from, path), left, right));
            }
        }
    }
    // The most similar pair first. Path order breaks ties, so the result is deterministic.
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

/// Number of bytes of a content per distinct line.
struct Sketch {
    bytes: u64,
    lines: HashMap<[u8; 32], u64>,
}

impl Sketch {
    fn of(content: &[u8]) -> Self {
        let mut lines: HashMap<[u8; 32], u64> = HashMap::new();
        for line in crate::diff::lines(content) {
            for piece in line.chunks(MAX_PIECE) {
                *lines.entry(*blake3::hash(piece).as_bytes()).or_default() += piece.len() as u64;
            }
        }
        Self { bytes: content.len() as u64, lines }
    }

    /// The share of the larger content that both have, in percent.
    fn similarity(&self, other: &Self) -> u64 {
        let larger = self.bytes.max(other.bytes).max(1);
        if self.bytes.min(other.bytes) * 100 < larger * MIN_SIMILARITY {
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
