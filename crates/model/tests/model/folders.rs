//! Large folders: canonical nodes, small changes, comparisons, hostile nodes.

use std::collections::{BTreeMap, BTreeSet};

use retake_model::content::{ContentId, Kind, decode, encode};
use retake_model::object::{Additions, MemoryObjects, Objects, load};
use retake_model::path::{FileName, TreePath};
use retake_model::reference::references;
use retake_model::tree::{
    Difference, MAX_LEAF, Node, Tree, TreeCursor, TreeEntry, TreeNode, differences, entry, graft, resolve,
};

use crate::support::Rng;

type Folder = BTreeMap<Vec<u8>, u64>;

fn node(version: u64) -> Node {
    let content = ContentId::of(Kind::Blob, &version.to_be_bytes());
    Node::file(content, version, 0o644)
}

fn name(name: &[u8]) -> FileName {
    FileName::new(name).expect("a name")
}

fn entries(folder: &Folder) -> Vec<TreeEntry> {
    folder.iter().map(|(key, version)| TreeEntry { name: name(key), node: node(*version) }).collect()
}

fn numbered(count: u64) -> Folder {
    (0..count).map(|number| (format!("file_{number:05}.txt").into_bytes(), number)).collect()
}

/// Objects in memory, and the size of those added last.
#[derive(Default)]
struct Memory {
    objects: MemoryObjects,
    known: BTreeSet<ContentId>,
    added: usize,
}

impl Memory {
    fn add(&mut self, change: impl FnOnce(&mut Additions<'_, MemoryObjects>) -> ContentId) -> ContentId {
        let base = std::mem::take(&mut self.objects);
        let mut additions = Additions::new(&base);
        let id = change(&mut additions);
        let new = additions.into_new();
        self.objects = base;
        let new: Vec<_> = new.into_iter().filter(|object| self.known.insert(object.id)).collect();
        self.added = new.iter().map(|object| object.bytes.len()).sum();
        self.objects.insert_all(new);
        id
    }

    fn folder(&mut self, folder: &Folder) -> ContentId {
        self.add(|additions| Tree::new(entries(folder)).add_to(additions))
    }

    /// The same folder as versions of Retake before these chunks stored it.
    fn flat(&mut self, folder: &Folder) -> ContentId {
        self.add(|additions| additions.add(&TreeNode::Leaf(entries(folder))))
    }
}

fn changed(before: &Folder, after: &Folder) -> Vec<Difference> {
    let names: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
    let differ = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let side = |folder: &Folder, name: &Vec<u8>| folder.get(name).map(|version| node(*version));
    differ
        .map(|key| Difference {
            path: TreePath::of(name(key)),
            before: side(before, key),
            after: side(after, key),
        })
        .collect()
}

#[test]
fn small_folders_are_one_object_as_before() {
    for count in [0, 1, 127, MAX_LEAF as u64] {
        let mut memory = Memory::default();
        let folder = numbered(count);
        assert_eq!(memory.folder(&folder), memory.flat(&folder), "{count}");
        assert_eq!(memory.objects.len(), 1);
    }
    let mut memory = Memory::default();
    let folder = numbered(MAX_LEAF as u64 + 1);
    assert_ne!(memory.folder(&folder), memory.flat(&folder));
}

#[test]
fn any_sequence_of_edits_leads_to_the_same_nodes_and_exact_differences() {
    let mut rng = Rng::new(41);
    for _ in 0..8 {
        let mut memory = Memory::default();
        let mut folder = numbered(rng.below(1500));
        let mut id = memory.folder(&folder);
        for step in 0..30 {
            let mut next = folder.clone();
            let mut changes = BTreeMap::new();
            for _ in 0..=rng.below(5) {
                let key = format!("file_{:05}.txt", rng.below(1600)).into_bytes();
                let version = (rng.below(3) > 0).then(|| 10_000 + rng.below(1000));
                match version {
                    Some(version) => drop(next.insert(key.clone(), version)),
                    None => drop(next.remove(&key)),
                }
                changes.insert(TreePath::of(name(&key)), version.map(node));
            }
            let grafted = memory.add(|additions| graft(additions, id, &changes).expect("in memory"));
            assert_eq!(grafted, memory.folder(&next), "step {step}: an edit and a new folder differ");
            let expected = changed(&folder, &next);
            let found = differences(&memory.objects, Some(id), Some(grafted)).expect("in memory");
            assert_eq!(found, expected, "step {step}");
            let loaded = Tree::load(&memory.objects, grafted).expect("in memory");
            assert_eq!(loaded.entries(), entries(&next));
            (folder, id) = (next, grafted);
        }
    }
}

#[test]
fn a_folder_of_an_older_version_compares_equal() {
    let mut memory = Memory::default();
    let folder = numbered(3000);
    let (old, new) = (memory.flat(&folder), memory.folder(&folder));
    assert_ne!(old, new);
    assert_eq!(differences(&memory.objects, Some(old), Some(new)).expect("in memory"), []);
    let mut next = folder.clone();
    next.insert(b"file_01000.txt".to_vec(), 7);
    let edited = memory.folder(&next);
    let found = differences(&memory.objects, Some(old), Some(edited)).expect("in memory");
    assert_eq!(found, changed(&folder, &next));
    let path = TreePath::new(b"file_01000.txt").expect("a path");
    for tree in [old, new] {
        assert_eq!(resolve(&memory.objects, tree, &path).expect("in memory"), Some(node(1000)));
    }
}

/// Counts the objects and bytes that are read.
struct Counting<'objects>(&'objects MemoryObjects, std::cell::Cell<(usize, usize)>);

impl Objects for Counting<'_> {
    fn bytes(
        &self,
        kind: Kind,
        id: ContentId,
    ) -> Result<std::sync::Arc<[u8]>, retake_model::object::ObjectError> {
        let bytes = self.0.bytes(kind, id)?;
        let (count, sum) = self.1.get();
        self.1.set((count + 1, sum + bytes.len()));
        Ok(bytes)
    }
}

#[test]
fn a_change_in_a_large_folder_costs_kilobytes() {
    let mut memory = Memory::default();
    let mut folder = numbered(20_000);
    let first = memory.folder(&folder);
    assert!(memory.added > 1_000_000, "the control: the whole folder has {} bytes", memory.added);
    let (mut worst, mut sum) = (0, 0);
    let mut before = first;
    for number in (0..20_000).step_by(1000) {
        folder.insert(format!("file_{number:05}.txt").into_bytes(), 1_000_000 + number);
        let after = memory.folder(&folder);
        (worst, sum) = (worst.max(memory.added), sum + memory.added);
        let counting = Counting(&memory.objects, std::cell::Cell::default());
        assert_eq!(differences(&counting, Some(before), Some(after)).expect("in memory").len(), 1);
        assert!(counting.1.get().1 < 60_000, "a comparison read {:?}", counting.1.get());
        before = after;
    }
    assert!(worst < 20_000 && sum / 20 < 10_000, "at most {worst}, on average {} bytes", sum / 20);

    let counting = Counting(&memory.objects, std::cell::Cell::default());
    let found = entry(&counting, first, &name(b"file_12345.txt")).expect("in memory");
    assert_eq!(found, Some(node(12_345)));
    assert!(counting.1.get().0 <= 4 && counting.1.get().1 < 30_000, "a lookup read {:?}", counting.1.get());

    let counting = Counting(&memory.objects, std::cell::Cell::default());
    let mut cursor = TreeCursor::new(first);
    for number in 0..20_000 {
        let path = TreePath::new(format!("file_{number:05}.txt").as_bytes()).expect("a path");
        assert_eq!(cursor.get(&counting, &path).expect("in memory"), Some(node(number)));
    }
    assert!(counting.1.get().0 < 1500, "sorted lookups read {:?}", counting.1.get());
}

#[test]
fn names_chosen_by_an_attacker_keep_nodes_small() {
    let leaves = |folder: &Folder| {
        let mut memory = Memory::default();
        memory.folder(folder);
        let nodes = memory.known.iter().map(|id| load::<TreeNode>(&memory.objects, *id).expect("in memory"));
        nodes.map(|node| node.entries().len()).filter(|entries| *entries > 0).collect::<Vec<_>>()
    };
    // Names after which a chunk ends are those of which a folder of its own has leaves of two entries.
    let ends = |key: &str| {
        let hash = blake3::hash(&[&[0], key.as_bytes()].concat());
        hash.as_bytes()[31].is_multiple_of(32)
    };
    let select = |wanted: bool| -> Folder {
        let names = (0..).map(|number| format!("n{number}")).filter(|name| ends(name) == wanted);
        names.take(2000).map(|name| (name.into_bytes(), 1)).collect()
    };
    assert!(leaves(&select(true)).iter().all(|entries| *entries == 2));
    assert!(leaves(&select(false)).iter().all(|entries| *entries <= 256));
}

#[test]
fn hostile_nodes_are_refused() {
    let mut memory = Memory::default();
    let folder = numbered(2000);
    let top = memory.folder(&folder);
    let bytes = memory.objects.bytes(Kind::Tree, top).expect("in memory").to_vec();
    for end in 0..bytes.len() {
        assert!(decode::<TreeNode>(&bytes[..end]).is_err(), "truncated at {end}");
    }
    let mut rng = Rng::new(7);
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        let at = rng.below(bytes.len() as u64) as usize;
        damaged[at] ^= 1 << rng.below(8);
        // Whatever it decodes to, reading it ends, and finds no more entries than a folder may have.
        let Ok(decoded) = decode::<TreeNode>(&damaged) else { continue };
        let id = memory.add(|additions| additions.add(&decoded));
        if let Ok(read) = Tree::load(&memory.objects, id) {
            assert!(read.entries().len() <= 2000);
        }
        assert_eq!(encode(&decoded), damaged, "two encodings of one node");
        drop(references(Kind::Tree, &damaged));
    }
}
