//! Settings that threads share (prompts, roles, context presets), and the git commits of threads and takes.

use std::fs;
use std::path::Path;

use crate::support::Sandbox;
use serde_json::{Value, json};

fn setting(sandbox: &Sandbox, thread: &str, name: &str) -> String {
    let all = sandbox.json(&["settings", "list", "--thread", thread]);
    all["settings"][name].as_str().expect("a text").to_owned()
}

#[test]
fn prompts_and_roles_apply_to_other_threads() {
    let sandbox = Sandbox::new();
    for title in ["First", "Second"] {
        sandbox.done(&["thread", "new", title]);
    }
    for name in ["global_system_prompt", "project_system_prompt"] {
        sandbox.done(&["settings", "set", "--thread", "First", name, "Be kind."]);
        assert_eq!(setting(&sandbox, "Second", name), "Be kind.");
    }
    sandbox.done(&["role", "add", "--thread", "First", "Critic"]);
    let roles = |thread: &str| sandbox.json(&["role", "list", "--thread", thread])["roles"].clone();
    assert_eq!(roles("Second"), roles("First"));
    assert!(roles("Second").as_array().is_some_and(|roles| roles.contains(&json!("Critic"))));

    // Another project has only the global prompt.
    let other = sandbox.project().with_file_name("other");
    fs::create_dir(&other).expect("a new folder");
    let made = sandbox.run_in(&other, &["thread", "new", "Third"], "");
    assert_eq!(made.code, 0, "{}", made.stderr);
    let read = |name: &str| {
        let shown = sandbox.run_in(&other, &["settings", "get", name], "");
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        shown.stdout.trim().to_owned()
    };
    assert_eq!(
        (read("global_system_prompt").as_str(), read("project_system_prompt").as_str()),
        ("Be kind.", "")
    );

    // An undo in the thread that set it reverts it for all.
    for _ in 0..3 {
        sandbox.done(&["undo", "--thread", "First"]);
    }
    assert_eq!(setting(&sandbox, "Second", "global_system_prompt"), "");
    assert_eq!(setting(&sandbox, "Second", "project_system_prompt"), "");
    assert!(!roles("Second").as_array().is_some_and(|roles| roles.contains(&json!("Critic"))));
}

#[test]
fn context_presets_belong_to_the_project() {
    let sandbox = Sandbox::new();
    for title in ["First", "Second"] {
        sandbox.done(&["thread", "new", title]);
    }
    sandbox.write("a.rs", "a");
    sandbox.write("b.rs", "b");
    sandbox.done(&["context", "add", "--thread", "First", "a.rs", "b.rs"]);
    sandbox.done(&["context", "preset", "save", "--thread", "First", "login"]);
    let presets = sandbox.json(&["context", "preset", "list", "--thread", "Second"])["presets"].clone();
    assert_eq!(presets, json!([{"name": "login", "items": [{"path": "a.rs"}, {"path": "b.rs"}]}]));
    let files = || sandbox.json(&["context", "list", "--thread", "Second"])["files"].clone();
    let before = files();
    sandbox.done(&["context", "preset", "load", "--thread", "Second", "login"]);
    assert_eq!(files(), presets[0]["items"]);
    sandbox.done(&["undo", "--thread", "Second"]);
    assert_eq!(files(), before);
    sandbox.done(&["context", "preset", "delete", "login"]);
    assert_eq!(sandbox.refused(&["context", "preset", "load", "login"]).1["code"], "not_found");
    // Deleted and replaced presets can be restored.
    assert_eq!(sandbox.json(&["context", "preset", "list", "--deleted"])["presets"], presets);
    assert_eq!(sandbox.json(&["context", "preset", "restore", "login"]), presets[0]);
    sandbox.done(&["context", "preset", "save", "--thread", "Second", "login"]);
    assert_eq!(sandbox.json(&["context", "preset", "list"])["presets"][0]["items"], json!([]));
    assert_eq!(sandbox.json(&["context", "preset", "restore", "login"]), presets[0]);
    assert_eq!(sandbox.refused(&["context", "preset", "restore", "other"]).1["code"], "not_found");
    assert_eq!(sandbox.refused(&["context", "preset", "save", "a/b"]).1["code"], "refused");
}

/// Makes the folder look like a git repository at a commit.
fn check_out(sandbox: &Sandbox, commit: &str) {
    for folder in [".git/objects", ".git/refs/heads"] {
        fs::create_dir_all(sandbox.project().join(folder)).expect("a new folder");
    }
    sandbox.write(".git/HEAD", "ref: refs/heads/main\n");
    sandbox.write(".git/refs/heads/main", &format!("{commit}\n"));
}

#[test]
fn a_branch_shows_the_commit_of_its_source_and_a_run_can_require_the_start_commit() {
    let sandbox = Sandbox::new();
    let [first, second] = ["a".repeat(40), "b".repeat(40)];
    check_out(&sandbox, &first);
    sandbox.done(&["thread", "new", "Anchored"]);
    sandbox.done(&["entry", "add", "one"]);
    check_out(&sandbox, &second);
    sandbox.done(&["entry", "add", "two"]);
    sandbox.done(&["take", "branch", "1"]);
    let takes = sandbox.json(&["take", "list"])["takes"].clone();
    let commits: Vec<Value> =
        takes.as_array().expect("takes").iter().map(|take| take["git_commit"].clone()).collect();
    assert_eq!(commits, [Value::Null, json!(second)]);
    for shown in [sandbox.done(&["take", "list"]), sandbox.done(&["tree"])] {
        assert!(shown.contains("@bbbbbbb"), "{shown}");
    }
    let info = sandbox.json(&["thread", "info"]);
    assert_eq!(info["commits_seen"], json!([first, second]));
    let recorded = info["last_seen"]["environment"].as_object().cloned().unwrap_or_default();
    assert!(recorded.keys().all(|name| !name.contains("KEY") && !name.contains("TOKEN")), "{recorded:?}");

    let version = info["version"].clone();
    let (_, error) = sandbox.refused(&["run", "--at-start-commit", "say hi"]);
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(&format!("git switch --detach {first}")), "{message}");
    assert_eq!(sandbox.json(&["thread", "info"])["version"], version, "nothing was done");
    // From any folder, the thread's repository counts.
    let elsewhere = sandbox.project().with_file_name("elsewhere");
    fs::create_dir(&elsewhere).expect("a new folder");
    check_out(&sandbox, &first);
    let thread = info["id"].as_str().expect("an id");
    let ran = sandbox.run_in(&elsewhere, &["run", "--at-start-commit", "--thread", thread, "say hi"], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn the_start_commit_is_checked_in_the_folder_of_the_take() {
    let sandbox = Sandbox::new();
    let [first, second] = ["a".repeat(40), "b".repeat(40)];
    check_out(&sandbox, &first);
    sandbox.done(&["thread", "new", "Anchored"]);
    sandbox.done(&["entry", "add", "one"]);
    sandbox.done(&["take", "branch"]);
    sandbox.done(&["take", "switch", "main"]);
    let worktree = sandbox.project().with_file_name("worktree");
    let path = worktree.to_str().expect("text");
    sandbox.done(&["worktree", "add", "main_take_1", path]);
    let run = |folder: &Path| sandbox.run_in(folder, &["run", "--at-start-commit", "say hi"], "");
    assert_eq!(run(&sandbox.project()).code, 0);
    // The worktree is not a repository.
    let refused = run(&worktree);
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    assert!(refused.stderr.contains("no commit is checked out"), "{}", refused.stderr);
    check_out(&sandbox, &second);
    let chat = sandbox.run_in(&sandbox.project(), &["chat", "--at-start-commit"], "hello\n");
    assert!(chat.stderr.contains(&format!("git switch --detach {first}")), "{}", chat.stderr);
}
