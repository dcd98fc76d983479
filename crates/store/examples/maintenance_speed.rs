//! Measures maintenance on a large store:
//! `cargo run --release --package retake-store --example maintenance_speed`.

// Some of the shared test helpers are unused here.
#![allow(dead_code)]

#[path = "../tests/store/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use retake_model::command::{Command, InsertPosition, NewEntry};
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
}
