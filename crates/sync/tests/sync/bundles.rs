//! Bundles: lossless, small, and safe to read from anywhere.

use std::sync::Arc;

use proptest::prelude::*;
use retake_model::content::{ContentId, Kind};
use retake_model::entry::EntryVersion;
use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::object::NewObject;
use retake_model::replica::ReplicaOperation;
use retake_sync::bundle::{
    BundleError, BundleHeader, BundleId, BundleReader, BundleWriter, MAX_UNPACKED, decode,
};
use retake_timeline::{
    Adoption, Caller, Command, InsertPosition, NewThread, ReplicaPoint, Rules, SeededClock, Timeline,
};
use tempfile::TempDir;

const PROJECT: ProjectId = ProjectId::from_bytes([7; 16]);
const THREAD: ThreadId = ThreadId::from_bytes([3; 16]);

fn operation(number: u8, texts: &[&[u8]]) -> ReplicaOperation {
    let object = |text: &&[u8]| NewObject {
        id: ContentId::of(Kind::Blob, text),
        kind: Kind::Blob,
        bytes: (*text).into(),
    };
    ReplicaOperation {
        operation: vec![number; usize::from(number)],
        objects: texts.iter().map(object).collect(),
        redacted: vec![(Kind::Entry, ContentId::of(Kind::Entry, &[number]))],
    }
}

fn bundle(operations: &[ReplicaOperation]) -> Vec<u8> {
    let mut writer = BundleWriter::new(THREAD, 1, None).expect("a packer");
    for operation in operations {
        writer.add(operation).expect("it fits");
    }
    writer.finish().expect("a bundle")
}

/// An operation, its content, and how much of it was redacted.
type Parts = (Vec<u8>, Vec<(Kind, ContentId, Arc<[u8]>)>, usize);

fn parts(operations: &[ReplicaOperation]) -> Vec<Parts> {
    let parts = |it: &ReplicaOperation| {
        let objects = it.objects.iter().map(|object| (object.kind, object.id, Arc::clone(&object.bytes)));
        (it.operation.clone(), objects.collect(), it.redacted.len())
    };
    operations.iter().map(parts).collect()
}

#[test]
fn a_bundle_returns_what_was_put_in() {
    let all = [operation(9, &[b"one", b""]), operation(200, &[]), operation(3, &[&vec![7; 70_000]])];
    let bytes = bundle(&all);
    let (header, read) = decode(&bytes).expect("a readable bundle");
    assert_eq!(parts(&read), parts(&all));
    assert_eq!((header.thread, header.first, header.last(), header.previous), (THREAD, 1, 3, None));
    assert_eq!(bundle(&all), bytes, "the same operations make the same bytes");
    assert_eq!(BundleId::of(&bytes).to_string().len(), 64);
}

#[test]
fn damaged_bundles_are_refused() {
    let bytes = bundle(&[operation(9, &[b"one", b"two"]), operation(4, &[&[1; 5000]])]);
    for end in 0..bytes.len() {
        assert!(decode(&bytes[..end]).is_err(), "cut after {end} bytes");
    }
    for (place, byte, expected) in
        [(0, b'X', "NotABundle"), (4, 2, "Newer"), (5, 1, "Damaged"), (29, 0, "Damaged")]
    {
        let mut damaged = bytes.clone();
        damaged[place] = byte;
        let error = decode(&damaged).expect_err("a damaged bundle");
        assert!(format!("{error:?}").starts_with(expected), "{place}: {error}");
    }
}

/// The header with another declared size, and another body.
fn forged(unpacked: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = bundle(&[operation(9, &[])]);
    bytes.truncate(74);
    bytes[66..74].copy_from_slice(&unpacked.to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

#[test]
fn bombs_are_refused_before_they_unpack() {
    let zeros = vec![0; 64 << 20];
    let bomb = zstd::bulk::compress(&zeros, 19).expect("a frame");
    assert!(bomb.len() < 20_000);
    for declared in [MAX_UNPACKED + 1, u64::MAX, zeros.len() as u64] {
        let error = decode(&forged(declared, &bomb)).expect_err("a bomb");
        assert!(matches!(error, BundleError::TooLarge(_)), "{declared}: {error}");
    }
    // One that declares less than it has ends at what it declares.
    assert!(matches!(decode(&forged(1000, &bomb)), Err(BundleError::Damaged(_))));
    // A record that declares more than there is reserves nothing.
    let long = zstd::bulk::compress(&[3, 3, 0xff, 0xff, 0xff], 3).expect("a frame");
    assert!(decode(&forged(5, &long)).is_err());
    let more = zstd::bulk::compress(&[3, 0, 0, 0, 1, 7, 8], 3).expect("a frame");
    assert!(matches!(decode(&forged(6, &more)), Err(BundleError::Damaged(_))), "more than it declares");
    // The control: what is declared correctly is read.
    let right = zstd::bulk::compress(&[3, 0, 0, 0, 1, 7], 3).expect("a frame");
    assert!(decode(&forged(6, &right)).is_ok());
}

#[test]
fn millions_of_empty_records_are_refused() {
    let check = |records: usize, is_read: bool| {
        let mut body = [1, Kind::Blob as u8, 0, 0, 0, 0].repeat(records);
        body.extend_from_slice(&[3, 0, 0, 0, 1, 7]);
        let packed = zstd::bulk::compress(&body, 3).expect("a frame");
        let bytes = forged(body.len() as u64, &packed);
        // As if it were packed badly, so that the ratio permits it.
        let mut reader = BundleReader::new(&bytes[..], body.len() as u64).expect("a header");
        let read = reader.next_operation();
        assert_eq!(read.is_ok(), is_read, "{records} records");
        assert!(is_read || matches!(read, Err(BundleError::TooLarge(_))), "{records} records");
    };
    // The control: as many as fit are read.
    check(100_000, true);
    check(1_100_000, false);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn hostile_bytes_never_panic(
        place in 0usize..4000,
        change in proptest::collection::vec(any::<u8>(), 1..12),
        cut in 0usize..4000,
    ) {
        let mut bytes = bundle(&[operation(9, &[b"one", &[5; 3000]]), operation(77, &[b"two"])]);
        let place = place % bytes.len();
        let end = (place + change.len()).min(bytes.len());
        let count = end - place;
        bytes[place..end].copy_from_slice(&change[..count]);
        bytes.truncate(bytes.len() - cut % bytes.len());
        if let Ok((header, operations)) = decode(&bytes) {
            prop_assert_eq!(header.operations as usize, operations.len());
        }
        let mut body = bundle(&[operation(9, &[])]);
        body.truncate(74);
        body.extend_from_slice(&change);
        let _ = decode(&body);
    }
}

struct Device {
    timeline: Timeline,
    _folder: TempDir,
}

impl Device {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let clock = Arc::new(SeededClock::new(seed));
        let timeline = Timeline::open_with(folder.path(), Rules::default(), clock).expect("a new store");
        Self { timeline, _folder: folder }
    }

    fn say(&self, thread: ThreadId, take: TakeId, text: &str) {
        let entry = EntryVersion::from_text("User", text, self.timeline.now());
        let entries = vec![entry.into()];
        let add = Command::AddEntries { take, at: InsertPosition::End, entries };
        self.timeline.change(thread, add, Caller::human()).expect("a change");
    }

    /// The operations after a point as a bundle, and the end of the log.
    fn bundle(&self, thread: ThreadId, after: ReplicaPoint) -> (Vec<u8>, ReplicaPoint) {
        let reader = self.timeline.read().expect("a reader");
        let replica = reader.replica(thread).expect("a thread");
        let mut writer = BundleWriter::new(thread, after.version + 1, after.id).expect("a packer");
        let add = |operation: ReplicaOperation| writer.add(&operation).is_ok();
        let end = replica.operations(after, add).expect("a readable log");
        (writer.finish().expect("a bundle"), end)
    }
}

/// Text like that of a conversation: words of a small vocabulary in random order.
fn text(random: &mut u64, bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = (*random >> 40) % 3000;
        text.push_str(["re", "de", "con", "in", "un", "ex"][(number % 6) as usize]);
        text.push_str(&number.to_string());
        text.push(' ');
    }
    text
}

#[test]
fn bundles_cost_what_changed() {
    let (one, two) = (Device::new(1), Device::new(2));
    let new = NewThread::in_project(PROJECT).titled("Sizes");
    let thread = one.timeline.create_thread(new, Caller::human()).expect("a thread").thread;
    let take = one.timeline.read().expect("a reader").state(thread).expect("a state").active;
    let (mut random, mut at, mut raw) = (1, ReplicaPoint::default(), 0);
    let mut sizes = Vec::new();
    for _ in 0..200 {
        let words = text(&mut random, 2048);
        raw += words.len();
        one.say(thread, take, &words);
        let (bytes, end) = one.bundle(thread, at);
        at = end;
        sizes.push(bytes.len());
    }
    let whole = one.bundle(thread, ReplicaPoint::default()).0;
    let mean = sizes.iter().sum::<usize>() / sizes.len();
    println!(
        "2 KB entry: mean {mean} B, last {} B; whole {:.2} of the text",
        sizes[199],
        whole.len() as f64 / raw as f64
    );
    assert!(mean <= 3000, "{mean} bytes for an entry of 2 KB");
    assert!(sizes[100..].iter().all(|size| *size <= 3 * mean), "{sizes:?}");
    assert!(whole.len() * 2 <= raw + raw / 5, "{} of {raw} bytes", whole.len());
    let (header, operations): (BundleHeader, _) = decode(&whole).expect("a readable bundle");
    assert_eq!(header.operations, 201);
    let adopted = two.timeline.adopt_operations(thread, PROJECT, ReplicaPoint::default(), operations);
    assert!(matches!(adopted, Ok(Adoption::Advanced)), "{adopted:?}");
    assert_eq!(two.bundle(thread, ReplicaPoint::default()).0, whole, "a clone makes the same bundle");
}
