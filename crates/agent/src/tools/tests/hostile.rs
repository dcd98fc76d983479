//! Tests of calls that try to leave the folder, and of folders that change during a call.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::fs::RenameFlags;

use super::*;

#[test]
fn no_path_escapes_the_folder_or_enters_a_repository() {
    let lab = Lab::new();
    lab.file(".git/config", "[core]\n");
    lab.file(".hg/hgrc", "[hooks]\n");
    lab.file("inside/file", "inside");
    let outside = lab.outside();
    symlink(&outside, lab.root().join("absolute")).expect("a link");
    symlink("../outside", lab.root().join("relative")).expect("a link");
    symlink("../outside/secret", lab.root().join("secret")).expect("a link");
    symlink("../outside/planted", lab.root().join("dangling")).expect("a link");
    symlink("inside", lab.root().join("within")).expect("a link");
    symlink(".git", lab.root().join("repository")).expect("a link");
    symlink("/proc/self/cwd", lab.root().join("magic")).expect("a link");
    symlink("round", lab.root().join("round")).expect("a link");
    let direct = outside.join("planted");
    let long = "x".repeat(300);
    let deep = "../".repeat(50) + "etc/passwd";
    let paths = [
        "../outside/planted",
        "inside/../../outside/planted",
        "./../outside/planted",
        direct.to_str().expect("text"),
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/root/etc/passwd",
        &deep,
        "absolute/planted",
        "relative/planted",
        "relative/new/planted",
        "secret",
        "dangling",
        "within/planted",
        "repository/config",
        "magic/planted",
        "round",
        "round/x",
        ".git/config",
        ".git/hooks/pre-commit",
        "inside/.git/config",
        ".GIT/config",
        ".Git./config",
        "git~1/config",
        ".git ",
        ".g\u{200c}it/config",
        ".git\\config",
        ".git::$INDEX_ALLOCATION/config",
        ".hg/hgrc",
        "inside/.HG/hgrc",
        "hg~1/hgrc",
        ".svn/entries",
        ".jj/repo/config.toml",
        ".bzr/branch/branch.conf",
        "CVS/Root",
        "inside/cvs/Root",
        "_darcs/prefs/defaults",
        "planted\0",
        "\0",
        "..",
        "/",
        "",
        ".",
        ".retake-tmp-tool-1",
        &long,
    ];
    for path in paths {
        let output = lab.call("write", json!({"path": path, "content": "planted"}));
        assert!(output.failed, "write took {path:?}: {}", output.text);
        let output = lab.call("edit", json!({"path": path, "old": "e", "new": "planted", "all": true}));
        assert!(output.failed, "edit took {path:?}: {}", output.text);
        for tool in ["read", "list"] {
            let output = lab.call(tool, json!({"path": path}));
            assert!(!output.text.contains("the secret") && !output.text.contains("root:"), "{tool} {path:?}");
        }
        let output = lab.call("search", json!({"path": path, "pattern": "secret|root:"}));
        assert!(!output.text.contains("the secret") && !output.text.contains("root:"), "search {path:?}");
        if !["", ".", "within", "within/planted"].contains(&path) {
            let output = lab.call("shell", json!({"command": "cat secret", "directory": path}));
            assert!(output.failed, "shell went to {path:?}: {}", output.text);
        }
        lab.check_outside();
    }
    assert_eq!(lab.read(".git/config"), "[core]\n");
    assert_eq!(lab.read(".hg/hgrc"), "[hooks]\n");
    assert_eq!(lab.read("inside/file"), "inside");
    // A symlink to a path inside the folder may be followed.
    assert!(lab.call("read", json!({"path": "within/file"})).text.contains("inside"));
}

#[test]
fn special_characters_in_names_have_no_effect() {
    let lab = Lab::new();
    for name in ["a\nb", "a b", "-rf", "~", "$HOME", "`id`", "\u{1b}[2J", "a\\b", "日本", "*", "?.rs", " "]
    {
        let output = lab.call("write", json!({"path": name, "content": name}));
        assert!(!output.failed, "{name:?}: {}", output.text);
        assert!(!output.text.contains(['\n', '\u{1b}']), "{name:?}: {}", output.text);
        assert_eq!(lab.read(name), name);
        assert!(!lab.call("read", json!({"path": name})).failed, "{name:?}");
    }
    lab.check_outside();
}

/// Patterns that overflow the stack of a compiler without limits, or are too large for it.
fn hostile_patterns() -> Vec<String> {
    vec![
        "{".repeat(100_000) + "a" + &"}".repeat(100_000),
        "{a,".repeat(100_000) + &"}".repeat(100_000),
        "{[}]".repeat(50_000),
        "{".repeat(100_000),
        "?".repeat(3_000_000),
        "{*,**/?}".repeat(200_000),
    ]
}

#[test]
fn hostile_patterns_do_not_crash_the_process() {
    let lab = Lab::new();
    lab.file("a", "word");
    for pattern in hostile_patterns() {
        for (tool, input) in [
            ("glob", json!({ "pattern": pattern })),
            ("search", json!({ "pattern": "word", "glob": pattern })),
            ("search", json!({ "pattern": "(".repeat(100_000) + &")".repeat(100_000) })),
        ] {
            let output = lab.call(tool, input);
            assert!(output.failed && output.text.contains("pattern"), "{tool}: {}", output.text.len());
        }
    }
    for pattern in ["{a,b}", &("{".repeat(32) + "a" + &"}".repeat(32)), &"?".repeat(4_096)] {
        let output = lab.call("glob", json!({ "pattern": pattern }));
        assert!(!output.failed, "the control: {}", output.text);
    }
}

#[test]
fn hostile_ignore_files_do_not_crash_the_process() {
    let lab = Lab::new();
    lab.file("a/kept", "word");
    lab.file("a/left", "word");
    for name in [".gitignore", ".ignore", ".retakeignore"] {
        // The limit is 1 MiB, in one line or several.
        let lines: Vec<String> =
            hostile_patterns().iter().map(|line| line.chars().take(200_000).collect()).collect();
        lab.file(&format!("a/{name}"), &(lines[..4].join("\n") + "\nleft\n"));
        let output = lab.call("search", json!({ "pattern": "word" }));
        assert!(!output.failed && output.text.contains("a/kept"), "{name}: {}", output.text);
        assert!(!output.text.contains("a/left"), "the control: the file was read: {}", output.text);
    }
}

#[test]
fn pipes_and_devices_are_not_opened() {
    let lab = Lab::new();
    assert!(!lab.call("shell", json!({"command": "mkfifo pipe .gitignore"})).failed);
    symlink("/dev/zero", lab.root().join("zero")).expect("a link");
    let _socket = std::os::unix::net::UnixListener::bind(lab.root().join("socket")).expect("a socket");
    for name in ["pipe", "zero", "socket"] {
        for (tool, input) in [
            ("read", json!({"path": name})),
            ("write", json!({"path": name, "content": "x"})),
            ("edit", json!({"path": name, "old": "x", "new": "y"})),
            ("search", json!({"path": name, "pattern": "x"})),
        ] {
            let output = lab.call(tool, input);
            assert!(output.failed, "{tool} {name}: {}", output.text);
        }
    }
    // A search that meets them skips them, even if one has the name of an ignore file.
    assert!(!lab.call("search", json!({"pattern": "x"})).failed);
    assert!(lab.call("list", json!({})).text.contains("pipe (a pipe"));
}

/// Repeatedly swaps a folder with a symlink to the outside while something else runs.
fn while_swapped<Answer>(lab: &Lab, work: impl FnOnce() -> Answer) -> Answer {
    let (folder, other) = (lab.root().join("folder"), lab.root().join("other"));
    fs::create_dir_all(folder.join("deep")).expect("a folder");
    fs::create_dir(lab.outside().join("deep")).expect("a folder");
    symlink("../outside", &other).expect("a link");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let here = rustix::fs::CWD;
                rustix::fs::renameat_with(here, &folder, here, &other, RenameFlags::EXCHANGE)
                    .expect("both are there");
            }
        });
        let answer = work();
        stop.store(true, Ordering::Relaxed);
        answer
    })
}

#[test]
fn a_folder_swapped_for_a_link_is_not_followed() {
    let lab = Lab::new();
    let (written, refused) = while_swapped(&lab, || {
        let (mut written, mut refused) = (0, 0);
        for round in 0..500_000 {
            // On a busy machine the folder may stay a link, or a folder, for thousands of rounds.
            if round >= 2_000 && written > 0 && refused > 0 {
                break;
            }
            let (tool, input) = match round % 4 {
                0 => ("write", json!({"path": "folder/file", "content": "x"})),
                1 => ("write", json!({"path": "folder/deep/new/secret", "content": "x"})),
                2 => ("edit", json!({"path": "folder/file", "old": "x", "new": "y"})),
                _ => ("read", json!({"path": "folder/secret"})),
            };
            let output = lab.call(tool, input);
            assert!(!output.text.contains("the secret"), "{}", output.text);
            if output.failed { refused += 1 } else { written += 1 }
        }
        (written, refused)
    });
    assert!(written > 0 && refused > 0, "{written} written, {refused} refused");
    fs::remove_dir(lab.outside().join("deep")).expect("nothing was put into it");
    lab.check_outside();
}

#[test]
fn writing_by_path_would_escape_the_folder() {
    let lab = Lab::new();
    // The number of attempts that the race needs depends on the load of the machine, so time bounds them.
    let deadline = Instant::now() + Duration::from_mins(1);
    let led_out = while_swapped(&lab, || {
        while Instant::now() < deadline {
            let path = lab.root().join("folder/file");
            let looks_good =
                fs::symlink_metadata(lab.root().join("folder")).is_ok_and(|found| found.is_dir());
            // On a busy core, the other thread runs only when this one gives way.
            std::thread::yield_now();
            if looks_good && fs::write(path, "x").is_ok() && lab.outside().join("file").exists() {
                return true;
            }
        }
        false
    });
    assert!(led_out, "the race that the test above relies on never happened");
}

#[test]
fn a_file_swapped_for_a_link_is_not_written_through() {
    let lab = Lab::new();
    let stop = AtomicBool::new(false);
    let file = lab.root().join("file");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::remove_file(&file);
                let _ = symlink("../outside/secret", &file);
                std::thread::yield_now();
                let _ = fs::remove_file(&file);
                let _ = fs::write(&file, "e");
            }
        });
        for round in 0..400 {
            let output = if round % 2 == 0 {
                lab.call("write", json!({"path": "file", "content": "x"}))
            } else {
                lab.call("edit", json!({"path": "file", "old": "e", "new": "y"}))
            };
            assert!(!output.text.contains("the secret"));
        }
        stop.store(true, Ordering::Relaxed);
    });
    lab.check_outside();
}

#[test]
fn programs_configured_in_a_repository_do_not_run() {
    let lab = Lab::new();
    let trap = lab.root().join("trap.sh");
    lab.file("trap.sh", "#!/bin/sh\ntouch \"$(dirname \"$0\")/sprung\"\n");
    lab.file("file", "text\n");
    let git = "chmod +x trap.sh; git init -q . && git -c user.name=a -c user.email=a@b add file";
    let has_git = !lab.call("shell", json!({"command": git})).failed;
    if !has_git {
        fs::create_dir_all(lab.root().join(".git")).expect("a folder");
    }
    let planted = format!(
        "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {0}\n\texcludesFile = {0}\n\tpager = {0}\n",
        trap.display()
    );
    fs::write(lab.root().join(".git/config"), &planted).expect("a file");
    for (tool, input) in [
        ("read", json!({"path": "file"})),
        ("write", json!({"path": "file", "content": "text\nmore\n"})),
        ("edit", json!({"path": "file", "old": "more", "new": "less"})),
        ("list", json!({"depth": 5})),
        ("glob", json!({"pattern": "*"})),
        ("search", json!({"pattern": "text"})),
    ] {
        let output = lab.call(tool, input);
        assert!(!output.failed, "{tool}: {}", output.text);
        assert!(!lab.root().join("sprung").exists(), "{tool} ran it");
    }
    if has_git {
        let output = lab.call("shell", json!({"command": "git status --short && git --paginate diff"}));
        assert!(output.text.contains("+less"), "{}", output.text);
        assert!(!lab.root().join("sprung").exists(), "git ran it: {}", output.text);
    }
    assert_eq!(lab.read(".git/config"), planted);
}

#[test]
fn tools_that_walk_folders_do_not_show_denied_paths() {
    let mut lab = Lab::new();
    lab.file("secrets/key", "the word\n");
    lab.file("a/.env", "the word\n");
    lab.file("open", "the word\n");
    symlink("secrets", lab.root().join("alias")).expect("a link");
    symlink("secrets/key", lab.root().join("alias.txt")).expect("a link");
    let rules = json!([
        {"path": "secrets", "decision": "deny"},
        {"path": ".env", "decision": "deny"},
        {"tool": "write", "path": "/open", "decision": "deny"},
    ]);
    let policy = crate::approval::ApprovalPolicy {
        rules: serde_json::from_value(rules).expect("rules"),
        ..crate::approval::ApprovalPolicy::default()
    };
    assert!(!lab.call("read", json!({"path": "alias.txt"})).failed);
    lab.context.denied_paths = policy.denied_paths();
    assert_eq!(lab.call("search", json!({"pattern": "word"})).text, "open:1:the word\n[1 match in 1 file]\n");
    assert_eq!(lab.call("glob", json!({"pattern": "**"})).text, "alias\nalias.txt\nopen\n");
    let listed = lab.call("list", json!({"depth": 9, "ignored": true})).text;
    assert_eq!(listed, "a/\nalias -> secrets\nalias.txt -> secrets/key\nopen\n");
    for path in ["secrets/key", "Secrets/key", "a/.env", "a/.ENV", "alias/key", "alias.txt"] {
        for (tool, input) in [
            ("read", json!({"path": path})),
            ("search", json!({"path": path, "pattern": "word"})),
            ("edit", json!({"path": path, "old": "word", "new": "x"})),
            ("write", json!({"path": path, "content": "x"})),
        ] {
            let output = lab.call(tool, input);
            assert!(output.failed && !output.text.contains("the word"), "{tool} {path}: {}", output.text);
        }
    }
    assert!(lab.call("list", json!({"path": "alias"})).failed);
    assert!(lab.call("write", json!({"path": "open", "content": "x"})).failed);
    assert!(!lab.call("edit", json!({"path": "open", "old": "word", "new": "x"})).failed);
}
