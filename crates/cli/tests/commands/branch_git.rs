//! `retake take branch-git`: a commit on a new branch, checked with the real git, which must notice nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::Sandbox;

/// Runs git, which must succeed, and returns its output.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = run_git(folder, arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

fn run_git(folder: &Path, arguments: &[&str]) -> std::process::Output {
    Command::new("git")
        .args([
            "-c",
            "user.name=Setup",
            "-c",
            "user.email=setup@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git is installed")
}

/// A repository with a program, a link, an ignored file that is tracked, and a turn that changed files.
fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    let folder = sandbox.project();
    git(&folder, &["init"]);
    for (key, value) in [("user.name", "Ada Lovelace"), ("user.email", "ada@example.org")] {
        git(&folder, &["config", key, value]);
    }
    sandbox.write(".gitignore", "*.log\n");
    sandbox.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(folder.join("run.sh"), fs::Permissions::from_mode(0o755)).expect("our file");
    symlink("run.sh", folder.join("link")).expect("our folder");
    sandbox.write("old.txt", "old\n");
    sandbox.write("tracked.log", "committed\n");
    fs::create_dir_all(folder.join("src/deep")).expect("our folder");
    sandbox.write("src/deep/.env", "KEY=committed\n");
    for number in 0..40 {
        sandbox.write(&format!("src/part{number}.txt"), &format!("part {number}\n").repeat(200));
    }
    git(&folder, &["add", "--force", "."]);
    git(&folder, &["commit", "-m", "first"]);
    for name in ["post-commit", "reference-transaction", "pre-commit"] {
        let hook = folder.join(".git/hooks").join(name);
        fs::write(&hook, "#!/bin/sh\ntouch \"$(git rev-parse --show-toplevel)/../hook-ran\"\n")
            .expect("our file");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("our file");
    }
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.done(&["run", "--approve", "all", "create new/login.txt with logged in"]);
    fs::remove_file(folder.join("old.txt")).expect("our file");
    fs::remove_file(folder.join("src/part7.txt")).expect("our file");
    sandbox.write("tracked.log", "changed, but ignored\n");
    sandbox.write("src/deep/.env", "KEY=secret\n");
    sandbox.write("untracked.log", "ignored\n");
    sandbox.write("src/part3.txt", "by hand\n");
    sandbox
}

/// Everything of a repository that a branch must not change.
fn surroundings(folder: &Path) -> BTreeMap<String, String> {
    let git_folder = PathBuf::from(git(folder, &["rev-parse", "--absolute-git-dir"]));
    let mut found = BTreeMap::new();
    for name in ["HEAD", "index", "config", "packed-refs", "logs/HEAD", "ORIG_HEAD", "refs/stash"] {
        let bytes = fs::read(git_folder.join(name)).unwrap_or_default();
        found.insert(name.to_owned(), format!("{bytes:?}"));
    }
    found.insert("status".to_owned(), git(folder, &["--no-optional-locks", "status", "--porcelain"]));
    found.insert("branch".to_owned(), git(folder, &["rev-parse", "HEAD"]));
    found
}

fn fsck(folder: &Path) {
    let output = run_git(folder, &["fsck", "--strict", "--full", "--no-dangling"]);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && !text.contains("error") && !text.contains("warning"), "{text}");
}

#[test]
fn a_take_becomes_a_commit_on_a_new_branch_and_nothing_else_changes() {
    let sandbox = project();
    let folder = sandbox.project();
    let before = surroundings(&folder);
    let objects = || git(&folder, &["count-objects", "-v"]);
    let counted = objects();
    let preview = sandbox.json(&["take", "branch-git", "retake/login", "--dry-run"]);
    assert_eq!(
        (&preview["dry_run"], &preview["branch"]),
        (&true.into(), &"retake/login".into()),
        "{preview}"
    );
    assert_eq!(preview["unrecorded"], true, "{preview}");
    assert_eq!(objects(), counted, "a dry run writes nothing");

    let written = sandbox.json(&["take", "branch-git", "retake/login"]);
    fsck(&folder);
    assert_eq!(surroundings(&folder), before);
    assert!(!folder.parent().expect("a folder").join("hook-ran").exists(), "a hook ran");
    let numbers =
        ["added", "changed", "removed", "kept_count", "omitted_count"].map(|key| written[key].as_u64());
    assert_eq!(numbers, [Some(1), Some(1), Some(2), Some(2), Some(0)], "{written}");
    assert_eq!(written["kept"], serde_json::json!(["src/deep/.env", "tracked.log"]), "{written}");
    assert_eq!(written["commit"].as_str(), Some(git(&folder, &["rev-parse", "retake/login"]).as_str()));
    assert_eq!(written["parent"].as_str(), Some(git(&folder, &["rev-parse", "HEAD"]).as_str()));

    let show = |path: &str| git(&folder, &["show", &format!("retake/login:{path}")]);
    assert_eq!(show("new/login.txt"), "logged in");
    assert_eq!(show("src/part3.txt"), "by hand");
    assert_eq!((show("tracked.log"), show("src/deep/.env")), ("committed".into(), "KEY=committed".into()));
    let changed = git(&folder, &["diff", "--name-status", "HEAD", "retake/login"]);
    assert_eq!(changed, "A\tnew/login.txt\nD\told.txt\nM\tsrc/part3.txt\nD\tsrc/part7.txt");
    let modes = git(&folder, &["ls-tree", "retake/login", "run.sh", "link"]);
    assert!(modes.contains("120000 blob") && modes.contains("100755 blob"), "{modes}");
    let log = git(&folder, &["log", "-1", "--format=%an <%ae> %cn%n%B", "retake/login"]);
    assert!(
        log.starts_with("Ada Lovelace <ada@example.org> Ada Lovelace\nFix the login (main)\n\n"),
        "{log}"
    );
    assert!(
        log.contains("Turn 1: create new/login.txt with logged in") && log.contains("Retake-Take: main"),
        "{log}"
    );
}

#[test]
fn packs_deltas_and_packed_references_are_read() {
    let sandbox = project();
    let folder = sandbox.project();
    for number in 0..30 {
        sandbox.write("src/part1.txt", &format!("part 1, {number}\n").repeat(200));
        git(&folder, &["commit", "-am", "more", "--no-verify"]);
        git(&folder, &["branch", &format!("old/{number}")]);
    }
    git(&folder, &["gc", "--aggressive", "--quiet"]);
    git(&folder, &["pack-refs", "--all"]);
    let deltas =
        git(&folder, &["cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(deltabase)"]);
    let is_delta = |line: &str| line.starts_with("tree ") && !line.ends_with(&"0".repeat(40));
    assert!(deltas.lines().any(is_delta), "the repository has no tree that is a delta: {deltas}");
    let text = sandbox.done(&["take", "branch-git", "packed"]);
    assert!(text.starts_with("Wrote main to the new branch packed as commit "), "{text}");
    fsck(&folder);
    for (name, code) in [
        ("packed", 5),
        ("old/3", 5),
        ("old", 5),
        ("old/3/x", 5),
        ("main", 5),
        ("main/x", 5),
        ("a b", 2),
        ("-x", 2),
        ("a..b", 2),
    ] {
        let before = surroundings(&folder);
        let (found, error) = sandbox.refused(&["take", "branch-git", "--", name]);
        assert_eq!(found, code, "{name}: {error}");
        assert_eq!(surroundings(&folder), before);
    }
    // Git goes on with the branch.
    git(&folder, &["stash", "--include-untracked"]);
    git(&folder, &["checkout", "-q", "packed"]);
    assert_eq!(git(&folder, &["status", "--porcelain"]), "");
    git(&folder, &["gc", "--quiet"]);
    fsck(&folder);
}

#[test]
fn worktrees_folders_of_repositories_and_new_repositories_work() {
    let sandbox = project();
    let folder = sandbox.project();
    let parent = folder.parent().expect("a folder");
    // A linked work tree, whose `.git` is a file.
    git(&folder, &["worktree", "add", "-q", "../linked", "HEAD"]);
    let linked = parent.join("linked");
    fs::write(linked.join("here.txt"), "linked\n").expect("our folder");
    let done = |folder: &Path, name: &str| -> Value {
        let arguments = ["take", "branch-git", name, "--json", "--author", "Eve <eve@example.org>"];
        let output = sandbox.run_in(folder, &arguments, "");
        assert_eq!(output.code, 0, "{}", output.stderr);
        serde_json::from_str(&output.stdout).expect("JSON")
    };
    sandbox.run_in(&linked, &["thread", "new", "Linked"], "");
    done(&linked, "from-linked");
    assert_eq!(git(&folder, &["show", "from-linked:here.txt"]), "linked");
    assert_eq!(git(&folder, &["log", "-1", "--format=%an", "from-linked"]), "Eve");
    fsck(&folder);
    // A project in a folder of a repository, which keeps the rest of it.
    let whole = parent.join("whole");
    fs::create_dir_all(whole.join("app")).expect("our folder");
    git(&whole, &["init"]);
    fs::write(whole.join("other.txt"), "other\n").expect("our folder");
    fs::write(whole.join("app/a.txt"), "a\n").expect("our folder");
    let app = whole.join("app");
    sandbox.run_in(&app, &["project", "init"], "");
    sandbox.run_in(&app, &["thread", "new", "App"], "");
    let first = done(&app, "unborn");
    assert_eq!(
        (&first["parent"], &first["added"]),
        (&Value::Null, &1.into()),
        "a repository without commits"
    );
    assert_eq!(git(&whole, &["ls-tree", "-r", "--name-only", "unborn"]), "app/a.txt");
    let output = sandbox.run_in(&app, &["take", "branch-git", "main", "--author", "Eve <e>"], "");
    assert_eq!(output.code, 5, "the checked-out branch without a commit: {}", output.stderr);
    git(&whole, &["add", "."]);
    git(&whole, &["commit", "-qm", "first"]);
    fs::write(app.join("b.txt"), "b\n").expect("our folder");
    done(&app, "second");
    assert_eq!(git(&whole, &["ls-tree", "-r", "--name-only", "second"]), "app/a.txt\napp/b.txt\nother.txt");
    fsck(&whole);
}

#[test]
fn what_cannot_be_written_is_refused_untouched() {
    let outside = Sandbox::new();
    outside.done(&["run", "--approve", "all", "create a.txt with one"]);
    let (code, error) = outside.refused(&["take", "branch-git", "x"]);
    assert!(code == 5 && error.to_string().contains("git init"), "{error}");
    let sandbox = project();
    let folder = sandbox.project();
    git(&folder, &["config", "--unset", "user.name"]);
    let (code, error) = sandbox.refused(&["take", "branch-git", "x"]);
    assert!(code == 5 && error.to_string().contains("--author"), "{error}");
    assert_eq!(sandbox.refused(&["take", "branch-git", "x", "--author", "nobody"]).0, 2);
    git(&folder, &["config", "user.name", "Ada"]);
    // A lock of another git process.
    fs::write(folder.join(".git/refs/heads/x.lock"), "").expect("our file");
    assert_eq!(sandbox.refused(&["take", "branch-git", "x"]).0, 5);
    fs::remove_file(folder.join(".git/refs/heads/x.lock")).expect("our file");
    for (key, value) in [("extensions.objectformat", "sha256"), ("extensions.refstorage", "reftable")] {
        let config = folder.join(".git/config");
        let text = fs::read_to_string(&config).expect("our file");
        let (section, key) = key.split_once('.').expect("two parts");
        fs::write(&config, format!("{text}[{section}]\n\t{key} = {value}\n")).expect("our file");
        let (code, error) = sandbox.refused(&["take", "branch-git", "x"]);
        assert_eq!((code, error["code"].as_str()), (5, Some("refused")), "{error}");
        fs::write(&config, text).expect("our file");
    }
    // A link that leads elsewhere.
    let heads = folder.join(".git/refs/heads");
    fs::rename(&heads, folder.join("../heads")).expect("our folder");
    symlink(folder.join("../heads"), &heads).expect("our folder");
    assert_eq!(sandbox.refused(&["take", "branch-git", "x"]).0, 5);
    assert!(!folder.join("../heads/x").exists());
}
