//! Measures the cost of one change beyond the disk: CPU time, and pages in the write-ahead log.
//!
//! ```text
//!   cargo run --release --package retake-bench --example change_cost -- [entries] [changes]
//! ```

use std::path::Path;
use std::time::{Duration, Instant};

use retake_model::entry::EntryVersion;
use retake_model::id::ProjectId;
use retake_model::time::Timestamp;
use rusqlite::Connection;

use retake_timeline::{Caller, Command, InsertPosition, NewEntry, NewThread, Rules, Timeline, Unit};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let entries: u64 = arguments.next().map_or(Ok(10_000), |text| text.parse())?;
    let changes: u64 = arguments.next().map_or(Ok(500), |text| text.parse())?;
    let folder = tempfile::tempdir_in(".")?;
    let timeline = Timeline::open(folder.path(), Rules::default())?;
    let project = ProjectId::from_bytes([1; 16]);
    let made = timeline.create_thread(NewThread::in_project(project).titled("measured"), Caller::human())?;
    let (thread, take) = (made.thread, made.summary.active.id);
    let mut seed = 1;
    let mut left = entries;
    while left > 0 {
        let batch = left.min(1_000);
        let entries = (0..batch).map(|_| message(&mut seed)).collect();
        timeline.change(
            thread,
            Command::AddEntries { take, at: InsertPosition::End, entries },
            Caller::human(),
        )?;
        left -= batch;
    }
    let branch = Command::Branch { from: take, at: None, name: Some("other".to_owned()) };
    let other = timeline.change(thread, branch, Caller::human())?.summary.active.id;
    timeline.change(thread, Command::Switch { take }, Caller::human())?;
    let cells = {
        let reader = timeline.read()?;
        let take = reader.state(thread)?.active_take(&reader.queries())?;
        take.entries.page(&reader.queries(), 0..take.entries.len())?
    };
    let last = cells[cells.len() - 2].entry;
    measure("append", changes, folder.path(), |_| {
        let command =
            Command::AddEntries { take, at: InsertPosition::End, entries: vec![message(&mut seed)] };
        timeline.change(thread, command, Caller::human())?;
        Ok(())
    })?;
    measure("undo, redo", changes, folder.path(), |number| {
        if number % 2 == 0 {
            timeline.undo(thread, Unit::Turn, 1, Caller::human())?;
        } else {
            timeline.redo(thread, Unit::Turn, 1, Caller::human())?;
        }
        Ok(())
    })?;
    measure("switch", changes, folder.path(), |number| {
        let to = if number % 2 == 0 { other } else { take };
        timeline.change(thread, Command::Switch { take: to }, Caller::human())?;
        Ok(())
    })?;
    measure("fork, end", changes, folder.path(), |_| {
        timeline.change(thread, Command::Fork { from: take, at: last, name: None }, Caller::human())?;
        Ok(())
    })?;
    Ok(())
}

/// A new message of 2 KB.
fn message(seed: &mut u64) -> NewEntry {
    let mut text = String::with_capacity(2_048);
    while text.len() < 2_000 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS[(*seed >> 33) as usize % WORDS.len()]);
        text.push(' ');
    }
    NewEntry::from(EntryVersion::from_text("User", &text, Timestamp::default()))
}

const WORDS: [&str; 24] = [
    "storage", "page", "let", "commit", "fn", "return", "window", "theory", "branch", "undo", "error",
    "quickly", "{", "}", "=>", "match", "the", "of", "lock", "a", "tree", "writes", "entries", "hash",
];

/// How often pages are counted; even, so that pairs of moves cancel out.
const COUNTED_RUNS: u64 = 16;
/// A page in the log, with its header.
const FRAME: u64 = 2_048 + 24;

fn measure(
    name: &str,
    changes: u64,
    folder: &Path,
    mut change: impl FnMut(u64) -> Outcome<()>,
) -> Outcome<()> {
    let log = folder.join("retake.db-wal");
    let mut walls = Vec::new();
    let mut floors = Vec::new();
    let (mut spent, mut spent_below) = (0, 0);
    let floor = floor(folder)?;
    for number in 0..changes {
        let (start, clock) = (processor()?, Instant::now());
        change(number)?;
        walls.push(clock.elapsed());
        let (end, clock) = (processor()?, Instant::now());
        floor.prepare_cached("INSERT INTO message (body) VALUES (?1)")?.execute(["x".repeat(2_000)])?;
        floors.push(clock.elapsed());
        spent += end - start;
        spent_below += processor()? - end;
    }
    walls.sort_unstable();
    floors.sort_unstable();
    let mut pages = Vec::new();
    for number in 0..COUNTED_RUNS {
        // The pages that one change appends to an empty log are the pages it writes.
        Connection::open(folder.join("retake.db"))?.query_row(
            "PRAGMA wal_checkpoint(TRUNCATE)",
            [],
            |_| Ok(()),
        )?;
        change(number)?;
        pages.push(std::fs::metadata(&log)?.len() / FRAME);
    }
    pages.sort_unstable();
    let middle = |times: &[Duration]| times[times.len() / 2];
    let ratio = middle(&walls).as_secs_f64() / middle(&floors).as_secs_f64();
    println!(
        "{name:12} {:?} ({ratio:.2} times the raw insert); {} µs of the processor ({} µs); {} pages of log, {:.1} KB on average",
        middle(&walls),
        spent / changes / 1_000,
        spent_below / changes / 1_000,
        pages[pages.len() / 2],
        pages.iter().sum::<u64>() as f64 / pages.len() as f64 * FRAME as f64 / 1_024.0,
    );
    Ok(())
}

/// The table of the raw insert, with the settings of the store.
fn floor(folder: &Path) -> Outcome<Connection> {
    let floor = Connection::open(folder.join("floor.db"))?;
    floor.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA secure_delete = ON; PRAGMA cell_size_check = ON; PRAGMA wal_autocheckpoint = 2000;
         CREATE TABLE IF NOT EXISTS message (number INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;",
    )?;
    Ok(floor)
}

/// CPU time of this thread in nanoseconds.
fn processor() -> Outcome<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().ok_or("no time")?.parse()?)
}
