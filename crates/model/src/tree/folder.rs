//! The nodes of a folder: one object for a small folder, a search tree of chunks for a large one.
//!
//! ```text
//!   up to 128 entries      [ a  b  c … ]                     one leaf, as in every version of Retake
//!
//!   more                   [ f → x,  p → y,  z → w ]         branch: the last name below each child
//!                         ┌───┘        │        └───┐
//!                   [ a … f ]    [ g … p ]    [ q … z ]      leaves: the entries themselves
//! ```
//!
//! A hash of a name decides whether a chunk ends after it ([`crate::boundary`]), so the same entries always have the
//! same nodes. A changed file keeps all boundaries: it costs one leaf and the branches above it. A lookup reads one
//! node per level.
//!
//! Nodes may come from another machine. A branch states the number of entries below each child and their last name;
//! a child that differs is damaged. So no folder has more than [`MAX_NAMES`] entries, however often its nodes refer to
//! one another. Folders with more than 128 entries in one leaf were written by older versions and stay readable.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use minicbor::data::Type;
use minicbor::{Decode, Decoder, Encode, Encoder, decode, encode};

use super::{MAX_NAMES, Node, Tree, TreeEntry};
use crate::boundary;
use crate::content::{self, Content, ContentId, Kind, MalformedError};
use crate::object::{Additions, ObjectError, Objects, load};
use crate::path::FileName;

/// Maximum number of entries of a folder in one leaf.
pub const MAX_LEAF: usize = 128;
/// Average number of items of a chunk, at every level.
const AVERAGE: u64 = 32;
/// Every level has at most half the nodes of the level below, so no folder needs more levels than this.
const MAX_LEVEL: u8 = 24;

/// One object of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeNode {
    /// Entries in the byte order of their names: a small folder, or a chunk of a large one.
    Leaf(Vec<TreeEntry>),
    /// Nodes of the level below.
    Branch(TreeBranch),
}

/// A node above others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeBranch {
    /// Leaves have level 0.
    pub(crate) level: u8,
    pub(crate) children: Vec<TreeChild>,
}

/// The summary of a child in its branch.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct TreeChild {
    /// The last name below it.
    #[n(0)]
    pub(crate) last: FileName,
    #[n(1)]
    pub(crate) id: ContentId,
    /// Number of entries below it.
    #[n(2)]
    pub(crate) count: u64,
}

impl Tree {
    /// Adds the folder to new content, and returns the id of its top node.
    pub fn add_to<O: Objects + ?Sized>(&self, additions: &mut Additions<'_, O>) -> ContentId {
        self.encode_nodes(&mut |bytes| additions.add_bytes(Kind::Tree, bytes))
    }

    /// Encodes its nodes from the leaves up. `add` returns the id of a node; the last is that of the top node, which
    /// is returned.
    pub fn encode_nodes(&self, add: &mut impl FnMut(Vec<u8>) -> ContentId) -> ContentId {
        if self.0.len() <= MAX_LEAF {
            return add(encode_leaf(&self.0));
        }
        let leaves = boundary::chunks(&self.0, AVERAGE, |entry| ends_chunk(0, &entry.name));
        let leaves = leaves.map(|entries| encode_chunk(entries, add)).collect();
        encode_branches(leaves, add)
    }

    /// Replaces or removes some entries of a folder, and returns the id of the result. Reads the branches of a large
    /// folder, and only leaves with changes and those after them that need other boundaries.
    pub(super) fn edit<O: Objects + ?Sized>(
        additions: &mut Additions<'_, O>,
        tree: ContentId,
        changes: &BTreeMap<FileName, Option<Node>>,
    ) -> Result<ContentId, ObjectError> {
        let branch = match load(additions, tree)? {
            TreeNode::Leaf(entries) => return Ok(Self(changed(entries, changes)).add_to(additions)),
            TreeNode::Branch(branch) => branch,
        };
        let old = leaves_below(additions, branch)?;
        let mut nodes = Vec::with_capacity(old.len());
        let mut open: Vec<TreeEntry> = Vec::new();
        let mut start = Bound::Unbounded;
        for (number, leaf) in old.iter().enumerate() {
            let is_last = number + 1 == old.len();
            let end = if is_last { Bound::Unbounded } else { Bound::Included(leaf.last.clone()) };
            let mut within = changes.range((start, end)).peekable();
            start = Bound::Excluded(leaf.last.clone());
            if open.is_empty() && within.peek().is_none() {
                nodes.push(leaf.clone());
                continue;
            }
            let within = within.map(|(name, node)| (name.clone(), node.clone())).collect();
            for entry in changed(open_child(additions, leaf, 0)?.into_entries(), &within) {
                open.push(entry);
                if ends_chunk_at(&open) {
                    nodes.push(encode_chunk(&open, &mut |bytes| additions.add_bytes(Kind::Tree, bytes)));
                    open.clear();
                }
            }
        }
        if !open.is_empty() {
            nodes.push(encode_chunk(&open, &mut |bytes| additions.add_bytes(Kind::Tree, bytes)));
        }
        if nodes.iter().map(|leaf| leaf.count).sum::<u64>() > MAX_LEAF as u64 {
            return Ok(encode_branches(nodes, &mut |bytes| additions.add_bytes(Kind::Tree, bytes)));
        }
        let mut entries = Vec::new();
        for leaf in &nodes {
            entries.extend(open_child(additions, leaf, 0)?.into_entries());
        }
        Ok(Self(entries).add_to(additions))
    }

    /// Reads a whole folder.
    pub fn load(objects: &(impl Objects + ?Sized), id: ContentId) -> Result<Self, ObjectError> {
        let mut open = match load(objects, id)? {
            TreeNode::Leaf(entries) => return Ok(Self(entries)),
            TreeNode::Branch(branch) => vec![branch.into_children()],
        };
        let mut entries: Vec<TreeEntry> = Vec::new();
        while let Some((level, children)) = open.last_mut() {
            let Some(child) = children.next() else {
                open.pop();
                continue;
            };
            match open_child(objects, &child, *level - 1)? {
                TreeNode::Branch(branch) => open.push(branch.into_children()),
                TreeNode::Leaf(leaf) => {
                    if entries.last().zip(leaf.first()).is_some_and(|(left, right)| left.name >= right.name) {
                        return Err(damaged(child.id));
                    }
                    entries.extend(leaf);
                }
            }
        }
        Ok(Self(entries))
    }
}

/// Entries with some of them replaced, removed or added.
fn changed(entries: Vec<TreeEntry>, changes: &BTreeMap<FileName, Option<Node>>) -> Vec<TreeEntry> {
    let old = entries.into_iter().filter(|entry| !changes.contains_key(&entry.name));
    let new = changes.iter().filter_map(|(name, node)| {
        let node = node.clone()?;
        Some(TreeEntry { name: name.clone(), node })
    });
    let mut result: Vec<TreeEntry> = old.chain(new).collect();
    result.sort_unstable_by(|left, right| left.name.cmp(&right.name));
    result
}

/// The summaries of the leaves below a branch, in order.
fn leaves_below(
    objects: &(impl Objects + ?Sized),
    branch: TreeBranch,
) -> Result<Vec<TreeChild>, ObjectError> {
    let (mut level, mut nodes) = (branch.level, branch.children);
    while level > 1 {
        level -= 1;
        let mut below = Vec::new();
        for child in &nodes {
            if let TreeNode::Branch(branch) = open_child(objects, child, level)? {
                below.extend(branch.children);
            }
        }
        nodes = below;
    }
    match nodes.windows(2).find(|pair| pair[0].last >= pair[1].last) {
        None => Ok(nodes),
        Some(pair) => Err(damaged(pair[1].id)),
    }
}

/// Whether a chunk ends after the last of these entries.
fn ends_chunk_at(open: &[TreeEntry]) -> bool {
    let ends = open.last().is_some_and(|entry| ends_chunk(0, &entry.name));
    open.len() >= boundary::max_items(AVERAGE) || (open.len() >= boundary::MIN_ITEMS && ends)
}

/// Encodes a leaf of a large folder.
fn encode_chunk(entries: &[TreeEntry], add: &mut impl FnMut(Vec<u8>) -> ContentId) -> TreeChild {
    TreeChild {
        last: entries[entries.len() - 1].name.clone(),
        id: add(encode_leaf(entries)),
        count: entries.len() as u64,
    }
}

/// Encodes the branches above the leaves of a large folder, and returns the id of the top node.
fn encode_branches(mut nodes: Vec<TreeChild>, add: &mut impl FnMut(Vec<u8>) -> ContentId) -> ContentId {
    for level in 1.. {
        if nodes.len() == 1 {
            break;
        }
        let chunks = boundary::chunks(&nodes, AVERAGE, |child| ends_chunk(level, &child.last));
        nodes = chunks
            .map(|children| {
                let branch = TreeBranch { level, children: children.to_vec() };
                let (last, count) = (branch.last().clone(), branch.count());
                TreeChild { last, id: add(content::encode(&TreeNode::Branch(branch))), count }
            })
            .collect();
    }
    nodes[0].id
}

/// The node with that name in a folder. Reads one object per level of the folder.
pub fn entry(
    objects: &(impl Objects + ?Sized),
    tree: ContentId,
    name: &FileName,
) -> Result<Option<Node>, ObjectError> {
    FolderCursor::default().get(objects, tree, name)
}

/// Looks up names of one folder, and remembers the nodes of the last lookup.
#[derive(Debug, Default)]
pub(super) struct FolderCursor {
    /// From the top node down, each with the number of the child that follows.
    path: Vec<(TreeNode, Option<usize>)>,
}

impl FolderCursor {
    pub(super) fn get(
        &mut self,
        objects: &(impl Objects + ?Sized),
        tree: ContentId,
        name: &FileName,
    ) -> Result<Option<Node>, ObjectError> {
        if self.path.is_empty() {
            self.path.push((load(objects, tree)?, None));
        }
        let mut depth = 0;
        loop {
            let is_last = self.path.len() == depth + 1;
            let (node, opened) = &mut self.path[depth];
            depth += 1;
            match node {
                TreeNode::Leaf(entries) => return Ok(find(entries, name).cloned()),
                TreeNode::Branch(branch) => {
                    let number = branch.children.partition_point(|child| child.last < *name);
                    let Some(child) = branch.children.get(number) else { return Ok(None) };
                    if *opened == Some(number) && !is_last {
                        continue;
                    }
                    let below = open_child(objects, child, branch.level - 1)?;
                    *opened = Some(number);
                    self.path.truncate(depth);
                    self.path.push((below, None));
                }
            }
        }
    }
}

/// The entries of two folders without those in nodes that both have. Reads only nodes that differ.
pub(super) fn differing_entries(
    objects: &(impl Objects + ?Sized),
    sides: [Option<ContentId>; 2],
) -> Result<[Vec<TreeEntry>; 2], ObjectError> {
    let mut nodes: [Vec<TreeNode>; 2] = [Vec::new(), Vec::new()];
    for (side, id) in nodes.iter_mut().zip(sides) {
        side.extend(id.map(|id| load(objects, id)).transpose()?);
    }
    while let Some(level) = nodes.iter().flatten().map(TreeNode::level).max().filter(|level| *level > 0) {
        let ids = |side: &[TreeNode]| -> HashSet<ContentId> {
            let branches = side.iter().filter_map(|node| match node {
                TreeNode::Branch(branch) if branch.level == level => Some(&branch.children),
                _ => None,
            });
            branches.flatten().map(|child| child.id).collect()
        };
        let (before, after) = (ids(&nodes[0]), ids(&nodes[1]));
        for side in &mut nodes {
            let mut below = Vec::with_capacity(side.len());
            for node in side.drain(..) {
                match node {
                    TreeNode::Branch(branch) if branch.level == level => {
                        for child in &branch.children {
                            if !(before.contains(&child.id) && after.contains(&child.id)) {
                                below.push(open_child(objects, child, level - 1)?);
                            }
                        }
                    }
                    node => below.push(node),
                }
            }
            *side = below;
        }
    }
    Ok(nodes.map(|side| {
        let leaves = side.into_iter().filter_map(|node| match node {
            TreeNode::Leaf(entries) => Some(entries),
            TreeNode::Branch(_) => None,
        });
        leaves.flatten().collect()
    }))
}

impl TreeNode {
    pub(crate) fn level(&self) -> u8 {
        match self {
            Self::Leaf(_) => 0,
            Self::Branch(branch) => branch.level,
        }
    }

    /// The entries, if it is a leaf.
    pub fn entries(&self) -> &[TreeEntry] {
        match self {
            Self::Leaf(entries) => entries,
            Self::Branch(_) => &[],
        }
    }

    fn into_entries(self) -> Vec<TreeEntry> {
        match self {
            Self::Leaf(entries) => entries,
            Self::Branch(_) => Vec::new(),
        }
    }

    /// The nodes of the level below, if it is a branch.
    pub fn children(&self) -> impl Iterator<Item = ContentId> + '_ {
        let children = match self {
            Self::Leaf(_) => &[][..],
            Self::Branch(branch) => &branch.children,
        };
        children.iter().map(|child| child.id)
    }

    pub(crate) fn count(&self) -> u64 {
        match self {
            Self::Leaf(entries) => entries.len() as u64,
            Self::Branch(branch) => branch.count(),
        }
    }

    /// The last name below; a small folder may have none.
    pub(crate) fn last(&self) -> Option<&FileName> {
        match self {
            Self::Leaf(entries) => entries.last().map(|entry| &entry.name),
            Self::Branch(branch) => Some(branch.last()),
        }
    }

    /// Refuses an imported node that is not sorted, or has a duplicate name or wrong chunks.
    pub fn check(&self) -> Result<(), MalformedError> {
        let valid = match self {
            Self::Leaf(entries) => return Tree::check_entries(entries),
            Self::Branch(branch) => branch.is_one_chunk(true),
        };
        if valid { Ok(()) } else { Err(MalformedError { kind: Kind::Tree }) }
    }

    /// Whether it may be the top node of a folder.
    pub(crate) fn is_top(&self) -> bool {
        match self {
            Self::Leaf(_) => true,
            Self::Branch(branch) => branch.children.len() > 1 && branch.count() > MAX_LEAF as u64,
        }
    }

    /// Whether it may be followed by another node of its level.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Leaf(entries) => {
                boundary::is_one_chunk(entries, false, AVERAGE, |entry| ends_chunk(0, &entry.name))
            }
            Self::Branch(branch) => branch.is_one_chunk(false),
        }
    }

    /// Whether the node could be part of a folder, judged by its own bytes only.
    fn is_sound(&self) -> bool {
        self.count() <= MAX_NAMES as u64
            && match self {
                Self::Leaf(_) => true,
                Self::Branch(TreeBranch { level, children }) => {
                    (1..=MAX_LEVEL).contains(level)
                        && (1..=boundary::max_items(AVERAGE)).contains(&children.len())
                        && children.iter().all(|child| child.count > 0)
                        && children.windows(2).all(|pair| pair[0].last < pair[1].last)
                }
            }
    }
}

impl TreeBranch {
    fn last(&self) -> &FileName {
        &self.children[self.children.len() - 1].last
    }

    fn count(&self) -> u64 {
        // Saturating, because an adversarial node may claim any count; such a sum is over the limit.
        self.children.iter().fold(0, |sum, child| sum.saturating_add(child.count))
    }

    fn is_one_chunk(&self, last: bool) -> bool {
        boundary::is_one_chunk(&self.children, last, AVERAGE, |child| ends_chunk(self.level, &child.last))
    }

    fn into_children(self) -> (u8, std::vec::IntoIter<TreeChild>) {
        (self.level, self.children.into_iter())
    }
}

/// The node with that name among these.
pub(super) fn find<'entries>(entries: &'entries [TreeEntry], name: &FileName) -> Option<&'entries Node> {
    let found = entries.binary_search_by(|entry| entry.name.cmp(name)).ok()?;
    Some(&entries[found].node)
}

/// Opens a node of `level` and checks it against its summary in the branch above.
fn open_child(
    objects: &(impl Objects + ?Sized),
    child: &TreeChild,
    level: u8,
) -> Result<TreeNode, ObjectError> {
    let node: TreeNode = load(objects, child.id)?;
    let matches = node.level() == level && node.count() == child.count && node.last() == Some(&child.last);
    if matches { Ok(node) } else { Err(damaged(child.id)) }
}

fn damaged(id: ContentId) -> ObjectError {
    ObjectError::Damaged { kind: Kind::Tree, id }
}

/// Whether a chunk of that level ends after an item with this (last) name.
fn ends_chunk(level: u8, name: &FileName) -> bool {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[level]);
    hasher.update(name.bytes());
    boundary::hash_ends_chunk(hasher.finalize().as_bytes(), AVERAGE)
}

fn encode_leaf(entries: &[TreeEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + entries.len() * 80);
    minicbor::encode(entries, &mut bytes).expect("encoding into memory cannot fail");
    bytes
}

impl Content for TreeNode {
    const KIND: Kind = Kind::Tree;
}

/// A leaf is an array of entries, a branch an array of its level and its children.
impl Encode<()> for TreeNode {
    fn encode<W: encode::Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut (),
    ) -> Result<(), encode::Error<W::Error>> {
        match self {
            Self::Leaf(entries) => entries.encode(encoder, context),
            Self::Branch(branch) => {
                encoder.array(2)?.u8(branch.level)?;
                branch.children.encode(encoder, context)
            }
        }
    }
}

impl<'bytes> Decode<'bytes, ()> for TreeNode {
    fn decode(decoder: &mut Decoder<'bytes>, context: &mut ()) -> Result<Self, decode::Error> {
        let mut ahead = decoder.probe();
        let is_branch = ahead.array()? == Some(2) && ahead.datatype()? == Type::U8;
        let node = if is_branch {
            decoder.array()?;
            let level = decoder.u8()?;
            Self::Branch(TreeBranch { level, children: decoder.decode_with(context)? })
        } else {
            Self::Leaf(decoder.decode_with(context)?)
        };
        if node.is_sound() { Ok(node) } else { Err(decode::Error::message("no folder has such a node")) }
    }
}
