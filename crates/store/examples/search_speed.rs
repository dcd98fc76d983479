//! Measures building and searching the index:
//! `cargo run --release --package retake-store --example search_speed`.

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

fn main() {
    let world = World::new();
    let mut rng = Rng(42);
    // A few words are frequent, most are rare.
    let mut word = || {
        let roll = rng.below(1 << 30) as f64 / f64::from(1 << 30);
        format!("w{}", (roll.powi(4) * 30_000.0) as u64)
    };
    for number in 0..100 {
        let thread = world.thread(&format!("Thread {number}"));
        for _ in 0..20 {
            let texts: Vec<String> = (0..10)
                .map(|_| {
                    let mut text = String::new();
                    while text.len() < 2000 {
                        text.push_str(&word());
                        text.push(' ');
                    }
                    text
                })
                .collect();
            let entries: Vec<(&str, &str)> = texts.iter().map(|text| ("User", text.as_str())).collect();
            world.say_all(thread, &entries);
        }
    }
    let reading = world.store.read().expect("a read transaction");
    let queries = reading.queries();
    let watch = Stopwatch::start();
    let done = world.index.catch_up(&queries, &mut |_| ()).expect("catch-up succeeds");
    println!("{} entries indexed: {}", done.added, watch.read());
    let file = world.folder.path().join("search.db");
    let size = std::fs::metadata(file).expect("the index").len();
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
    let one = ThreadFilter { title: Some("Thread 42".to_owned()), ..ThreadFilter::default() };
    time("common word, one thread", &SearchQuery { threads: one, ..words("w0") });

    let watch = Stopwatch::start();
    assert_eq!(world.index.check(&queries).expect("check succeeds"), []);
    println!("check: {}", watch.read());
    let version = world.find(&words("w29001"))[0].version;
    let watch = Stopwatch::start();
    world.index.forget(&[version]).expect("erasure succeeds");
    println!("forget: {}", watch.read());
}

/// Wall time and CPU time of this thread, since the machine may be busy.
struct Stopwatch {
    start: Instant,
    processor: f64,
}

impl Stopwatch {
    fn start() -> Self {
        Self { start: Instant::now(), processor: processor_seconds() }
    }

    fn read(&self) -> String {
        let passed = self.start.elapsed().as_secs_f64() * 1000.0;
        let processor = (processor_seconds() - self.processor) * 1000.0;
        format!("{passed:.1} ms, {processor:.1} ms of processor")
    }
}

fn processor_seconds() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = statistics.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.unwrap_or_default() / 1e9
}
