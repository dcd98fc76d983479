//! Chunk boundaries, and the conversion of a stream of items into nodes.
//!
//! One rule splits every level, from left to right, and depends only on the items since the last boundary.
//! Once two streams have a boundary at the same item, they have the same boundaries from there on.

use std::collections::HashSet;

use minicbor::Encode;

use super::cell::Cell;
use super::node::{Branch, Child, Node};
use crate::boundary::{self, MIN_ITEMS, hash_ends_chunk};
use crate::content::{ContentId, encode};
use crate::object::{Additions, Objects};

/// An item of a node: a cell in a leaf, a child in a branch.
pub(super) trait Item<C: Cell>: Clone + PartialEq + Encode<()> {
    /// Whether a chunk ends after this item. The scratch buffer avoids an allocation per item.
    fn ends_chunk(&self, scratch: &mut Vec<u8>) -> bool;
    /// Number of cells that this item represents.
    fn count(&self) -> u64;
    fn into_node(level: u8, items: Vec<Self>) -> Node<C>;
    /// The items of a node, if it contains items of this type.
    fn of_node(node: Node<C>) -> Option<Vec<Self>>;
}

pub(super) const fn max_items<C: Cell>() -> usize {
    boundary::max_items(C::AVERAGE)
}

impl<C: Cell> Item<C> for C {
    fn ends_chunk(&self, scratch: &mut Vec<u8>) -> bool {
        scratch.clear();
        minicbor::encode(self, &mut *scratch).expect("encoding into memory cannot fail");
        hash_ends_chunk(blake3::hash(scratch).as_bytes(), C::AVERAGE)
    }

    fn count(&self) -> u64 {
        1
    }

    fn into_node(_level: u8, items: Vec<Self>) -> Node<C> {
        Node::Leaf(items)
    }

    fn of_node(node: Node<C>) -> Option<Vec<Self>> {
        match node {
            Node::Leaf(cells) => Some(cells),
            Node::Branch(_) => None,
        }
    }
}

impl<C: Cell> Item<C> for Child {
    /// The content id of a node is already a hash.
    fn ends_chunk(&self, _scratch: &mut Vec<u8>) -> bool {
        hash_ends_chunk(self.id.bytes(), C::AVERAGE)
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn into_node(level: u8, items: Vec<Self>) -> Node<C> {
        Node::Branch(Branch { level, children: items })
    }

    fn of_node(node: Node<C>) -> Option<Vec<Self>> {
        match node {
            Node::Leaf(_) => None,
            Node::Branch(branch) => Some(branch.children),
        }
    }
}

/// Whether these items form exactly one chunk: no boundary between them, and one after the last, unless that
/// is the last item of the level, where the end of the list may cut the chunk short.
pub(super) fn is_one_chunk<C: Cell, T: Item<C>>(items: &[T], last: bool) -> bool {
    let mut scratch = Vec::new();
    boundary::is_one_chunk(items, last, C::AVERAGE, |item| item.ends_chunk(&mut scratch))
}

/// Splits the items of one level into nodes.
pub(super) struct Chunker<T> {
    level: u8,
    open: Vec<T>,
    nodes: Vec<Child>,
    stored: HashSet<ContentId>,
    scratch: Vec<u8>,
}

impl<T> Chunker<T> {
    pub(super) fn new(level: u8) -> Self {
        Self { level, open: Vec::new(), nodes: Vec::new(), stored: HashSet::new(), scratch: Vec::new() }
    }

    /// Marks a node as stored, so that it is not added again.
    pub(super) fn mark_stored(&mut self, id: ContentId) {
        self.stored.insert(id);
    }

    pub(super) fn is_between_chunks(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn push<C, O>(&mut self, additions: &mut Additions<'_, O>, item: T)
    where
        C: Cell,
        T: Item<C>,
        O: Objects + ?Sized,
    {
        let items = self.open.len() + 1;
        let ends = items >= max_items::<C>() || (items >= MIN_ITEMS && item.ends_chunk(&mut self.scratch));
        self.open.push(item);
        if ends {
            self.close(additions);
        }
    }

    /// Returns the nodes of all items. The end of the list may cut the last one short.
    pub(super) fn finish<C, O>(mut self, additions: &mut Additions<'_, O>) -> Vec<Child>
    where
        C: Cell,
        T: Item<C>,
        O: Objects + ?Sized,
    {
        if !self.open.is_empty() {
            self.close(additions);
        }
        self.nodes
    }

    fn close<C, O>(&mut self, additions: &mut Additions<'_, O>)
    where
        C: Cell,
        T: Item<C>,
        O: Objects + ?Sized,
    {
        let node = T::into_node(self.level, std::mem::take(&mut self.open));
        let bytes = encode(&node);
        let known = |id: &ContentId| self.stored.contains(id);
        // A list built from scratch has no stored nodes, so hashing each node twice would be wasted.
        let named = (!self.stored.is_empty()).then(|| ContentId::of(C::KIND, &bytes)).filter(known);
        let id = named.unwrap_or_else(|| additions.add_bytes(C::KIND, bytes));
        self.nodes.push(node.summary(id));
    }
}

/// Adds levels on top of these nodes until one remains: the root. `None` if there are no nodes.
pub(super) fn build_levels<C: Cell, O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    mut level: u8,
    mut nodes: Vec<Child>,
) -> Option<ContentId> {
    while nodes.len() > 1 {
        level += 1;
        let mut chunker = Chunker::new(level);
        for node in nodes {
            chunker.push::<C, O>(additions, node);
        }
        nodes = chunker.finish::<C, O>(additions);
    }
    nodes.first().map(|node| node.id)
}

#[cfg(test)]
mod tests {
    use super::super::cell::TakeCell;
    use super::super::{List, NodeContents, parse_node};
    use super::*;
    use crate::id::TakeId;
    use crate::object::MemoryObjects;

    /// Cells selected as an attacker would: all of them end a chunk, or none does.
    fn select_cells(ends: impl Fn(bool) -> bool, count: usize) -> Vec<TakeCell> {
        let mut scratch = Vec::new();
        (0u128..)
            .map(|number| TakeCell {
                take: TakeId::from_bytes(number.to_be_bytes()),
                content: ContentId::from_bytes([1; 32]),
            })
            .filter(|cell| ends(cell.ends_chunk(&mut scratch)))
            .take(count)
            .collect()
    }

    /// Number of nodes, and number of cells of each leaf.
    fn leaf_sizes(cells: Vec<TakeCell>) -> (usize, Vec<usize>) {
        let base = MemoryObjects::default();
        let mut additions = Additions::new(&base);
        List::from_cells(&mut additions, cells);
        let nodes = additions.into_new();
        let sizes = nodes
            .iter()
            .filter_map(|node| match parse_node::<TakeCell>(&node.bytes).expect("just written") {
                NodeContents::Cells(cells) => Some(cells.len()),
                NodeContents::Nodes(_) => None,
            })
            .collect();
        (nodes.len(), sizes)
    }

    #[test]
    fn cells_that_never_end_a_chunk_are_split_at_the_limit() {
        let (_, sizes) = leaf_sizes(select_cells(|ends| !ends, 1000));
        assert_eq!(sizes.iter().sum::<usize>(), 1000);
        assert!(sizes.iter().all(|size| *size <= max_items::<TakeCell>()));
        assert_eq!(sizes.len(), 1000usize.div_ceil(max_items::<TakeCell>()));
    }

    #[test]
    fn cells_that_always_end_a_chunk_still_share_leaves() {
        let (nodes, sizes) = leaf_sizes(select_cells(|ends| ends, 1000));
        assert!(sizes.iter().all(|size| *size == MIN_ITEMS));
        assert!(nodes < 1000);
    }

    #[test]
    fn edits_of_adversarial_cells_stay_canonical() {
        for keep in [true, false] {
            let mut cells = select_cells(|ends| ends == keep, 600);
            let base = MemoryObjects::default();
            let mut additions = Additions::new(&base);
            let mut list = List::from_cells(&mut additions, cells.clone());
            for position in [0, 1, 300, 31, 590] {
                cells.remove(position);
                let at = position as u64;
                list = list.splice(&mut additions, at..at + 1, Vec::new()).expect("all nodes are stored");
                assert_eq!(list, List::from_cells(&mut additions, cells.clone()));
            }
        }
    }

    #[test]
    fn node_with_two_chunks_is_refused() {
        let cells = select_cells(|ends| ends, 4);
        let bytes = encode(&Node::Leaf(cells.clone()));
        assert!(parse_node::<TakeCell>(&bytes).is_err());
        let bytes = encode(&Node::Leaf(cells[..2].to_vec()));
        assert!(parse_node::<TakeCell>(&bytes).is_ok());
    }
}
