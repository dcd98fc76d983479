//! The basic edit: replaces a range of cells by other cells.
//!
//! Two paths lead to the leaves where the range starts and ends. The remaining cells of those leaves and the
//! new cells between them are split into chunks again. Old leaves after the range are added one by one until
//! a new boundary matches an old one; from there on nothing changes. The replaced nodes are a range of the
//! level above, so the same edit applies there, up to the root.
//!
//! ```text
//!   level 1     [ a   b   c   d ]   [ e   f   g ]         b, c and d are replaced by x and y, and so on up
//!                     │       │
//!   level 0        [···│]  [···│]  [····│]  [··│]
//!                     └─ range ─┘      ▲
//!                   left      right    └ added if the rest of `d` does not end a chunk
//! ```

use std::ops::Range;

use super::List;
use super::cell::Cell;
use super::chunk::{Chunker, Item, build_levels};
use super::node::{Child, Node, damaged, open};
use super::path::NodePath;
use crate::content::ContentId;
use crate::object::{Additions, ObjectError, Objects};

impl<C: Cell> List<C> {
    /// Replaces a range by these cells: covers append, insert, edit, delete and truncate.
    ///
    /// A range beyond the end is clipped to the list.
    pub fn splice<O: Objects + ?Sized>(
        &self,
        additions: &mut Additions<'_, O>,
        range: Range<u64>,
        cells: Vec<C>,
    ) -> Result<Self, ObjectError> {
        let start = range.start.min(self.count);
        let end = range.end.clamp(start, self.count);
        if start == end && cells.is_empty() {
            return Ok(*self);
        }
        if start == 0 && end == self.count {
            return Ok(Self::from_cells(additions, cells));
        }
        let Some((left, mut items, kept)) = NodePath::to(additions, self, start)? else {
            return Ok(*self);
        };
        let (right, rest) = match usize::try_from(end - start) {
            Ok(removed) if removed <= items.len() - kept => (left.clone(), items.split_off(kept + removed)),
            // Uses the last cell of the range, not the one after it, to avoid opening one leaf more.
            _ => match NodePath::to(additions, self, end - 1)? {
                Some((right, mut cells, last)) => (right, cells.split_off(last + 1)),
                None => return Ok(*self),
            },
        };
        let count = self.count - (end - start) + cells.len() as u64;
        items.truncate(kept);
        items.extend(cells);
        items.extend(rest);
        let root = Replacement { additions, left, right }.propagate(items)?;
        Ok(root.map_or_else(Self::empty, |root| Self::rooted(root, count)))
    }
}

/// A run of replaced nodes of one level, from the node at `left` to the node at `right`.
struct Replacement<'a, 'base, O: Objects + ?Sized> {
    additions: &'a mut Additions<'base, O>,
    left: NodePath,
    right: NodePath,
}

impl<O: Objects + ?Sized> Replacement<'_, '_, O> {
    /// Replaces the leaves, then their parents, up to the root, and returns the new root.
    fn propagate<C: Cell>(mut self, cells: Vec<C>) -> Result<Option<ContentId>, ObjectError> {
        let mut level = 0;
        let mut nodes = self.rechunk(level, cells)?;
        while let (Some(left), Some(right)) = (self.left.up(), self.right.up()) {
            level = left.level;
            let mut children = left.children;
            children.truncate(left.taken);
            children.append(&mut nodes);
            children.extend_from_slice(&right.children[right.taken + 1..]);
            if children.len() == 1 && self.left.is_first() && self.right.is_last() {
                return self.lowest_root::<C>(level - 1, children[0]).map(Some);
            }
            nodes = self.rechunk::<C, Child>(level, children)?;
        }
        Ok(build_levels::<C, O>(self.additions, level, nodes))
    }

    /// Splits these items into nodes, then the following nodes until old and new boundaries match.
    fn rechunk<C: Cell, T: Item<C>>(&mut self, level: u8, items: Vec<T>) -> Result<Vec<Child>, ObjectError> {
        let mut chunker = Chunker::new(level);
        chunker.mark_stored(self.left.id());
        chunker.mark_stored(self.right.id());
        let mut items = items;
        loop {
            for item in items {
                chunker.push(self.additions, item);
            }
            if chunker.is_between_chunks() {
                break;
            }
            let Some(next) = self.right.forward(self.additions)? else {
                break;
            };
            chunker.mark_stored(self.right.id());
            items = T::of_node(next).ok_or_else(|| damaged::<C>(self.right.id()))?;
        }
        Ok(chunker.finish(self.additions))
    }

    /// One node remains at this level: the root is this node, or the first node below it with more than one
    /// child.
    fn lowest_root<C: Cell>(&self, mut level: u8, mut only: Child) -> Result<ContentId, ObjectError> {
        loop {
            match open::<C>(self.additions, &only, level)? {
                Node::Branch(branch) if branch.children.len() == 1 => {
                    only = branch.children[0];
                    level = branch.level - 1;
                }
                _ => return Ok(only.id),
            }
        }
    }
}
