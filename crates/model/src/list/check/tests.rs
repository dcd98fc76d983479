//! Valid lists pass regardless of how they were built; forged boundaries and repeated nodes are refused.

use super::*;
use crate::content::{Kind, encode};
use crate::id::EntryId;
use crate::list::EntryCell;
use crate::list::node::Branch;
use crate::object::{Additions, MemoryObjects};

fn cell(number: u64) -> EntryCell {
    let mut key = [0; 16];
    // Not in ascending order: uniqueness must not depend on it.
    key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let version = ContentId::of(Kind::Entry, &number.to_be_bytes());
    EntryCell { entry: EntryId::from_bytes(key), version, files: None }
}

fn sorted(cells: impl IntoIterator<Item = EntryCell>) -> Vec<[u8; 16]> {
    let mut keys: Vec<[u8; 16]> = cells.into_iter().map(|cell| *cell.key()).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn every_version_of_a_valid_list_passes() {
    let base = MemoryObjects::default();
    let mut additions = Additions::new(&base);
    let mut checked = CheckedList::default();
    let mut list = List::from_cells(&mut additions, (0..500).map(cell));
    let mut next = 1000;
    for step in 0..300_u64 {
        checked.advance(&additions, list).expect("a valid list");
        let cells = list.page(&additions, 0..list.len()).expect("all nodes are stored");
        let mut keys: Vec<[u8; 16]> = checked.keys.iter().copied().collect();
        keys.sort_unstable();
        assert_eq!(keys, sorted(cells));
        let at = step.wrapping_mul(7919) % (list.len() + 1);
        let (range, count) = match step % 5 {
            0 => (list.len()..list.len(), 1),
            1 => (at..at + 1, 1),
            2 => (at..at + 40, 0),
            3 => (at..at, 35),
            _ => (list.len().saturating_sub(3)..list.len(), 0),
        };
        let cells = (next..next + count).map(cell).collect();
        next += count;
        list = list.splice(&mut additions, range, cells).expect("all nodes are stored");
    }
}

#[test]
fn only_differing_nodes_are_opened() {
    let base = MemoryObjects::default();
    let mut additions = Additions::new(&base);
    let mut checked = CheckedList::default();
    let list = List::from_cells(&mut additions, (0..20_000).map(cell));
    checked.advance(&additions, list).expect("a valid list");
    let longer =
        list.splice(&mut additions, 10_000..10_000, vec![cell(30_000)]).expect("all nodes are stored");
    let delta = checked.advance(&additions, longer).expect("a valid list");
    assert!(delta.added.len() < 300, "{}", delta.added.len());
    assert!(delta.removed.len() < 300, "{}", delta.removed.len());
}

/// Adds a branch over these nodes, as it would be stored.
fn branch(additions: &mut Additions<'_, MemoryObjects>, level: u8, children: Vec<Child>) -> Child {
    let node = Node::<EntryCell>::Branch(Branch { level, children });
    let id = additions.add_bytes(Kind::Entries, encode(&node));
    node.summary(id)
}

fn leaf(additions: &mut Additions<'_, MemoryObjects>, cells: Vec<EntryCell>) -> Child {
    let node = Node::Leaf(cells);
    let id = additions.add_bytes(Kind::Entries, encode(&node));
    node.summary(id)
}

#[test]
fn wrong_chunk_boundaries_are_refused() {
    let base = MemoryObjects::default();
    let mut additions = Additions::new(&base);
    let mut scratch = Vec::new();
    let cells: Vec<EntryCell> =
        (0..).map(cell).filter(|cell| !cell.ends_chunk(&mut scratch)).take(6).collect();
    let left = leaf(&mut additions, cells[..2].to_vec());
    let right = leaf(&mut additions, cells[2..].to_vec());
    let root = branch(&mut additions, 1, vec![left, right]);
    let refused = CheckedList::default().advance(&additions, List::<EntryCell>::rooted(root.id, root.count));
    assert!(matches!(refused, Err(InvalidListError::Cut(id)) if id == left.id), "{refused:?}");
}

#[test]
fn repeated_nodes_are_refused() {
    let base = MemoryObjects::default();
    let mut additions = Additions::new(&base);
    let mut scratch = Vec::new();
    let cells: Vec<EntryCell> =
        (0..).map(cell).filter(|cell| cell.ends_chunk(&mut scratch)).take(2).collect();
    let mut node = leaf(&mut additions, cells);
    for level in 1..=20 {
        node = branch(&mut additions, level, vec![node, node]);
    }
    let refused = CheckedList::default().advance(&additions, List::<EntryCell>::rooted(node.id, node.count));
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn retained_nodes_cannot_be_repeated_in_a_later_version() {
    let base = MemoryObjects::default();
    let mut additions = Additions::new(&base);
    let cells: Vec<EntryCell> = (0..2000).map(cell).collect();
    let list = List::from_cells(&mut additions, cells.clone());
    for repeated in [0, 1, 700, 1500] {
        let mut checked = CheckedList::default();
        checked.advance(&additions, list).expect("a valid list");
        // Canonical in every way, but a long run of cells occurs twice.
        let twice = cells.iter().chain(&cells[repeated..repeated + 400]).copied();
        let twice = List::from_cells(&mut additions, twice);
        let refused = checked.advance(&additions, twice);
        assert!(matches!(refused, Err(InvalidListError::Duplicate)), "{refused:?}");
    }
}
