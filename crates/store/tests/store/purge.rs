//! Purge and redaction destroy the named content down to the bytes of the files, and nothing else.

use crate::support::*;
use retake_model::content::Kind;
use retake_model::time::Timestamp;
use retake_store::{PurgeReport, RedactError, Store, WalState};

const SECRET: &str = "hunter2-correct-horse-battery-staple";

fn secret_is_on_disk(folder: &Folder) -> bool {
    contains(&raw_bytes(&folder.path), SECRET.as_bytes())
}

/// A thread with a secret in an entry, a draft and a title, and with text that another thread shares.
fn with_secret(store: &Store) -> (SampleProject, retake_model::id::ThreadId) {
    let grown = grow(store);
    let thread = create(store, grown.project, "Deploy");
    let take = active(store, thread);
    publish(store, thread, say(take, "User", &format!("the password is {SECRET}")));
    publish(store, thread, say(take, "AI", "answer 3"));
    put_project(store, grown.project, Some(thread));
    (grown, thread)
}

#[test]
fn a_purged_thread_leaves_no_bytes() {
    let folder = Folder::new();
    let store = folder.open();
    let (grown, thread) = with_secret(&store);
    assert!(secret_is_on_disk(&folder), "the control: it is there before");
    let before = dump(&store).expect("readable");
    let preview = store.preview_purge(&[thread]).expect("a preview");
    assert_eq!(dump(&store).expect("readable"), before, "a preview destroys nothing");
    assert_eq!((preview.threads, preview.operations, preview.log), (1, 3, None));
    let purged = store.purge_threads(&[thread]).expect("purge succeeds");
    assert_eq!(purged.log, Some(WalState::Emptied));
    assert_eq!(PurgeReport { log: None, ..purged }, preview);
    assert!(!secret_is_on_disk(&folder));
    let after = dump(&store).expect("readable");
    assert!(after.keys().all(|name| !name.contains(&thread.to_string())));
    for (name, value) in &after {
        if !name.starts_with("project") {
            assert_eq!(before.get(name), Some(value), "{name}");
        }
    }
    assert_eq!(entries(&store, grown.threads[0]).len(), 2, "the other threads are whole");
    let reading = store.read().expect("a read transaction");
    let project = reading.queries().project(grown.project).expect("readable").expect("row exists");
    assert!(project.current.is_some_and(|current| current != thread), "another thread is current now");
    // Followers of the log see the purge.
    let last = reading.queries().last_sequence().expect("readable");
    let operations = reading.queries().operations_since(last - 1, 10).expect("readable");
    assert!(matches!(operations.as_slice(), [(_, _, None)]));
    drop(reading);
    assert_clean(&store);
    assert_eq!(store.purge_threads(&[thread]).expect("purge succeeds"), PurgeReport::default());
    drop(store);
    assert!(!secret_is_on_disk(&folder));
}

#[test]
fn a_purge_reports_bytes_retained_by_a_reader() {
    let folder = Folder::new();
    let store = folder.open();
    let (_, thread) = with_secret(&store);
    let other = folder.open();
    let reading = other.read().expect("a read transaction");
    let purged = store.purge_threads(&[thread]).expect("purge succeeds");
    assert_eq!(purged.log, Some(WalState::HeldByReader));
    drop(reading);
    drop(other);
    drop(store);
    assert!(!secret_is_on_disk(&folder), "the last to close empties the log");
}

#[test]
fn redacted_content_is_gone_and_its_history_works() {
    let folder = Folder::new();
    let store = folder.open();
    let (_, thread) = with_secret(&store);
    let secret = entries(&store, thread)[0].1;
    let now = Timestamp::from_millis(START);
    assert!(secret_is_on_disk(&folder), "the control: it is there before");
    let redacted = store.redact(&[(Kind::Entry, secret)], now).expect("redaction succeeds");
    assert_eq!((redacted.objects, redacted.log), (1, WalState::Emptied));
    assert!(!secret_is_on_disk(&folder));
    let texts: Vec<String> = entries(&store, thread).into_iter().map(|entry| entry.2).collect();
    assert_eq!(texts, ["[redacted]", "answer 3"]);
    assert_clean(&store);
    publish(&store, thread, NextOperation::Undo);
    publish(&store, thread, NextOperation::Redo);
    assert_clean(&store);
    let again = store.redact(&[(Kind::Entry, secret)], now).expect("redaction succeeds");
    assert_eq!((again.objects, again.log), (0, WalState::Emptied));
    drop(store);
    assert!(!secret_is_on_disk(&folder));
}

#[test]
fn structure_cannot_be_redacted() {
    let folder = Folder::new();
    let store = folder.open();
    let (_, thread) = with_secret(&store);
    let before = dump(&store).expect("readable");
    let reading = store.read().expect("a read transaction");
    let head = reading.queries().head(number_of(&store, thread)).expect("readable").expect("a head");
    drop(reading);
    let refused = store.redact(&[(Kind::State, head.operation.after)], Timestamp::from_millis(START));
    assert!(matches!(refused, Err(RedactError::Structure { .. })));
    assert_eq!(dump(&store).expect("readable"), before);
}

#[test]
fn redacted_content_is_not_served_from_another_process_cache() {
    let folder = Folder::new();
    let (one, other) = (folder.open(), folder.open());
    let thread = grow(&one).threads[0];
    publish(&one, thread, say(active(&one, thread), "User", "a secret"));
    let (_, version, text) = entries(&other, thread).pop().expect("an entry");
    assert_eq!(text, "a secret");
    let now = retake_model::time::Timestamp::from_millis(START);
    one.redact(&[(retake_model::content::Kind::Entry, version)], now).expect("a redaction");
    assert_eq!(entries(&other, thread).pop().expect("an entry").2, "[redacted]");
}
