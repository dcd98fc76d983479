//! Two machines and one remote, a folder or a hub: exchange, divergence, projects, privacy and purge.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use retake_testing::program;

use crate::support::Sandbox;

/// What two machines exchange through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Folder,
    Hub,
}

const KINDS: [Kind; 2] = [Kind::Folder, Kind::Hub];

/// A running hub, killed when dropped. Its operator is a machine of its own.
struct Hub {
    operator: Sandbox,
    process: Child,
    url: String,
}

impl Hub {
    fn start() -> Self {
        let operator = Sandbox::new();
        let mut process = Command::new(program())
            .args(["hub", "--json", "serve", "--listen", "127.0.0.1:0", "--log", "off"])
            .current_dir(operator.project())
            .env_clear()
            .envs(operator.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program was just built");
        let mut line = String::new();
        let output = process.stdout.take().expect("standard output is a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let answer: Value = serde_json::from_str(&line).expect("the address of the hub");
        let url = answer["url"].as_str().expect("an address").to_owned();
        operator.done(&["hub", "account", "add", "ada"]);
        Self { operator, process, url }
    }

    /// A token for one more device of the same account.
    fn token(&self, device: &str) -> String {
        let added = self.operator.json(&["hub", "token", "add", "ada", device]);
        added["token"].as_str().expect("a token").to_owned()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Two machines with one remote.
struct Machines {
    one: Sandbox,
    two: Sandbox,
    _shared: tempfile::TempDir,
    hub: Option<Hub>,
    url: String,
}

fn git(folder: &Path, arguments: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
        .output()
        .expect("git is installed");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn clone_of(sandbox: &Sandbox, remote: &str) {
    git(&sandbox.project(), &["init", "-q"]);
    git(&sandbox.project(), &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&sandbox.project(), &["remote", "add", "origin", remote]);
}

impl Machines {
    fn new(kind: Kind) -> Self {
        let shared = tempfile::tempdir().expect("a temporary folder");
        let hub = (kind == Kind::Hub).then(Hub::start);
        let folder = format!("file://{}/remote", shared.path().display());
        let url = hub.as_ref().map_or(folder, |hub| hub.url.clone());
        let machines = Self { one: Sandbox::new(), two: Sandbox::new(), _shared: shared, hub, url };
        for (machine, name) in [(&machines.one, "one"), (&machines.two, "two")] {
            machine.done(&["remote", "add", "home", &machines.url, "--manual"]);
            if let Some(hub) = &machines.hub {
                let login = machine.run_with(&["remote", "login", "home"], &hub.token(name));
                assert_eq!(login.code, 0, "{}", login.stderr);
            }
        }
        machines
    }

    /// The projects of both are clones of one repository.
    fn cloned(kind: Kind) -> Self {
        let machines = Self::new(kind);
        clone_of(&machines.one, "git@example.org:team/project.git");
        clone_of(&machines.two, "https://example.org/team/project");
        machines.two.done(&["project", "init"]);
        machines
    }
}

fn titles(machine: &Sandbox) -> Vec<String> {
    let listed = machine.json(&["thread", "list", "--all"]);
    let threads = listed["threads"].as_array().expect("a list");
    threads.iter().map(|thread| thread["title"].as_str().expect("a title").to_owned()).collect()
}

fn log(machine: &Sandbox, thread: &str) -> Vec<Value> {
    let history = machine.json(&["history", "--thread", thread, "--all"]);
    history["operations"].as_array().cloned().unwrap_or_default()
}

#[test]
fn clones_of_one_repository_exchange_threads_and_continue_them() {
    for kind in KINDS {
        let Machines { one, two, .. } = &Machines::cloned(kind);
        let thread =
            one.json(&["thread", "new", "Fix the login"])["thread"].as_str().expect("an id").to_owned();
        one.done(&["entry", "add", "Why does the login fail?"]);
        let sent = one.json(&["sync"]);
        assert!(sent["remotes"][0]["pushed"].as_u64() >= Some(2), "{sent}");
        let received = two.json(&["sync"]);
        assert_eq!(received["remotes"][0]["threads"][0]["new"], true, "{received}");
        assert_eq!(titles(two), ["Fix the login"]);
        two.done(&["thread", "pull", "Fix the login"]);
        two.done(&["entry", "add", "Because of the cookie."]);
        two.done(&["sync"]);
        assert!(one.done(&["sync"]).contains("received"));
        assert!(one.done(&["show"]).contains("Because of the cookie."));
        let clean = one.json(&["sync", "status"]);
        assert_eq!(clean["remotes"][0]["threads"][0]["state"], "clean", "{clean}");
        assert_eq!(one.json(&["thread", "list", "--remote"])["threads"][0]["thread"], thread.as_str());
    }
}

#[test]
fn machines_that_diverged_end_with_one_log_and_both_takes() {
    for kind in KINDS {
        let Machines { one, two, .. } = &Machines::cloned(kind);
        let thread =
            one.json(&["thread", "new", "Fix the login"])["thread"].as_str().expect("an id").to_owned();
        one.done(&["sync"]);
        two.done(&["thread", "pull", &thread]);
        one.done(&["entry", "add", "from one"]);
        two.done(&["entry", "add", "from two"]);
        one.done(&["sync"]);
        let state = two.json(&["sync", "status"]);
        assert_eq!(state["remotes"][0]["threads"][0]["state"], "diverged", "{state}");
        let merged = two.json(&["sync"]);
        let take = &merged["remotes"][0]["threads"][0]["merges"][0]["takes"][0];
        let compare = take["compare"].as_str().expect("a command");
        let words: Vec<&str> = compare.split(' ').skip(1).collect();
        let compared = two.done(&words);
        assert!(compared.contains("from one") && compared.contains("from two"), "{compared}");
        one.done(&["sync"]);
        assert_eq!(log(one, &thread).len(), log(two, &thread).len());
        let ours = take["ours_name"].as_str().expect("a name");
        for machine in [one, two] {
            assert!(machine.done(&["show", "--take", "main"]).contains("from one"));
            assert!(machine.done(&["show", "--take", ours]).contains("from two"));
            assert_eq!(machine.json(&["sync", "status"])["remotes"][0]["threads"][0]["state"], "clean");
        }
    }
}

#[test]
fn unrelated_projects_are_never_mixed() {
    for kind in KINDS {
        let Machines { one, two, .. } = &Machines::new(kind);
        // The same name, and the same history at another address.
        clone_of(one, "git@example.org:team/project.git");
        clone_of(two, "git@example.org:other/project.git");
        two.done(&["project", "init"]);
        let thread = one.json(&["thread", "new", "Fix"])["thread"].as_str().expect("an id").to_owned();
        one.done(&["sync"]);
        let seen = two.json(&["sync"]);
        assert_eq!(seen["remotes"][0]["elsewhere"][0]["thread"], thread.as_str(), "{seen}");
        assert!(titles(two).is_empty());
        let (code, error) = two.refused(&["thread", "pull", &thread]);
        assert_eq!(code, 5);
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(&format!("retake project link {}", &thread[..8])), "{message}");
        // A person may say that they are the same.
        two.done(&["project", "link", &thread]);
        two.done(&["sync"]);
        assert_eq!(titles(two), ["Fix"]);
    }
}

#[test]
fn a_project_without_git_is_recognized_by_its_file() {
    for kind in KINDS {
        let Machines { one, two, .. } = &Machines::new(kind);
        one.done(&["thread", "new", "Fix"]);
        one.done(&["project", "link", "--file"]);
        one.done(&["sync"]);
        assert_eq!(one.refused(&["project", "link", "--file"]).0, 5);
        two.done(&["project", "init"]);
        two.done(&["sync"]);
        assert!(titles(two).is_empty());
        two.write(".retake-project", &one.read(".retake-project").expect("a file"));
        two.done(&["sync"]);
        assert_eq!(titles(two), ["Fix"]);
    }
}

#[test]
fn two_clones_on_one_machine_are_asked_about() {
    let Machines { one, two, .. } = &Machines::cloned(Kind::Folder);
    let thread = one.json(&["thread", "new", "Fix"])["thread"].as_str().expect("an id").to_owned();
    one.done(&["sync"]);
    let second = two.project().with_file_name("second");
    std::fs::create_dir(&second).expect("a folder");
    git(&second, &["clone", "-q", two.project().to_str().expect("text"), "."]);
    git(&second, &["remote", "set-url", "origin", "git@example.org:team/project.git"]);
    assert_eq!(two.run_in(&second, &["project", "init"], "").code, 0);
    let seen = two.json(&["sync"]);
    assert_eq!(seen["remotes"][0]["elsewhere"][0]["ambiguous"], true, "{seen}");
    assert!(titles(two).is_empty());
    assert_eq!(two.run_in(&second, &["thread", "pull", &thread], "").code, 0);
    assert_eq!(two.run_in(&second, &["show"], "").code, 0);
}

#[test]
fn private_threads_stay_and_what_was_sent_can_be_purged() {
    for kind in KINDS {
        let Machines { one, two, .. } = &Machines::cloned(kind);
        one.done(&["thread", "new", "Never sent"]);
        one.done(&["thread", "share", "--private", "yes"]);
        one.done(&["thread", "new", "Open"]);
        let thread = one.json(&["thread", "new", "Hidden"])["thread"].as_str().expect("an id").to_owned();
        one.done(&["sync"]);
        let private = one.run(&["thread", "share", "--private", "yes", "--thread", &thread]);
        assert!(private.stderr.contains("retake remote purge"), "{}", private.stderr);
        one.done(&["entry", "add", "secret words", "--thread", &thread]);
        assert_eq!(one.json(&["sync"])["remotes"][0]["pushed"], 0);
        let listed = one.json(&["sync", "status"]);
        assert_eq!(listed["remotes"][0]["threads"].as_array().map(Vec::len), Some(1), "{listed}");
        two.done(&["sync"]);
        assert_eq!(titles(two).len(), 2);
        let on_remote = two.json(&["thread", "list", "--remote"]);
        assert!(!on_remote.to_string().contains("Never sent"), "{kind:?}: {on_remote}");
        assert_eq!(one.refused(&["remote", "purge", &thread]).0, 5);
        one.done(&["remote", "purge", &thread, "--yes"]);
        let second_round = two.json(&["sync"]);
        assert_eq!(second_round["remotes"][0]["threads"][0]["purged"], true, "{second_round}");
        // It stays on the other machine, and is not sent again.
        two.done(&["entry", "add", "more", "--thread", &thread]);
        assert_eq!(two.json(&["sync"])["remotes"][0]["pushed"], 0);
        assert_eq!(one.json(&["thread", "list", "--remote"])["threads"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn a_hub_is_added_before_its_login_and_refuses_wrong_tokens() {
    let hub = Hub::start();
    let machine = Sandbox::new();
    let refused = || machine.refused(&["sync"]).1["message"].as_str().expect("a message").to_owned();
    let added = machine.done(&["remote", "add", "home", &hub.url, "--manual"]);
    assert!(added.contains("`retake remote login home`"), "{added}");
    machine.done(&["thread", "new", "Fix"]);
    assert!(refused().contains("run `retake remote login`"), "{}", refused());
    let login = |token: &str| machine.run_with(&["remote", "login", "home"], token);
    let wrong = login("wrong");
    assert!(wrong.code == 1 && wrong.stderr.contains("refuses the credentials"), "{}", wrong.stderr);
    assert!(refused().contains("run `retake remote login`"), "a refused token was stored");
    assert_eq!(login(&hub.token("laptop")).code, 0);
    machine.done(&["sync"]);
    let listed = hub.operator.json(&["hub", "token", "list", "ada"]);
    let device = listed["devices"][0]["id"].as_str().expect("an id").to_owned();
    hub.operator.done(&["hub", "token", "revoke", "ada", &device]);
    machine.done(&["entry", "add", "more"]);
    assert!(refused().contains("refuses the credentials"), "{}", refused());
    assert_eq!(login(&hub.token("laptop again")).code, 0);
    machine.done(&["sync"]);
    assert_eq!(machine.json(&["sync", "status"])["remotes"][0]["threads"][0]["state"], "clean");
}

#[test]
fn what_fails_is_listed_and_tried_again() {
    let Machines { one, url, .. } = &Machines::cloned(Kind::Folder);
    one.done(&["thread", "new", "Fix"]);
    let folder = Path::new(url.strip_prefix("file://").expect("a folder"));
    let away = folder.with_file_name("away");
    std::fs::rename(folder, &away).expect("a folder");
    let (code, error) = one.refused(&["sync"]);
    assert_eq!((code, error["code"].as_str()), (1, Some("remote_failed")), "{error}");
    let status = one.json(&["sync", "status"]);
    assert!(status["remotes"][0]["error"].is_string(), "{status}");
    assert_eq!(status["remotes"][0]["threads"][0]["state"], "ahead", "{status}");
    // Everything else works.
    one.done(&["entry", "add", "offline"]);
    std::fs::rename(&away, folder).expect("a folder");
    one.done(&["sync", "retry"]);
    assert_eq!(one.json(&["sync", "status"])["remotes"][0]["threads"][0]["state"], "clean");
}

#[test]
fn commands_synchronize_in_the_background() {
    let Machines { one, two, url, .. } = &Machines::cloned(Kind::Folder);
    for machine in [one, two] {
        machine.done(&["remote", "remove", "home"]);
        machine.done(&["remote", "add", "home", url]);
    }
    one.done(&["thread", "new", "Fix"]);
    let arrives = || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        titles(two).len() == 1
    };
    assert!((0..100).any(|_| arrives()), "the thread did not arrive");
}
