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
use crate::path::MAX_PATH;
use crate::tree::{Node, PART, Parts, Tree};

/// The sizes of the files and trees imported so far.
#[derive(Debug, Default)]
pub struct FileChecker {
    /// Bytes of a blob or of a file in parts; `None` if unknown because some of them were destroyed.
    sizes: HashMap<ContentId, Option<u64>>,
    trees: HashMap<ContentId, TreeExtent>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TreeExtent {
    paths: usize,
    /// Bytes of the longest path in the tree.
    longest: usize,
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

    fn tree(&self, tree: &Tree) -> Result<TreeExtent, InvalidContentError> {
        let mut extent = TreeExtent::default();
        for entry in tree.entries() {
            let mut below = TreeExtent::default();
            match &entry.node {
                Node::File { content, size, .. } => {
                    if self.size(*content).is_some_and(|found| found != *size) {
                        return Err(InvalidContentError::FileSize);
                    }
                }
                Node::Folder { tree, .. } => below = self.trees.get(tree).copied().unwrap_or_default(),
                Node::Link { .. } => {}
            }
            let slash = usize::from(below.longest > 0);
            extent.longest = extent.longest.max(entry.name.bytes().len() + slash + below.longest);
            extent.paths = extent.paths.saturating_add(below.paths).saturating_add(1);
        }
        at_most("bytes of a path in a tree of files", extent.longest, MAX_PATH)?;
        at_most("paths in a tree of files", extent.paths, TREE_PATHS)?;
        Ok(extent)
    }
}
