//! The examples run and print what they promise.

use std::path::PathBuf;
use std::process::Command;

/// Runs an example, which `./check` builds, and Cargo too when it tests all targets of this crate.
fn run(name: &str) -> String {
    let test = std::env::current_exe().expect("this program has a path");
    let folder = test.parent().and_then(|deps| deps.parent()).expect("deps is in the target folder");
    let program: PathBuf = folder.join("examples").join(name);
    let output =
        Command::new(&program).output().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_timeline_is_embedded() {
    let printed = run("embed_timeline");
    for expected in ["two entries", "stale: ", "take main: 2 entries", "take shorter: 1 entries"] {
        assert!(printed.contains(expected), "{expected} is not in {printed}");
    }
}

#[test]
fn another_program_is_recorded() {
    let printed = run("record_program");
    let expected = "after the undo:\none\ntwo\nthree\nfour, by hand\nnew.txt exists: false\n";
    assert!(printed.ends_with(expected), "{printed}");
    assert!(printed.contains("notes.txt") && printed.contains("new.txt"), "{printed}");
}

#[test]
fn events_are_followed() {
    let printed = run("follow_events");
    assert_eq!(printed.lines().count(), 3, "{printed}");
    assert!(printed.contains("Renamed"), "{printed}");
}
