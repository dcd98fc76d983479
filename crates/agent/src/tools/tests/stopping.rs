//! Tests that every tool stops promptly when cancelled.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::*;

/// Maximum time from cancellation until the tool returns. Time that its thread waits for a CPU does not
/// count, because other tests may load the machine.
const MAX_STOP_TIME: Duration = Duration::from_millis(200);
/// The CPU wait of a command cannot be measured, so one of this many attempts must meet the limit.
const ATTEMPTS: usize = 5;

/// When to cancel a tool.
enum StopAfter {
    /// After this much CPU time. In a test build, compiling a pattern alone may take this long.
    Computing(Duration),
    /// After this much time.
    Waiting(Duration),
}

/// Runs a call, cancels it while it works, and checks that it stops in time.
fn check_stops(lab: &Lab, name: &str, input: &Value, after: &StopAfter) {
    let mut best = Duration::MAX;
    for _ in 0..ATTEMPTS {
        let (output, took) = stop(lab, name, input.clone(), after);
        assert!(output.failed, "{name}: {}", output.text);
        best = best.min(took);
        if best <= MAX_STOP_TIME {
            return;
        }
    }
    panic!("{name} took {best:?} to stop: {:.200}", input.to_string());
}

/// Runs a call, cancels it while it works, and returns the time until it ends.
fn stop(lab: &Lab, name: &str, input: Value, after: &StopAfter) -> (Output, Duration) {
    let (cancel, (sender, receiver)) = (Cancel::new(), std::sync::mpsc::channel());
    std::thread::scope(|scope| {
        let (context, watched) = (&lab.context, &cancel);
        let tool = scope.spawn(move || {
            let thread = fs::read_link("/proc/thread-self").expect("a system with threads");
            let thread = PathBuf::from("/proc").join(thread);
            sender.send(thread.clone()).expect("it is waited for");
            let output = run(&call(name, input), context, watched, &mut |_| {});
            (output, Instant::now(), ThreadTime::by(&thread))
        });
        let thread = receiver.recv().expect("it begins");
        match after {
            StopAfter::Waiting(time) => std::thread::sleep(*time),
            StopAfter::Computing(time) => {
                while !tool.is_finished() && ThreadTime::by(&thread).computing < *time {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        assert!(!tool.is_finished(), "{name}: the control: it takes longer than that");
        let (asked, before) = (Instant::now(), ThreadTime::by(&thread));
        cancel.set();
        let (output, returned, spent) = tool.join().expect("no panic");
        let queued = spent.queueing.saturating_sub(before.queueing);
        let took = returned.duration_since(asked).saturating_sub(queued);
        (output, took)
    })
}

/// How a thread spent its time.
#[derive(Default)]
struct ThreadTime {
    computing: Duration,
    /// Waiting for a CPU.
    queueing: Duration,
}

impl ThreadTime {
    fn by(thread: &Path) -> Self {
        let text = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
        let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap_or_default());
        let mut next = || Duration::from_nanos(numbers.next().unwrap_or_default());
        Self { computing: next(), queueing: next() }
    }
}

/// Long enough for the tool to be in the middle of its work.
const BUSY: StopAfter = StopAfter::Computing(Duration::from_millis(400));

#[test]
fn search_stops_in_the_middle_of_a_line() {
    let lab = Lab::new();
    for number in 0..8 {
        lab.file(&format!("long-{number}.txt"), "a".repeat(5_000_000));
    }
    for pattern in ["(a{50}){40}[^a]", "([a-z]{7}){20}[^a]", "(a|aa|aaa){60}[^a]"] {
        check_stops(&lab, "search", &json!({ "pattern": pattern }), &BUSY);
    }
}

#[test]
fn a_pattern_that_is_too_large_is_refused_at_once() {
    let lab = Lab::new();
    lab.file("long.txt", "a".repeat(5_000_000));
    let started = Instant::now();
    let output = lab.call("search", json!({ "pattern": "a{1000}{1000}" }));
    assert!(output.failed && output.text.contains("size limit"), "{}", output.text);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn read_stops_in_the_middle_of_a_line() {
    let lab = Lab::new();
    lab.file("long.txt", "a".repeat(100_000));
    let file = fs::OpenOptions::new().write(true).open(lab.root().join("long.txt")).expect("a file");
    file.set_len(1 << 42).expect("a file with a hole");
    check_stops(&lab, "read", &json!({ "path": "long.txt" }), &BUSY);
}

#[test]
fn edit_can_be_stopped_while_it_searches() {
    let lab = Lab::new();
    lab.file("lines.txt", "x\n".repeat(500_000));
    let old = "x\n".repeat(20_000) + "y y";
    check_stops(&lab, "edit", &json!({ "path": "lines.txt", "old": old, "new": "z" }), &BUSY);
    assert_eq!(lab.read("lines.txt").len(), 1_000_000, "it is as it was");
}

#[test]
fn a_command_that_prints_all_the_time_and_ignores_signals_is_stopped() {
    let lab = Lab::new();
    for command in ["yes", "trap '' TERM; while :; do echo x; sleep 0.01; done", "sleep 60"] {
        let after = StopAfter::Waiting(Duration::from_millis(100));
        check_stops(&lab, "shell", &json!({ "command": command }), &after);
    }
}

#[test]
fn anchors_match_at_the_ends_of_lines() {
    let lab = Lab::new();
    // Enough to read a file in several pieces.
    lab.file("many.txt", "one two\ntwo one\n".repeat(20_000));
    for pattern in ["^one", "one$", r"\bone$", "^two one$"] {
        let output = lab.call("search", json!({ "pattern": pattern, "limit": 5_000 }));
        assert!(output.text.contains("[5000 matches in 1 file"), "{pattern}: {}", output.text.len());
    }
}
