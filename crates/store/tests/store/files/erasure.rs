//! Erased content is gone from every file of the store, including packs.

use std::fmt::Write as _;

use retake_model::content::Kind;
use retake_model::id::FolderId;
use retake_model::object::{Additions, MemoryObjects, Objects};
use retake_model::path::FileName;
use retake_model::tree::{Node, Snapshot, SnapshotRoot, Tree, TreeEntry, add_file, chunk_ranges, read};
use retake_store::Secrets;

use super::world::*;
use crate::support::*;

#[test]
fn a_purge_erases_its_bytes_from_packs() {
    let world = World::new();
    let other = create(&world.store, world.project, "another");
    let (secret, shared) = (noise(7, 4000), noise(8, 4000));
    // In one frame, so that the remaining blob has to move.
    let both = snapshot(&world.store, &[secret.clone(), shared.clone()]);
    look(&world.store, other, both, both);
    let kept = snapshot(&world.store, std::slice::from_ref(&shared));
    look(&world.store, world.thread, world.snapshots[1], kept);
    assert!(is_on_disk(&world.folder.path, &secret), "the control: it is there before");
    let preview = world.store.preview_purge(&[other]).expect("a preview");
    let purged = world.store.purge_threads(&[other]).expect("purge succeeds");
    assert_eq!((purged.objects, purged.bytes), (preview.objects, preview.bytes));
    assert!(!is_on_disk(&world.folder.path, &secret));
    assert!(!has(&world.store, &secret) && has(&world.store, &shared));
    assert_clean(&world.store);
    assert_eq!(collect(&world.store).unreachable, 0, "a purge leaves no garbage of packs");
    let World { folder, store, .. } = world;
    drop(store);
    assert!(!is_on_disk(&folder.path, &secret));
}

#[test]
fn purging_the_last_thread_of_a_project_removes_the_folder() {
    let world = World::moving();
    let id = FolderId::of_project(world.project);
    let other = create(&world.store, world.project, "another");
    let only = noise(7, 4000);
    put_folder(&world.store, world.project, snapshot(&world.store, std::slice::from_ref(&only)));
    world.store.purge_threads(&[world.thread]).expect("purge succeeds");
    let reading = world.store.read().expect("a read transaction");
    assert!(reading.queries().folder(id).expect("readable").is_some(), "another thread may need it");
    assert_eq!(reading.queries().intents().expect("readable"), [], "there is nothing left to lead to");
    drop(reading);
    assert!(has(&world.store, &only));
    world.store.purge_threads(&[other]).expect("purge succeeds");
    let reading = world.store.read().expect("a read transaction");
    assert_eq!(reading.queries().folders().expect("readable"), []);
    drop(reading);
    assert!(!is_on_disk(&world.folder.path, &only));
    assert_clean(&world.store);
}

#[test]
fn a_redacted_file_leaves_its_history_intact() {
    let world = World::moving();
    let (secret, shared) = (noise(7, 4000), noise(8, 4000));
    let both = snapshot(&world.store, &[shared.clone(), secret.clone()]);
    put_folder(&world.store, world.project, both);
    assert!(is_on_disk(&world.folder.path, &secret), "the control: it is there before");
    let redacted = world.store.redact(&[(Kind::Blob, blob(&secret))], now()).expect("redaction succeeds");
    assert_eq!(redacted.objects, 1);
    assert!(!is_on_disk(&world.folder.path, &secret));
    assert!(has(&world.store, &shared));
    let reading = world.store.read().expect("a read transaction");
    let found = reading.queries().bytes(Kind::Blob, blob(&secret)).expect("a placeholder");
    assert_eq!(found[..], b"[redacted]"[..]);
    drop(reading);
    assert_clean(&world.store);
    let repaired = world.store.repair(&mut |_| {}, now()).expect("run succeeds");
    assert!(repaired.is_unchanged(), "{repaired:?}");
    collect(&world.store);
    assert_clean(&world.store);
}

/// Stores a file in a snapshot of a folder, in chunks, and makes the snapshot that of the project.
fn put_large(world: &World, text: &str) -> Node {
    let base = MemoryObjects::default();
    let mut additions = Additions::new(&base);
    let node = add_file(&mut additions, text.as_bytes().to_vec(), 0o644);
    let entry = TreeEntry { name: FileName::new(b"large").expect("a name"), node: node.clone() };
    let tree = Tree::new(vec![entry]).add_to(&mut additions);
    let root = SnapshotRoot {
        name: String::new(),
        tree,
        excluded: None,
        files: 1,
        bytes: text.len() as u64,
        sealed: None,
    };
    let snapshot = additions.add(&Snapshot { roots: vec![root] });
    let objects = additions.into_new();
    world.store.write(move |writing| writing.put_contents(&objects, now())).expect("content stored");
    look(&world.store, world.thread, snapshot, snapshot);
    node
}

#[test]
fn a_text_across_two_chunks_of_a_file_is_found_and_destroyed() {
    let world = World::new();
    let text = noise(9, 200_000).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string grows");
        text
    });
    let first = put_large(&world, &text);
    let ranges = {
        let reading = world.store.read().expect("a read transaction");
        chunk_ranges(&reading.queries(), &first).expect("readable")
    };
    assert!(ranges.len() > 10, "{}", ranges.len());
    // From one chunk to the next, in the middle of the file.
    let boundary = ranges[5].1.end as usize;
    let secret = &text[boundary - 12..boundary + 12];
    let edited = text.replace(secret, &"x".repeat(24));
    let second = put_large(&world, &edited);
    let (Node::File { content, .. }, Node::File { content: kept, .. }) = (&first, &second) else {
        unreachable!("both are files")
    };

    let mut secrets = Secrets::default();
    secrets.add_passage(secret);
    let found = world.store.redact_with(&[], &secrets, &[], now()).expect("nothing to destroy").remaining;
    assert_eq!(found.iter().map(|place| place.id).collect::<Vec<_>>(), [Some(*content)]);

    let redacted =
        world.store.redact_with(&[(Kind::Blob, *content)], &secrets, &[], now()).expect("redaction succeeds");
    assert_eq!(redacted.remaining, []);
    let reading = world.store.read().expect("a read transaction");
    assert!(read(&reading.queries(), &first).is_err());
    assert_eq!(read(&reading.queries(), &second).expect("it shares most chunks"), edited.as_bytes());
    assert!(reading.queries().redacted().expect("readable").contains(content), "it is not captured again");
    assert_ne!(content, kept);
    drop(reading);
    assert_clean(&world.store);
    collect(&world.store);
    assert_clean(&world.store);
}
