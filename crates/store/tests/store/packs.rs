//! Packs: blobs are stored once, checked on read, recovered without the index, and removed when unused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::*;
use retake_model::content::{ContentId, Kind};
use retake_model::object::{NewObject, ObjectError, Objects};
use retake_model::time::Timestamp;
use retake_store::{CollectMode, PackedBatch, Problem, RepairChange, Store};

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
                    writer.add(id, &bytes).expect("blob added");
                }
            });
        }
    });
    writer.finish().expect("pack finished")
}

fn put(store: &Store, batch: PackedBatch) {
    store.write(move |writing| writing.put_packed(&batch, now())).expect("content stored");
}

fn read(store: &Store, number: usize) -> Result<Vec<u8>, ObjectError> {
    let reading = store.read().expect("a read transaction");
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
fn packed_blobs_are_readable_and_private() {
    let folder = Folder::new();
    let store = folder.open();
    let batch = pack(&store, 0..3000);
    assert_eq!(batch.len(), 3000, "each blob once");
    assert!(matches!(read(&store, 7), Err(ObjectError::Missing { .. })), "nothing names it yet");
    put(&store, batch);
    for number in (0..3000).step_by(7) {
        assert_eq!(read(&store, number).expect("exists"), blob(number).1);
    }
    assert!(matches!(read(&store, 3001), Err(ObjectError::Missing { .. })));
    for file in packs(&store) {
        let mode = fs::metadata(&file).expect("exists").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }
    let mode = fs::metadata(store.folder().join("packs")).expect("exists").permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    let usage = store.usage().expect("usage");
    assert!(usage.packs > 0 && usage.total > usage.packs && usage.objects >= 3000, "{usage:?}");
    let verified = assert_clean(&store);
    assert_eq!(verified.objects, 3000);
}

#[test]
fn a_dropped_writer_leaves_no_files() {
    let folder = Folder::new();
    let store = folder.open();
    let writer = store.pack_writer().expect("a writer");
    for (id, bytes) in (0..5000).map(blob) {
        writer.add(id, &bytes).expect("blob added");
    }
    assert_eq!(packs(&store).len(), 1);
    drop(writer);
    assert!(packs(&store).is_empty());
}

#[test]
fn an_unreferenced_batch_is_garbage_once_released() {
    let folder = Folder::new();
    let store = folder.open();
    let batch = pack(&store, 0..100);
    let later = Timestamp::from_millis(now().millis() + 10_000);
    let collect = || store.collect(Duration::ZERO, later, CollectMode::Collect).expect("run succeeds");
    collect();
    assert_eq!(packs(&store).len(), 1, "somebody holds it");
    drop(batch);
    assert!(collect().freed_file_bytes > 0);
    assert!(packs(&store).is_empty());
}

#[test]
fn collection_removes_only_garbage() {
    let folder = Folder::new();
    let store = folder.open();
    put(&store, pack(&store, 0..3000));
    let later = Timestamp::from_millis(now().millis() + 10_000);
    let young = store.collect(Duration::from_hours(1), later, CollectMode::Collect).expect("run succeeds");
    assert_eq!((young.unreachable, young.young), (0, 3000));
    let before = store.read().expect("a read transaction").queries().erasure_epoch();
    let dry = store.collect(Duration::ZERO, later, CollectMode::DryRun).expect("run succeeds");
    assert_eq!(dry.unreachable, 3000);
    let run = store.collect(Duration::ZERO, later, CollectMode::Collect).expect("run succeeds");
    assert_eq!((run.unreachable, run.bytes), (dry.unreachable, dry.bytes));
    assert!(packs(&store).is_empty());
    assert!(
        store.read().expect("a read transaction").queries().erasure_epoch() > before,
        "who remembers must ask again"
    );
    assert!(matches!(read(&store, 7), Err(ObjectError::Missing { .. })));
    assert_clean(&store);
}

#[test]
fn a_redacted_blob_leaves_no_bytes_and_its_neighbours_stay() {
    let folder = Folder::new();
    let store = folder.open();
    // Incompressible, so that its bytes would appear in the file.
    let secret: Vec<u8> = noise(0, 4000);
    let id = ContentId::of(Kind::Blob, &secret);
    let writer = store.pack_writer().expect("a writer");
    for (id, bytes) in (0..100).map(blob) {
        writer.add(id, &bytes).expect("blob added");
    }
    writer.add(id, &secret).expect("blob added");
    put(&store, writer.finish().expect("pack finished"));
    let redacted = store.redact(&[(Kind::Blob, id)], now()).expect("redaction succeeds");
    assert_eq!(redacted.objects, 1);
    for file in packs(&store) {
        let bytes = fs::read(file).expect("a file");
        assert!(!bytes.windows(16).any(|window| window == &secret[1000..1016]));
    }
    for number in 0..100 {
        assert_eq!(read(&store, number).expect("blob still readable"), blob(number).1);
    }
    assert_clean(&store);
    let reading = store.read().expect("a read transaction");
    assert_eq!(reading.queries().bytes(Kind::Blob, id).expect("a placeholder")[..], b"[redacted]"[..]);
}

#[test]
fn damage_is_reported_and_intact_blobs_are_recovered_without_the_index() {
    let folder = Folder::new();
    let store = folder.open();
    let writer = store.pack_writer().expect("a writer");
    // One frame each.
    let large: Vec<(ContentId, Vec<u8>)> = (0..4_u8)
        .map(|number| {
            let bytes = noise(number, 300_000);
            (ContentId::of(Kind::Blob, &bytes), bytes)
        })
        .collect();
    for (id, bytes) in &large {
        writer.add(*id, bytes).expect("blob added");
    }
    put(&store, writer.finish().expect("pack finished"));
    let file = packs(&store).remove(0);
    let mut bytes = fs::read(&file).expect("a file");
    bytes[450_000] ^= 1;
    fs::write(&file, &bytes).expect("damage planted");
    drop(store);
    let store = folder.open();
    let verified = verify(&store);
    assert!(
        matches!(verified.problems[..], [Problem::PackDamaged { pack: 1, .. }]),
        "{:?}",
        verified.problems
    );
    let have = |store: &Store| -> Vec<bool> {
        let reading = store.read().expect("a read transaction");
        large.iter().map(|(id, _)| reading.queries().bytes(Kind::Blob, *id).is_ok()).collect()
    };
    assert_eq!(have(&store), [true, false, true, true]);
    folder.raw().execute_batch("DELETE FROM packed; DELETE FROM pack").expect("index rows deleted");
    assert_eq!(have(&store), [false; 4]);
    let repaired = store.repair(&mut |_| {}, now()).expect("run succeeds");
    assert_eq!(repaired.changes, [RepairChange::IndexRepaired { rows: 3 }]);
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
        store.write(move |writing| writing.put_contents(&[object], now())).expect("content stored"),
        bytes.len() as u64
    );
    assert_eq!(store.write(move |writing| writing.put_contents(&[again], now())).expect("content stored"), 0);
    assert_eq!(read(&store, 1).expect("exists"), bytes);
}

/// Incompressible bytes.
fn noise(seed: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
    bytes
}
