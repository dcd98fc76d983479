//! Renamed files are detected, and no difference is lost.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use retake_model::content::{ContentId, Kind};
use retake_model::object::{Additions, MemoryObjects};
use retake_model::path::TreePath;
use retake_model::tree::{
    Node, PathChange, PathChangeKind, Tree, difference_at, differences, graft, pair_renames, resolve,
};

/// Path, content, permissions. A path that ends with `@` is a link, one that ends with `/` an empty folder.
type Files<'text> = &'text [(&'text str, &'text str, u16)];

fn path(text: &str) -> TreePath {
    TreePath::new(text.as_bytes()).expect("a valid path")
}

fn tree(memory: &mut MemoryObjects, files: Files<'_>) -> ContentId {
    let mut additions = Additions::new(&*memory);
    let mut nodes = BTreeMap::new();
    for (name, text, mode) in files {
        let node = if name.ends_with('@') {
            Node::Link { target: text.as_bytes().to_vec() }
        } else if name.ends_with('/') {
            Node::Folder { tree: Tree::default().add_to(&mut additions), mode: *mode }
        } else {
            let content = additions.add_bytes(Kind::Blob, text.as_bytes().to_vec());
            Node::file(content, text.len() as u64, *mode)
        };
        nodes.insert(path(name.trim_end_matches(['@', '/'])), Some(node));
    }
    let empty = Tree::default().add_to(&mut additions);
    let made = graft(&mut additions, empty, &nodes).expect("content is in memory");
    let new = additions.into_new();
    memory.insert_all(new);
    made
}

fn changes(before: Files<'_>, after: Files<'_>) -> Vec<PathChange> {
    let mut memory = MemoryObjects::default();
    let (before, after) = (tree(&mut memory, before), tree(&mut memory, after));
    let found = differences(&memory, Some(before), Some(after)).expect("content is in memory");
    pair_renames(&memory, found).expect("content is in memory")
}

#[track_caller]
fn check(before: Files<'_>, after: Files<'_>, expected: &[&str]) {
    let described: Vec<String> = changes(before, after)
        .iter()
        .map(|change| {
            let from = change.from.as_ref().map(|from| format!("{from} → ")).unwrap_or_default();
            format!("{:?} {from}{}", change.kind(), change.path)
        })
        .collect();
    assert_eq!(described, expected);
}

const LONG: &str = "one line\nanother line\na third line\na fourth line\n";
const ALIKE: &str = "one line\nanother line\na third line\nsomething else\n";

#[test]
fn a_file_under_another_name_is_renamed() {
    check(&[("a", LONG, 0o644)], &[("b", LONG, 0o644)], &["Renamed a → b"]);
    check(&[("a", LONG, 0o644)], &[("b", ALIKE, 0o755)], &["Renamed a → b"]);
    check(&[("a", LONG, 0o644)], &[("b", "quite different\n", 0o644)], &["Removed a", "Added b"]);
    check(&[("a@", "to", 0)], &[("b@", "to", 0)], &["Renamed a → b"]);
}

#[test]
fn equal_content_beats_similarity_and_equal_name_beats_another() {
    check(
        &[("a", LONG, 0o644), ("b", ALIKE, 0o644)],
        &[("c", ALIKE, 0o644), ("d", LONG, 0o644)],
        &["Renamed b → c", "Renamed a → d"],
    );
    check(
        &[("x/one", LONG, 0o644), ("x/two", LONG, 0o644)],
        &[("y/two", LONG, 0o644)],
        &["Removed x", "Removed x/one", "Added y", "Renamed x/two → y/two"],
    );
}

#[test]
fn empty_files_are_renamed_only_with_their_name() {
    check(&[("a", "", 0o644)], &[("b", "", 0o644)], &["Removed a", "Added b"]);
    check(&[("a", "", 0o644)], &[("x/a", "", 0o644)], &["Added x", "Renamed a → x/a"]);
}

#[test]
fn permission_and_type_changes_are_distinguished() {
    check(&[("a", LONG, 0o644)], &[("a", LONG, 0o755)], &["ModeChanged a"]);
    check(&[("a", LONG, 0o644)], &[("a", ALIKE, 0o755)], &["Changed a"]);
    check(&[("a", LONG, 0o644)], &[("a@", "b", 0)], &["TypeChanged a"]);
    check(&[("a", LONG, 0o644)], &[("a/", "", 0o755)], &["TypeChanged a"]);
    check(&[("a/", "", 0o755)], &[("a/", "", 0o700)], &["ModeChanged a"]);
    check(&[("a@", "b", 0)], &[("a@", "c", 0)], &["Changed a"]);
    assert_eq!(changes(&[], &[]), []);
    assert_eq!(changes(&[], &[("a", "", 0o644)])[0].kind(), PathChangeKind::Added);
}

fn files() -> impl Strategy<Value = BTreeMap<String, (String, u16)>> {
    let name = prop::sample::select(vec!["a", "b", "x/a", "x/b", "x/y/c", "z"]);
    let text = prop::sample::select(vec![LONG, ALIKE, "", "short\n"]);
    let mode = prop::sample::select(vec![0o644_u16, 0o755]);
    prop::collection::btree_map(name.prop_map(str::to_owned), (text.prop_map(str::to_owned), mode), 0..6)
}

proptest! {
    #[test]
    fn every_difference_is_in_exactly_one_change(before in files(), after in files()) {
        let mut memory = MemoryObjects::default();
        let listed = |files: &BTreeMap<String, (String, u16)>| -> Vec<(String, String, u16)> {
            files.iter().map(|(name, (text, mode))| (name.clone(), text.clone(), *mode)).collect()
        };
        let (before, after) = (listed(&before), listed(&after));
        let borrow = |files: &[(String, String, u16)], memory: &mut MemoryObjects| {
            let files: Vec<_> = files.iter().map(|(name, text, mode)| (&**name, &**text, *mode)).collect();
            tree(memory, &files)
        };
        let (old, new) = (borrow(&before, &mut memory), borrow(&after, &mut memory));
        let found = differences(&memory, Some(old), Some(new)).expect("content is in memory");
        let changes = pair_renames(&memory, found.clone()).expect("content is in memory");
        let mut covered = BTreeSet::new();
        for change in &changes {
            let was = change.from.as_ref().unwrap_or(&change.path);
            if change.before.is_some() {
                let stood = resolve(&memory, old, was).expect("content is in memory");
                prop_assert_eq!(&change.before, &stood);
                covered.insert((was.clone(), false));
            }
            if change.after.is_some() {
                let stands = resolve(&memory, new, &change.path).expect("content is in memory");
                prop_assert_eq!(&change.after, &stands);
                covered.insert((change.path.clone(), true));
            }
        }
        for difference in found {
            prop_assert_eq!(difference.before.is_some(), covered.contains(&(difference.path.clone(), false)));
            prop_assert_eq!(difference.after.is_some(), covered.contains(&(difference.path.clone(), true)));
        }
        // A single path gives the same result as the whole comparison.
        for name in ["a", "b", "x", "x/a", "x/y/c", "z", "none/at/all"] {
            let path = path(name);
            let (was, is) = (
                resolve(&memory, old, &path).expect("content is in memory"),
                resolve(&memory, new, &path).expect("content is in memory"),
            );
            let expected = (was != is).then_some((was, is));
            prop_assert_eq!(difference_at(&memory, Some(old), Some(new), &path).expect("content is in memory"), expected);
        }
    }
}
