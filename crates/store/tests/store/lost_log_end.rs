//! Detects a log that lost its end: SQLite drops a damaged end silently, the high-water mark beside it does
//! not.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::*;
use retake_store::Store;

/// Copies an open store as a crash would leave it, with its write-ahead log truncated to the given length.
fn crashed(folder: &Folder, name: &str, log: impl FnOnce(u64) -> u64) -> PathBuf {
    let copy = folder.path.with_file_name(name);
    fs::create_dir(&copy).expect("a new folder");
    for file in ["retake.db", "retake.db-wal", "writer.lock"] {
        fs::copy(folder.path.join(file), copy.join(file)).expect("a copy");
    }
    let wal = fs::OpenOptions::new().write(true).open(copy.join("retake.db-wal")).expect("the log");
    let length = wal.metadata().expect("a length").len();
    wal.set_len(log(length)).expect("a shorter log");
    copy
}

fn open(path: &Path) -> Store {
    Store::open(path).expect("the store opens")
}

#[test]
fn a_truncated_log_is_detected_and_a_complete_one_accepted() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[1];
    for turn in 0..5 {
        publish(&store, thread, say(active(&store, thread), "User", &format!("turn {turn}")));
    }
    let whole = open(&crashed(&folder, "whole", |length| length));
    assert_eq!(whole.lost_log_end().expect("readable"), None);
    assert_clean(&whole);
    let cut = open(&crashed(&folder, "cut", |length| length - PAGE as u64));
    let lost = cut.lost_log_end().expect("readable").expect("the loss is detected");
    assert_eq!(lost.acknowledged - lost.found, 1, "the last operation is gone");
    assert!(codes(&verify(&cut)).contains(&"log_end_lost"));
    let repaired =
        cut.repair(&mut |_| {}, retake_model::time::Timestamp::from_millis(START)).expect("a repair");
    assert!(repaired.changes.iter().any(|change| change.code() == "log_end_lost"));
    assert_clean(&cut);
}

#[test]
fn a_missing_or_empty_database_is_detected() {
    for emptied in [true, false] {
        let folder = Folder::new();
        let store = folder.open();
        grow(&store);
        drop(store);
        if emptied {
            fs::write(folder.database(), b"").expect("write succeeds");
        } else {
            fs::remove_file(folder.database()).expect("file removed");
        }
        let store = folder.open();
        assert!(codes(&verify(&store)).contains(&"log_end_lost"), "emptied: {emptied}");
        let repaired =
            store.repair(&mut |_| {}, retake_model::time::Timestamp::from_millis(START)).expect("a repair");
        assert!(repaired.changes.iter().any(|change| change.code() == "log_end_lost"), "{repaired:?}");
    }
}
