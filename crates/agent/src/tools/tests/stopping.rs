//! Every tool stops within moments, whatever it is doing.

use std::time::Instant;

use super::*;

/// The promise is 200 ms. The machine that tests may be busy with other tests.
const PROMPTLY: Duration = Duration::from_millis(1_500);

/// Runs a call, cancels it while it works, and says how long it took to stop.
fn stop(lab: &Lab, name: &str, input: Value) -> (Output, Duration) {
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let (room, watched) = (&lab.room, &cancel);
        let tool = scope.spawn(move || run(&call(name, input), room, watched, &mut |_| {}));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!tool.is_finished(), "{name}: the control: it takes longer than that");
        cancel.set();
        let asked = Instant::now();
        (tool.join().expect("no panic"), asked.elapsed())
    })
}

#[test]
fn search_stops_in_the_middle_of_a_line() {
    let lab = Lab::new();
    lab.file("long.txt", "a".repeat(5_000_000));
    for pattern in ["(a{50}){40}[^a]", r"(\w{7}){20}[^a]", "(a|aa|aaa){60}[^a]"] {
        let (output, took) = stop(&lab, "search", json!({ "pattern": pattern }));
        assert!(output.failed && took < PROMPTLY, "{pattern}: {took:?}, {}", output.text);
    }
}

#[test]
fn a_pattern_that_is_too_large_is_refused_at_once() {
    let lab = Lab::new();
    lab.file("long.txt", "a".repeat(5_000_000));
    let begun = Instant::now();
    let output = lab.call("search", json!({ "pattern": "a{1000}{1000}" }));
    assert!(output.failed && output.text.contains("size limit"), "{}", output.text);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn read_stops_in_the_middle_of_a_line() {
    let lab = Lab::new();
    lab.file("long.txt", "a".repeat(100_000));
    let file = fs::OpenOptions::new().write(true).open(lab.root().join("long.txt")).expect("a file");
    file.set_len(1 << 42).expect("a file with a hole");
    let (output, took) = stop(&lab, "read", json!({ "path": "long.txt" }));
    assert!(output.failed && took < PROMPTLY, "{took:?}");
}

#[test]
fn edit_stops_while_it_looks_for_the_text() {
    let lab = Lab::new();
    lab.file("lines.txt", "x\n".repeat(500_000));
    let old = "x\n".repeat(20_000) + "y y";
    let (output, took) = stop(&lab, "edit", json!({ "path": "lines.txt", "old": old, "new": "z" }));
    assert!(output.failed && took < PROMPTLY, "{took:?}");
    assert_eq!(lab.read("lines.txt").len(), 1_000_000, "it is as it was");
}

#[test]
fn a_command_stops_that_prints_all_the_time_and_hears_nothing() {
    let lab = Lab::new();
    for command in ["yes", "trap '' TERM; while :; do echo x; sleep 0.01; done", "sleep 60"] {
        let (output, took) = stop(&lab, "shell", json!({ "command": command }));
        assert!(output.failed && took < PROMPTLY, "{command}: {took:?}");
    }
}

#[test]
fn lines_begin_and_end_where_a_pattern_says() {
    let lab = Lab::new();
    // Many enough that a file is read in several pieces.
    lab.file("many.txt", "one two\ntwo one\n".repeat(20_000));
    for pattern in ["^one", "one$", r"\bone$", "^two one$"] {
        let output = lab.call("search", json!({ "pattern": pattern, "limit": 5_000 }));
        assert!(output.text.contains("[5000 matches in 1 file"), "{pattern}: {}", output.text.len());
    }
}
