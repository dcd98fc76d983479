//! Edge cases of commands that move files: worktrees, missing paths, missing steps.

use std::fs;
use std::path::PathBuf;

use crate::support::Sandbox;
use serde_json::json;

/// A thread with two takes: `main`, and `second`, the active one, with other content of the same file.
fn two_takes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.write("a", "one\n");
    sandbox.done(&["snapshot", "take"]);
    sandbox.agent("echo main > a");
    sandbox.done(&["take", "branch", "--name", "second"]);
    sandbox.agent("echo second > a");
    sandbox
}

/// The folder of the worktree.
fn worktree_folder(sandbox: &Sandbox) -> PathBuf {
    sandbox.project().with_file_name("worktree")
}

fn open_worktree(sandbox: &Sandbox, take: &str) {
    sandbox.done(&["worktree", "add", take, &worktree_folder(sandbox).to_string_lossy()]);
}

#[test]
fn a_fork_at_an_inherited_entry_has_the_files_of_that_entry() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    for (entry, file) in [("one", "1"), ("two", "2")] {
        sandbox.done(&["entry", "add", entry]);
        sandbox.agent(&format!("echo {file} > a"));
    }
    sandbox.done(&["entry", "add", "three"]);
    sandbox.done(&["take", "branch", "--name", "B", "--yes"]);
    sandbox.done(&["entry", "add", "four"]);
    sandbox.agent("echo 3 > a");
    let check = |command: &[&str]| {
        sandbox.done(command);
        assert_eq!(sandbox.read("a").as_deref(), Some("1\n"), "{command:?}");
    };
    check(&["take", "fork", "2", "--yes"]);
    // No longer the active take.
    check(&["take", "fork", "2", "-k", "B", "--yes"]);
    check(&["retry", "2", "-k", "B"]);

    sandbox.done(&["take", "switch", "B", "--yes"]);
    let promoted = sandbox.json(&["take", "promote", "main", "--switch"]);
    let thread = &promoted["promoted"]["thread"];
    assert_eq!(sandbox.read("a").as_deref(), Some("3\n"), "a promotion moves no file");
    let listed = sandbox.json(&["snapshot", "list"]);
    let listed = listed["snapshots"].as_array().expect("a list");
    assert!(
        listed.iter().any(|at| at["thread"] == *thread) && listed.iter().any(|at| at["thread"] != *thread)
    );
    sandbox.done(&["restore", "take:main", "--yes"]);
    assert_eq!(sandbox.read("a").as_deref(), Some("2\n"), "the files that the take came with");
    check(&["take", "fork", "2", "--yes"]);
    check(&["take", "fork", "2", "-k", "main", "--yes"]);
    let first = listed.iter().rev().find(|at| at["before"] != at["after"]).expect("a change");
    sandbox.done(&["restore", first["after"].as_str().expect("an id"), "--yes"]);
}

#[test]
fn the_active_take_keeps_its_files_when_promoted() {
    let sandbox = two_takes();
    let (code, error) = sandbox.refused(&["take", "promote"]);
    assert_eq!(code, 5, "{error}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("retake take switch main"), "{message}");
    assert_eq!(sandbox.read("a").as_deref(), Some("second\n"), "nothing was changed");
    sandbox.done(&["take", "switch", "main"]);
    assert_eq!(sandbox.read("a").as_deref(), Some("main\n"));
    sandbox.done(&["take", "promote", "second"]);
    assert_eq!(sandbox.read("a").as_deref(), Some("main\n"));

    let sandbox = two_takes();
    sandbox.done(&["take", "promote", "--conversation"]);
    assert_eq!(sandbox.read("a").as_deref(), Some("second\n"), "it was asked for");
}

#[test]
fn a_take_in_a_worktree_stays_in_it() {
    let sandbox = two_takes();
    sandbox.done(&["take", "switch", "main"]);
    open_worktree(&sandbox, "second");
    let place = worktree_folder(&sandbox).to_string_lossy().into_owned();
    let check = |arguments: &[&str]| {
        let (code, error) = sandbox.refused(arguments);
        let message = error["message"].as_str().expect("a message");
        assert_eq!(code, 5, "{arguments:?}: {message}");
        assert!(
            message.contains(&place) && message.contains("retake worktree remove"),
            "{arguments:?}: {message}"
        );
    };
    // An undo of the switch or of the branch would affect the worktree: it passes over both.
    for undo in [&["undo"][..], &["undo", "--conversation"]] {
        sandbox.done(undo);
        assert!(sandbox.done(&["take", "list"]).contains(&format!("second is checked out in {place}.")));
        sandbox.done(&["redo"]);
    }
    check(&["take", "delete", "second"]);
    check(&["take", "delete", "second", "--conversation"]);
    check(&["take", "switch", "second", "--conversation"]);
    check(&["take", "promote", "second"]);
    assert!(sandbox.done(&["take", "list"]).contains(&format!("second is checked out in {place}.")));
    assert_eq!(sandbox.json(&["take", "list"])["worktrees"][0]["path"], place.as_str());
    sandbox.done(&["worktree", "remove", "second"]);
    assert!(!sandbox.done(&["take", "list"]).contains("checked out"));
    sandbox.done(&["undo"]);
    assert_eq!(sandbox.read("a").as_deref(), Some("second\n"));
}

#[test]
fn a_thread_with_an_open_worktree_is_neither_deleted_nor_purged() {
    let sandbox = two_takes();
    sandbox.done(&["take", "switch", "main"]);
    sandbox.done(&["take", "delete", "second"]);
    sandbox.done(&["undo"]);
    open_worktree(&sandbox, "second");
    sandbox.done(&["thread", "new", "Another"]);
    let place = worktree_folder(&sandbox).to_string_lossy().into_owned();
    let thread = ["-t", "Fix the login"];
    for refused in [
        &["thread", "delete", "Fix the login"][..],
        &["purge", "Fix the login", "--yes"],
        // The deletion of the take.
        &["redo", thread[0], thread[1]],
        &["redo", "--conversation", thread[0], thread[1]],
    ] {
        let (code, error) = sandbox.refused(refused);
        let message = error["message"].as_str().expect("a message");
        assert_eq!(code, 5, "{refused:?}: {message}");
        assert!(message.contains("retake worktree remove") || refused[0] == "redo", "{refused:?}: {message}");
        assert!(sandbox.done(&["take", "list", thread[0], thread[1]]).contains(&place), "{refused:?}");
    }
    sandbox.done(&["worktree", "remove", "second", thread[0], thread[1]]);
    sandbox.done(&["thread", "delete", "Fix the login"]);
}

#[test]
fn a_worktree_with_a_running_command_is_not_removed() {
    let sandbox = two_takes();
    sandbox.done(&["take", "switch", "main"]);
    open_worktree(&sandbox, "second");
    let there = worktree_folder(&sandbox);
    let close =
        format!("{} worktree remove second 2> ../said; echo $? > ../code", env!("CARGO_BIN_EXE_retake"));
    let run = sandbox.run_in(&there, &["exec", "--", "sh", "-c", &close], "");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let written = |name: &str| fs::read_to_string(there.with_file_name(name)).expect("it was written");
    assert_eq!(written("code"), "5\n", "{}", written("said"));
    assert!(written("said").contains("running in this folder"), "{}", written("said"));
    sandbox.done(&["worktree", "remove", "second"]);
}

#[test]
fn restoring_an_unknown_path_is_reported() {
    let sandbox = two_takes();
    sandbox.write(".env", "KEY=1\n");
    let check = |path: &str, code: i32, expected: &str| {
        let (found, error) = sandbox.refused(&["restore", "1", path]);
        let message = error["message"].as_str().expect("a message");
        assert_eq!(found, code, "{path}: {message}");
        assert!(message.contains(expected), "{path}: {message}");
    };
    check("mispelt.rs", 3, "mispelt.rs is neither in that snapshot nor in the folder");
    check("a/b", 3, "neither");
    check(".env", 5, "likely a secret");
    sandbox.done(&["restore", "1", "a"]);
    assert_eq!(sandbox.read("a").as_deref(), Some("one\n"));
    // A file that the revision does not contain is removed.
    sandbox.write("b", "new\n");
    sandbox.done(&["restore", "1", "b"]);
    assert_eq!(sandbox.read("b"), None);
}

#[test]
fn a_repeated_undo_resolves_conflicts() {
    let check = |how: &str, expected: &str| {
        let sandbox = Sandbox::new();
        sandbox.done(&["thread", "new", "Fix the login"]);
        sandbox.write("a", "old\n");
        sandbox.write("b", "old\n");
        sandbox.done(&["snapshot", "take"]);
        sandbox.agent("echo agent > a; echo agent > b");
        sandbox.write("a", "hand\n");
        sandbox.done(&["undo"]);
        assert_eq!(sandbox.read("a").as_deref(), Some("hand\n"), "a conflict");
        sandbox.done(&["redo"]);
        sandbox.done(&["undo", "--conflicts", how]);
        assert_eq!(sandbox.read("a").as_deref(), Some(expected), "{how}");
        assert_eq!(sandbox.read("b").as_deref(), Some("old\n"), "{how}");
    };
    check("keep", "hand\n");
    check("take", "old\n");
    check("mark", "<<<<<<< as it is\nhand\n=======\nold\n>>>>>>> as it would be\n");
}

#[test]
fn fewer_steps_than_requested_are_reported() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.done(&["entry", "add", "one"]);
    sandbox.done(&["entry", "add", "two"]);
    let output = sandbox.run(&["undo", "5"]);
    assert_eq!(output.code, 0);
    assert!(output.stderr.contains("Undid only 2 steps of 5: no more available."), "{}", output.stderr);
    let output = sandbox.run(&["redo", "2"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_eq!(sandbox.json(&["undo", "5"])["steps"], 2);
}

#[test]
fn adding_and_removing_a_worktree_can_be_previewed() {
    let sandbox = two_takes();
    sandbox.done(&["take", "switch", "main"]);
    let there = worktree_folder(&sandbox);
    let folder = there.to_string_lossy().into_owned();
    let open = ["worktree", "add", "second", &folder, "--dry-run"];
    let printed = sandbox.done(&open);
    assert!(printed.contains(&format!("Would create a worktree in {folder}: 1 file.")), "{printed}");
    let previewed = sandbox.json(&open)["preview"]["worktree"].clone();
    assert_eq!((&previewed["action"], &previewed["files"]), (&json!("open"), &json!(1)), "{previewed}");
    assert!(!there.exists());
    // A preview is refused if the command would be.
    let (code, _) = sandbox.refused(&["worktree", "add", "second", "inner", "--dry-run"]);
    assert_eq!(code, 5);
    open_worktree(&sandbox, "second");
    fs::write(there.join("late"), "new\n").expect("its folder");
    let close = ["worktree", "remove", "second", "--delete-files", "--dry-run"];
    let printed = sandbox.done(&close);
    assert!(printed.contains("late") && printed.contains("would be removed"), "{printed}");
    let previewed = sandbox.json(&close)["preview"].clone();
    assert_eq!(previewed["worktree"]["removed"], true, "{previewed}");
    assert!(there.join("late").exists());
    assert!(sandbox.done(&["take", "list"]).contains("second is checked out"));
}

#[test]
fn a_dry_run_cleans_up_nothing() {
    let sandbox = two_takes();
    let project = sandbox.json(&["project", "list"])["projects"][0]["id"].as_str().expect("an id").to_owned();
    let half = sandbox.project().with_file_name(".retake-tmp-open-half");
    fs::create_dir(&half).expect("our folder");
    let note = sandbox.project().with_file_name("store").join("folders").join(format!("filling-{project}"));
    fs::write(&note, half.to_str().expect("text")).expect("our store");
    for preview in
        [&["undo", "--dry-run"][..], &["take", "switch", "main", "--dry-run"], &["gc", "--dry-run"]]
    {
        sandbox.done(preview);
        assert!(half.exists() && note.exists(), "{preview:?}");
    }
    sandbox.done(&["status"]);
    assert!(!half.exists() && !note.exists());
}

#[test]
fn in_a_worktree_its_take_is_named() {
    let sandbox = two_takes();
    sandbox.done(&["take", "switch", "main"]);
    open_worktree(&sandbox, "second");
    let there = worktree_folder(&sandbox);
    let run = sandbox.run_in(&there, &["exec", "--", "sh", "-c", "echo more > b"], "");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let undone = sandbox.run_in(&there, &["undo"], "");
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    assert!(undone.stdout.contains("Now on second"), "{}", undone.stdout);
    assert!(!there.join("b").exists());
}

#[test]
fn files_alone_are_undone_and_redone_step_by_step() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.write("a", "0\n");
    sandbox.done(&["snapshot", "take"]);
    sandbox.agent("echo 1 > a");
    sandbox.agent("echo 2 > a");
    sandbox.done(&["entry", "add", "only talk"]);
    sandbox.agent("echo 3 > a");
    let check = |arguments: &[&str], expected: &str, part: &str| {
        let output = sandbox.run(arguments);
        assert_eq!(sandbox.read("a").as_deref(), Some(expected), "{arguments:?}: {}", output.stderr);
        assert!(output.stdout.contains(part), "{arguments:?}: {}", output.stdout);
        assert_eq!(output.code == 0, !part.is_empty(), "{arguments:?}: {}", output.stderr);
    };
    let one = "(files only): changed 1 file";
    check(&["undo", "--files"], "2\n", &format!("Undid {one}"));
    // Entries in between are skipped.
    check(&["undo", "--files"], "1\n", &format!("Undid {one}"));
    check(&["undo", "--files"], "0\n", &format!("Undid {one}"));
    check(&["undo", "--files"], "0\n", "");
    check(&["redo", "--files"], "1\n", &format!("Redid {one}"));
    check(&["redo", "--files", "2"], "3\n", "Redid (files only) 2 changes:");
    check(&["redo", "--files"], "3\n", "");
    check(&["undo", "--files", "2"], "1\n", "Undid (files only) 2 changes:");
    assert!(sandbox.done(&["thread", "show"]).contains("only talk"), "the conversation stays");
    // Each move was a separate change.
    check(&["undo"], "3\n", "Undid: moved");
    check(&["redo"], "1\n", "Redid: moved");
    check(&["jump", "--files", "1"], "0\n", "Restored the files of version 1.");
    check(&["redo", "--files"], "1\n", "Redid");
}

#[test]
fn changed_and_then_ignored_files_are_listed() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.write("a.log", "one\n");
    sandbox.write("kept", "one\n");
    fs::create_dir(sandbox.project().join("out")).expect("our folder");
    sandbox.write("out/x", "one\n");
    sandbox.write("out/y", "one\n");
    sandbox.done(&["snapshot", "take"]);
    sandbox.agent("echo two > a.log; echo two > kept; echo two > out/x; printf '*.log\nout/\n' > .gitignore");
    let answer = sandbox.json(&["undo"]);
    let paths = answer["files"]["paths"].as_array().expect("paths");
    let reported: Vec<(&str, &str)> = paths
        .iter()
        .map(|path| (path["path"].as_str().expect("a path"), path["outcome"].as_str().expect("an outcome")))
        .collect();
    let expected = [(".gitignore", "removed"), ("a.log", "skipped"), ("kept", "written"), ("out", "skipped")];
    assert_eq!(reported, expected);
    assert!(paths[1]["reason"].as_str().is_some_and(|reason| reason.contains("ignored")), "{answer}");
    assert_eq!(sandbox.read("a.log").as_deref(), Some("two\n"), "nobody knows what it was then");
    assert_eq!(sandbox.read("kept").as_deref(), Some("one\n"));
}

#[test]
fn an_export_without_files_contains_no_file_content() {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.write("canary-name", "canary-one\n");
    sandbox.done(&["snapshot", "take"]);
    sandbox.agent("echo canary-two > canary-name");
    sandbox.done(&["entry", "add", "only talk"]);
    sandbox.done(&["undo", "2"]);
    sandbox.done(&["export", "-o", "../whole"]);
    sandbox.done(&["export", "--without-files", "-o", "../talk"]);
    let kinds = |name: &str| {
        let text = fs::read_to_string(sandbox.project().with_file_name(name)).expect("an export");
        ["blob", "tree", "snapshot"].map(|kind| text.contains(&format!("\"object\":\"{kind}\"")))
    };
    assert_eq!((kinds("whole"), kinds("talk")), ([true; 3], [false; 3]));
    assert_eq!(sandbox.refused(&["import", "../talk"]).0, 5, "the thread is here, with its files");
    sandbox.done(&["import", "../talk", "--copy"]);
    let other = Sandbox::new();
    let talk = sandbox.project().with_file_name("talk").to_string_lossy().into_owned();
    other.done(&["import", &talk]);
    let threads = other.json(&["thread", "list"]);
    let thread = threads["threads"][0]["id"].as_str().expect("an id").to_owned();
    other.done(&["redo", "2", "-t", &thread]);
    assert!(other.done(&["thread", "show", &thread]).contains("only talk"));
    other.done(&["undo", "2", "-t", &thread]);
    other.done(&["verify"]);
    sandbox.done(&["verify"]);
}

#[test]
fn a_budget_deletes_nothing_without_confirmation() {
    let sandbox = Sandbox::new();
    for (number, title) in ["first", "second", "third"].iter().enumerate() {
        sandbox.done(&["thread", "new", title]);
        // Incompressible content, so that it takes its full size.
        let mut noise = String::new();
        for at in 0u64..4000 {
            let mixed = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31 + number as u32);
            noise += &mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9 + 2 * number as u64).to_string();
        }
        sandbox.write("noise", &noise);
        sandbox.done(&["snapshot", "take", "--by", "agent"]);
    }
    sandbox.done(&["thread", "new", "kept"]);
    sandbox.done(&["thread", "delete", "first"]);
    sandbox.done(&["thread", "delete", "second"]);
    let share = || sandbox.json(&["usage", "--projects"])["projects"][0]["bytes"].as_u64().expect("bytes");
    let all = share();
    assert!(all > 60_000, "{all}");
    let plan = |size: &str| {
        let answer = sandbox.json(&["purge", "--deleted", "--to-fit", size, "--dry-run"]);
        let threads = answer["threads"].as_array().expect("a list").clone();
        threads.iter().map(|thread| thread["title"].as_str().expect("a title").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(plan("1 GB"), Vec::<String>::new());
    assert_eq!(plan(&(all - 1).to_string()), ["first"]);
    assert_eq!(plan("0"), ["first", "second"], "never one that is in use");
    assert_eq!(share(), all, "a plan is only a plan");
    let (code, error) = sandbox.refused(&["purge", "--deleted", "--to-fit", &(all - 1).to_string()]);
    assert_eq!(code, 5, "nobody was there to be asked: {error}");
    assert_eq!(sandbox.refused(&["purge", "--deleted", "--to-fit"]).0, 2, "no size is known");
    sandbox.done(&["config", "set", "files.budget", &(all - 1).to_string()]);
    assert!(sandbox.done(&["usage", "--projects"]).contains("above files.budget"));
    sandbox.done(&["purge", "--deleted", "--to-fit", "--yes"]);
    assert!(share() < all);
    assert!(sandbox.run(&["thread", "show", "first"]).code != 0);
    sandbox.done(&["thread", "restore", "second"]);
}

#[test]
fn a_renamed_worktree_is_used_at_its_new_path() {
    let sandbox = two_takes();
    open_worktree(&sandbox, "main");
    let renamed = worktree_folder(&sandbox).with_file_name("renamed");
    fs::rename(worktree_folder(&sandbox), &renamed).expect("a rename");
    let there = renamed.to_string_lossy().into_owned();
    sandbox.done(&["-C", &there, "exec", "--", "sh", "-c", "echo there > b"]);
    assert!(renamed.join("b").exists());
    sandbox.done(&["-C", &there, "undo", "--yes"]);
    assert!(!renamed.join("b").exists(), "the undo moved the files of the folder that was renamed");
    assert_eq!(sandbox.read("a").as_deref(), Some("second\n"), "the project's folder is as it was");
}

#[test]
fn a_saved_version_includes_hand_edits() {
    let sandbox = two_takes();
    sandbox.write("notes", "by hand\n");
    sandbox.done(&["save", "before"]);
    sandbox.agent("rm notes; echo new > new");
    sandbox.done(&["restore", "before", "--yes"]);
    assert_eq!((sandbox.read("notes").as_deref(), sandbox.read("new")), (Some("by hand\n"), None));
}

#[test]
fn saving_fails_if_the_folder_cannot_be_used() {
    let sandbox = two_takes();
    let further = worktree_folder(&sandbox).with_file_name("further");
    fs::create_dir(&further).expect("a folder");
    sandbox.done(&["project", "root", "add", "further", &further.to_string_lossy()]);
    let before = sandbox.json(&["save", "whole"])["version"].clone();
    fs::remove_dir(&further).expect("an empty folder");
    let (_, refused) = sandbox.refused(&["save", "without"]);
    assert!(refused.to_string().contains("further"), "{refused}");
    let saved = sandbox.json(&["save", "--list"]);
    assert_eq!(saved["saved"][0]["version"], before, "nothing was saved");
}

#[test]
fn a_version_means_the_files_of_the_project_and_not_of_a_worktree() {
    let sandbox = two_takes();
    open_worktree(&sandbox, "main");
    let there = worktree_folder(&sandbox).to_string_lossy().into_owned();
    sandbox.done(&["-C", &there, "exec", "--", "sh", "-c", "echo there > a"]);
    let added = sandbox.json(&["entry", "add", "A word"]);
    assert_eq!(sandbox.done(&["diff"]), "", "nothing was changed by hand");
    sandbox.done(&["restore", &added["version"].to_string(), "--yes"]);
    assert_eq!(sandbox.read("a").as_deref(), Some("second\n"));
}

#[test]
fn a_failure_to_record_reports_that_the_command_ran() {
    let sandbox = two_takes();
    let project = sandbox.project().clone();
    let moved = project.with_file_name("moved");
    let line = format!("echo ran > ran; mv {} {}", project.display(), moved.display());
    let output = sandbox.run(&["--json", "exec", "--", "sh", "-c", &line]);
    assert_eq!(output.code, 125, "{output:?}");
    let failure: serde_json::Value = serde_json::from_str(&output.stderr).expect("errors are JSON too");
    let failure = &failure["error"];
    assert_eq!(failure["exit"], 0, "{failure}");
    assert!(
        failure["message"].as_str().is_some_and(|text| text.contains("Do not run it again")),
        "{failure}"
    );
    // As promised, the next command records the changes; they may include edits by hand.
    fs::rename(&moved, &project).expect("the way back");
    assert_eq!(sandbox.refused(&["undo"]).0, 5);
    let undone = sandbox.done(&["undo", "--shared"]);
    assert!(undone.contains("ran"), "{undone}");
    assert_eq!(sandbox.read("ran"), None);
}
