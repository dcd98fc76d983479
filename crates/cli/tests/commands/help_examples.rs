//! Every example in every help text runs: in a copy of a project with threads, takes and files, with stand-ins for other
//! programs and servers.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::support::Sandbox;

/// Examples that need something else first.
const PREPARED: [(&str, &str); 23] = [
    ("retake redo 3", "retake undo 3 --yes"),
    ("retake redo", "retake undo --yes"),
    ("retake worktree remove", "retake worktree add main_take_2 ../second-try"),
    ("cd ../second-try", "retake worktree add main_take_2 ../second-try"),
    ("retake project root remove", "retake project root add lib ../lib"),
    ("retake context preset restore", "retake context preset delete login"),
    ("retake keys remove", "retake keys set openai < key.txt"),
    ("retake compare main", "retake switch retry"),
    ("retake context add 5", "retake context remove 5 --output"),
    ("retake thread delete", "retake new Other"),
    ("retake import", "retake export -o fix-the-login.retake"),
    ("retake backup --verify", "retake backup /media/disk/retake-today"),
    ("retake hub token", "retake hub account add ada"),
    ("retake hub account support", "retake hub account add ada"),
    ("retake hub account disable", "retake hub account add ada"),
    ("retake hub account enable", "retake hub account add ada"),
    ("RETAKE_HOME=", "retake backup /media/disk/retake-today"),
    ("retake sync", WITH_REMOTE),
    ("retake remote remove", WITH_REMOTE),
    ("retake remote purge", WITH_REMOTE),
    ("retake thread pull", WITH_REMOTE),
    ("retake thread list --remote", WITH_REMOTE),
    ("retake project link", WITH_REMOTE),
];

const WITH_REMOTE: &str = "retake remote add home file:///media/disk/threads && retake sync";

/// Examples that fail in this project, with the exit code that says why.
const REFUSED: [(&str, i32); 31] = [
    ("--model anthropic/claude-sonnet-4-5 \"", 5),
    ("--model openai/gpt-5 --name", 5),
    ("retake take fork 3 --name retry", 5),
    // The version changed no files; the active take is the one whose files are in the folder.
    ("retake diff --of", 3),
    ("retake take promote", 5),
    ("retake resume", 3),
    ("retake stop", 3),
    ("retake steer", 3),
    ("retake keys set anthropic", 2),
    ("retake thread new \"Fix the login\"", 5),
    // No entry has pictures.
    ("--images", 5),
    // The project is not in a git repository.
    ("retake take branch-git", 5),
    ("git merge", 128),
    // Without a terminal, there is no editor and nobody to confirm.
    ("retake entry edit", 2),
    ("retake draft set", 2),
    ("retake settings set project_system_prompt", 2),
    ("retake reset", 5),
    ("retake redact 4", 5),
    ("retake purge \"Fix the login\"", 5),
    ("git diff | retake entry add", 2),
    ("retake draft detach 4b1c90", 3),
    ("retake undo --expect 12", 4),
    ("retake undo -k second", 5),
    ("retake worktree remove", 3),
    ("retake restore 3f9c01", 3),
    // These need a server.
    ("remote add bucket s3://", 1),
    ("retake remote login", 3),
    ("retake remote purge \"Fix the login\"", 5),
    ("retake hub login approve", 3),
    ("retake hub token revoke", 3),
    ("retake hub space quota", 3),
];

/// Examples that run until they are stopped.
const SERVERS: [&str; 7] = [
    "retake serve",
    "retake serve --open",
    "retake serve --listen 127.0.0.1:0",
    "retake sync watch",
    "retake sync watch home",
    "retake hub serve",
    "retake hub serve --listen 127.0.0.1:0 --metrics 127.0.0.1:0 --behind-proxy",
];

struct Project {
    sandbox: Sandbox,
    /// The folder that is copied for each example.
    folder: PathBuf,
}

impl Project {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let folder = sandbox.project().parent().expect("it is in a folder").to_owned();
        let write = |path: &str, content: &[u8]| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("our folder");
            fs::write(&path, content).expect("our folder");
            if path.starts_with(folder.join("bin")) || path.ends_with("agent.sh") {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our file");
            }
        };
        for name in ["jq", "man", "xdg-open", "curl", "cargo"] {
            write(&format!("bin/{name}"), b"#!/bin/sh\ncat > /dev/null < /dev/null\n");
        }
        write("bin/ssh", b"#!/bin/sh\nshift\nexec \"$@\"\n");
        write("bin/pass", b"#!/bin/sh\necho sk-live-123456\n");
        write("bin/editor", b"#!/bin/sh\nexit 0\n");
        for name in ["screenshot", "before", "after", "error", "logo"] {
            write(&format!("project/{name}.png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
        }
        write("project/spec.pdf", b"%PDF-1.7\n");
        write("project/agent.sh", b"#!/bin/sh\necho tidy > tidy.txt\n");
        write("project/src/main.rs", &b"fn main() {}\n".repeat(30));
        for name in ["src/lib.rs", "src/login.rs", "tests/login.rs", "docs/a.md", "old-name.rs", "answer.md"]
        {
            write(&format!("project/{name}"), b"text\n");
        }
        for name in ["corrected.md", "message.md", "prompt.md", "key.txt", "token.txt", "packages/app/a"] {
            write(&format!("project/{name}"), b"text\n");
        }
        for name in ["lib/a", "moved/lib/a", "elsewhere/a", "home/.zfunc/a", "disk/a"] {
            write(name, b"a\n");
        }
        for name in ["home/.local/share/bash-completion/completions", "home/.config/fish/completions"] {
            fs::create_dir_all(folder.join(name)).expect("our folder");
        }
        let project = Self { sandbox, folder };
        let mut lines = vec![
            "retake new 'Fix the login'".to_owned(),
            "retake run 'say Because.'".to_owned(),
            "retake save 'before the rewrite'; retake draft attach screenshot.png".to_owned(),
        ];
        for number in 1..5 {
            lines.push(format!("retake run --approve all 'run echo {number} >> src/main.rs'"));
        }
        lines.push("rm old-name.rs; retake snapshot take".to_owned());
        for name in ["main_take_1", "main_take_2", "retry", "by-gpt", "second", "first", "third"] {
            lines.push(format!("retake switch main; retake take branch 4 --name {name}"));
            lines.push(format!("retake run --approve all 'run echo {name} >> src/lib.rs'"));
        }
        lines.push("retake switch main; retake draft attach screenshot.png before.png".to_owned());
        lines.push("retake role add 'Vendor API'; retake settings set temperature 0.5".to_owned());
        lines.push(
            "retake context add --list screenshots error.png; retake context preset save login".to_owned(),
        );
        for line in lines {
            let (code, error) = run(&project.folder, &line);
            assert_eq!(code, 0, "{line}: {error}");
        }
        project
    }

    /// What is wrong with an example, if anything.
    fn check(&self, number: usize, example: &str, ids: &[String; 3]) -> Option<String> {
        let copy = self.folder.with_extension(format!("example-{number}"));
        let copied = Command::new("cp").arg("-a").arg(&self.folder).arg(&copy).status();
        assert!(copied.is_ok_and(|status| status.success()), "there is room for a copy");
        let [project, thread, other] = ids;
        let id = match example {
            _ if ["thread switch", "thread pull", "remote purge", "project link"]
                .iter()
                .any(|command| example.contains(command)) =>
            {
                thread
            }
            _ if example.contains("adopt") => other,
            _ => project,
        };
        let mut line = example.replace("7f3kq2p9", id);
        if SERVERS.contains(&example) {
            let options = match example {
                _ if example.starts_with("retake sync") => "",
                _ if example.contains("--listen") => " --log off",
                _ => " --listen 127.0.0.1:0 --log off",
            };
            line = format!("timeout --preserve-status -s INT 1 {example}{options}");
        }
        // A copy is a project of its own.
        run(&copy, &format!("retake -q project adopt {project}; retake -q switch 'Fix the login/main'"));
        if let Some((_, before)) = PREPARED.iter().find(|(start, _)| example.starts_with(start)) {
            run(&copy, before);
        }
        let (code, error) = run(&copy, &line);
        fs::remove_dir_all(&copy).expect("our folder");
        let allowed = REFUSED.iter().any(|(part, expected)| example.contains(part) && code == *expected);
        let interrupted = SERVERS.contains(&example) && [130, 124].contains(&code);
        (code != 0 && !allowed && !interrupted).then(|| format!("{example}: {code}: {error}"))
    }
}

/// Runs a line of a shell in a copy of the project.
fn run(folder: &Path, line: &str) -> (i32, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_retake")).parent().expect("a folder");
    let inside = |name: &str| folder.join(name).display().to_string();
    let line = line.replace("/media/disk", &inside("disk"));
    let output = Command::new("bash")
        .args(["-c", &format!("set -o pipefail\n{line}")])
        .current_dir(folder.join("project"))
        .env_clear()
        .env("PATH", format!("{}:{}:/usr/bin:/bin", inside("bin"), program.display()))
        .envs([("HOME", inside("home")), ("RETAKE_HOME", inside("store")), ("EDITOR", inside("bin/editor"))])
        .env("RETAKE_SYNC", "off")
        .envs([("RETAKE_CONFIG", inside("config.toml")), ("TZ", "UTC".to_owned())])
        .stdin(Stdio::null())
        .output()
        .expect("bash is there");
    let code = output.status.code().unwrap_or(-1);
    (code, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The examples of a command and of those below it.
fn collect(sandbox: &Sandbox, path: &[&str], found: &mut BTreeSet<String>) {
    let help = sandbox.done(&[path, &["--help"]].concat());
    let mut in_examples = false;
    for line in help.lines() {
        if line.starts_with("Example") {
            in_examples = true;
        } else if !line.starts_with("  ") {
            in_examples = false;
        } else if in_examples && line.contains("retake") {
            found.insert(line.trim().split("  ").next().unwrap_or_default().to_owned());
        }
    }
    let commands = if path.is_empty() {
        help.split("Options:").next().unwrap_or_default()
    } else {
        let listed = help.split("Commands:").nth(1).unwrap_or_default();
        listed.split("\n\n").next().unwrap_or_default()
    };
    let names =
        commands.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        collect(sandbox, &[path, &[name]].concat(), found);
    }
}

#[test]
fn every_example_of_the_help_runs() {
    let project = Project::new();
    let mut examples = BTreeSet::new();
    collect(&project.sandbox, &[], &mut examples);
    assert!(examples.len() > 250, "only {} examples", examples.len());
    let id = |arguments: &[&str]| project.sandbox.json(arguments)["id"].as_str().expect("an id").to_owned();
    let other = project.folder.join("elsewhere");
    let made = project.sandbox.run_in(&other, &["project", "init", "--json"], "");
    let other: serde_json::Value = serde_json::from_str(&made.stdout).expect("a project");
    let ids =
        [id(&["project", "show"]), id(&["thread", "info"]), other["id"].as_str().expect("an id").to_owned()];
    let waiting = Mutex::new(examples.into_iter().enumerate());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().expect("no panic").next();
                    let Some((number, example)) = next else { return };
                    let problem = project.check(number, &example, &ids);
                    wrong.lock().expect("no panic").extend(problem);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Control: an example that does not work is noticed.
#[test]
fn an_example_that_fails_is_noticed() {
    let project = Project::new();
    let ids = ["", "", ""].map(str::to_owned);
    for example in ["retake entry show 99", "retake undo --no-such-option", "retake restore nothing"] {
        assert!(project.check(0, example, &ids).is_some(), "{example}");
    }
}
