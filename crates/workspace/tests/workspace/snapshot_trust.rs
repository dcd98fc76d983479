//! Stamps that a snapshot must not trust, and content that must never reach the store.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{NOW, TestFolder, all_bytes, commit, settle};
use retake_model::content::{ContentId, Kind};
use retake_model::tree::{ExclusionReason, PART};
use retake_store::WriteError;
use retake_workspace::snapshot::{SnapshotError, StoreSnapshotError, snapshot_with};

#[test]
fn a_secret_is_in_no_byte_of_the_store() {
    let place = TestFolder::new();
    let canary = "canary-9f1c-do-not-store";
    for path in [".env", ".env.local", "keys/id_rsa", "server.pem", ".aws/credentials", "deep/a/.netrc"] {
        place.write(path, canary);
    }
    place.write("held.txt", "this is held");
    let taken = place.keep();
    assert_eq!(place.captured(&taken)["held.txt"], "this is held");
    let bytes = all_bytes(place.store.folder());
    assert!(!bytes.windows(canary.len()).any(|window| window == canary.as_bytes()));
    let left = place.excluded(&taken);
    assert!(left.values().all(|reason| *reason == ExclusionReason::Secret) && left.len() == 6, "{left:?}");
}

#[test]
fn a_configuration_overrides_the_default_exclusions() {
    let mut place = TestFolder::new();
    place.options.include = vec!["/target/keep/".into(), ".env.ci".into()];
    place.options.exclude = vec!["*.iso".into()];
    place.options.secrets = vec!["private/".into()];
    place.options.largest_file = 10;
    place.write(".gitignore", "target\n");
    place.write("target/keep/a", "a");
    place.write("target/drop/b", "b");
    place.write(".env.ci", "CI=1");
    place.write("disk.iso", "i");
    place.write("private/x", "x");
    place.write("large", "more than ten bytes");
    let taken = place.keep();
    let captured: Vec<String> = place.captured(&taken).into_keys().collect();
    assert_eq!(captured, [".env.ci", ".gitignore", "target", "target/keep", "target/keep/a"]);
    let left: Vec<(String, ExclusionReason)> = place.excluded(&taken).into_iter().collect();
    let expected = [
        ("disk.iso", ExclusionReason::Ignored),
        ("large", ExclusionReason::TooLarge),
        ("private", ExclusionReason::Secret),
        ("target/drop", ExclusionReason::Ignored),
    ];
    assert_eq!(left, expected.map(|(path, reason)| (path.to_owned(), reason)));
    settle();
    assert_eq!(place.keep().id, taken.id, "the cache says the same");
    settle();
    assert!(place.take().is_stored());
}

#[test]
fn changed_ignore_rules_apply_to_unchanged_folders() {
    let place = TestFolder::new();
    place.write("a/.gitignore", "*.log\n");
    place.write("a/deep/x.log", "x");
    settle();
    assert!(!place.captured(&place.keep()).contains_key("a/deep/x.log"));
    settle();
    fs::write(place.root.join("a/.gitignore"), "*.tmp\n").expect("other rules of the same length");
    assert!(place.captured(&place.keep()).contains_key("a/deep/x.log"));
    fs::remove_file(place.root.join("a/.gitignore")).expect("no rules");
    place.write(".ignore", "deep\n");
    assert!(!place.captured(&place.keep()).contains_key("a/deep"));
}

#[test]
fn unusual_names_are_captured_or_listed_as_excluded() {
    let place = TestFolder::new();
    for name in
        [&b"not \xff text"[..], b"new\nline", b"-dash", b" space ", "ü".as_bytes(), &[b'n'; 255], b"a\\b"]
    {
        fs::write(place.root.join(OsStr::from_bytes(name)), "x").expect("a file");
    }
    for name in [".GIT", "git~1", ".git ."] {
        fs::create_dir(place.root.join(name)).expect("a folder");
    }
    let taken = place.keep();
    assert_eq!(taken.snapshot.files(), 7);
    let left = place.excluded(&taken);
    assert!(
        left.values().all(|reason| *reason == ExclusionReason::Repository) && left.len() == 3,
        "{left:?}"
    );
}

#[test]
fn long_files_are_stored_in_parts_and_large_content_in_packs() {
    let place = TestFolder::new();
    let long: Vec<u8> = (0..PART + 12_345).map(|index| (index * 7 % 251) as u8).collect();
    place.write("long", &long);
    place.write("exact", &long[..PART as usize]);
    let taken = place.take();
    assert!(taken.packed.is_some());
    let taken = commit(&place.store, taken);
    let captured = place.captured(&taken);
    assert_eq!(captured["long"], long.escape_ascii().to_string());
    assert_eq!(captured["exact"], long[..PART as usize].escape_ascii().to_string());
    assert!(place.store.verify(&mut |_| {}).expect("it runs").is_clean());
}

#[test]
fn a_damaged_cache_is_ignored() {
    let place = TestFolder::new();
    place.write("a", "one");
    settle();
    let first = place.keep();
    let file = fs::read_dir(place.store.folder().join("folders"))
        .expect("a folder")
        .next()
        .expect("a file")
        .expect("a file")
        .path();
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    let bytes = fs::read(&file).expect("a file");
    for at in (0..bytes.len()).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x41;
        fs::write(&file, damaged).expect("damage");
        assert_eq!(place.take().id, first.id, "byte {at}");
    }
    fs::write(&file, &bytes[..bytes.len() / 2]).expect("damage");
    assert_eq!(place.take().id, first.id);
}

#[test]
fn purged_content_is_not_served_from_the_cache() {
    let place = TestFolder::new();
    place.write("a", "a password that slipped in");
    place.write("b", "harmless");
    settle();
    let first = place.keep();
    // Taken before, stored after.
    place.write("c", "more");
    let stale = Arc::new(place.take());
    let id = ContentId::of(Kind::Blob, b"a password that slipped in");
    place.store.redact(&[(Kind::Blob, id)], NOW).expect("it is redacted");
    let job = Arc::clone(&stale);
    let refused = place.store.write(move |writing| job.store(writing, NOW));
    assert!(matches!(refused, Err(WriteError::Refused(StoreSnapshotError::Stale))));
    let again = place.keep();
    assert_ne!(again.id, first.id);
    assert_eq!(place.excluded(&again)["a"], ExclusionReason::Secret);
    assert_eq!(place.captured(&again)["b"], "harmless");
    let bytes = all_bytes(place.store.folder());
    assert!(!bytes.windows(12).any(|window| window == b"slipped in\0\0" || window == b"that slipped"));
}

#[test]
fn a_constantly_rewritten_file_is_captured_whole_or_excluded() {
    let place = TestFolder::new();
    let path = place.root.join("busy");
    fs::write(&path, vec![b'0'; 100_000]).expect("a file");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for digit in (b'0'..=b'9').cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                fs::write(&path, vec![digit; 100_000]).expect("a file");
            }
        });
        for _ in 0..30 {
            let taken = place.keep();
            if let Some(text) = place.captured(&taken).get("busy") {
                assert!(text.bytes().all(|byte| byte == text.as_bytes()[0]), "torn");
            } else {
                assert_eq!(place.excluded(&taken)["busy"], ExclusionReason::Changing);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_snapshot_does_not_block_the_store_and_can_be_cancelled() {
    let mut place = TestFolder::new();
    place.store = retake_store::Store::open(&place.root.join("inside")).expect("a store");
    for number in 0..2000 {
        place.write(&format!("many/{number}"), "x");
    }
    let taken = place.take();
    let taken = commit(&place.store, taken);
    assert_eq!(place.excluded(&taken)["inside"], ExclusionReason::Repository);
    let cancelled = snapshot_with(&place.store, &place.workspace(), &|_| std::ops::ControlFlow::Break(()));
    assert!(matches!(cancelled, Err(SnapshotError::Cancelled)));
}
