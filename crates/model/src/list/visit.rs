//! Visits all nodes of a list, for garbage collection, verification and export.

use super::List;
use super::cell::Cell;
use super::node::{Node, open, open_root};
use crate::content::ContentId;
use crate::object::{ObjectError, Objects};

impl<C: Cell> List<C> {
    /// Visits every node, from the root down and from left to right, and the cells of the leaves.
    ///
    /// Before a node is opened, `descend` receives its content id. If it returns false, for example because
    /// another list contained that node, the node and everything below it are skipped.
    pub fn visit_nodes<O: Objects + ?Sized>(
        &self,
        objects: &O,
        descend: &mut impl FnMut(ContentId) -> bool,
        cell: &mut impl FnMut(&C),
    ) -> Result<(), ObjectError> {
        match self.root {
            Some(root) if descend(root) => visit(objects, &open_root(objects, self, root)?, descend, cell),
            _ => Ok(()),
        }
    }
}

fn visit<C: Cell, O: Objects + ?Sized>(
    objects: &O,
    node: &Node<C>,
    descend: &mut impl FnMut(ContentId) -> bool,
    cell: &mut impl FnMut(&C),
) -> Result<(), ObjectError> {
    match node {
        Node::Leaf(cells) => cells.iter().for_each(cell),
        Node::Branch(branch) => {
            for child in &branch.children {
                if descend(child.id) {
                    visit(objects, &open(objects, child, branch.level - 1)?, descend, cell)?;
                }
            }
        }
    }
    Ok(())
}
