//! `redact --text`: a secret that occurs in several places.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::tools::support::{User, command_output, everything_below};

const KEY: &str = "sk-live-123456";

/// The files of the store that contain the key, including compressed content.
fn files_with_key(user: &User) -> Vec<String> {
    let holds = |bytes: &[u8]| bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
    let mut found = Vec::new();
    for path in everything_below(&user.path("store")).into_iter().filter(|path| path.is_file()) {
        let bytes = fs::read(&path).expect("a file");
        let mut frames = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
        let is_packed = frames.any(|at| {
            let mut plain = Vec::new();
            if let Ok(mut decoder) = zstd::Decoder::new(&bytes[at..]) {
                let mut piece = [0; 4096];
                while let Ok(read @ 1..) = std::io::Read::read(&mut decoder, &mut piece) {
                    plain.extend_from_slice(&piece[..read]);
                }
            }
            holds(&plain)
        });
        if holds(&bytes) || is_packed {
            found.push(path.file_name().expect("a name").to_string_lossy().into_owned());
        }
    }
    found
}

fn lengths<const N: usize>(answer: &Value, names: [&str; N]) -> [usize; N] {
    names.map(|name| answer[name].as_array().map_or(0, Vec::len))
}

#[test]
fn redacting_a_text_destroys_every_copy() {
    let user = User::new();
    user.run(&["run", "--new", &format!("say I use {KEY} for it")]);
    user.run(&["draft", "set", &format!("please deploy using {KEY}")]);
    user.run(&["draft", "set", &format!("deploy, really, with {}", &KEY[..10])]);
    user.run(&["role", "add", &format!("Role {KEY}")]);
    user.run(&["entry", "role", "1", &format!("Role {KEY}")]);
    user.run(&["entry", "role", "1", "User"]);
    user.run(&["context", "add", &format!("notes/{KEY}.txt"), "kept.txt"]);
    user.run(&["exec", "--by", &format!("agent {KEY}"), "--", "touch", "by-another"]);
    user.run(&["settings", "set", "model", &format!("model-{KEY}")]);
    user.run(&["settings", "set", "provider", &format!("provider-{KEY}")]);
    user.run(&["thread", "new", "Elsewhere"]);
    user.run(&["entry", "add", &format!("The key was {KEY}, I think.")]);
    user.run(&["entry", "add", "Nothing to see."]);
    user.run(&["search", "live"]);
    assert!(!files_with_key(&user).is_empty(), "the control: it is there before");
    let dry = user.json(&["redact", "--text", KEY, "--dry-run"]);
    let [entries] = lengths(&dry, ["entries"]);
    assert!(entries >= 3 && dry["dry_run"] == true, "{dry}");
    assert!(!files_with_key(&user).is_empty(), "nothing was changed");
    let done = user.json(&["redact", "--text", KEY, "--yes"]);
    assert_eq!(lengths(&done, ["entries", "remaining"]), [entries, 0], "{done}");
    assert_eq!(files_with_key(&user), [""; 0]);
    assert_eq!(user.json(&["verify"])["clean"], true);
    assert!(user.run(&["thread", "show", "Elsewhere"]).contains("Nothing to see."));
    let again = user.json(&["redact", "--text", KEY, "--yes"]);
    assert_eq!(lengths(&again, ["entries", "remaining"]), [0, 0], "{again}");
}

/// Git metadata of operations is rewritten too, and the rows that are derived from it.
#[test]
fn redacting_a_text_in_git_metadata_keeps_the_store_clean() {
    let user = User::new();
    let git = user.project().join(".git");
    fs::create_dir_all(git.join("refs/heads")).expect("a folder");
    fs::create_dir_all(git.join("objects")).expect("a folder");
    fs::write(git.join("HEAD"), format!("ref: refs/heads/branch-{KEY}\n")).expect("a file");
    let remote = format!("[remote \"origin\"]\n\turl = https://example.org/{KEY}.git\n");
    fs::write(git.join("config"), remote).expect("a file");
    user.run(&["thread", "new", "Work"]);
    user.run(&["entry", "add", "Nothing to see."]);
    assert!(!files_with_key(&user).is_empty(), "the control: it is there before");
    let done = user.json(&["redact", "--text", KEY, "--yes"]);
    assert_eq!(lengths(&done, ["remaining"]), [0], "{done}");
    assert_eq!(files_with_key(&user), [""; 0]);
    let verified = user.json(&["verify"]);
    assert_eq!(verified["clean"], true, "{verified}");
}

#[test]
fn redacting_one_entry_lists_the_remaining_copies() {
    let user = User::new();
    fs::write(user.project().join("notes.txt"), format!("key = {KEY}\n")).expect("a file");
    user.run(&["run", "--new", &format!("say I use {KEY}")]);
    user.run(&["exec", "--", "touch", "other.txt"]);
    let mut redact = user.command();
    redact
        .args(["redact", "1", "--text-file", "-", "--yes", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut running = redact.spawn().expect("the program starts");
    running.stdin.take().expect("a pipe").write_all(format!("{KEY}\n").as_bytes()).expect("it reads");
    let answer = command_output(running.wait_with_output().expect("it ends"));
    let done: Value = serde_json::from_str(&answer.out).expect("an answer in JSON");
    let kinds: Vec<_> =
        done["remaining"].as_array().expect("a list").iter().map(|place| &place["kind"]).collect();
    assert_eq!(kinds, ["blob"], "the captured file is named, and nothing else is left: {done}");
    let output = user.run(&["redact", "--text", KEY, "--yes"]);
    assert!(output.contains("1 place still contains the same text") && output.contains("blob"), "{output}");
    user.refused(2, &["redact", "--text", "abc", "--yes"]);
    user.refused(2, &["redact", "--yes"]);
}

#[test]
fn redacting_an_entry_again_succeeds() {
    let user = User::new();
    user.talk("Fix the login");
    user.run(&["redact", "1", "--yes"]);
    let again = user.run(&["redact", "1"]);
    assert!(again.contains("No content left to destroy"), "{again}");
    user.refused(3, &["redact", "00000000000000000000000000", "--yes"]);
}

#[test]
fn a_newer_runtime_database_is_not_damage() {
    let user = User::new();
    user.run(&["run", "--new", "say hello"]);
    let path = user.path("store/ledger.db");
    let mut bytes = fs::read(&path).expect("a ledger");
    // The format version, in the header of every SQLite database.
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(&path, &bytes).expect("it is ours");
    let verified = user.json(&["verify"]);
    assert_eq!((&verified["clean"], &verified["runtime_database_problem"]), (&true.into(), &Value::Null));
    assert!(
        verified["runtime_database_newer"].as_str().is_some_and(|text| text.contains("update this program"))
    );
    for command in ["verify", "repair"] {
        let output = user.run(&[command]);
        assert!(output.contains("update this program") && !output.contains("retake repair"), "{output}");
    }
    assert_eq!(fs::read(&path).expect("a ledger"), bytes, "it is left alone");
}
