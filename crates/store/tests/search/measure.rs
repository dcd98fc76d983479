//! How fast the index is made and searched.

use std::time::Instant;

use retake_store::{Order, SearchQuery, ThreadFilter};

use crate::texts::Dice;
use crate::world::World;

/// Run with `cargo test --release -p retake-store --test search -- --ignored --nocapture`.
#[test]
#[ignore = "measures, and takes a while"]
fn how_fast() {
    let world = World::new();
    let mut dice = Dice(42);
    // A few words are everywhere, most are rare.
    let mut word = || {
        let roll = dice.below(1 << 30) as f64 / f64::from(1 << 30);
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
            let said: Vec<(&str, &str)> = texts.iter().map(|text| ("User", text.as_str())).collect();
            world.say_all(thread, &said);
        }
    }
    let reading = world.store.read().expect("a reading");
    let queries = reading.queries();
    let start = Instant::now();
    let done = world.index.catch_up(&queries, &mut |_| ()).expect("caught up");
    let seconds = start.elapsed().as_secs_f64();
    println!("{} entries indexed in {seconds:.2} s: {:.0}/s", done.added, done.added as f64 / seconds);
    let size = std::fs::metadata(world.folder.path().join("search.db")).expect("the index").len();
    println!("index {} MB", size / 1_000_000);
    let time = |name: &str, query: &SearchQuery| {
        let start = Instant::now();
        let found = world.index.search(&queries, query).expect("found").len();
        println!("{name:40} {found:3} hits {:8.2} ms", start.elapsed().as_secs_f64() * 1000.0);
    };
    time("rare word", &SearchQuery::words("w29001"));
    time("rare word again", &SearchQuery::words("w29001"));
    time("word in most entries", &SearchQuery::words("w0"));
    time("two common words", &SearchQuery::words("w1 w2"));
    time("phrase", &SearchQuery::words("\"w0 w1\""));
    time("prefix", &SearchQuery::words("w29*"));
    time("common word, newest first", &SearchQuery { order: Order::Newest, ..SearchQuery::words("w0") });
    time("common word, page 50", &SearchQuery { offset: 1000, ..SearchQuery::words("w0") });
    time("no words, newest", &SearchQuery::default());
    let one = ThreadFilter { title: Some("Thread 42".to_owned()), ..ThreadFilter::default() };
    time("common word, one thread", &SearchQuery { threads: one, ..SearchQuery::words("w0") });
    let start = Instant::now();
    assert_eq!(world.index.check(&queries).expect("checked"), []);
    println!("check {:.2} s", start.elapsed().as_secs_f64());
    let version = world.find(&SearchQuery::words("w29001"))[0].version;
    let start = Instant::now();
    world.index.forget(&[version]).expect("forgotten");
    println!("forget {:.2} s", start.elapsed().as_secs_f64());
}
