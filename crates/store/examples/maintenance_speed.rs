//! Measures maintenance on a large store:
//! `cargo run --release --package retake-store --example maintenance_speed`.

// Some of the shared test helpers are unused here.
#![allow(dead_code)]

#[path = "../tests/store/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use retake_model::command::{Command, InsertPosition, NewEntry};
use retake_model::content::{ContentId, Kind};
use retake_model::entry::EntryVersion;
use retake_model::time::Timestamp;
use retake_store::CollectMode;
use support::{Folder, START, active, assert_clean, create, grow, publish};

fn main() {
    let folder = Folder::new();
    let store = folder.open();
    let grown = grow(&store);
    for thread in 0..50 {
        let id = create(&store, grown.project, &format!("thread {thread}"));
        let take = active(&store, id);
        for turn in 0..20 {
            let entries = (0..80)
                .map(|entry| {
                    let text = format!("{thread} {turn} {entry} ").repeat(150);
                    NewEntry::from(EntryVersion::from_text("User", &text, Timestamp::from_millis(START)))
                })
                .collect();
            let at = InsertPosition::End;
            publish(&store, id, Command::AddEntries { take, at, entries });
        }
    }
    let timed = |what: &str, job: &mut dyn FnMut()| {
        let started = Instant::now();
        job();
        eprintln!("{what}: {:.2?}", started.elapsed());
    };
    eprintln!("{:?}", store.usage().expect("usage"));
    timed("verify", &mut || {
        let verified = assert_clean(&store);
        eprintln!("{} objects, {} bytes", verified.objects, verified.object_bytes);
    });
    timed("verify again", &mut || drop(assert_clean(&store)));
    let now = Timestamp::from_millis(START);
    timed("gc dry run", &mut || {
        store.collect(Duration::ZERO, now, CollectMode::DryRun).expect("run succeeds");
    });
    timed("repair", &mut || {
        assert!(store.repair(&mut |_| {}, now).expect("run succeeds").is_unchanged());
    });
    files();
}

/// Content of files: how many bytes a second are checked, beside the hash alone on one processor.
fn files() {
    const FILES: u64 = 60_000;
    let folder = Folder::new();
    let store = folder.open();
    let writer = store.pack_writer().expect("a writer");
    let mut contents = Vec::new();
    for number in 0..FILES {
        let line =
            |line: u64| format!("{:016x} line {line} of file {number}\n", (number * 31 + line) * 0x9e37_79b9);
        let bytes = (0..100 + number % 40).map(line).collect::<String>().into_bytes();
        writer.add(ContentId::of(Kind::Blob, &bytes), &bytes).expect("a blob");
        contents.push(bytes);
    }
    let batch = writer.finish().expect("a pack");
    let now = Timestamp::from_millis(START);
    store.write(move |writing| writing.put_packed(&batch, now)).expect("content stored");
    let size: usize = contents.iter().map(Vec::len).sum();
    let rate = |started: Instant| (size as f64 / 1e6 / started.elapsed().as_secs_f64()).round();
    for _ in 0..2 {
        let started = Instant::now();
        let verified = assert_clean(&store);
        eprintln!("verify of {} files, {} MB: {} MB/s", verified.objects, size / 1_000_000, rate(started));
        let started = Instant::now();
        let hashes = contents.iter().map(|bytes| ContentId::of(Kind::Blob, bytes).prefix());
        let sum = hashes.fold(0_i64, i64::wrapping_add);
        eprintln!("hashing alone on one processor: {} MB/s ({sum})", rate(started));
    }
}
