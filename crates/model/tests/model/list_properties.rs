//! Lists behave like vectors, and equal cells have the same root regardless of the edits that led to them.

use minicbor::{Decode, Encode};
use proptest::collection::vec;
use proptest::prelude::*;
use retake_model::content::Kind;
use retake_model::list::{Cell, Hunk, List};
use retake_model::object::{Additions, MemoryObjects};

/// A small cell with a small average, so that few cells already make a tall list.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
struct Number {
    #[cbor(n(0), with = "minicbor::bytes")]
    key: [u8; 16],
    #[n(1)]
    version: u8,
}

impl Cell for Number {
    const KIND: Kind = Kind::Entries;
    const AVERAGE: u64 = 4;

    fn key(&self) -> &[u8; 16] {
        &self.key
    }
}

fn number(value: u16, version: u8) -> Number {
    let mut key = [0; 16];
    key[6..8].copy_from_slice(&value.to_be_bytes());
    // Keys that differ only after the prefix used for spans.
    key[15] = version % 3;
    Number { key, version }
}

fn numbers(most: usize) -> impl Strategy<Value = Vec<Number>> {
    vec((any::<u16>(), 0u8..6).prop_map(|(value, version)| number(value, version)), 0..most)
}

/// A splice for a list of any length: start and removed length, both as fractions.
#[derive(Clone, Debug)]
struct Change {
    start: f64,
    removed: f64,
    cells: Vec<Number>,
}

fn change() -> impl Strategy<Value = Change> {
    let share = prop_oneof![Just(0.0), Just(1.0), 0.0..1.0];
    let removed = prop_oneof![4 => Just(0.0), 4 => 0.0..0.05, 2 => 0.0..1.0, 1 => Just(1.0)];
    let cells = prop_oneof![numbers(3), numbers(3), numbers(60)];
    (share, removed, cells).prop_map(|(start, removed, cells)| Change { start, removed, cells })
}

/// Applies the change to both and returns the resulting list.
fn make(
    additions: &mut Additions<'_, MemoryObjects>,
    list: &List<Number>,
    expected: &mut Vec<Number>,
    change: &Change,
) -> List<Number> {
    let start = (change.start * expected.len() as f64) as usize;
    let end = start + (change.removed * (expected.len() - start) as f64).ceil() as usize;
    expected.splice(start..end, change.cells.iter().cloned());
    list.splice(additions, start as u64..end as u64, change.cells.clone()).expect("all nodes are stored")
}

fn apply(old: &[Number], hunks: &[Hunk<Number>]) -> Vec<Number> {
    let mut new = Vec::new();
    let mut position = 0;
    for hunk in hunks {
        let start = hunk.old_start as usize;
        new.extend_from_slice(&old[position..start]);
        assert_eq!(new.len() as u64, hunk.new_start);
        position = start + hunk.removed.len();
        assert_eq!(&old[start..position], &hunk.removed[..]);
        new.extend_from_slice(&hunk.added);
    }
    new.extend_from_slice(&old[position..]);
    new
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn equal_cells_have_the_same_root_regardless_of_edits(first in numbers(400), changes in vec(change(), 1..12)) {
        let base = MemoryObjects::default();
        let mut additions = Additions::new(&base);
        let mut list = List::from_cells(&mut additions, first.clone());
        let mut expected = first;
        for change in changes {
            list = make(&mut additions, &list, &mut expected, &change);
            let direct = List::from_cells(&mut additions, expected.clone());
            prop_assert_eq!(list, direct);
            prop_assert_eq!(list.len(), expected.len() as u64);
            prop_assert_eq!(&list.page(&additions, 0..list.len()).expect("all nodes are stored"), &expected);
        }
    }

    #[test]
    fn reading_agrees_with_a_vector(cells in numbers(400), a in 0u64..450, b in 0u64..450) {
        let base = MemoryObjects::default();
        let mut additions = Additions::new(&base);
        let list = List::from_cells(&mut additions, cells.clone());
        let (low, high) = (a.min(b), a.max(b));
        let clamped = |position: u64| cells.len().min(position as usize);

        let page = list.page(&additions, low..high).expect("all nodes are stored");
        prop_assert_eq!(&page[..], &cells[clamped(low)..clamped(high)]);
        let got = list.get(&additions, a).expect("all nodes are stored");
        prop_assert_eq!(got.as_ref(), cells.get(a as usize));
        let forward: Result<Vec<_>, _> = list.iter(&additions, a).collect();
        prop_assert_eq!(&forward.expect("all nodes are stored")[..], &cells[clamped(a)..]);
        let backward: Result<Vec<_>, _> = list.iter_back(&additions, a).collect();
        let mut backward = backward.expect("all nodes are stored");
        backward.reverse();
        prop_assert_eq!(&backward[..], &cells[..clamped(a)]);
    }

    #[test]
    fn find_is_correct_in_any_order(cells in numbers(300), absent in any::<u16>()) {
        let base = MemoryObjects::default();
        let mut additions = Additions::new(&base);
        let list = List::from_cells(&mut additions, cells.clone());
        for key in cells.iter().map(Cell::key).chain([number(absent, 1).key()]) {
            match list.find(&additions, key).expect("all nodes are stored") {
                Some((position, cell)) => {
                    prop_assert_eq!(cell.key(), key);
                    prop_assert_eq!(Some(&cell), cells.get(position as usize));
                }
                None => prop_assert!(!cells.iter().any(|cell| cell.key() == key)),
            }
        }
    }

    #[test]
    fn a_diff_leads_from_old_to_new(first in numbers(400), changes in vec(change(), 0..6)) {
        let base = MemoryObjects::default();
        let mut additions = Additions::new(&base);
        let old = List::from_cells(&mut additions, first.clone());
        let mut new = old;
        let mut expected = first.clone();
        for change in changes {
            new = make(&mut additions, &new, &mut expected, &change);
        }
        for (from, from_cells, to, to_cells) in
            [(&old, &first, &new, &expected), (&new, &expected, &old, &first)]
        {
            let hunks = List::diff(&additions, from, to).expect("all nodes are stored");
            prop_assert_eq!(&apply(from_cells, &hunks), to_cells);
            for hunk in &hunks {
                prop_assert!(!hunk.removed.is_empty() || !hunk.added.is_empty());
            }
            for pair in hunks.windows(2) {
                prop_assert!(pair[0].old_start + (pair[0].removed.len() as u64) < pair[1].old_start);
            }
        }
    }
}
