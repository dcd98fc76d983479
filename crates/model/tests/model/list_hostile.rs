//! Invalid nodes cause an error, never a panic or an endless loop.

use std::cell::Cell as Counter;
use std::collections::HashSet;
use std::sync::Arc;

use minicbor::Encoder;
use proptest::prelude::*;
use retake_model::content::{ContentId, Kind};
use retake_model::id::TakeId;
use retake_model::list::{Cell, List, MAX_CELLS, TakeCell, parse_node};
use retake_model::object::{Additions, MemoryObjects, NewObject, ObjectError, Objects};

fn take(number: u64) -> TakeCell {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_be_bytes());
    TakeCell { take: TakeId::from_bytes(id), content: ContentId::from_bytes([number as u8; 32]) }
}

fn list_of(count: u64) -> (Vec<NewObject>, List<TakeCell>) {
    let nothing = MemoryObjects::default();
    let mut additions = Additions::new(&nothing);
    let list = List::from_cells(&mut additions, (0..count).map(take));
    (additions.into_new(), list)
}

/// Calls every function of a list; returns whether any of them found a damaged node.
fn use_everything(objects: &impl Objects, list: &List<TakeCell>, other: &List<TakeCell>) -> bool {
    let mut additions = Additions::new(objects);
    let middle = list.len() / 2;
    let results = [
        list.get(objects, middle).err(),
        list.page(objects, 0..1000).err(),
        list.iter(objects, middle).take(1000).find_map(Result::err),
        list.iter_back(objects, middle).take(1000).find_map(Result::err),
        list.find(objects, take(middle).key()).err(),
        list.splice(&mut additions, middle..middle + 1, vec![take(7)]).err(),
        list.splice(&mut additions, 3..middle, vec![]).err(),
        list.splice(&mut additions, 0..list.len() - 1, vec![]).err(),
        list.splice(&mut additions, list.len()..list.len(), vec![take(7)]).err(),
        List::diff(objects, list, other).err(),
        List::diff(objects, other, list).err(),
        list.visit_nodes(objects, &mut |_| true, &mut |_| ()).err(),
    ];
    results.iter().flatten().any(|error| matches!(error, ObjectError::Damaged { .. }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_never_panic(
        node in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let (mut objects, list) = list_of(120);
        let (others, other) = list_of(90);
        let node = node.index(objects.len());
        let mut bytes = objects[node].bytes.to_vec();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = parse_node::<TakeCell>(&bytes);
        objects[node].bytes = bytes.into();
        let mut memory = MemoryObjects::default();
        memory.insert_all(others);
        memory.insert_all(objects);
        use_everything(&memory, &list, &other);
    }

    #[test]
    fn arbitrary_bytes_are_not_a_node(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_node::<TakeCell>(&bytes);
    }
}

/// Returns the same bytes for every request, unlike any valid store. Fails after many reads, so that an
/// endless loop fails the test instead of hanging it.
struct Same(Arc<[u8]>, Counter<usize>);

impl Objects for Same {
    fn bytes(&self, _: Kind, _: ContentId) -> Result<Arc<[u8]>, ObjectError> {
        self.1.set(self.1.get() + 1);
        assert!(self.1.get() < 10_000, "reads without end");
        Ok(Arc::clone(&self.0))
    }
}

#[test]
fn self_referencing_node_is_damaged() {
    let (objects, list) = list_of(200);
    let root = objects.iter().find(|object| Some(object.id) == list.root()).expect("the root was added");
    let same = Same(Arc::clone(&root.bytes), Counter::new(0));
    assert!(use_everything(&same, &list, &List::empty()));
}

/// The summary of a child: content id, count, smallest and largest key prefix.
type Claim = (ContentId, u64, u64, u64);

/// Encodes a branch with these children.
fn branch(level: u8, children: &[Claim]) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new());
    let into_memory = "encoding into memory cannot fail";
    encoder.array(2).expect(into_memory).u8(level).expect(into_memory);
    encoder.array(children.len() as u64).expect(into_memory);
    for (id, count, low, high) in children {
        encoder.array(4).expect(into_memory).bytes(id.bytes()).expect(into_memory);
        encoder.u64(*count).expect(into_memory).u64(*low).expect(into_memory).u64(*high).expect(into_memory);
    }
    encoder.into_writer()
}

/// A list with that root and count, as an imported state may claim it.
fn claimed(root: ContentId, count: u64) -> List<TakeCell> {
    let mut encoder = Encoder::new(Vec::new());
    let into_memory = "encoding into memory cannot fail";
    encoder
        .array(2)
        .expect(into_memory)
        .bytes(root.bytes())
        .expect(into_memory)
        .u64(count)
        .expect(into_memory);
    minicbor::decode(&encoder.into_writer()).expect("a well-formed list")
}

#[test]
fn nodes_that_contradict_each_other_are_damaged() {
    let nothing = MemoryObjects::default();
    let mut additions = Additions::new(&nothing);
    let leaf = List::from_cells(&mut additions, [take(1)]);
    let leaf_id = leaf.root().expect("one cell has a leaf");
    let good = (leaf_id, 1, 1, 1);
    let table: &[(&str, u8, &[Claim], u64)] = &[
        ("no children", 1, &[], 1),
        ("one child only", 1, &[good], 1),
        ("a child that claims more", 1, &[(leaf_id, 2, 1, 1), good], 3),
        ("a child that claims nothing", 1, &[(leaf_id, 0, 1, 1), good], 1),
        ("a sum beyond all numbers", 1, &[(leaf_id, u64::MAX, 1, 1), (leaf_id, u64::MAX, 1, 1)], 5),
        ("a span that leaves a key out", 1, &[(leaf_id, 1, 2, 3), good], 2),
        ("a span that is too wide", 1, &[(leaf_id, 1, 0, 9), good], 2),
        ("levels that skip one", 2, &[good, good], 2),
        ("a level beyond all lists", 255, &[good, good], 2),
        ("a list that claims more", 1, &[good, good], 3),
    ];
    for (what, level, children, count) in table {
        let root = additions.add_bytes(Kind::Takes, branch(*level, children));
        assert!(use_everything(&additions, &claimed(root, *count), &leaf), "{what}");
    }
    let root = additions.add_bytes(Kind::Takes, branch(1, &[good, good]));
    assert!(!use_everything(&additions, &claimed(root, 2), &leaf), "what is true is accepted");
}

/// A list of one cell doubled this many times, with one node per doubling.
fn doubled(additions: &mut Additions<'_, MemoryObjects>, doublings: u8) -> List<TakeCell> {
    let mut id = List::from_cells(additions, [take(1)]).root().expect("one cell has a leaf");
    let mut count = 1;
    for level in 1..=doublings {
        id = additions.add_bytes(Kind::Takes, branch(level, &[(id, count, 1, 1), (id, count, 1, 1)]));
        count *= 2;
    }
    claimed(id, count)
}

#[test]
fn a_few_nodes_can_claim_a_long_list() {
    let nothing = MemoryObjects::default();
    let mut additions = Additions::new(&nothing);
    let list = doubled(&mut additions, 24);
    assert_eq!(list.len(), MAX_CELLS);
    assert_eq!(list.get(&additions, MAX_CELLS - 1).expect("all nodes are stored"), Some(take(1)));
    let mut seen = HashSet::new();
    list.visit_nodes(&additions, &mut |id| seen.insert(id), &mut |_| ()).expect("all nodes are stored");
    assert_eq!(seen.len(), 25);

    let (id, half) = (list.root().expect("not empty"), MAX_CELLS);
    let root = additions.add_bytes(Kind::Takes, branch(25, &[(id, half, 1, 1), (id, half, 1, 1)]));
    assert!(claimed(root, MAX_CELLS).get(&additions, 0).is_err(), "more than a list can have");
}

#[test]
fn chunks_that_never_realign_only_cost_time() {
    let nothing = MemoryObjects::default();
    let mut additions = Additions::new(&nothing);
    let list = doubled(&mut additions, 12);
    let changed = list.splice(&mut additions, 5..6, vec![take(2)]).expect("all nodes are stored");
    let mut expected = vec![take(1); 1 << 12];
    expected[5] = take(2);
    assert_eq!(changed.page(&additions, 0..changed.len()).expect("all nodes are stored"), expected);
}
