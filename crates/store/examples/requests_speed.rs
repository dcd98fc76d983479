//! Measures recording requests from many threads at once, and following the log:
//! `cargo run --example requests_speed [threads]`.

use std::time::{Duration, Instant};

use retake_model::id::RequestId;
use retake_model::time::Timestamp;
use retake_store::Store;
use retake_store::runtime::RequestState;

const FOR: Duration = Duration::from_secs(2);
const POLLS: u32 = 10_000;

fn main() {
    let threads = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(32_u32);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::open(folder.path()).expect("a store");
    let runtime_database = store.runtime_database().expect("a runtime database");
    let began = Instant::now();
    let request = |thread: u32, number: u32| {
        let request = RequestId::of(format!("{thread} {number}").as_bytes());
        let begun = runtime_database.begin_request(request, &[1; 32], 0, "here", Timestamp::from_millis(1));
        assert_eq!(begun.expect("write succeeds"), RequestState::New);
        runtime_database.finish_request(request, 200, vec![7; 300]).expect("write succeeds");
    };
    let done: u32 = std::thread::scope(|scope| {
        let working: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    let numbers = (0..).take_while(|_| began.elapsed() < FOR);
                    numbers.map(|number| request(thread, number)).count() as u32
                })
            })
            .collect();
        working.into_iter().map(|one| one.join().expect("no panic")).sum()
    });
    println!("{threads} threads: {:.0} requests a second", f64::from(done) / began.elapsed().as_secs_f64());

    let mut tail = store.tail().expect("a tail");
    let began = Instant::now();
    for _ in 0..POLLS {
        tail.last().expect("a log");
    }
    println!("a look whether anything happened: {:?}", began.elapsed() / POLLS);
    let began = Instant::now();
    for _ in 0..POLLS {
        runtime_database.stamp().expect("a runtime database");
    }
    println!("a look whether any turn changed: {:?}", began.elapsed() / POLLS);
}
