//! Objects in the rows of operations: found, checked, kept and destroyed like those in rows of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::support::*;
use retake_model::content::{ContentId, Kind};
use retake_model::id::ThreadId;
use retake_model::time::Timestamp;
use retake_store::{CollectMode, Store};

const SECRET: &str = "hunter2-correct-horse-battery-staple";

fn later() -> Timestamp {
    Timestamp::from_millis(START + 1_000_000_000)
}

fn count(folder: &Folder, sql: &str) -> i64 {
    folder.raw_bundled().query_row(sql, [], |row| row.get(0)).expect("a number")
}

/// Publishes until names were gathered and sorted several times.
fn long_thread(store: &Store, operations: u64) -> ThreadId {
    let grown = grow(store);
    let thread = grown.threads[0];
    let take = active(store, thread);
    for number in 0..operations {
        publish(store, thread, say(take, "User", &format!("message {number}")));
    }
    thread
}

#[test]
fn an_operation_holds_its_new_objects() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let raw = folder.raw_bundled();
    assert_eq!(count(&folder, "SELECT count(*) FROM object"), 0);
    let mut seen = BTreeSet::new();
    let bundles = bundles(&raw).expect("readable");
    assert!(bundles.len() > 5);
    for (_, bundle) in bundles {
        for (name, kind, bytes) in unbundle(&bundle) {
            let kind = Kind::from_number(kind).expect("a kind");
            let id = ContentId::of(kind, &bytes);
            assert_eq!(id.prefix(), name);
            assert!(seen.insert(id), "each object is stored once");
        }
    }
    let large = "much text, ".repeat(10_000);
    let thread = create(&store, grow_project(&store), "large");
    publish(&store, thread, say(active(&store, thread), "User", &large));
    assert_eq!(count(&folder, "SELECT count(*) FROM object"), 1, "a large object has a row of its own");
    assert_clean(&store);
}

fn grow_project(store: &Store) -> retake_model::id::ProjectId {
    let reading = store.read().expect("a read transaction");
    reading.queries().projects().expect("readable")[0].id
}

#[test]
fn names_are_found_before_and_after_they_are_gathered_and_sorted() {
    let folder = Folder::new();
    let (store, other) = (folder.open(), folder.open());
    let thread = long_thread(&store, 300);
    assert!(count(&folder, "SELECT count(*) FROM object_recent WHERE first < 0") > 0, "gathered");
    assert!(count(&folder, "SELECT count(*) FROM object_index WHERE number < 0") > 2_000, "sorted");
    let found = dump(&store).expect("readable");
    assert_eq!(dump(&other).expect("readable"), found, "another process finds them");
    publish(&other, thread, say(active(&other, thread), "User", "from the other"));
    let found = dump(&other).expect("readable");
    assert_eq!(dump(&store).expect("readable"), found);
    assert_eq!(dump(&folder.open()).expect("readable"), found, "and a new one");
    assert_clean(&store);
    assert_clean(&other);
}

#[test]
fn damage_in_a_bundle_is_reported_and_costs_only_its_objects() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let original = dump(&store).expect("readable");
    drop(store);
    let bytes = std::fs::read(folder.database()).expect("readable");
    let bundles = bundles(&folder.raw_bundled()).expect("readable");
    let mut random = Random(7);
    let mut quarantined = 0;
    for round in 0..60 {
        let (sequence, bundle) = &bundles[random.below(bundles.len() as u64) as usize];
        let mut damaged = bundle.clone();
        let at = random.below(damaged.len() as u64) as usize;
        match round % 4 {
            0 => damaged.truncate(at),
            _ => damaged[at] ^= 1 << random.below(8),
        }
        std::fs::write(folder.database(), &bytes).expect("write succeeds");
        let change = "UPDATE operation SET bundle = ?2 WHERE sequence = ?1";
        folder.raw_bundled().execute(change, (sequence, &damaged)).expect("damage planted");
        let store = folder.open();
        let what = format!("round {round}: bundle {sequence}, byte {at}");
        let found = verify(&store);
        assert!(codes(&found).contains(&"object_damaged"), "{what}: {:?}", found.problems);
        for (name, value) in dump(&store).unwrap_or_default() {
            assert_eq!(original.get(&name), Some(&value), "{what}: {name}");
        }
        let repaired = store.repair(&mut |_| {}, later()).expect("the repair runs");
        assert_clean(&store);
        quarantined += repaired.changes.iter().filter(|change| change.code() == "object_quarantined").count();
        let left = dump_what_is_left(&store);
        for (name, value) in &left {
            let content = ["state", "settings", "entry"].iter().any(|kind| name.starts_with(kind));
            if let Some(was) = original.get(name).filter(|_| content) {
                assert_eq!(was, value, "{what}: {name}");
            }
        }
        drop(store);
    }
    assert!(quarantined > 20, "{quarantined}");
}

/// Texts of all threads, by title.
fn texts(store: &Store) -> BTreeMap<String, Vec<String>> {
    let reading = store.read().expect("a read transaction");
    let rows = reading.queries().threads(&retake_store::ThreadFilter::default()).expect("threads");
    rows.into_iter()
        .map(|row| {
            let texts = entries(store, row.summary.id).into_iter().map(|entry| entry.2);
            (row.summary.title, texts.collect())
        })
        .collect()
}

#[test]
fn a_purge_keeps_what_other_threads_took_from_its_bundles() {
    let folder = Folder::new();
    let store = folder.open();
    let project = grow(&store).project;
    let first = create(&store, project, "first");
    publish(&store, first, say(active(&store, first), "User", "shared words"));
    publish(&store, first, say(active(&store, first), "User", SECRET));
    let second = create(&store, project, "second");
    let (_, shared, _) = entries(&store, first).remove(0);
    let shares = create(&store, project, "third");
    for thread in [second, shares] {
        publish(&store, thread, say(active(&store, thread), "User", "shared words"));
    }
    let mut expected = texts(&store);
    expected.remove("first");
    let preview = store.preview_purge(&[first]).expect("a preview");
    let purged = store.purge_threads(&[first]).expect("purge succeeds");
    assert_eq!((purged.objects, purged.bytes), (preview.objects, preview.bytes));
    assert!(purged.objects > 5, "{purged:?}");
    assert_eq!(texts(&store), expected);
    assert_clean(&store);
    let reading = store.read().expect("a read transaction");
    assert!(reading.queries().contains(Kind::Entry, shared).is_ok());
    drop(reading);
    assert!(!contains(&raw_bytes(&folder.path), SECRET.as_bytes()));
    store.purge_threads(&[second, shares]).expect("purge succeeds");
    assert_clean(&store);
}

#[test]
fn a_redaction_takes_an_entry_out_of_its_bundle_and_leaves_the_rest() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[0];
    // Long enough to be compressed.
    let secret = format!("{SECRET} {}", "and much more. ".repeat(100));
    let text = format!("before {secret}");
    publish(&store, thread, say(active(&store, thread), "User", &text));
    publish(&store, thread, say(active(&store, thread), "AI", "after"));
    let before = entries(&store, thread);
    let (_, version, _) = before[before.len() - 2].clone();
    assert!(folder_holds(&folder), "the control: it is there before");
    let redacted = store.redact(&[(Kind::Entry, version)], later()).expect("redaction succeeds");
    assert_eq!(redacted.objects, 1);
    assert!(!folder_holds(&folder));
    let after = entries(&store, thread);
    assert_eq!(after.len(), before.len());
    assert_eq!(after.last(), before.last());
    assert_eq!(after[after.len() - 2].2, "[redacted]");
    assert_clean(&store);
}

/// Whether a bundle or a file contains the secret.
fn folder_holds(folder: &Folder) -> bool {
    let raw = folder.raw_bundled();
    let bundles = bundles(&raw).expect("readable");
    let bundled = bundles.iter().flat_map(|(_, bundle)| unbundle(bundle));
    let holds = |bytes: &[u8]| contains(bytes, SECRET.as_bytes());
    bundled.into_iter().any(|(.., bytes)| holds(&bytes)) || holds(&raw_bytes(&folder.path))
}

#[test]
fn garbage_in_a_bundle_is_collected() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let before = dump(&store).expect("readable");
    let objects = verify(&store).objects;
    drop(store);
    // An object that nothing refers to, in the bundle of the last operation.
    let raw = folder.raw_bundled();
    let (sequence, bundle) = bundles(&raw).expect("readable").pop().expect("a bundle");
    let text = b"nobody needs this".to_vec();
    let mut all = unbundle(&bundle);
    all.push((ContentId::of(Kind::Blob, &text).prefix(), Kind::Blob as u8, text));
    let change = "UPDATE operation SET bundle = ?2 WHERE sequence = ?1";
    raw.execute(change, (sequence, plain_bundle(&all))).expect("a change");
    drop(raw);
    let store = folder.open();
    assert_eq!(assert_clean(&store).objects, objects + 1);
    let grace = Duration::from_hours(1);
    let dry = store.collect(grace, later(), CollectMode::DryRun).expect("the collection runs");
    assert_eq!((dry.unreachable, dry.bytes, dry.young), (1, 17, 0));
    let run = store.collect(grace, later(), CollectMode::Collect).expect("the collection runs");
    assert_eq!((run.unreachable, run.bytes), (1, 17));
    assert_eq!(assert_clean(&store).objects, objects);
    assert_eq!(dump(&store).expect("readable"), before);
}

/// Encodes a bundle without compression, and without the code of the store.
fn plain_bundle(objects: &[Bundled]) -> Vec<u8> {
    let number = |mut number: usize| {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    };
    let mut bytes = vec![1];
    bytes.extend(number(objects.len()));
    for (name, kind, content) in objects {
        bytes.extend(name.to_be_bytes());
        bytes.push(*kind);
        bytes.extend(number(content.len()));
    }
    bytes.push(0);
    for is_node in [false, true] {
        let part = objects.iter().filter(|(_, kind, _)| (*kind == 2 || *kind == 4) == is_node);
        bytes.extend(part.flat_map(|(.., content)| content));
    }
    bytes
}

/// Names in recent bundles are read from the log. A damaged page of it must not hide others.
#[test]
fn a_damaged_page_of_the_log_concerns_only_its_own_operations() {
    let folder = Folder::new();
    let store = folder.open();
    let grown = grow(&store);
    let (harmed, other) = (grown.threads[0], grown.threads[1]);
    // Neighbours share a page, and equal texts are stored once.
    for (name, thread, count) in [("before", other, 20), ("harmed", harmed, 20), ("after", other, 5)] {
        for number in 0..count {
            let text = format!("{name} {number} and so on, ").repeat(200);
            publish(&store, thread, say(active(&store, thread), "User", &text));
        }
    }
    let page = {
        let reading = store.read().expect("a read transaction");
        let row = reading.queries().thread(harmed).expect("readable").expect("a thread");
        let back = reading.queries().operations_back(row.number, row.summary.version, 10).expect("readable");
        drop(reading);
        drop(store);
        let bytes = std::fs::read(folder.database()).expect("a file");
        let id = back.last().expect("ten operations").id;
        bytes.windows(32).position(|window| window == id.bytes()).expect("its row") / PAGE
    };
    let mut bytes = std::fs::read(folder.database()).expect("a file");
    bytes[page * PAGE..(page + 1) * PAGE].fill(0x5a);
    std::fs::write(folder.database(), bytes).expect("write succeeds");
    let gathered = -count(&folder, "SELECT min(first) FROM object_recent");
    assert!(
        count(&folder, "SELECT max(sequence) FROM operation") - gathered > 15,
        "its names are in the log alone"
    );
    let store = folder.open();
    let before = entries(&store, other);
    assert!(before.len() >= 25);
    assert!(!verify(&store).is_clean());
    store.repair(&mut |_| {}, later()).expect("a repair");
    assert_clean(&store);
    assert_eq!(entries(&store, other), before);
    publish(&store, other, say(active(&store, other), "User", "after the repair"));
}
