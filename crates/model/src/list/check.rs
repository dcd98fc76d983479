//! Checking lists from elsewhere, version after version, without walking a long one again for each.
//!
//! A list is what it says if it is cut where lists are cut, every node is what the node above says of it, and no
//! key stands in it twice. The first two make its name the only name of its cells. The third bounds it by what
//! really came: a few nodes that refer to each other over and over describe many cells, and repeat their keys.
//!
//! ```text
//!   before   [ a  b  c  d ]          kept: a, b     nothing below them is opened
//!   now      [ a  b  x  y  z ]       gone: c, d     their keys are free again
//!                                    come: x, y, z  opened, checked, their keys taken
//! ```
//!
//! Whether a node is cut right depends on where it stands: the last one of a level was cut short by the end of the
//! list, every other must end where a chunk ends, and so must the last node below it at each level. A node that
//! was found to end so is *closed*, and right anywhere. Only closed nodes are passed over when they are met again;
//! those at the right edge of the list are opened each time, which is one for each level.

use std::collections::{HashMap, HashSet};

use super::List;
use super::cell::Cell;
use super::chunk::{Item, is_one_chunk};
use super::node::{Child, Node, damaged, open, open_root};
use crate::content::ContentId;
use crate::object::{Objects, Unavailable};

/// Why a list was refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BadList {
    /// A node is cut where no list is cut.
    #[error("list node {} is not cut where lists are cut", .0.short())]
    Cut(ContentId),
    /// Something stands in the list twice.
    #[error("a list holds the same thing twice")]
    Twice,
    /// A node could not be read, or is not what the node above says of it.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// What differs between two versions of a list. At the right edge, what stayed may be in both.
#[derive(Clone, Debug)]
pub struct Turnover<C> {
    /// Cells that are no longer there.
    pub gone: Vec<C>,
    /// Cells that are there now.
    pub come: Vec<C>,
}

/// A list that was checked, ready for its next version.
#[derive(Clone, Debug)]
pub struct CheckedList<C> {
    list: List<C>,
    /// Nodes of the list that are closed, with their level and what a branch is to say of them.
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

    /// Checks the next version of the list. The work is in proportion to the nodes that differ, and never more
    /// than the nodes that exist.
    ///
    /// After an error, what is known of the list is of no use any more.
    pub fn advance<O: Objects + ?Sized>(
        &mut self,
        objects: &O,
        list: List<C>,
    ) -> Result<Turnover<C>, BadList> {
        let mut turnover = Turnover { gone: Vec::new(), come: Vec::new() };
        if list == self.list {
            return Ok(turnover);
        }
        let mut walk = Walk {
            objects,
            closed: &self.closed,
            kept: HashSet::new(),
            opened: HashSet::new(),
            newly_closed: Vec::new(),
            come: Vec::new(),
        };
        if let Some(root) = list.root {
            walk.node(root, open_root(objects, &list, root)?, true)?;
        }
        let Walk { mut kept, newly_closed, come, .. } = walk;
        turnover.come = come;
        if let Some(root) = self.list.root {
            let node = open_root(objects, &self.list, root)?;
            self.leave(objects, root, node, &mut kept, &mut turnover.gone)?;
        }
        // A kept node that was not met lies below another one that was kept, so its cells are there twice.
        if !kept.is_empty() {
            return Err(BadList::Twice);
        }
        for cell in &turnover.gone {
            self.keys.remove(cell.key());
        }
        for cell in &turnover.come {
            if !self.keys.insert(*cell.key()) {
                return Err(BadList::Twice);
            }
        }
        self.closed.extend(newly_closed);
        self.list = list;
        Ok(turnover)
    }

    /// Forgets what is not kept of the version before. What is kept is crossed off.
    fn leave<O: Objects + ?Sized>(
        &mut self,
        objects: &O,
        id: ContentId,
        node: Node<C>,
        kept: &mut HashSet<ContentId>,
        gone: &mut Vec<C>,
    ) -> Result<(), BadList> {
        self.closed.remove(&id);
        match node {
            Node::Leaf(cells) => gone.extend(cells),
            Node::Branch(branch) => {
                for child in &branch.children {
                    if !kept.remove(&child.id) {
                        let below = open(objects, child, branch.level - 1)?;
                        self.leave(objects, child.id, below, kept, gone)?;
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
    come: Vec<C>,
}

impl<C: Cell, O: Objects + ?Sized> Walk<'_, C, O> {
    fn child(&mut self, child: &Child, level: u8, last: bool) -> Result<(), BadList> {
        match self.closed.get(&child.id) {
            Some(known) if *known != (level, *child) => Err(damaged::<C>(child.id).into()),
            Some(_) if self.kept.insert(child.id) => Ok(()),
            Some(_) => Err(BadList::Twice),
            None => {
                self.node(child.id, open(self.objects, child, level)?, last)?;
                if !last {
                    self.newly_closed.push((child.id, (level, *child)));
                }
                Ok(())
            }
        }
    }

    /// Checks an opened node and all below it; `last` says that no node of its level stands behind it.
    fn node(&mut self, id: ContentId, node: Node<C>, last: bool) -> Result<(), BadList> {
        // Before anything below is looked at: what refers to the same node again and again stops here.
        if !self.opened.insert(id) {
            return Err(BadList::Twice);
        }
        match node {
            Node::Leaf(cells) => {
                cut_right::<C, C>(id, &cells, last)?;
                self.come.extend(cells);
            }
            Node::Branch(branch) => {
                cut_right::<C, Child>(id, &branch.children, last)?;
                let end = branch.children.len() - 1;
                for (index, child) in branch.children.iter().enumerate() {
                    self.child(child, branch.level - 1, last && index == end)?;
                }
            }
        }
        Ok(())
    }
}

fn cut_right<C: Cell, T: Item<C>>(id: ContentId, items: &[T], last: bool) -> Result<(), BadList> {
    if is_one_chunk::<C, T>(items, last) { Ok(()) } else { Err(BadList::Cut(id)) }
}

#[cfg(test)]
mod tests;
