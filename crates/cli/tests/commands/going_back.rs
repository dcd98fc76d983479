//! The story that Retake is made for, in eight commands.
//!
//! A coding agent went wrong three turns ago and edited fourteen files, partly through the shell. The user goes back with
//! code and conversation, keeps the edits made by hand since, corrects one wrong sentence of the assistant, tries the same
//! prompt twice, compares, keeps the better take, closes the laptop, and goes on elsewhere.

use std::fs;
use std::path::Path;

use crate::support::Sandbox;

/// The names and texts of the files in a folder.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(path).expect("text"))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn going_back_and_on_takes_eight_commands() {
    let (sandbox, elsewhere) = (Sandbox::new(), Sandbox::new());
    sandbox.write("readme.md", "# Login\n\none\ntwo\nthree\n");
    sandbox.done(&["thread", "new", "Fix the login"]);
    let prompt = |text: &str| drop(sandbox.done(&["run", "--approve", "all", text]));
    prompt("create login.md with key = date\nsay The cache is keyed by weekday.");
    let good = files(&sandbox.project());
    // Three turns go wrong: fourteen files, twelve of them through the shell.
    prompt("create login.md with key = weekday");
    prompt("run for n in 01 02 03 04 05 06 07 08 09 10 11 12; do echo wrong > part$n.md; done");
    prompt("run sed -i s/one/ONE/ readme.md");
    // Edits by hand: in a file that the agent changed too, and in a new one.
    let text = sandbox.read("readme.md").expect("a file");
    sandbox.write("readme.md", &text.replace("three", "three, by hand"));
    sandbox.write("mine.md", "by hand\n");
    assert_eq!(sandbox.json(&["turns"])["count"], 4);
    let sentence = {
        let shown = sandbox.json(&["thread", "show", "--all"]);
        let entries = shown["entries"].as_array().expect("a list").clone();
        let is_wrong = |entry: &&serde_json::Value| {
            entry["entry"]["role"] == "AI"
                && entry["entry"]["content"].to_string().contains("keyed by weekday")
        };
        let found = entries.iter().find(is_wrong);
        found.expect("the wrong sentence")["number"].to_string()
    };
    let export = elsewhere.project().join("fix.retake").display().to_string();
    let mut commands = 0;
    let mut command = |sandbox: &Sandbox, arguments: &[&str]| {
        commands += 1;
        sandbox.done(arguments)
    };

    let undone = command(&sandbox, &["undo", "--to", "turn:1"]);
    assert!(
        undone.starts_with("Undid turn 4 \"run sed") && undone.contains("turn 2 \"create login.md"),
        "{undone}"
    );
    let mut expected = good;
    expected.push(("mine.md".into(), "by hand\n".into()));
    let by_hand = expected.iter_mut().find(|(name, _)| name == "readme.md").expect("a file");
    by_hand.1 = "# Login\n\none\ntwo\nthree, by hand\n".into();
    expected.sort();
    assert_eq!(files(&sandbox.project()), expected);

    command(&sandbox, &["entry", "edit", &sentence, "The cache is keyed by date."]);
    command(&sandbox, &["run", "--approve", "all", "create attempt.md with keyed by date"]);
    let first = files(&sandbox.project());
    command(&sandbox, &["retry", "--approve", "all", "--name", "second"]);
    let compared = command(&sandbox, &["compare", "main", "second"]);
    assert!(compared.contains("main") && compared.contains("second"), "{compared}");
    let kept = command(&sandbox, &["keep", "second"]);
    assert!(kept.starts_with("Kept second and deleted main."), "{kept}");
    assert_eq!(files(&sandbox.project()), first, "both attempts wrote the same");
    command(&sandbox, &["export", "-o", &export]);
    command(&elsewhere, &["import", &export, "--switch"]);
    assert!(commands <= 8, "{commands} commands");

    let there = elsewhere.json(&["thread", "show", "--all"]);
    let here = sandbox.json(&["thread", "show", "--all"]);
    assert_eq!(there["entries"], here["entries"]);
    assert_eq!(elsewhere.json(&["turns"])["count"], 2);
    let shown = elsewhere.json(&["entry", "show", &sentence]);
    assert_eq!(shown["entry"]["content"], "The cache is keyed by date.");
    assert_eq!(elsewhere.done(&["cat", "mine.md", "--at", "turn:last"]), "by hand\n");
}
