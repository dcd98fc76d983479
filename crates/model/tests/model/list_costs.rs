//! Costs of changes, forks and comparisons of a long list.

use std::cell::Cell as Counter;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use retake_model::content::{ContentId, Kind};
use retake_model::id::EntryId;
use retake_model::list::{Cell, EntryCell, List, NodeContents, parse_node};
use retake_model::object::{Additions, MemoryObjects, ObjectError, Objects};

const ENTRIES: u64 = 100_000;
/// With an average of eight, 100,000 cells need six levels, sometimes seven.
const LEVELS: usize = 7;

/// Entries one or two seconds apart, every third with file changes.
fn entry(number: u64, version: u64) -> EntryCell {
    let random = *blake3::hash(&number.to_be_bytes()).as_bytes();
    let content = *blake3::hash(&[number.to_be_bytes(), version.to_be_bytes()].concat()).as_bytes();
    let mut id = [0; 16];
    id[..6].copy_from_slice(&(1_700_000_000_000 + number * 1700).to_be_bytes()[2..]);
    id[6..].copy_from_slice(&random[..10]);
    EntryCell {
        entry: EntryId::from_bytes(id),
        version: ContentId::from_bytes(content),
        files: number.is_multiple_of(3).then(|| ContentId::from_bytes(content)),
    }
}

/// A long list, built once for all tests.
static LONG: LazyLock<(MemoryObjects, List<EntryCell>)> = LazyLock::new(|| {
    let mut memory = MemoryObjects::default();
    let nothing = MemoryObjects::default();
    let mut additions = Additions::new(&nothing);
    let list = List::from_cells(&mut additions, (0..ENTRIES).map(|number| entry(number, 0)));
    memory.insert_all(additions.into_new());
    (memory, list)
});

/// Counts node reads.
struct CountingReads<'a> {
    objects: &'a MemoryObjects,
    reads: Counter<usize>,
}

impl<'a> CountingReads<'a> {
    fn new(objects: &'a MemoryObjects) -> Self {
        Self { objects, reads: Counter::new(0) }
    }

    /// Number of node reads during an action.
    fn during<T>(&self, action: impl FnOnce() -> T) -> (T, usize) {
        self.reads.set(0);
        let result = action();
        (result, self.reads.get())
    }
}

impl Objects for CountingReads<'_> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, ObjectError> {
        self.reads.set(self.reads.get() + 1);
        self.objects.bytes(kind, id)
    }
}

/// Replaces a range of the long list; returns the number of nodes and bytes written.
fn cost(range: Range<u64>, cells: Vec<EntryCell>) -> (usize, usize) {
    let (memory, list) = &*LONG;
    let mut additions = Additions::new(memory);
    list.splice(&mut additions, range, cells).expect("all nodes are stored");
    let bytes = additions.new_bytes();
    (additions.into_new().len(), bytes)
}

#[test]
fn a_change_anywhere_writes_few_small_nodes() {
    let anywhere = (0..200).map(|step| step * 7919 * 13 % ENTRIES);
    let mut costs = Vec::new();
    for position in [0, ENTRIES / 2, ENTRIES - 1].into_iter().chain(anywhere) {
        costs.push(cost(position..position + 1, vec![entry(position, 1)]));
        costs.push(cost(position..position, vec![entry(ENTRIES + position, 1)]));
        costs.push(cost(position..position + 1, Vec::new()));
    }
    for (nodes, bytes) in &costs {
        assert!(*nodes <= 2 * LEVELS + 2, "{nodes} nodes");
        assert!(*bytes < 16 * 1024, "{bytes} bytes");
    }
    let average = costs.iter().map(|(_, bytes)| bytes).sum::<usize>() / costs.len();
    assert!(average < 8 * 1024, "{average} bytes on average");
}

#[test]
fn an_append_and_a_truncation_write_little() {
    let (_, appended) = cost(ENTRIES..ENTRIES, vec![entry(ENTRIES, 0)]);
    let (_, truncated) = cost(ENTRIES / 3..ENTRIES, Vec::new());
    assert!(appended.max(truncated) < 8 * 1024, "{appended}, {truncated}");
    assert_eq!(cost(0..ENTRIES, Vec::new()), (0, 0));
}

#[test]
fn no_op_changes_write_nothing() {
    let (memory, list) = &*LONG;
    let mut additions = Additions::new(memory);
    for position in [0, 777, ENTRIES - 1] {
        let same = list.splice(&mut additions, position..position + 1, vec![entry(position, 0)]);
        assert_eq!(same.expect("all nodes are stored"), *list);
        let same = list.splice(&mut additions, position..position, Vec::new());
        assert_eq!(same.expect("all nodes are stored"), *list);
    }
    let fork = *list;
    assert_eq!(fork, *list);
    assert!(additions.into_new().is_empty());
}

#[test]
fn reading_opens_one_path() {
    let (memory, list) = &*LONG;
    let counted = CountingReads::new(memory);
    for number in [0, 1, 4711, ENTRIES - 1] {
        let (got, reads) = counted.during(|| list.get(&counted, number).expect("all nodes are stored"));
        assert_eq!(got, Some(entry(number, 0)));
        assert!(reads <= LEVELS, "{reads}");
        let (found, reads) =
            counted.during(|| list.find(&counted, entry(number, 0).key()).expect("all nodes are stored"));
        assert_eq!(found, Some((number, entry(number, 0))));
        assert!(reads <= LEVELS + 2, "{reads}");
    }
    let (cells, reads) = counted.during(|| list.iter_back(&counted, ENTRIES).take(50).count());
    assert_eq!(cells, 50);
    assert!(reads < 40, "{reads}");
}

#[test]
fn finding_opens_one_path_even_after_inserts_everywhere() {
    let (memory, list) = &*LONG;
    let mut additions = Additions::new(memory);
    let mut list = *list;
    for step in 0..300 {
        // An entry created after all others, inserted among old ones.
        let position = step * 7919 % ENTRIES;
        let late = vec![entry(ENTRIES + step, 0)];
        list = list.splice(&mut additions, position..position, late).expect("all nodes are stored");
    }
    let mut memory = memory.clone();
    memory.insert_all(additions.into_new());
    let counted = CountingReads::new(&memory);
    for number in [0, 1, 4711, 31_415, ENTRIES - 1] {
        let (found, reads) =
            counted.during(|| list.find(&counted, entry(number, 0).key()).expect("all nodes are stored"));
        assert_eq!(found.map(|(_, cell)| cell), Some(entry(number, 0)));
        assert!(reads <= 3 * LEVELS, "{reads}");
    }
}

#[test]
fn comparing_opens_only_differing_nodes() {
    let (memory, list) = &*LONG;
    for places in [vec![50_000], vec![0, 31_415, 31_416, 99_999], vec![5, 6, 7, 8]] {
        let mut additions = Additions::new(memory);
        let mut new = *list;
        for place in &places {
            let range = *place..place + 1;
            new = new.splice(&mut additions, range, vec![entry(*place, 9)]).expect("all nodes are stored");
        }
        let mut both = memory.clone();
        both.insert_all(additions.into_new());
        let counted = CountingReads::new(&both);
        let (hunks, reads) =
            counted.during(|| List::diff(&counted, list, &new).expect("all nodes are stored"));
        let changed: Vec<u64> =
            hunks.iter().flat_map(|hunk| (hunk.old_start..).take(hunk.removed.len())).collect();
        assert_eq!(changed, places);
        assert!(reads < 60 * places.len(), "{reads} nodes for {places:?}");
    }
    let counted = CountingReads::new(memory);
    let (hunks, reads) = counted.during(|| List::diff(&counted, list, list).expect("nothing is read"));
    assert!(hunks.is_empty() && reads == 0);
}

#[test]
fn visit_skips_known_nodes() {
    let (memory, list) = &*LONG;
    let mut additions = Additions::new(memory);
    let fork = list.splice(&mut additions, 600..601, Vec::new()).expect("all nodes are stored");
    let mut seen = HashSet::new();
    let mut cells = Vec::new();
    list.visit_nodes(&additions, &mut |id| seen.insert(id), &mut |cell| {
        cells.push(*cell);
    })
    .expect("all nodes are stored");
    assert_eq!(seen.len(), memory.len());
    assert_eq!(cells, (0..ENTRIES).map(|number| entry(number, 0)).collect::<Vec<_>>());

    let before = seen.len();
    fork.visit_nodes(&additions, &mut |id| seen.insert(id), &mut |_| ()).expect("all nodes are stored");
    assert_eq!(seen.len() - before, additions.into_new().len());
}

#[test]
fn every_node_can_be_parsed_by_itself() {
    let (memory, list) = &*LONG;
    let mut nodes: Vec<ContentId> = list.root().into_iter().collect();
    let mut cells = 0;
    while let Some(id) = nodes.pop() {
        let bytes = memory.bytes(Kind::Entries, id).expect("all nodes are stored");
        match parse_node::<EntryCell>(&bytes).expect("a valid node") {
            NodeContents::Cells(some) => cells += some.len() as u64,
            NodeContents::Nodes(below) => nodes.extend(below),
        }
    }
    assert_eq!(cells, ENTRIES);
}
