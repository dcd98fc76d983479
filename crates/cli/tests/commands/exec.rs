//! `retake exec`: its exit codes, and what it says about a command that runs.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::support::Sandbox;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox
}

#[test]
fn the_exit_code_of_exec_is_that_of_the_command_or_one_that_env_uses_for_itself() {
    let sandbox = sandbox();
    sandbox.write("text", "no program\n");
    let codes: [(&[&str], i32); 8] = [
        (&["exec", "--", "sh", "-c", "exit 7"], 7),
        (&["exec", "--", "sh", "-c", "exit 125"], 125),
        (&["exec", "--", "sh", "-c", "kill -TERM $$"], 143),
        (&["exec", "--", "no-such-program"], 127),
        (&["exec", "--", "./text"], 126),
        (&["exec", "-t", "no such thread", "--", "true"], 125),
        (&["exec", "--expect", "999", "--", "true"], 125),
        (&["exec"], 125),
    ];
    for (arguments, code) in codes {
        let ran = sandbox.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
    }
    let (code, error) = sandbox.refused(&["exec", "-t", "no such thread", "--", "true"]);
    assert_eq!((code, &error["code"]), (125, &json!("not_found")), "{error}");
    // Control: the codes of other commands stay.
    assert_eq!(sandbox.run(&["history", "-t", "no such thread"]).code, 3);
}

#[test]
fn a_command_that_waits_for_exec_names_the_program_and_its_process() {
    let sandbox = sandbox();
    sandbox.agent("echo 1 > a");
    let (up, go) = (sandbox.project().with_file_name("up"), sandbox.project().with_file_name("go"));
    let script = format!(
        "echo 2 > b; : > '{}'; i=0; while [ ! -e '{}' ] && [ $i -lt 3000 ]; do sleep 0.02; i=$((i+1)); done; echo 3 > c",
        up.display(),
        go.display()
    );
    std::thread::scope(|scope| {
        let running = scope.spawn(|| sandbox.json(&["exec", "--", "/bin/sh", "-c", &script]));
        while !up.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let (_, error) = sandbox.refused(&["undo"]);
        // Records the first file, as the command's.
        sandbox.done(&["status"]);
        fs::write(&go, "").expect("a signal");
        assert_eq!(error["program"], json!("sh"), "{error}");
        assert!(error["process"].as_u64().is_some(), "{error}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains("retake exec") && !message.contains("retake stop"), "{error}");
        let answer = running.join().expect("it ends");
        let paths: Vec<&str> = answer["files"]["paths"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|path| path["path"].as_str())
            .collect();
        assert_eq!(paths, ["b", "c"], "{answer}");
    });
}

#[test]
fn an_import_of_a_new_thread_names_the_command_that_brings_its_files() {
    let (here, there) = (sandbox(), Sandbox::new());
    here.agent("echo 1 > a");
    let export = here.project().with_file_name("x.retake").display().to_string();
    here.done(&["export", "-o", &export]);
    let imported = there.run(&["import", &export, "--switch"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    assert!(imported.stderr.contains("No file was written. `retake restore 2 -t "), "{}", imported.stderr);
    assert_eq!(there.read("a"), None);
    let version = Sandbox::new().json(&["import", &export])["restore"].to_string();
    assert_eq!(version, "2");
    there.done(&["restore", &version]);
    assert_eq!(there.read("a").as_deref(), Some("1\n"));
    // Nothing to bring: a thread without files, and one that is here already.
    assert!(!there.run(&["import", &export]).stderr.contains("No file was written"));
}

#[test]
fn edits_after_a_killed_turn_are_asked_about_and_exec_reports_its_own_changes() {
    let sandbox = sandbox();
    sandbox.write("mine", "0\n");
    let mut killed = std::process::Command::new(retake_testing::program())
        .args(["run", "--approve", "all", "run echo 1 > tool; sleep 60"])
        .current_dir(sandbox.project())
        .env_clear()
        .envs(sandbox.environment())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program was just built");
    while sandbox.read("tool").is_none_or(|text| text.is_empty()) {
        std::thread::sleep(Duration::from_millis(10));
    }
    killed.kill().expect("it runs");
    killed.wait().expect("it was killed");
    sandbox.write("mine", "by hand\n");
    let ran = sandbox.done(&["exec", "--json", "--", "sh", "-c", "echo 1 > command"]);
    let ran: serde_json::Value = serde_json::from_str(&ran).expect("JSON");
    assert_eq!(ran["files"]["paths"][0]["path"], json!("command"), "{ran}");
    assert_eq!(ran["files"]["paths"].as_array().map(Vec::len), Some(1), "{ran}");
    let (code, error) = sandbox.refused(&["undo"]);
    assert_eq!((code, &error["code"]), (5, &json!("conflict")), "{error}");
    assert!(error["message"].to_string().contains("mine"), "{error}");
    assert_eq!(sandbox.read("mine").as_deref(), Some("by hand\n"));
}
