//! Validation of imported file trees: their expanded size.
//!
//! Trees share content, so a few hundred bytes can expand to an astronomical number of paths:
//!
//! ```text
//!   tree 60 ─┬─ a ─► tree 59 ─┬─ a ─► tree 58 …        60 small objects, 2^60 paths
//!            └─ b ─┘          └─ b ─┘
//! ```
//!
//! The size of a tree is the sum over its children, which were checked before it, so an oversized tree is
//! detected without expanding it.

use std::collections::HashMap;

use super::{InvalidContentError, at_most};
use crate::content::{ContentId, Kind, decode};
use crate::limits::TREE_PATHS;
use crate::path::{FileName, MAX_PATH};
use crate::tree::{Chunks, MAX_WHOLE, Node, PART, Parts, TreeNode};

/// The sizes of the files and trees imported so far.
#[derive(Debug, Default)]
pub struct FileChecker {
    /// Bytes of a blob or of a file in parts or chunks; `None` if unknown because some of them were destroyed.
    sizes: HashMap<ContentId, Option<u64>>,
    /// Levels of the nodes of chunks that were not destroyed.
    levels: HashMap<ContentId, u8>,
    trees: HashMap<ContentId, TreeExtent>,
}

#[derive(Clone, Debug, Default)]
struct TreeExtent {
    paths: usize,
    /// Bytes of the longest path in the tree.
    longest: usize,
    node: NodeExtent,
}

/// What the branch above a node of a large folder states or implies about it.
#[derive(Clone, Debug, Default)]
struct NodeExtent {
    level: u8,
    count: u64,
    first: Option<FileName>,
    last: Option<FileName>,
    /// Whether it may be the top node of a folder.
    top: bool,
    /// Whether it, and the last node below it at each level, ends at a boundary.
    closed: bool,
}

impl FileChecker {
    /// Measures one object, and rejects files with a wrong size and trees that are too large. The objects
    /// it refers to must have been measured before, unless they were destroyed.
    pub fn content(&mut self, kind: Kind, id: ContentId, bytes: &[u8]) -> Result<(), InvalidContentError> {
        match kind {
            Kind::Blob => {
                self.sizes.insert(id, Some(bytes.len() as u64));
            }
            Kind::Parts => {
                let size = self.parts(&decode(bytes)?)?;
                self.sizes.insert(id, size);
            }
            Kind::Chunks => {
                let node: Chunks = decode(bytes)?;
                self.chunks(&node)?;
                self.levels.insert(id, node.level());
                self.sizes.insert(id, Some(node.bytes()));
            }
            Kind::Tree => {
                let extent = self.tree(&decode(bytes)?)?;
                self.trees.insert(id, extent);
            }
            _ => {}
        }
        Ok(())
    }

    fn size(&self, id: ContentId) -> Option<u64> {
        self.sizes.get(&id).copied().flatten()
    }

    fn parts(&self, Parts(parts): &Parts) -> Result<Option<u64>, InvalidContentError> {
        let (mut sum, mut known) = (0u64, true);
        for (number, part) in parts.iter().enumerate() {
            match self.size(*part) {
                Some(size) if number + 1 == parts.len() && size <= PART => sum += size,
                Some(PART) => sum += PART,
                Some(_) => return Err(InvalidContentError::FileSize),
                None => known = false,
            }
        }
        Ok(known.then_some(sum))
    }

    /// Checks the items of a node of chunks against what the node states about them.
    fn chunks(&self, node: &Chunks) -> Result<(), InvalidContentError> {
        for item in node.items() {
            let is_level = match node.kind_of_items() {
                Kind::Chunks => self.levels.get(&item.id).is_none_or(|level| level + 1 == node.level()),
                _ => true,
            };
            if !is_level || self.size(item.id).is_some_and(|found| found != item.bytes) {
                return Err(InvalidContentError::FileSize);
            }
        }
        Ok(())
    }

    fn tree(&self, node: &TreeNode) -> Result<TreeExtent, InvalidContentError> {
        let mut extent = TreeExtent { node: self.node(node)?, ..TreeExtent::default() };
        for child in node.children() {
            let below = self.trees.get(&child).cloned().unwrap_or_default();
            extent.longest = extent.longest.max(below.longest);
            extent.paths = extent.paths.saturating_add(below.paths);
        }
        for entry in node.entries() {
            let (mut paths, mut longest) = (0, 0);
            match &entry.node {
                Node::File { content, size, chunks, .. } => {
                    let is_large = *size > MAX_WHOLE;
                    if self.size(chunks.unwrap_or(*content)).is_some_and(|found| found != *size)
                        || (chunks.is_some() && !is_large)
                    {
                        return Err(InvalidContentError::FileSize);
                    }
                }
                Node::Folder { tree, .. } => {
                    if let Some(below) = self.trees.get(tree) {
                        if !below.node.top {
                            return Err(InvalidContentError::FolderChunk);
                        }
                        (paths, longest) = (below.paths, below.longest);
                    }
                }
                Node::Link { .. } => {}
            }
            let slash = usize::from(longest > 0);
            extent.longest = extent.longest.max(entry.name.bytes().len() + slash + longest);
            extent.paths = extent.paths.saturating_add(paths).saturating_add(1);
        }
        at_most("bytes of a path in a tree of files", extent.longest, MAX_PATH)?;
        at_most("paths in a tree of files", extent.paths, TREE_PATHS)?;
        Ok(extent)
    }

    /// Checks the children of a branch against their summaries, and that all but the last end at a boundary.
    fn node(&self, node: &TreeNode) -> Result<NodeExtent, InvalidContentError> {
        let mut extent = NodeExtent {
            level: node.level(),
            count: node.count(),
            first: node.entries().first().map(|entry| entry.name.clone()),
            last: node.last().cloned(),
            top: node.is_top(),
            closed: node.is_closed(),
        };
        let TreeNode::Branch(branch) = node else { return Ok(extent) };
        let mut before: Option<&NodeExtent> = None;
        for child in &branch.children {
            let found = &self.trees.get(&child.id).ok_or(InvalidContentError::FolderChunk)?.node;
            let follows = before.is_none_or(|before| before.closed && before.last < found.first);
            let matches = found.level + 1 == branch.level
                && found.count == child.count
                && found.last.as_ref() == Some(&child.last);
            if !follows || !matches {
                return Err(InvalidContentError::FolderChunk);
            }
            extent.first = extent.first.or_else(|| found.first.clone());
            before = Some(found);
        }
        extent.closed &= before.is_some_and(|last| last.closed);
        Ok(extent)
    }
}
