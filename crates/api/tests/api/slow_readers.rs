//! Turns with endless tool output, watched by clients that do not read.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::process::Process;
use crate::world::{World, until};

/// Allowed memory growth of a test, in bytes.
const GROWTH: u64 = 64 << 20;

#[test]
fn endless_output_takes_bounded_memory_if_the_client_does_not_read() {
    let world = World::new();
    let mut server = Process::start(&world, None);
    let client = server.client();
    let thread = client.thread("Noise");
    let turns = format!("/v1/threads/{thread}/turns");
    let is_running = || client.get(&format!("/v1/threads/{thread}/turn")).done()["running"] == true;
    client.post(&turns, &json!({"prompt": "run true", "approve": "all"})).done();
    until("the first turn is over", || !is_running());
    let before = server.most_memory();
    // One client reads, the other never does.
    let mut reading = client.events(client.sequence());
    let mut blocked = TcpStream::connect(server.address).expect("it listens");
    let token = world.token().read().expect("a token").secret().to_owned();
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n",
        server.address
    );
    blocked.write_all(head.as_bytes()).expect("it listens");
    let prompt = json!({"prompt": "run timeout 30 yes", "approve": "all"});
    client.post(&turns, &prompt).done();
    let (started, mut progress, mut omitted) = (Instant::now(), 0, 0);
    while started.elapsed() < Duration::from_secs(6) {
        let Some(event) = reading.next(Duration::from_secs(1)) else { continue };
        if event.data["event"] == "tool_progress" {
            progress += 1;
            omitted += event.data["omitted_bytes"].as_u64().unwrap_or_default();
        }
    }
    assert!(progress > 10 && omitted > 0, "{progress} events, {omitted} bytes omitted");
    let asked = Instant::now();
    let stopped = client.post(&format!("/v1/threads/{thread}/turn/interrupt"), &json!({}));
    assert!(stopped.status < 300, "{}", stopped.text());
    until("the turn is over", || !is_running());
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    let taken = server.most_memory() - before;
    assert!(taken < GROWTH, "{} MB", taken >> 20);
    assert!(server.is_well());
}

#[test]
fn search_over_many_files_reports_progress_to_streams() {
    let world = World::new();
    for folder in 0..40 {
        let folder = world.project().join(format!("folder-{folder}"));
        std::fs::create_dir(&folder).expect("our folder");
        for file in 0..100 {
            std::fs::write(folder.join(format!("{file}.txt")), "nothing\n").expect("our folder");
        }
    }
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Progress");
    let mut stream = client.events(client.sequence());
    let begin = json!({"prompt": "search \"no such text\"", "approve": "all"});
    client.post(&format!("/v1/threads/{thread}/turns"), &begin).done();
    let (mut last, mut count) = (0.0, 0);
    while let Some(event) = stream.next(Duration::from_secs(20)) {
        if event.data["event"] == "ended" {
            break;
        }
        if event.data["event"] != "tool_progress" {
            continue;
        }
        let fraction = event.data["fraction"].as_f64().expect("a number");
        assert!(fraction > last && fraction <= 1.0, "{fraction} after {last}");
        assert_eq!(event.data["unit"], "files");
        assert!(event.data["units_processed"].as_u64().is_some_and(|files| files <= 4_000));
        assert_eq!(event.data["message"], "Searching");
        (last, count) = (fraction, count + 1);
    }
    assert!(count >= 2 && last >= 1.0, "{count} events, the last at {last}");
}
