//! Snapshots of folders: captured and excluded files, and detection of changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::{NOW, TestFolder, commit, settle};
use retake_model::tree::ExclusionReason;

fn map<const COUNT: usize, T>(pairs: [(&str, T); COUNT]) -> BTreeMap<String, T> {
    pairs.into_iter().map(|(path, what)| (path.to_owned(), what)).collect()
}

#[test]
fn files_links_and_folders_are_captured_exactly() {
    let place = TestFolder::new();
    place.write("a.txt", "one");
    place.write("deep/er/b", b"\xff\x00two");
    fs::create_dir(place.root.join("empty")).expect("a folder");
    symlink("../outside", place.root.join("link")).expect("a link");
    symlink(".", place.root.join("deep/loop")).expect("a link");
    let taken = place.keep();
    let expected = [
        ("a.txt", "one"),
        ("deep", "/"),
        ("deep/er", "/"),
        ("deep/er/b", "\\xff\\x00two"),
        ("deep/loop", "-> ."),
        ("empty", "/"),
        ("link", "-> ../outside"),
    ];
    let expected = map(expected).into_iter().map(|(path, text)| (path, text.to_owned())).collect();
    assert_eq!(place.captured(&taken), expected);
    assert_eq!((taken.snapshot.files(), taken.snapshot.bytes()), (4, 8));
    assert!(place.excluded(&taken).is_empty());

    settle();
    let again = place.keep();
    assert_eq!(again.id, taken.id);
    settle();
    let third = place.take();
    assert!(third.is_stored(), "nothing changed: {:?}", third.objects);
    assert_eq!(third.id, taken.id);
}

#[test]
fn the_same_folder_has_the_same_snapshot_with_and_without_cache() {
    let place = TestFolder::new();
    for number in 0..600 {
        place.write(&format!("many/{number}"), format!("file {number}"));
    }
    place.write("many/sub/x", "x");
    settle();
    let _ = place.keep();
    fs::write(place.root.join("many/300"), "other").expect("a change");
    fs::remove_file(place.root.join("many/400")).expect("a removal");
    fs::set_permissions(place.root.join("many/sub"), fs::Permissions::from_mode(0o700)).expect("a mode");
    let changed = place.keep();
    settle();
    let again = place.keep();
    assert_eq!(again.id, changed.id);
    fs::remove_dir_all(place.store.folder().join("folders")).expect("the cache is gone");
    let fresh = place.keep();
    assert_eq!(fresh.id, changed.id);
    assert_eq!(place.captured(&fresh)["many/300"], "other");
    assert!(!place.captured(&fresh).contains_key("many/400"));
}

#[test]
fn excluded_paths_are_listed_with_the_reason() {
    let place = TestFolder::new();
    place.write(".gitignore", "target/\n*.log\n!keep.log\n");
    place.write("target/out", "build output");
    place.write("a.log", "");
    place.write("keep.log", "");
    place.write(".env", "SECRET=1");
    place.write(".env.example", "SECRET=");
    place.write("sub/.git/config", "");
    place.write("sub/.gitignore", "!b.log\n/only\n");
    place.write("sub/b.log", "");
    place.write("sub/only", "");
    place.write("sub/deep/only", "");
    place.write("sub/.hg/store", "");
    place.write("sub/.Svn/entries", "");
    place.write("sub/.jj/repo", "");
    place.write("sub/.bzr/branch", "");
    place.write("sub/CVS/Root", "");
    place.write("sub/_darcs/prefs", "");
    place.write(".retake-tmp-1", "");
    fs::set_permissions(place.root.join("keep.log"), fs::Permissions::from_mode(0o640)).expect("a mode");
    rustix::fs::mkfifoat(rustix::fs::CWD, place.root.join("pipe"), rustix::fs::Mode::RUSR).expect("a pipe");
    let taken = place.keep();
    let expected = [
        (".env", ExclusionReason::Secret),
        (".retake-tmp-1", ExclusionReason::Repository),
        ("a.log", ExclusionReason::Ignored),
        ("pipe", ExclusionReason::Special),
        ("sub/.Svn", ExclusionReason::Repository),
        ("sub/.bzr", ExclusionReason::Repository),
        ("sub/.git", ExclusionReason::Repository),
        ("sub/.hg", ExclusionReason::Repository),
        ("sub/.jj", ExclusionReason::Repository),
        ("sub/CVS", ExclusionReason::Repository),
        ("sub/_darcs", ExclusionReason::Repository),
        ("sub/only", ExclusionReason::Ignored),
        ("target", ExclusionReason::Ignored),
    ];
    assert_eq!(place.excluded(&taken), map(expected));
    let captured: Vec<String> = place.captured(&taken).into_keys().collect();
    let expected = [
        ".env.example",
        ".gitignore",
        "keep.log",
        "sub",
        "sub/.gitignore",
        "sub/b.log",
        "sub/deep",
        "sub/deep/only",
    ];
    assert_eq!(captured, expected);
}

#[test]
fn an_ignore_file_with_hostile_lines_is_read_without_them() {
    let place = TestFolder::new();
    let nested = "{".repeat(100_000) + "a" + &"}".repeat(100_000);
    for name in [".gitignore", ".ignore", ".retakeignore"] {
        place.write(name, format!("{nested}\n{}\n{}\n{name}-x\n", "{[}]".repeat(9_000), "?".repeat(90_000)));
        place.write(&format!("{name}-x"), "");
    }
    place.write("kept", "");
    let taken = place.keep();
    let ignored =
        [".gitignore-x", ".ignore-x", ".retakeignore-x"].map(|name| (name, ExclusionReason::Ignored));
    assert_eq!(place.excluded(&taken), map(ignored));
    assert!(place.captured(&taken).contains_key("kept"));
}

#[test]
fn setuid_setgid_and_sticky_bits_are_listed_as_excluded() {
    let place = TestFolder::new();
    let set = |path: &str, mode| {
        fs::set_permissions(place.root.join(path), fs::Permissions::from_mode(mode)).expect("a mode");
    };
    place.write("tool", "#!/bin/sh");
    place.write("shared/file", "");
    place.write("plain/file", "");
    set("tool", 0o4755);
    set("shared", 0o2775);
    let expected = map([("shared", ExclusionReason::ModeBits), ("tool", ExclusionReason::ModeBits)]);
    // From the folder, then from the stat cache, then with a change elsewhere.
    for round in 0..4 {
        let taken = place.keep();
        assert_eq!(place.excluded(&taken), expected, "round {round}");
        assert!(
            place.captured(&taken).contains_key("tool") && place.captured(&taken).contains_key("shared/file")
        );
        if round > 1 {
            place.write("plain/file", format!("{round}"));
        }
    }
    set("tool", 0o755);
    set("shared", 0o1775);
    let taken = place.keep();
    assert_eq!(place.excluded(&taken), map([("shared", ExclusionReason::ModeBits)]));
}

#[test]
fn a_rewrite_that_keeps_size_and_time_is_seen() {
    let place = TestFolder::new();
    for round in 0..20 {
        place.write("file", format!("{round:04}"));
        let taken = place.keep();
        assert_eq!(place.captured(&taken)["file"], format!("{round:04}"));
    }
}

#[test]
fn a_small_change_in_a_large_folder_or_file_costs_kilobytes() {
    let place = TestFolder::new();
    for number in 0..3_000 {
        place.write(&format!("many/file_{number:05}.txt"), format!("file {number}"));
    }
    let line = |number: u64| format!("{number}: {}\n", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut text: Vec<String> = (0..60_000).map(line).collect();
    place.write("long.txt", text.concat());
    assert!(text.concat().len() > 1_500_000);
    settle();
    let _ = place.keep();
    // The bytes of new objects, before compression.
    let added = |place: &TestFolder| {
        let taken = place.take();
        let objects = taken.objects.clone();
        let bytes =
            place.store.write(move |writing| writing.put_contents(&objects, NOW)).expect("it is stored");
        settle();
        (bytes, commit(&place.store, taken))
    };
    settle();
    place.write("many/file_01234.txt", "changed");
    let (bytes, taken) = added(&place);
    assert!(bytes < 20_000, "one of 3,000 files: {bytes} bytes");
    assert_eq!(place.captured(&taken)["many/file_01234.txt"], "changed");

    text[30_000] = "one line\n".to_owned();
    place.write("long.txt", text.concat());
    let (bytes, taken) = added(&place);
    assert!(bytes < 60_000, "one line of a long text: {bytes} bytes");
    assert_eq!(place.captured(&taken)["long.txt"], text.concat().as_bytes().escape_ascii().to_string());

    fs::remove_dir_all(place.store.folder().join("folders")).expect("the cache is gone");
    assert_eq!(place.keep().id, taken.id, "read anew, it is the same");
}
