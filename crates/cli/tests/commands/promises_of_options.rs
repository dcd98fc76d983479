//! Options behave the same on every command, and names are unambiguous.

use std::time::Duration;

use crate::support::Sandbox;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login", "--tag", "bug"]);
    sandbox.done(&["entry", "add", "Why does it fail?"]);
    sandbox
}

#[test]
fn the_expected_version_is_checked() {
    let sandbox = sandbox();
    for command in [
        &["thread", "pin"][..],
        &["thread", "unpin"],
        &["thread", "delete"],
        &["thread", "rename", "Another"],
        &["thread", "tag", "x"],
        &["thread", "restore", "Fix the login"],
        &["redact", "1", "--yes"],
    ] {
        let (code, error) = sandbox.refused(&[command, &["--expect", "7"]].concat());
        assert_eq!((code, &error["current"]), (4, &2.into()), "{command:?}: {error}");
    }
    assert_eq!(sandbox.json(&["thread", "pin", "--expect", "2"])["version"], 3);
    sandbox.done(&["thread", "new", "Another one"]);
    assert_eq!(sandbox.json(&["thread", "delete", "Fix the login", "--expect", "3"])["version"], 4);
}

#[test]
fn options_without_effect_are_refused() {
    let sandbox = sandbox();
    for command in [
        &["thread", "rename", "x", "-k", "main"][..],
        &["thread", "tag", "x", "-k", "main"],
        &["thread", "share", "--private", "yes", "-k", "main"],
        &["entry", "show", "1", "--expect", "2"],
        &["entry", "collapse", "1", "--expect", "2"],
        &["entry", "read", "1", "--expect", "2"],
    ] {
        assert_eq!(sandbox.run(command).code, 2, "{command:?}");
    }
}

#[test]
fn a_restored_duplicate_title_is_resolved_by_id() {
    let sandbox = sandbox();
    sandbox.done(&["thread", "rename", "Second"]);
    sandbox.done(&["thread", "new", "Fix the login"]);
    let undone = sandbox.run(&["undo", "-t", "Second"]);
    assert_eq!(undone.code, 0);
    assert!(undone.stderr.contains("has the same title \"Fix the login\""), "{}", undone.stderr);
    let (code, error) = sandbox.refused(&["thread", "show", "Fix the login"]);
    assert_eq!((code, error["candidates"].as_array().map(Vec::len)), (5, Some(2)), "{error}");
    // Using the title again is refused as before.
    assert_eq!(sandbox.refused(&["thread", "new", "Fix the login"]).0, 5);
    let quiet = sandbox.run(&[
        "redo",
        "-t",
        error["candidates"][0].as_str().expect("text").split(' ').next().expect("an id"),
    ]);
    assert!(!quiet.stderr.contains("too;"), "{}", quiet.stderr);
}

#[test]
fn json_output_is_only_json() {
    let sandbox = sandbox();
    sandbox.done(&["thread", "new", "Another one"]);
    sandbox.done(&["thread", "delete"]);
    let (code, error) = sandbox.refused(&["purge", "--deleted"]);
    assert_eq!((code, &error["code"]), (5, &"refused".into()));
}

#[test]
fn config_get_prints_the_value_as_it_was_set() {
    let sandbox = sandbox();
    let folder = sandbox.project().join("elsewhere");
    let folder = folder.to_string_lossy();
    // The sandbox sets RETAKE_HOME, which overrides it.
    let set = sandbox.json(&["config", "set", "storage.folder", &folder]);
    assert_eq!(set["value"], *folder);
    let output = sandbox.run(&["config", "set", "storage.folder", &folder]);
    assert!(output.stdout.contains(&*folder) && output.stderr.contains("RETAKE_HOME"), "{}", output.stdout);
}

#[test]
fn help_shows_quotes_as_they_are_typed() {
    let sandbox = sandbox();
    let help = sandbox.done(&["search", "--help"]);
    assert!(help.contains("\"2026-11-01 14:30\"") && !help.contains('\\'), "{help}");
}

#[test]
fn generated_names_respect_the_length_limit() {
    let sandbox = sandbox();
    let long = "ü".repeat(100);
    sandbox.done(&["take", "rename", &long]);
    for number in 1..=11 {
        let branched = sandbox.json(&["take", "branch"]);
        let name = branched["kind"]["name"].as_str().expect("a name");
        assert!(name.ends_with(&format!("_take_{number}")) && name.chars().count() <= 100, "{name}");
        // A generated name can be typed.
        sandbox.done(&["take", "rename", &format!("{number}")]);
        sandbox.done(&["take", "rename", name]);
    }
}

#[test]
fn a_narrow_screen_shows_the_important_columns() {
    let sandbox = sandbox();
    sandbox.done(&["take", "branch", "--name", "another way to do it"]);
    let list = sandbox.screen(40, &["thread", "list"]).join("\n");
    insta::assert_snapshot!("thread_list_40", sandbox.redact(&list));
    let list = sandbox.screen(80, &["thread", "list"]).join("\n");
    insta::assert_snapshot!("thread_list_80", sandbox.redact(&list));
    let shown = sandbox.screen(40, &["thread", "show"]).join("\n");
    insta::assert_snapshot!("thread_show_40", sandbox.redact(&shown));
}

#[test]
fn a_waiting_command_names_the_process_that_it_waits_for() {
    let sandbox = sandbox();
    let lock = sandbox.project().with_file_name("store").join("writer.lock");
    let file = std::fs::OpenOptions::new().write(true).open(lock).expect("the lock of the store");
    file.lock().expect("nobody writes");
    let holder = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(5));
        drop(file);
    });
    let printed = sandbox.screen(120, &["entry", "add", "patience"]).join("\n");
    holder.join().expect("it only sleeps");
    let process = format!("Waiting for process {}, which is writing", std::process::id());
    assert!(printed.contains(&process) && printed.contains("Added entry 2"), "{printed}");
}
