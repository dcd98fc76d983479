//! Validates imported lists, version by version, without walking a long list again for each version.
//!
//! A list is valid if its chunk boundaries are right, every node matches its summary in the parent node, and
//! no key occurs twice. The first two make its root the only one for its cells. The third bounds the list by
//! the nodes received: a few nodes that refer to each other repeatedly describe many cells, but also repeat
//! their keys.
//!
//! ```text
//!   before   [ a  b  c  d ]          retained: a, b     not opened
//!   now      [ a  b  x  y  z ]       removed:  c, d     their keys are free again
//!                                    added:    x, y, z  opened, checked, their keys taken
//! ```
//!
//! Whether a boundary is right depends on the position of the node: the end of the list may cut the last node
//! of a level short; every other node must end at a chunk boundary, and so must the last node below it at
//! each level. A node known to end so is *closed* and valid at any position. Only closed nodes are skipped
//! when they occur again; those at the right edge, one per level, are opened each time.

use std::collections::{HashMap, HashSet};

use super::List;
use super::cell::Cell;
use super::chunk::{Item, is_one_chunk};
use super::node::{Child, Node, damaged, open, open_root};
use crate::content::ContentId;
use crate::object::{ObjectError, Objects};

/// Reason why a list is invalid.
#[derive(Clone, Debug, thiserror::Error)]
pub enum InvalidListError {
    /// A node does not end at a chunk boundary.
    #[error("list node {} does not end at a chunk boundary", .0.short())]
    Cut(ContentId),
    /// A key occurs twice in the list.
    #[error("a list contains the same item twice")]
    Duplicate,
    /// A node could not be read or does not match its summary in the parent.
    #[error(transparent)]
    Unavailable(#[from] ObjectError),
}

/// The cells that differ between two versions of a list. At the right edge, unchanged cells may be in both.
#[derive(Clone, Debug)]
pub struct ListDelta<C> {
    /// Removed cells.
    pub removed: Vec<C>,
    /// Added cells.
    pub added: Vec<C>,
}

/// A validated list, ready to validate its next version.
#[derive(Clone, Debug)]
pub struct CheckedList<C> {
    list: List<C>,
    /// Closed nodes of the list, with their level and expected summary.
    closed: HashMap<ContentId, (u8, Child)>,
    keys: HashSet<[u8; 16]>,
}

impl<C> Default for CheckedList<C> {
    fn default() -> Self {
        Self { list: List::empty(), closed: HashMap::new(), keys: HashSet::new() }
    }
}

impl<C: Cell> CheckedList<C> {
    /// Whether a cell of the list has that key.
    pub fn has(&self, key: &[u8; 16]) -> bool {
        self.keys.contains(key)
    }

    /// Validates the next version of the list. The work is proportional to the nodes that differ, and bounded
    /// by the nodes that exist.
    ///
    /// After an error the value must not be used any more.
    pub fn advance<O: Objects + ?Sized>(
        &mut self,
        objects: &O,
        list: List<C>,
    ) -> Result<ListDelta<C>, InvalidListError> {
        let mut delta = ListDelta { removed: Vec::new(), added: Vec::new() };
        if list == self.list {
            return Ok(delta);
        }
        let mut walk = Walk {
            objects,
            closed: &self.closed,
            kept: HashSet::new(),
            opened: HashSet::new(),
            newly_closed: Vec::new(),
            added: Vec::new(),
        };
        if let Some(root) = list.root {
            walk.node(root, open_root(objects, &list, root)?, true)?;
        }
        let Walk { mut kept, newly_closed, added, .. } = walk;
        delta.added = added;
        if let Some(root) = self.list.root {
            let node = open_root(objects, &self.list, root)?;
            self.forget_version(objects, root, node, &mut kept, &mut delta.removed)?;
        }
        // A retained node that the walk did not reach lies below another retained one, so its cells occur
        // twice.
        if !kept.is_empty() {
            return Err(InvalidListError::Duplicate);
        }
        for cell in &delta.removed {
            self.keys.remove(cell.key());
        }
        for cell in &delta.added {
            if !self.keys.insert(*cell.key()) {
                return Err(InvalidListError::Duplicate);
            }
        }
        self.closed.extend(newly_closed);
        self.list = list;
        Ok(delta)
    }

    /// Forgets the nodes of the previous version that the next does not retain; removes retained ones from
    /// the set.
    fn forget_version<O: Objects + ?Sized>(
        &mut self,
        objects: &O,
        id: ContentId,
        node: Node<C>,
        kept: &mut HashSet<ContentId>,
        removed: &mut Vec<C>,
    ) -> Result<(), InvalidListError> {
        self.closed.remove(&id);
        match node {
            Node::Leaf(cells) => removed.extend(cells),
            Node::Branch(branch) => {
                for child in &branch.children {
                    if !kept.remove(&child.id) {
                        let below = open(objects, child, branch.level - 1)?;
                        self.forget_version(objects, child.id, below, kept, removed)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A walk over the nodes of a list that are not known yet.
struct Walk<'check, C, O: ?Sized> {
    objects: &'check O,
    closed: &'check HashMap<ContentId, (u8, Child)>,
    kept: HashSet<ContentId>,
    opened: HashSet<ContentId>,
    newly_closed: Vec<(ContentId, (u8, Child))>,
    added: Vec<C>,
}

impl<C: Cell, O: Objects + ?Sized> Walk<'_, C, O> {
    fn child(&mut self, child: &Child, level: u8, last: bool) -> Result<(), InvalidListError> {
        match self.closed.get(&child.id) {
            Some(known) if *known != (level, *child) => Err(damaged::<C>(child.id).into()),
            Some(_) if self.kept.insert(child.id) => Ok(()),
            Some(_) => Err(InvalidListError::Duplicate),
            None => {
                self.node(child.id, open(self.objects, child, level)?, last)?;
                if !last {
                    self.newly_closed.push((child.id, (level, *child)));
                }
                Ok(())
            }
        }
    }

    /// Checks an opened node and everything below it; `last` means that it is the last node of its level.
    fn node(&mut self, id: ContentId, node: Node<C>, last: bool) -> Result<(), InvalidListError> {
        // This check precedes the descent, so that repeated references to one node stop here.
        if !self.opened.insert(id) {
            return Err(InvalidListError::Duplicate);
        }
        match node {
            Node::Leaf(cells) => {
                check_cut::<C, C>(id, &cells, last)?;
                self.added.extend(cells);
            }
            Node::Branch(branch) => {
                check_cut::<C, Child>(id, &branch.children, last)?;
                let end = branch.children.len() - 1;
                for (index, child) in branch.children.iter().enumerate() {
                    self.child(child, branch.level - 1, last && index == end)?;
                }
            }
        }
        Ok(())
    }
}

fn check_cut<C: Cell, T: Item<C>>(id: ContentId, items: &[T], last: bool) -> Result<(), InvalidListError> {
    if is_one_chunk::<C, T>(items, last) { Ok(()) } else { Err(InvalidListError::Cut(id)) }
}

#[cfg(test)]
mod tests;
