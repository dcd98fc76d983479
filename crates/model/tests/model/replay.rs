//! Replay, path by path.

use std::collections::BTreeMap;

use proptest::prelude::*;
use retake_model::content::{ContentId, Kind};
use retake_model::merge::MergeLabels;
use retake_model::object::{Additions, MemoryObjects, ObjectError, Objects, load};
use retake_model::path::{RootPath, TreePath};
use retake_model::replay::{
    FileStep, OnConflict, PathOutcome, ReplayPlan, ReplayResult, replay, restore_paths,
};
use retake_model::sealed::{SealedFile, SealedFiles, SealedState, SealedTwins};
use retake_model::tree::{Node, Snapshot, SnapshotRoot, Tree, add_file, differences, graft, resolve};

const LABELS: MergeLabels<'static> = MergeLabels { ours: "ours", theirs: "theirs" };

/// A folder as pairs of path and text; a path that ends with a slash is an empty folder.
type Files<'text> = &'text [(&'text str, &'text str)];

#[derive(Default)]
struct World {
    memory: MemoryObjects,
}

impl World {
    fn snapshot(&mut self, files: Files<'_>) -> ContentId {
        let mut additions = Additions::new(&self.memory);
        let mut nodes = BTreeMap::new();
        for (path, text) in files {
            let node = match path.strip_suffix('/') {
                Some(_) => Node::Folder { tree: Tree::default().add_to(&mut additions), mode: 0o755 },
                None => add_file(&mut additions, text.as_bytes().to_vec(), 0o644),
            };
            nodes.insert(self::path(path), Some(node));
        }
        let empty = Tree::default().add_to(&mut additions);
        let tree = graft(&mut additions, empty, &nodes).expect("content is in memory");
        let root =
            SnapshotRoot { name: String::new(), tree, excluded: None, files: 0, bytes: 0, sealed: None };
        let id = additions.add(&Snapshot { roots: vec![root] });
        let new = additions.into_new();
        self.memory.insert_all(new);
        id
    }

    fn load(&self, id: ContentId) -> Snapshot {
        load(&self.memory, id).expect("just created")
    }

    fn replay(
        &mut self,
        present: ContentId,
        steps: &[(ContentId, ContentId)],
        on: OnConflict,
    ) -> ReplayResult {
        let steps: Vec<FileStep> = steps.iter().map(|&(from, to)| FileStep::new(from, to)).collect();
        let way = ReplayPlan::of(steps);
        let mut additions = Additions::new(&self.memory);
        let replayed =
            replay(&mut additions, &self.load(present), &way, on, LABELS).expect("content is in memory");
        let new = additions.into_new();
        self.memory.insert_all(new);
        replayed
    }

    /// Every file and empty folder of a snapshot.
    fn files(&self, snapshot: &Snapshot) -> Vec<(String, String)> {
        let tree = snapshot.roots[0].tree;
        let all = differences(&self.memory, None, Some(tree)).expect("content is in memory");
        let mut files = Vec::new();
        for difference in &all {
            match &difference.after {
                Some(Node::File { content, .. }) => {
                    let bytes = self.memory.bytes(Kind::Blob, *content);
                    let text = String::from_utf8_lossy(&bytes.expect("content is in memory")).into_owned();
                    files.push((difference.path.to_string(), text));
                }
                Some(Node::Folder { tree, .. }) => {
                    let inside = Tree::load(&self.memory, *tree).expect("content is in memory");
                    if inside.entries().is_empty() {
                        files.push((format!("{}/", difference.path), String::new()));
                    }
                }
                _ => {}
            }
        }
        files
    }
}

fn path(text: &str) -> TreePath {
    TreePath::new(text.trim_end_matches('/').as_bytes()).expect("a valid path")
}

/// Undoes the step from `before` to `after` on top of `present`.
fn check(before: Files<'_>, after: Files<'_>, present: Files<'_>, expected: Files<'_>, conflicts: &[&str]) {
    let mut world = World::default();
    let [before, after, present] = [before, after, present].map(|files| world.snapshot(files));
    let replayed = world.replay(present, &[(after, before)], OnConflict::Keep);
    let expected: Vec<(String, String)> =
        expected.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    assert_eq!(world.files(&replayed.snapshot), expected);
    let found: Vec<String> = replayed
        .paths
        .iter()
        .filter(|path| matches!(path.how, PathOutcome::Conflict { .. }))
        .map(|path| path.path.to_string())
        .collect();
    assert_eq!(found, conflicts);
}

#[test]
fn unchanged_paths_are_reverted() {
    check(&[("a", "1")], &[("a", "2")], &[("a", "2")], &[("a", "1")], &[]);
    check(&[], &[("new", "x")], &[("new", "x")], &[], &[]);
    check(&[("gone", "x")], &[], &[], &[("gone", "x")], &[]);
    check(&[("d/a", "1"), ("d/b", "2")], &[], &[], &[("d/a", "1"), ("d/b", "2")], &[]);
    check(&[], &[("d/e/a", "1")], &[("d/e/a", "1")], &[], &[]);
    check(&[("empty/", "")], &[], &[], &[("empty/", "")], &[]);
    check(&[("t", "file")], &[("t/in", "x")], &[("t/in", "x")], &[("t", "file")], &[]);
}

#[test]
fn changes_of_others_stay() {
    // Another file, a new file in a folder that the step created, and a file that is already reverted.
    check(&[("a", "1")], &[("a", "2")], &[("a", "2"), ("b", "mine")], &[("a", "1"), ("b", "mine")], &[]);
    check(&[], &[("d/a", "1")], &[("d/a", "1"), ("d/mine", "x")], &[("d/mine", "x")], &[]);
    check(&[("a", "1")], &[("a", "2")], &[("a", "1")], &[("a", "1")], &[]);
    // Two changes of one text.
    let (old, new) = ("one\ntwo\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n");
    let hand = "one\nTWO\nthree\nfour\nfive\nsix\n";
    check(&[("t", old)], &[("t", new)], &[("t", hand)], &[("t", "one\ntwo\nthree\nfour\nfive\nsix\n")], &[]);
}

#[test]
fn conflicting_changes_are_skipped() {
    check(&[("a", "1")], &[("a", "2")], &[("a", "3")], &[("a", "3")], &["a"]);
    check(&[], &[("a", "2")], &[("a", "3")], &[("a", "3")], &["a"]);
    check(&[("a", "1")], &[("a", "2")], &[], &[], &["a"]);
    check(&[("a", "1")], &[], &[("a", "mine")], &[("a", "mine")], &["a"]);
    // A file exists where a folder is needed, and a folder where a file is needed.
    check(&[("d/a", "1")], &[("d/", "")], &[("d", "mine")], &[("d", "mine")], &["d/a"]);
    check(&[("d", "1")], &[("d/a", "2")], &[("d/a", "2"), ("d/mine", "x")], &[("d/mine", "x")], &["d"]);
}

#[test]
fn conflicts_can_be_resolved() {
    let mut world = World::default();
    let [one, two, three] =
        [&[("a", "1\n")], &[("a", "2\n")], &[("a", "3\n")]].map(|files: &[_; 1]| world.snapshot(files));
    let taken = world.replay(three, &[(two, one)], OnConflict::Take);
    assert_eq!(world.files(&taken.snapshot), [("a".to_owned(), "1\n".to_owned())]);
    let marked = world.replay(three, &[(two, one)], OnConflict::Mark);
    let text = &world.files(&marked.snapshot)[0].1;
    assert!(text.contains("<<<<<<< ours\n3\n") && text.contains("1\n>>>>>>> theirs"), "{text}");
    for replayed in [taken, marked] {
        assert!(matches!(replayed.paths[0].how, PathOutcome::Conflict { .. }));
    }
}

#[test]
fn path_with_a_conflict_is_skipped_by_later_steps() {
    let mut world = World::default();
    let [one, two, three, hand] = ["1", "2", "3", "hand"].map(|text| world.snapshot(&[("a", text)]));
    let replayed = world.replay(hand, &[(three, two), (two, one)], OnConflict::Keep);
    assert_eq!(world.files(&replayed.snapshot), [("a".to_owned(), "hand".to_owned())]);
    assert_eq!(replayed.paths.len(), 1);
}

#[test]
fn restoring_makes_the_chosen_paths_exact() {
    let mut world = World::default();
    let target = world.snapshot(&[("a", "1"), ("d/x", "old"), ("d/y", "y")]);
    let present = world.snapshot(&[("a", "2"), ("d/x", "new"), ("d/z", "z")]);
    let (target, present) = (world.load(target), world.load(present));
    let mut check = |only: &[&str], expected: Files<'_>| {
        let only: Vec<RootPath> = only.iter().map(|text| RootPath::main(path(text))).collect();
        let mut additions = Additions::new(&world.memory);
        let restored = restore_paths(&mut additions, &present, &target, &only, &[], &SealedTwins::default())
            .expect("content is in memory");
        let new = additions.into_new();
        world.memory.insert_all(new);
        let expected: Vec<(String, String)> =
            expected.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        assert_eq!(world.files(&restored.snapshot), expected);
    };
    check(&[], &[("a", "1"), ("d/x", "old"), ("d/y", "y")]);
    check(&["d"], &[("a", "2"), ("d/x", "old"), ("d/y", "y")]);
    check(&["d/y"], &[("a", "2"), ("d/x", "new"), ("d/y", "y"), ("d/z", "z")]);
    check(&["nowhere"], &[("a", "2"), ("d/x", "new"), ("d/z", "z")]);
}

fn some_files() -> impl Strategy<Value = BTreeMap<String, String>> {
    let name = prop::sample::select(vec!["a", "b", "c/a", "c/b", "c/d/a", "e/a"]);
    let text = prop::collection::vec(prop::sample::select(vec!["1\n", "2\n", "3\n"]), 0..4)
        .prop_map(|lines| lines.concat());
    prop::collection::btree_map(name.prop_map(str::to_owned), text, 0..6)
}

proptest! {
    #[test]
    fn step_and_its_inverse_cancel_out(before in some_files(), after in some_files()) {
        let mut world = World::default();
        let pairs = |files: &BTreeMap<String, String>| -> Vec<(String, String)> {
            files.iter().map(|(path, text)| (path.clone(), text.clone())).collect()
        };
        let make = |world: &mut World, files: &BTreeMap<String, String>| {
            let pairs = pairs(files);
            let files: Vec<(&str, &str)> =
                pairs.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            world.snapshot(&files)
        };
        let (old, new) = (make(&mut world, &before), make(&mut world, &after));
        let there = world.replay(old, &[(old, new)], OnConflict::Keep);
        prop_assert_eq!(world.files(&there.snapshot), pairs(&after));
        let back = world.replay(new, &[(new, old)], OnConflict::Keep);
        prop_assert_eq!(world.files(&back.snapshot), pairs(&before));
        // The comparison gives the same nodes as a lookup of each path.
        for difference in differences(&world.memory, Some(world.load(old).roots[0].tree), Some(world.load(new).roots[0].tree)).expect("content is in memory") {
            let now = resolve(&world.memory, world.load(new).roots[0].tree, &difference.path).expect("content is in memory");
            prop_assert_eq!(now, difference.after);
        }
    }
}

/// Objects in memory that count the bytes read.
struct CountingMemory<'memory> {
    memory: &'memory MemoryObjects,
    read: std::cell::Cell<usize>,
}

impl Objects for CountingMemory<'_> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<std::sync::Arc<[u8]>, ObjectError> {
        let bytes = self.memory.bytes(kind, id)?;
        self.read.set(self.read.get() + bytes.len());
        Ok(bytes)
    }
}

/// Number of bytes that an undo and its redo read, if one step wrote this many files.
fn bytes_read(count: usize, path: impl Fn(usize) -> String) -> usize {
    let mut world = World::default();
    let files: Vec<(String, String)> =
        (0..count).map(|number| (path(number), format!("{number}\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let (empty, full) = (world.snapshot(&[("other", "stays\n")]), world.snapshot(&files));
    let counted = CountingMemory { memory: &world.memory, read: std::cell::Cell::new(0) };
    let step = FileStep::new;
    let undo = ReplayPlan::of(vec![step(full, empty)]);
    let redo = ReplayPlan {
        back: vec![step(empty, full)],
        only_back: true,
        ..ReplayPlan::of(vec![step(empty, full)])
    };
    for (present, way) in [(full, undo), (empty, redo)] {
        let mut additions = Additions::new(&counted);
        let present = load(&counted, present).expect("just created");
        replay(&mut additions, &present, &way, OnConflict::Keep, LABELS).expect("content is in memory");
    }
    counted.read.get()
}

#[test]
fn replay_reads_grow_linearly_with_the_number_of_files() {
    let shapes: [fn(usize) -> String; 3] = [
        |number| format!("file-{number:06}"),
        |number| format!("one/folder/file-{number:06}"),
        |number| format!("folder-{number:06}/file"),
    ];
    for shape in shapes {
        let (few, many) = (bytes_read(500, shape), bytes_read(2_000, shape));
        assert!(many < few * 5, "4 times the files of {} read {few} and then {many} bytes", shape(1));
    }
}

/// Duration of an undo and its redo with folders of this depth; the fastest of several runs, to reduce noise.
fn time_of_deep_folders(depth: usize) -> std::time::Duration {
    let mut world = World::default();
    let deep = format!("{}file", "d/".repeat(depth));
    let (empty, full) = (world.snapshot(&[("other", "stays\n")]), world.snapshot(&[(&deep, "1\n")]));
    let undo = ReplayPlan::of(vec![FileStep::new(full, empty)]);
    let redo = ReplayPlan {
        back: vec![FileStep::new(empty, full)],
        only_back: true,
        ..ReplayPlan::of(vec![FileStep::new(empty, full)])
    };
    let run = |_| {
        let started = std::time::Instant::now();
        for (present, way) in [(full, &undo), (empty, &redo)] {
            let mut additions = Additions::new(&world.memory);
            let present = world.load(present);
            let replayed = replay(&mut additions, &present, way, OnConflict::Keep, LABELS);
            assert!(replayed.expect("content is in memory").paths.len() > depth);
        }
        started.elapsed()
    };
    (0..5).map(run).min().expect("at least one run")
}

#[test]
fn replay_time_grows_linearly_with_the_length_of_deep_paths() {
    // The total length of nested paths is quadratic in the depth; walking up from each would be cubic.
    let (few, many) = (time_of_deep_folders(200), time_of_deep_folders(800));
    assert!(many < few * 32, "4 times as deep took {few:?} and then {many:?}");
}

#[test]
fn a_step_between_folders_does_not_move_sealed_files() {
    let mut world = World::default();
    let sealed = |world: &mut World, state: SealedState| {
        let id = world.snapshot(&[("a", "1")]);
        let mut snapshot = world.load(id);
        let mut additions = Additions::new(&world.memory);
        let list = SealedFiles::new(&BTreeMap::from([(path(".env"), state)]));
        snapshot.roots[0].sealed = Some(additions.add(&list));
        let id = additions.add(&snapshot);
        let new = additions.into_new();
        world.memory.insert_all(new);
        id
    };
    let file = SealedFile { parts: Vec::new(), digest: [1; 32], size: 1, mode: 0o600 };
    let project = sealed(&mut world, SealedState::File(file));
    let worktree = sealed(&mut world, SealedState::Nothing);
    let step = FileStep::between_folders(project, worktree);
    for (step, paths) in [(step, 0), (FileStep::new(project, worktree), 1)] {
        let way = ReplayPlan::of(vec![step]);
        let mut additions = Additions::new(&world.memory);
        let present = world.load(project);
        let replayed =
            replay(&mut additions, &present, &way, OnConflict::Keep, LABELS).expect("content is in memory");
        assert_eq!(replayed.paths.len(), paths);
    }
}

/// A snapshot of one file with these permissions.
fn with_mode(world: &mut World, text: &str, mode: u16) -> ContentId {
    let id = world.snapshot(&[("f", text)]);
    let snapshot = world.load(id);
    let mut additions = Additions::new(&world.memory);
    let tree = snapshot.roots[0].tree;
    let node = match resolve(&additions, tree, &path("f")).expect("content is in memory") {
        Some(Node::File { content, size, .. }) => Some(Node::file(content, size, mode)),
        other => other,
    };
    let tree =
        graft(&mut additions, tree, &BTreeMap::from([(path("f"), node)])).expect("content is in memory");
    let roots = vec![SnapshotRoot { tree, ..snapshot.roots[0].clone() }];
    let id = additions.add(&Snapshot { roots });
    let new = additions.into_new();
    world.memory.insert_all(new);
    id
}

#[test]
fn permissions_that_both_sides_changed_are_a_conflict() {
    for (texts, partly) in [(["1", "1"], false), (["1", "2"], true)] {
        for (on_conflict, expected) in [(OnConflict::Keep, 0o600), (OnConflict::Take, 0o644)] {
            let mut world = World::default();
            let before = with_mode(&mut world, texts[0], 0o644);
            let after = with_mode(&mut world, texts[1], 0o755);
            let present = with_mode(&mut world, texts[1], 0o600);
            let replayed = world.replay(present, &[(after, before)], on_conflict);
            let kept = on_conflict == OnConflict::Keep;
            let found = &replayed.paths[0];
            assert!(matches!(found.how, PathOutcome::Conflict { kept: is, .. } if is == kept), "{found:?}");
            assert_eq!(found.wanted.as_ref().and_then(Node::mode), Some(expected));
            assert_eq!(found.wanted != found.present, partly || !kept, "{found:?}");
            assert_eq!(world.files(&replayed.snapshot), [("f".to_owned(), texts[0].to_owned())]);
        }
    }
}
