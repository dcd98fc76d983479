//! Reads by position, by key, and in order from any position in either direction.

use std::ops::Range;

use super::List;
use super::cell::Cell;
use super::node::{Node, key_start, open, open_root};
use super::path::NodePath;
use crate::object::{ObjectError, Objects};

impl<C: Cell> List<C> {
    /// The cell at that position; `None` beyond the end.
    pub fn get<O: Objects + ?Sized>(&self, objects: &O, position: u64) -> Result<Option<C>, ObjectError> {
        self.iter(objects, position).next().transpose()
    }

    /// The cells in that range, clipped to the list.
    pub fn page<O: Objects + ?Sized>(&self, objects: &O, range: Range<u64>) -> Result<Vec<C>, ObjectError> {
        let wanted = range.end.saturating_sub(range.start);
        self.iter(objects, range.start).take(usize::try_from(wanted).unwrap_or(usize::MAX)).collect()
    }

    /// The cells from `start` forward; nodes are read on demand.
    pub fn iter<'objects, O: Objects + ?Sized>(
        &self,
        objects: &'objects O,
        start: u64,
    ) -> Forward<'objects, C, O> {
        Forward { objects, state: IterState::starting(*self, start, start < self.count) }
    }

    /// The cells before `end`, backward; nodes are read on demand.
    pub fn iter_back<'objects, O: Objects + ?Sized>(
        &self,
        objects: &'objects O,
        end: u64,
    ) -> Backward<'objects, C, O> {
        let end = end.min(self.count);
        Backward { objects, state: IterState::starting(*self, end.saturating_sub(1), end > 0) }
    }

    /// The cell with that key, and its position. If several match, any of them.
    pub fn find<O: Objects + ?Sized>(
        &self,
        objects: &O,
        key: &[u8; 16],
    ) -> Result<Option<(u64, C)>, ObjectError> {
        match self.root {
            Some(root) => find_below(objects, open_root(objects, self, root)?, key, 0),
            None => Ok(None),
        }
    }
}

fn find_below<C: Cell, O: Objects + ?Sized>(
    objects: &O,
    node: Node<C>,
    key: &[u8; 16],
    start: u64,
) -> Result<Option<(u64, C)>, ObjectError> {
    match node {
        Node::Leaf(cells) => Ok((start..).zip(cells).find(|(_, cell)| cell.key() == key)),
        Node::Branch(branch) => {
            let mut start = start;
            let mut candidates = Vec::new();
            for child in &branch.children {
                if (child.low..=child.high).contains(&key_start(key)) {
                    candidates.push((child, start));
                }
                start += child.count;
            }
            // A cell inserted late among older ones widens the spans of all nodes above it. The narrowest
            // span is the most likely match.
            candidates.sort_by_key(|(child, _)| child.high - child.low);
            for (child, start) in candidates {
                let below = open(objects, child, branch.level - 1)?;
                if let Some(found) = find_below(objects, below, key, start)? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        }
    }
}

/// Iterator over the cells in order. It ends after an error.
pub struct Forward<'objects, C, O: ?Sized> {
    objects: &'objects O,
    state: IterState<C>,
}

/// Iterator over the cells in reverse order. It ends after an error.
pub struct Backward<'objects, C, O: ?Sized> {
    objects: &'objects O,
    state: IterState<C>,
}

enum IterState<C> {
    /// Nothing is read yet; the first cell to return is at this position.
    Start(List<C>, u64),
    /// In a leaf, with the cells that remain.
    Within(NodePath, std::vec::IntoIter<C>),
    End,
}

impl<C: Cell> IterState<C> {
    fn starting(list: List<C>, position: u64, exists: bool) -> Self {
        if exists { Self::Start(list, position) } else { Self::End }
    }

    /// The next cell. `open` finds the first leaf and its remaining cells, `turn` the next leaf, and `take`
    /// the next cell of a leaf.
    fn advance(
        &mut self,
        open: impl Fn(&List<C>, u64) -> Result<Option<(NodePath, Vec<C>)>, ObjectError>,
        turn: impl Fn(&mut NodePath) -> Result<Option<Node<C>>, ObjectError>,
        take: impl Fn(&mut std::vec::IntoIter<C>) -> Option<C>,
    ) -> Option<Result<C, ObjectError>> {
        loop {
            let (mut path, mut cells) = match std::mem::replace(self, Self::End) {
                Self::End => return None,
                Self::Start(list, position) => match open(&list, position) {
                    Ok(found) => found.map(|(path, cells)| (path, cells.into_iter()))?,
                    Err(unavailable) => return Some(Err(unavailable)),
                },
                Self::Within(path, cells) => (path, cells),
            };
            if let Some(cell) = take(&mut cells) {
                *self = Self::Within(path, cells);
                return Some(Ok(cell));
            }
            match turn(&mut path) {
                Ok(Some(Node::Leaf(cells))) => *self = Self::Within(path, cells.into_iter()),
                Ok(_) => return None,
                Err(unavailable) => return Some(Err(unavailable)),
            }
        }
    }
}

impl<C: Cell, O: Objects + ?Sized> Iterator for Forward<'_, C, O> {
    type Item = Result<C, ObjectError>;

    fn next(&mut self) -> Option<Self::Item> {
        let objects = self.objects;
        self.state.advance(
            |list, position| {
                let found = NodePath::to(objects, list, position)?;
                Ok(found.map(|(path, mut cells, offset)| (path, cells.split_off(offset))))
            },
            |path| path.forward(objects),
            Iterator::next,
        )
    }
}

impl<C: Cell, O: Objects + ?Sized> Iterator for Backward<'_, C, O> {
    type Item = Result<C, ObjectError>;

    fn next(&mut self) -> Option<Self::Item> {
        let objects = self.objects;
        self.state.advance(
            |list, position| {
                let found = NodePath::to(objects, list, position)?;
                Ok(found.map(|(path, mut cells, offset)| {
                    cells.truncate(offset + 1);
                    (path, cells)
                }))
            },
            |path| path.backward(objects),
            DoubleEndedIterator::next_back,
        )
    }
}
