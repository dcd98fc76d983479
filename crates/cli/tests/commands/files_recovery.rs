//! An interrupted file move: the next command finishes it and reports it, or reports why it cannot.

use std::fs;

use crate::support::Sandbox;
use retake_testing::interrupted_move::{changed, interrupt, store};
use retake_timeline::{Rules, Timeline};
use serde_json::Value;

/// A project with an interrupted file move.
fn cut_off() -> Sandbox {
    let sandbox = changed();
    interrupt(&sandbox);
    sandbox
}

fn read(sandbox: &Sandbox) -> Option<String> {
    fs::read_to_string(sandbox.project().join("a")).ok()
}

#[test]
fn a_change_of_the_conversation_reports_the_move_that_it_completed() {
    let sandbox = cut_off();
    let output = sandbox.run(&["entry", "add", "go on"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(read(&sandbox).as_deref(), Some("one\n"));
    assert!(output.stderr.contains("Recovered:") && output.stderr.contains("~ a"), "{}", output.stderr);
    assert_eq!(sandbox.run(&["entry", "add", "and on"]).stderr, "", "once");

    let sandbox = cut_off();
    let output = sandbox.run(&["entry", "add", "go on", "--json"]);
    let reported: Value = serde_json::from_str(&output.stderr).expect("a line of JSON");
    assert_eq!((reported["recovered"]["finished"].as_bool(), output.code), (Some(true), 0));
    assert_eq!(reported["recovered"]["paths"][0]["path"], "a");
}

#[test]
fn a_pending_move_of_a_missing_folder_is_preserved() {
    let sandbox = cut_off();
    let (project, away) = (sandbox.project(), sandbox.project().with_file_name("unmounted"));
    fs::rename(&project, &away).expect("our folder");
    let elsewhere = sandbox.project().with_file_name("elsewhere");
    fs::create_dir(&elsewhere).expect("our folder");
    let thread = {
        let timeline = Timeline::open(&store(&sandbox), Rules::default()).expect("a store");
        let reader = timeline.read().expect("a look");
        reader.threads(&retake_store::ThreadFilter::default()).expect("a list").remove(0).summary.id
    };
    let thread = thread.to_string();
    let add = ["entry", "add", "go on", "-t", thread.as_str()];
    for _ in 0..2 {
        let output = sandbox.run_in(&elsewhere, &add, "");
        assert_eq!(output.code, 5, "{}", output.stderr);
        assert!(output.stderr.contains(&*project.to_string_lossy()), "{}", output.stderr);
        assert!(output.stderr.contains("--forget-folder"), "{}", output.stderr);
    }
    // The folder is restored, and the move is finished.
    fs::rename(&away, &project).expect("our folder");
    let there = project.to_string_lossy().into_owned();
    let (code, _) = sandbox.refused(&["repair", "--forget-folder", &there]);
    assert_eq!(code, 5, "it is there");
    sandbox.done(&["entry", "add", "go on"]);
    assert_eq!(read(&sandbox).as_deref(), Some("one\n"));

    // Or it is never restored.
    let sandbox = cut_off();
    let there = sandbox.project().to_string_lossy().into_owned();
    fs::remove_dir_all(sandbox.project()).expect("our folder");
    let elsewhere = sandbox.project().with_file_name("elsewhere");
    fs::create_dir(&elsewhere).expect("our folder");
    let output = sandbox.run_in(&elsewhere, &["repair", "--forget-folder", &there], "");
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("Abandoned:"), "{}", output.stdout);
    let output = sandbox.run_in(&elsewhere, &["repair", "--forget-folder", &there], "");
    assert_eq!(output.code, 3, "{}", output.stderr);
}

#[test]
fn commands_that_only_read_mention_an_interrupted_move() {
    let commands: [&[&str]; 6] =
        [&["thread", "list"], &["thread", "show"], &["thread", "info"], &["history"], &["tree"], &["verify"]];
    let sandbox = cut_off();
    let project = sandbox.project().canonicalize().expect("it exists").to_str().expect("text").to_owned();
    for command in commands {
        let output = sandbox.run(command);
        assert_eq!(output.code, 0, "{command:?}: {}", output.stderr);
        let status = format!("`retake -C {project} status` finishes it");
        assert!(output.stderr.contains("was interrupted"), "{command:?}: {}", output.stderr);
        assert!(output.stderr.contains(&status), "{command:?}: {}", output.stderr);
        let pending = sandbox.json(command)["pending_moves"][0].clone();
        assert_eq!(pending["folder"], project, "{command:?}");
        assert_eq!((&pending["exists"], &pending["running"]), (&true.into(), &false.into()), "{command:?}");
        assert_eq!(pending["kind"]["type"], "files_moved", "{command:?}");
    }
    assert_eq!(read(&sandbox).as_deref(), Some("two\n"), "nothing was done about it");
    // The suggested command finishes it, and then there is nothing to report.
    sandbox.done(&["-C", &project, "status"]);
    assert_eq!(read(&sandbox).as_deref(), Some("one\n"));
    for command in commands {
        assert!(!sandbox.run(command).stderr.contains("interrupted"), "{command:?}");
        assert!(sandbox.json(command).get("pending_moves").is_none(), "{command:?}");
    }

    // A folder that replaced the original is not used, and the move can be abandoned.
    let sandbox = cut_off();
    let away = sandbox.project().with_file_name("away");
    fs::create_dir(&away).expect("our folder");
    fs::rename(sandbox.project(), away.join("project")).expect("our folder");
    fs::create_dir(sandbox.project()).expect("our folder");
    fs::write(sandbox.project().join("a"), "mine\n").expect("our folder");
    let pending = sandbox.json(&["thread", "list", "--all"])["pending_moves"][0].clone();
    assert_eq!(pending["exists"], false);
    assert!(pending["next"].as_str().is_some_and(|next| next.contains("--forget-folder")), "{pending}");
    sandbox.done(&["repair", "--forget-folder", pending["folder"].as_str().expect("text")]);
    assert_eq!(read(&sandbox).as_deref(), Some("mine\n"));
}
