//! A remote of objects: what is new, purge, redaction, packs, and places that are not remotes.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use retake_model::content::{ContentId, Kind};
use retake_model::id::ThreadId;
use retake_model::object::NewObject;
use retake_model::replica::ReplicaOperation;
use retake_sync::bundle::{self, BundleId, BundleWriter};
use retake_sync::remote::{
    FeedEvent, FolderRemote, OpenRemoteError, PackHead, ProjectKey, PushOutcome, Remedy, Remote, RemoteError,
    RemoteHead, RemoteSummary, Seen,
};
use retake_sync::wire::ThreadDetails;
use tempfile::TempDir;

const THREAD: ThreadId = ThreadId::from_bytes([3; 16]);

fn remote() -> (TempDir, FolderRemote) {
    let base = tempfile::tempdir().expect("a temporary folder");
    let remote = FolderRemote::create_in_folder(&base.path().join("remote")).expect("a remote");
    (base, remote)
}

fn bundle(number: u64, text: &str) -> (RemoteHead, Vec<u8>) {
    let previous = (number > 1).then(|| ContentId::from_bytes([9; 32]));
    let mut writer = BundleWriter::new(THREAD, number, previous).expect("a bundle");
    let bytes = text.as_bytes().to_vec();
    let object = NewObject { id: ContentId::of(Kind::Blob, &bytes), kind: Kind::Blob, bytes: bytes.into() };
    let operation =
        ReplicaOperation { operation: vec![number as u8; 8], objects: vec![object], redacted: Vec::new() };
    writer.add(&operation).expect("it fits");
    let bytes = writer.finish().expect("a bundle");
    let summary = RemoteSummary {
        title: text.to_owned(),
        project: ProjectKey::default(),
        updated: number as i64,
        details: ThreadDetails::default(),
    };
    let head = RemoteHead {
        number,
        first: number,
        last: number,
        head: ContentId::from_bytes([number as u8; 32]),
        bundle: BundleId::of(&bytes),
        bytes: bytes.len() as u64,
        summary,
    };
    (head, bytes)
}

fn push(remote: &FolderRemote, number: u64, text: &str) -> PushOutcome {
    let (head, bytes) = bundle(number, text);
    remote.push(THREAD, &head, &bytes).expect("a push")
}

#[test]
fn news_are_the_threads_with_more_bundles() {
    let (_base, remote) = remote();
    let moved = |known: u64| {
        let heads = [(THREAD, known)].into_iter().filter(|(_, known)| *known > 0).collect();
        let feed = remote.feed(&Seen { cursor: None, heads }, Duration::ZERO).expect("news");
        feed.events == [FeedEvent::Moved(THREAD)]
    };
    assert!(!moved(0));
    assert_eq!(push(&remote, 1, "one"), PushOutcome::Added);
    assert!(moved(0) && !moved(1));
    assert_eq!(push(&remote, 2, "two"), PushOutcome::Added);
    assert_eq!(push(&remote, 2, "other"), PushOutcome::Moved);
    assert!(moved(0) && moved(1) && !moved(2));
    assert_eq!(push(&remote, 4, "gap"), PushOutcome::Moved);
    assert_eq!(remote.threads().expect("threads").len(), 1);
}

#[test]
fn a_purged_thread_leaves_nothing_but_its_mark() {
    let (base, remote) = remote();
    push(&remote, 1, "Wqzx secret");
    remote.purge(THREAD).expect("purged");
    let refused =
        |result: Result<(), RemoteError>| result.is_err_and(|error| error.remedy() == Remedy::Purged);
    assert!(refused(remote.heads(THREAD, 0).map(drop)));
    let (head, bytes) = bundle(1, "Wqzx secret");
    assert!(refused(remote.push(THREAD, &head, &bytes).map(drop)));
    assert!(remote.threads().expect("threads").is_empty());
    let feed = remote.feed(&Seen::default(), Duration::ZERO).expect("news");
    assert_eq!(feed.events, [FeedEvent::Purged(THREAD)]);
    let seen = Seen { cursor: feed.cursor, ..Seen::default() };
    assert!(remote.feed(&seen, Duration::ZERO).expect("news").events.is_empty());
    let thread = base.path().join("remote/threads").join(THREAD.to_string());
    for part in ["heads", "bundles"] {
        assert_eq!(fs::read_dir(thread.join(part)).expect("a folder").count(), 0, "{part}");
    }
}

#[test]
fn redacted_content_is_in_no_bundle_and_never_comes_back() {
    let (_base, remote) = remote();
    let secret = ContentId::of(Kind::Blob, b"secret");
    for (number, text) in [(1, "one"), (2, "secret"), (3, "three")] {
        push(&remote, number, text);
    }
    let content = |number: u64| -> (Vec<ContentId>, Vec<ContentId>) {
        let head = remote.heads(THREAD, number - 1).expect("heads").remove(0);
        let (header, operations) =
            bundle::decode(&remote.bundle(THREAD, &head).expect("bytes")).expect("a bundle");
        assert_eq!(header.first, number);
        let objects =
            operations.iter().flat_map(|operation| operation.objects.iter().map(|object| object.id));
        let redacted = operations.iter().flat_map(|operation| operation.redacted.iter().map(|(_, id)| *id));
        (objects.collect(), redacted.collect())
    };
    assert_eq!(content(2), (vec![secret], vec![]));
    remote.redact(THREAD, &[secret]).expect("redacted");
    assert_eq!(content(2), (vec![], vec![secret]));
    assert_eq!(content(3).1, []);
    assert_eq!(remote.redactions(THREAD).expect("a list"), [secret]);
    // A machine that does not know yet sends it again.
    push(&remote, 4, "secret");
    assert_eq!(content(4), (vec![], vec![secret]));
    let events: BTreeSet<String> = remote
        .feed(&Seen::default(), Duration::ZERO)
        .expect("news")
        .events
        .iter()
        .map(|event| format!("{event:?}"))
        .collect();
    assert!(events.contains(&format!("{:?}", FeedEvent::Redacted(THREAD))));
}

#[test]
fn packs_belong_to_one_project() {
    let (_base, remote) = remote();
    let name = |id: &str| {
        ProjectKey { id: Some(id.to_owned()), ..ProjectKey::default() }
            .name()
            .expect("it identifies a project")
    };
    let head = PackHead { number: 1, pack: BundleId::of(b"files"), bytes: 5 };
    let first = remote.push_pack(name("a"), &head, b"files").expect("a push");
    let second = remote.push_pack(name("a"), &head, b"files").expect("a push");
    assert_eq!((first, second), (PushOutcome::Added, PushOutcome::Moved));
    assert_eq!(remote.packs(name("a"), 0).expect("packs"), std::slice::from_ref(&head));
    assert_eq!(remote.pack(name("a"), &head).expect("a pack"), b"files");
    assert!(remote.packs(name("b"), 0).expect("packs").is_empty());
    assert!(remote.pack(name("b"), &head).is_err());
}

#[test]
fn only_remotes_and_empty_folders_are_used() {
    let base = tempfile::tempdir().expect("a temporary folder");
    let at = base.path().join("deep/remote");
    assert!(matches!(FolderRemote::in_folder(&at), Err(OpenRemoteError::Remote(_))));
    fs::create_dir_all(&at).expect("a folder");
    assert!(matches!(FolderRemote::in_folder(&at), Err(OpenRemoteError::Missing(_))));
    FolderRemote::create_in_folder(&at).expect("an empty folder");
    FolderRemote::in_folder(&at).expect("a remote");
    fs::write(base.path().join("file"), "text").expect("a file");
    assert!(matches!(FolderRemote::create_in_folder(base.path()), Err(OpenRemoteError::NotEmpty(_))));
    fs::write(at.join("retake-remote.json"), r#"{"format":2}"#).expect("a file");
    let newer = FolderRemote::in_folder(&at).map(drop);
    assert!(matches!(newer, Err(OpenRemoteError::Remote(RemoteError::Newer { found: 2 }))));
}

#[test]
fn a_shared_folder_reaches_nothing_outside_and_nothing_foreign() {
    let (base, remote) = remote();
    push(&remote, 1, "one");
    remote.purge(THREAD).expect("purged");
    let outside = base.path().join("outside");
    let bundles = base.path().join("remote/threads").join(THREAD.to_string()).join("bundles");
    let (number, hash) = (format!("{:020}", 1), "0".repeat(64));
    fs::create_dir(&outside).expect("a folder");
    for name in [&number, &hash, "notes.txt"] {
        fs::write(outside.join(name), "mine").expect("a file");
    }
    // The control: without a symlink, only files with the name of a bundle are removed.
    for name in [&number, &hash, "notes.txt"] {
        fs::write(bundles.join(name), "theirs").expect("a file");
    }
    assert!(matches!(remote.heads(THREAD, 0), Err(RemoteError::Purged)));
    assert!(!bundles.join(&hash).exists());
    assert!(bundles.join("notes.txt").exists() && bundles.join(&number).exists());
    // Someone replaces the folder by a symlink to the user's own files.
    fs::remove_dir_all(&bundles).expect("a folder");
    std::os::unix::fs::symlink(&outside, &bundles).expect("a symlink");
    assert!(matches!(remote.heads(THREAD, 0), Err(RemoteError::Damaged(_))));
    let (head, bytes) = bundle(1, "two");
    assert!(matches!(remote.push(THREAD, &head, &bytes), Err(RemoteError::Damaged(_))));
    assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 3);
}

#[test]
fn a_pipe_or_a_symlink_is_no_object() {
    let (base, remote) = remote();
    push(&remote, 1, "one");
    let head =
        base.path().join("remote/threads").join(THREAD.to_string()).join("heads").join(format!("{:020}", 1));
    let text = fs::read(&head).expect("a head");
    let outside = base.path().join("head");
    fs::write(&outside, text).expect("a file");
    assert!(remote.heads(THREAD, 0).is_ok());
    fs::remove_file(&head).expect("a file");
    std::os::unix::fs::symlink(&outside, &head).expect("a symlink");
    assert!(matches!(remote.heads(THREAD, 0), Err(RemoteError::Damaged(_))));
    fs::remove_file(&head).expect("a file");
    let made = std::process::Command::new("mkfifo").arg(&head).status().expect("mkfifo");
    assert!(made.success());
    assert!(matches!(remote.heads(THREAD, 0), Err(RemoteError::Damaged(_))));
}
