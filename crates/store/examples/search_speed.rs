//! Measures building and searching the index, beside FTS5 alone with the same texts:
//! `cargo run --release --package retake-store --example search_speed [ENTRIES] [BYTES]`.

// Some of the shared test helpers are unused here.
#![allow(dead_code)]

#[path = "../tests/store/search/texts.rs"]
mod texts;
#[path = "../tests/store/search/world.rs"]
mod world;

use std::time::Instant;

use retake_store::{SearchOrder, SearchQuery, ThreadFilter};

use crate::texts::Rng;
use crate::world::World;

/// Entries of one operation.
const AT_ONCE: usize = 100;
/// Entries of one thread.
const THREAD: usize = 1000;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let entries: usize = arguments.next().unwrap_or(20_000);
    let bytes: usize = arguments.next().unwrap_or(2000);
    let world = World::new();
    let mut rng = Rng(42);
    // A few words are frequent, most are rare.
    let mut word = || {
        let roll = rng.below(1 << 30) as f64 / f64::from(1 << 30);
        format!("w{}", (roll.powi(4) * 30_000.0) as u64)
    };
    let mut texts = || {
        let mut text = String::new();
        while text.len() < bytes {
            text.push_str(&word());
            text.push(' ');
        }
        text
    };
    let mut sample = Vec::new();
    let mut old = None;
    for number in 0..entries.div_ceil(THREAD) {
        let thread = world.thread(&format!("Thread {number}"));
        old = old.or(Some(thread).filter(|_| number == 7));
        for _ in 0..THREAD / AT_ONCE {
            let texts: Vec<String> = (0..AT_ONCE).map(|_| texts()).collect();
            let entries: Vec<(&str, &str)> = texts.iter().map(|text| ("User", text.as_str())).collect();
            world.say_all(thread, &entries);
            if sample.len() < FLOOR_ENTRIES {
                sample.extend(texts);
            }
        }
    }
    let reading = world.store.read().expect("a read transaction");
    let queries = reading.queries();
    let watch = Stopwatch::start();
    let done = world.index.catch_up(&queries, &mut |_| ()).expect("catch-up succeeds");
    println!("{} entries of {bytes} bytes indexed: {}", done.added, watch.per(done.added));
    println!("{} entries by FTS5 alone:    {}", sample.len(), floor(&sample));
    let size: u64 = ["search.db", "search.db-wal"]
        .iter()
        .map(|name| std::fs::metadata(world.folder.path().join(name)).map_or(0, |found| found.len()))
        .sum();
    println!("index: {} MB", size / 1_000_000);

    let time = |name: &str, query: &SearchQuery| {
        let watch = Stopwatch::start();
        let found = world.index.search(&queries, query).expect("search succeeds").len();
        println!("{name:30} {found:3} hits: {}", watch.read());
    };
    let words = SearchQuery::words;
    time("rare word", &words("w29001"));
    time("rare word again", &words("w29001"));
    time("word in most entries", &words("w0"));
    time("two common words", &words("w1 w2"));
    time("phrase", &words("\"w0 w1\""));
    time("prefix of 1,000 words", &words("w29*"));
    time("common word, newest first", &SearchQuery { order: SearchOrder::Newest, ..words("w0") });
    time("common word, page 50", &SearchQuery { offset: 1000, ..words("w0") });
    time("no words, newest", &SearchQuery::default());
    time("common word, one old thread", &SearchQuery { thread: old, ..words("w0") });
    let some = ThreadFilter { title: Some("Thread 7".to_owned()), ..ThreadFilter::default() };
    time("common word, a ninth of the threads", &SearchQuery { threads: some, ..words("w0") });

    let watch = Stopwatch::start();
    assert_eq!(world.index.check(&queries).expect("check succeeds"), []);
    println!("check: {}", watch.read());
    let version = world.find(&words("w29001"))[0].version;
    let watch = Stopwatch::start();
    world.index.forget(&[version]).expect("erasure succeeds");
    println!("forget: {}", watch.read());
}

/// Entries that are also indexed by FTS5 alone.
const FLOOR_ENTRIES: usize = 20_000;

/// The least that an index of words costs: one table of FTS5, no store, no checks.
fn floor(texts: &[String]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let connection = rusqlite::Connection::open(folder.path().join("words.db")).expect("a database");
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
             CREATE VIRTUAL TABLE words USING fts5(text, content = '', contentless_delete = 1)",
        )
        .expect("a table");
    let watch = Stopwatch::start();
    for batch in texts.chunks(8000) {
        let transaction = connection.unchecked_transaction().expect("a transaction");
        {
            let mut insert =
                transaction.prepare_cached("INSERT INTO words (text) VALUES (?1)").expect("a statement");
            for text in batch {
                insert.execute([text]).expect("a row");
            }
        }
        transaction.commit().expect("a commit");
    }
    watch.per(texts.len() as u64)
}

/// Wall time and CPU time, since the machine may be busy.
struct Stopwatch {
    start: Instant,
    thread: f64,
    process: f64,
}

impl Stopwatch {
    fn start() -> Self {
        Self { start: Instant::now(), thread: thread_seconds(), process: process_seconds() }
    }

    /// The cost of each of some items, in all threads.
    fn per(&self, count: u64) -> String {
        let rate = |seconds: f64| (count as f64 / seconds.max(1e-9)).round();
        let (passed, processor) = (self.start.elapsed().as_secs_f64(), process_seconds() - self.process);
        format!("{:.0}/s; {:.1} µs of processor each", rate(passed), processor * 1e6 / count as f64)
    }

    /// The time of this thread.
    fn read(&self) -> String {
        let passed = self.start.elapsed().as_secs_f64() * 1000.0;
        let processor = (thread_seconds() - self.thread) * 1000.0;
        format!("{passed:.1} ms, {processor:.1} ms of processor")
    }
}

fn thread_seconds() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = statistics.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.unwrap_or_default() / 1e9
}

/// In hundredths of a second, with the threads that have ended.
fn process_seconds() -> f64 {
    let statistics = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = statistics.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
