//! Bulk content: stored once, checked when it is read, found again without its index, and gone when it should be.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::*;
use retake_model::content::{ContentId, Kind};
use retake_model::object::{NewObject, Objects, Unavailable};
use retake_model::time::Timestamp;
use retake_store::{Change, Mode, PackedBatch, Problem, Store};

fn now() -> Timestamp {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    Timestamp::from_millis(now.as_millis() as i64)
}

fn blob(number: usize) -> (ContentId, Vec<u8>) {
    let bytes = format!("the text of file {number}\n").repeat(1 + number % 50).into_bytes();
    (ContentId::of(Kind::Blob, &bytes), bytes)
}

#[allow(clippy::needless_pass_by_value)]
fn pack(store: &Store, numbers: std::ops::Range<usize>) -> PackedBatch {
    let writer = store.pack_writer().expect("a writer");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let numbers = numbers.clone();
            let writer = &writer;
            scope.spawn(move || {
                for (id, bytes) in numbers.map(blob) {
                    writer.add(id, &bytes).expect("it is added");
                }
            });
        }
    });
    writer.finish().expect("it is durable")
}

fn put(store: &Store, batch: PackedBatch) {
    store.write(move |writing| writing.put_packed(&batch, now())).expect("it is stored");
}

fn read(store: &Store, number: usize) -> Result<Vec<u8>, Unavailable> {
    let reading = store.read().expect("a reading");
    reading.queries().bytes(Kind::Blob, blob(number).0).map(|bytes| bytes.to_vec())
}

fn packs(store: &Store) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(store.folder().join("packs"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

#[test]
fn what_is_packed_is_read_back_and_private() {
    let folder = Folder::new();
    let store = folder.open();
    let batch = pack(&store, 0..3000);
    assert_eq!(batch.len(), 3000, "each blob once");
    assert!(matches!(read(&store, 7), Err(Unavailable::Missing { .. })), "nothing names it yet");
    put(&store, batch);
    for number in (0..3000).step_by(7) {
        assert_eq!(read(&store, number).expect("it is there"), blob(number).1);
    }
    assert!(matches!(read(&store, 3001), Err(Unavailable::Missing { .. })));
    for file in packs(&store) {
        let mode = fs::metadata(&file).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }
    let mode = fs::metadata(store.folder().join("packs")).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    let usage = store.usage().expect("counted");
    assert!(usage.packs > 0 && usage.total > usage.packs && usage.objects >= 3000, "{usage:?}");
    let verified = assert_clean(&store);
    assert_eq!(verified.objects, 3000);
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let folder = Folder::new();
    let store = folder.open();
    let writer = store.pack_writer().expect("a writer");
    for (id, bytes) in (0..5000).map(blob) {
        writer.add(id, &bytes).expect("it is added");
    }
    assert_eq!(packs(&store).len(), 1);
    drop(writer);
    assert!(packs(&store).is_empty());
}

#[test]
fn a_batch_that_nobody_named_is_garbage_once_nobody_holds_it() {
    let folder = Folder::new();
    let store = folder.open();
    let batch = pack(&store, 0..100);
    let later = Timestamp::from_millis(now().millis() + 10_000);
    let collect = || store.collect(Duration::ZERO, later, Mode::Collect).expect("it runs");
    collect();
    assert_eq!(packs(&store).len(), 1, "somebody holds it");
    drop(batch);
    assert!(collect().freed_file_bytes > 0);
    assert!(packs(&store).is_empty());
}

#[test]
fn garbage_goes_and_the_rest_stays() {
    let folder = Folder::new();
    let store = folder.open();
    put(&store, pack(&store, 0..3000));
    let later = Timestamp::from_millis(now().millis() + 10_000);
    let young = store.collect(Duration::from_hours(1), later, Mode::Collect).expect("it runs");
    assert_eq!((young.unreachable, young.young), (0, 3000));
    let before = store.read().expect("a reading").queries().erasures();
    let dry = store.collect(Duration::ZERO, later, Mode::DryRun).expect("it runs");
    assert_eq!(dry.unreachable, 3000);
    let run = store.collect(Duration::ZERO, later, Mode::Collect).expect("it runs");
    assert_eq!((run.unreachable, run.bytes), (dry.unreachable, dry.bytes));
    assert!(packs(&store).is_empty());
    assert!(store.read().expect("a reading").queries().erasures() > before, "who remembers must ask again");
    assert!(matches!(read(&store, 7), Err(Unavailable::Missing { .. })));
    assert_clean(&store);
}

#[test]
fn a_redacted_blob_is_gone_to_the_last_byte_and_its_neighbours_stay() {
    let folder = Folder::new();
    let store = folder.open();
    // Not compressible, so that its bytes would be found in the file.
    let secret: Vec<u8> = noise(0, 4000);
    let id = ContentId::of(Kind::Blob, &secret);
    let writer = store.pack_writer().expect("a writer");
    for (id, bytes) in (0..100).map(blob) {
        writer.add(id, &bytes).expect("it is added");
    }
    writer.add(id, &secret).expect("it is added");
    put(&store, writer.finish().expect("it is durable"));
    let redacted = store.redact(&[(Kind::Blob, id)], now()).expect("it is redacted");
    assert_eq!(redacted.objects, 1);
    for file in packs(&store) {
        let bytes = fs::read(file).expect("a file");
        assert!(!bytes.windows(16).any(|window| window == &secret[1000..1016]));
    }
    for number in 0..100 {
        assert_eq!(read(&store, number).expect("it stays"), blob(number).1);
    }
    assert_clean(&store);
    let reading = store.read().expect("a reading");
    assert_eq!(reading.queries().bytes(Kind::Blob, id).expect("a stand-in")[..], b"[redacted]"[..]);
}

#[test]
fn damage_is_named_and_what_is_whole_is_found_again_without_the_index() {
    let folder = Folder::new();
    let store = folder.open();
    let writer = store.pack_writer().expect("a writer");
    // A frame each.
    let large: Vec<(ContentId, Vec<u8>)> = (0..4_u8)
        .map(|number| {
            let bytes = noise(number, 300_000);
            (ContentId::of(Kind::Blob, &bytes), bytes)
        })
        .collect();
    for (id, bytes) in &large {
        writer.add(*id, bytes).expect("it is added");
    }
    put(&store, writer.finish().expect("it is durable"));
    let file = packs(&store).remove(0);
    let mut bytes = fs::read(&file).expect("a file");
    bytes[450_000] ^= 1;
    fs::write(&file, &bytes).expect("damage");
    drop(store);
    let store = folder.open();
    let verified = verify(&store);
    assert!(
        matches!(verified.problems[..], [Problem::PackDamaged { pack: 1, .. }]),
        "{:?}",
        verified.problems
    );
    let have = |store: &Store| -> Vec<bool> {
        let reading = store.read().expect("a reading");
        large.iter().map(|(id, _)| reading.queries().bytes(Kind::Blob, *id).is_ok()).collect()
    };
    assert_eq!(have(&store), [true, false, true, true]);
    folder.raw().execute_batch("DELETE FROM packed; DELETE FROM pack").expect("the index is gone");
    assert_eq!(have(&store), [false; 4]);
    let repaired = store.repair(&mut |_| {}, now()).expect("it runs");
    assert_eq!(repaired.changes, [Change::IndexMended { rows: 3 }]);
    assert_eq!(have(&store), [true, false, true, true]);
    assert_clean(&store);
}

#[test]
fn content_without_an_operation_can_be_stored() {
    let folder = Folder::new();
    let store = folder.open();
    let (id, bytes) = blob(1);
    let object = NewObject { id, kind: Kind::Blob, bytes: bytes.clone().into() };
    let again = object.clone();
    assert_eq!(
        store.write(move |writing| writing.put_contents(&[object], now())).expect("stored"),
        bytes.len() as u64
    );
    assert_eq!(store.write(move |writing| writing.put_contents(&[again], now())).expect("stored"), 0);
    assert_eq!(read(&store, 1).expect("it is there"), bytes);
}

/// Bytes that nothing can compress.
fn noise(seed: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
    bytes
}
