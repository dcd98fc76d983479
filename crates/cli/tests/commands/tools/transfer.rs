//! Export and import: complete, and safe against manipulated files.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::tools::support::{CommandOutput, Rng, User, command_output};

/// A thread with takes, edits, undone operations, tool calls, unknown fields, settings, a draft and a saved version.
fn rich() -> User {
    let user = User::new();
    user.talk("Fix the login");
    user.run(&["thread", "tag", "bug", "größe"]);
    let fields = r#"{"role":"AI","blocks":[{"type":"thinking","text":"hm","signature":"s"},
        {"type":"text","text":"See."},{"type":"tool_call","call":"c","name":"bash","input":{"b":1.0}},
        {"type":"tool_result","call":"c","text":"```\nout","failed":true}],"ticket":{"z":1e3,"a":[ 1 ]}}"#;
    user.run(&["entry", "add", "--fields", fields]);
    user.run(&["entry", "add", &"A long one. ".repeat(300)]);
    user.run(&["save", "before"]);
    user.run(&["take", "fork", "1", "--name", "retry"]);
    user.run(&["entry", "add", "Try again \u{1f427}"]);
    user.run(&["draft", "set", "half a thought"]);
    user.run(&["undo", "2"]);
    user.run(&["entry", "add", "Another way"]);
    user.run(&["take", "switch", "main"]);
    user.run(&["entry", "delete", "2"]);
    user
}

fn export(user: &User, thread: &str) -> String {
    user.run(&["export", thread, "-o", "-"])
}

fn import(user: &User, text: &[u8], options: &[&str]) -> CommandOutput {
    let mut command = user.command();
    command
        .args(["import", "-"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    // It may stop reading early.
    let _ = input.write_all(text);
    drop(input);
    command_output(child.wait_with_output().expect("the program ends"))
}

/// The lines between the first and the last.
fn inside(export: &str) -> Vec<&str> {
    let lines: Vec<&str> = export.lines().collect();
    lines[1..lines.len() - 1].to_vec()
}

/// Everything that lists show of a store.
fn listed(user: &User) -> String {
    user.run(&["tree", "--all", "--deleted", "--json"])
}

/// The export with a matching last line.
fn sealed(lines: &[&str]) -> String {
    let mut text = lines.join("\n");
    text.push('\n');
    let digest = blake3::hash(text.as_bytes());
    let lines = lines.len();
    format!("{text}{{\"end\":true,\"lines\":{lines},\"digest\":\"{digest}\"}}\n")
}

#[test]
fn an_imported_thread_exports_to_the_same_bytes() {
    let here = rich();
    let first = export(&here, "Fix the login");
    let there = User::new();
    let output = import(&there, first.as_bytes(), &["--switch", "--json"]);
    assert_eq!(output.code, 0, "{output:?}");
    let answer: serde_json::Value = serde_json::from_str(&output.out).expect("an answer in JSON");
    assert_eq!(answer["version"], answer["new_operations"]);
    assert_eq!(export(&there, "Fix the login"), first);
    for look in [&["thread", "show", "--all"][..], &["history", "--all"], &["take", "list"]] {
        let (mut before, mut after) = (here.json(look), there.json(look));
        // Only the listing project differs between machines.
        for answer in [&mut before, &mut after] {
            answer.as_object_mut().expect("an object").remove("current");
        }
        assert_eq!(before, after, "{look:?}");
    }
    there.run(&["undo", "3"]);
    there.run(&["redo", "3"]);
    there.run(&["jump", "before"]);
    assert_eq!(there.json(&["verify"])["clean"], true);
}

#[test]
fn importing_again_adds_only_new_operations() {
    let here = rich();
    let first = export(&here, "Fix the login");
    let output = import(&here, first.as_bytes(), &["--json"]);
    assert!(output.out.contains("\"new_operations\":0"), "{output:?}");
    assert!(import(&here, first.as_bytes(), &[]).out.contains("Nothing new"));
    assert_eq!(export(&here, "Fix the login"), first);

    let there = User::new();
    import(&there, first.as_bytes(), &[]);
    here.run(&["entry", "add", "One more"]);
    let second = export(&here, "Fix the login");
    let output = import(&there, second.as_bytes(), &["--json"]);
    assert!(output.out.contains("\"new_operations\":1"), "{output:?}");
    assert_eq!(export(&there, "Fix the login"), second);
    // The older file has nothing new for the newer thread.
    let output = import(&there, first.as_bytes(), &["--json"]);
    assert!(output.out.contains("\"new_operations\":0"), "{output:?}");
}

#[test]
fn diverged_threads_stay_separate() {
    let here = rich();
    let there = User::new();
    import(&there, export(&here, "Fix the login").as_bytes(), &["--switch"]);
    here.run(&["entry", "add", "This way"]);
    there.run(&["entry", "add", "That way"]);
    let other = export(&here, "Fix the login");
    let before = listed(&there);
    let output = import(&there, other.as_bytes(), &[]);
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.err.contains("--copy"), "{output:?}");
    assert_eq!(listed(&there), before);
    let output = import(&there, other.as_bytes(), &["--copy", "--json"]);
    assert_eq!(output.code, 0, "{output:?}");
    let answer: serde_json::Value = serde_json::from_str(&output.out).expect("an answer in JSON");
    let id = answer["thread"].as_str().expect("an id");
    assert!(there.run(&["thread", "show", id]).contains("This way"));
    assert!(there.run(&["thread", "show"]).contains("That way"));
    assert_eq!(there.json(&["verify"])["clean"], true);
}

#[test]
fn any_change_of_an_export_is_refused() {
    let here = rich();
    let good = export(&here, "Fix the login");
    let there = User::new();
    there.talk("Mine");
    let before = listed(&there);
    let mut rng = Rng::new(20_261_115);
    for round in 0..220 {
        let mut bad = good.clone().into_bytes();
        let place = rng.below(bad.len());
        let what = match round % 4 {
            0 => {
                bad[place] ^= 1 << rng.below(8);
                "a flipped bit"
            }
            1 => {
                bad.truncate(place);
                "a cut"
            }
            2 => {
                bad.drain(place..(place + 1 + rng.below(200)).min(good.len()));
                "a hole"
            }
            _ => {
                bad.insert(place, b"0\"{}[],\n\xff"[rng.below(9)]);
                "something more"
            }
        };
        let output = import(&there, &bad, &[]);
        assert_eq!(output.code, 5, "{what} at {place} in round {round}: {output:?}");
        assert!(output.err.starts_with("error: "), "{output:?}");
    }
    assert_eq!(listed(&there), before);
    assert_eq!(there.json(&["verify"])["clean"], true);
    assert_eq!(import(&there, good.as_bytes(), &[]).code, 0);
}

#[test]
fn a_matching_checksum_does_not_validate_a_changed_export() {
    let here = rich();
    let good = export(&here, "Fix the login");
    let all: Vec<&str> = good.lines().collect();
    let lines = &all[..all.len() - 1];
    assert_eq!(sealed(lines), good, "the seal is made as the program makes it");
    let there = User::new();
    there.talk("Mine");
    let before = listed(&there);
    let mut rng = Rng::new(77);
    let last_operation = lines.iter().rposition(|line| line.contains("\"operation\"")).expect("operations");
    for round in 0..120 {
        let mut bad: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        // The last operation can contain anything, since nothing refers to its hash.
        let place = 1 + rng.below(last_operation - 1);
        let what = match round % 4 {
            0 => {
                bad.remove(place);
                "a line less"
            }
            1 => {
                let other = 1 + rng.below(last_operation - 1);
                if lines[place] == lines[other] || place == other {
                    continue;
                }
                bad.swap(place, other);
                "two lines swapped"
            }
            2 => {
                let start = bad[place].find("\"data\":\"").expect("data") + 8;
                let end = start + bad[place][start..].find('"').expect("the end of the data");
                let at = start + rng.below(end - start);
                let letter = if &bad[place][at..=at] == "A" { "B" } else { "A" };
                bad[place].replace_range(at..=at, letter);
                "other data"
            }
            _ => {
                bad[place] = bad[place].replacen("\"data\":\"", "\"data\":\"!", 1);
                "data that is not base64"
            }
        };
        let text = sealed(&bad.iter().map(String::as_str).collect::<Vec<_>>());
        let output = import(&there, text.as_bytes(), &[]);
        if output.code == 0 {
            // Reordered objects that still precede their users are equivalent.
            assert_eq!(what, "two lines swapped", "line {place} in round {round}: {output:?}");
            let mut mine = inside(&good);
            let again = export(&there, "Fix the login");
            let mut theirs = inside(&again);
            mine.sort_unstable();
            theirs.sort_unstable();
            assert_eq!(mine, theirs);
            there.run(&["purge", "Fix the login", "--yes"]);
        } else {
            assert_eq!(output.code, 5, "{what} in line {place}, round {round}: {output:?}");
        }
        assert_eq!(listed(&there), before, "{what} in line {place}, round {round}");
    }
}

#[test]
fn hostile_files_are_refused() {
    let here = rich();
    let good = export(&here, "Fix the login");
    let there = User::new();
    there.talk("Mine");
    let before = listed(&there);
    let header = good.lines().next().expect("a header");
    let id = here.json(&["thread", "info", "Fix the login"])["id"].as_str().expect("an id").to_owned();
    let other = there.json(&["thread", "info", "Mine"])["id"].as_str().expect("an id").to_owned();
    let with_header = |header: String| {
        let lines: Vec<&str> = good.lines().collect();
        let mut changed = vec![header.as_str()];
        changed.extend(&lines[1..lines.len() - 1]);
        sealed(&changed).into_bytes()
    };
    let deep = |text: &str| format!("{header}\n{{\"object\":{}\n", text.repeat(200_000)).into_bytes();
    for (what, bytes) in [
        ("nothing", Vec::new()),
        ("an empty line", b"\n".to_vec()),
        ("not JSON", b"hello\n".to_vec()),
        ("other JSON", b"{\"a\":1}\n".to_vec()),
        ("only the header", format!("{header}\n").into_bytes()),
        ("header and end", sealed(&[header]).into_bytes()),
        ("binary", vec![0xff; 4096]),
        ("deep lists", deep("[")),
        ("deep objects", deep("{\"a\":")),
        ("another thread's id", with_header(header.replace(&id, &other))),
        ("no id", with_header(header.replace(&id, "x"))),
        ("a newer format", with_header(header.replace("\"format\":1", "\"format\":2"))),
        ("a huge format", with_header(header.replace("\"format\":1", "\"format\":18446744073709551615"))),
        ("a huge version", with_header(header.replacen("\"version\":", "\"version\":9", 1))),
        (
            "a version beyond numbers",
            with_header(header.replacen("\"version\":", "\"version\":1e400,\"x\":", 1)),
        ),
        ("twice", format!("{good}{good}").into_bytes()),
        ("more behind the end", format!("{good}{{}}\n").into_bytes()),
        ("another kind", with_header(header.replace("\"retake\":\"thread\"", "\"retake\":\"store\""))),
    ] {
        let output = import(&there, &bytes, &[]);
        assert_eq!(output.code, 5, "{what}: {output:?}");
        assert!(output.err.len() < 1000, "{what}: a short sentence");
        assert_eq!(listed(&there), before, "{what}");
        // The same for a copy, which has its own rules.
        if what != "another thread's id" {
            assert_eq!(import(&there, &bytes, &["--copy"]).code, 5, "{what} as a copy");
        }
    }
    there.refused(3, &["import", "no/such/file"]);
    there.refused(2, &["import", "."]);
}

#[test]
fn files_are_never_overwritten_without_force() {
    let user = rich();
    user.run(&["export", "Fix the login"]);
    let path = user.project().join("fix-the-login.retake");
    let first = fs::read(&path).expect("an export");
    user.run(&["entry", "add", "More"]);
    let error = user.refused(5, &["export", "Fix the login"]);
    assert!(error.contains("--force"), "{error}");
    assert_eq!(fs::read(&path).expect("an export"), first);
    user.run(&["export", "Fix the login", "--force"]);
    assert_ne!(fs::read(&path).expect("an export"), first);
    let left = fs::read_dir(user.project()).expect("a folder").count();
    assert_eq!(left, 1, "no temporary file stays");
    user.refused(2, &["export", "-o", "-", "--json"]);
    user.refused(2, &["export", "-k", "main"]);
}

#[test]
fn text_exports_contain_the_take() {
    let user = rich();
    let markdown = user.run(&["export", "--format", "markdown", "-o", "-"]);
    for part in ["# Fix the login", "## 1. User", "> hm", "````\n```\nout\n````", "Calls **bash**"] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    let retry = user.run(&["export", "-k", "retry", "--format", "markdown", "-o", "-"]);
    assert!(retry.contains("Another way"), "{retry}");
    let json: serde_json::Value =
        serde_json::from_str(&user.run(&["export", "--format", "json", "-o", "-"])).expect("JSON");
    let shown = user.json(&["thread", "show", "--all"]);
    assert_eq!(json["entries"], shown["entries"]);
    assert_eq!(json["take"], shown["take"]);
}

#[test]
fn an_older_export_does_not_restore_redacted_content() {
    let user = User::new();
    user.talk("Fix the login");
    let older = export(&user, "Fix the login");
    user.run(&["redact", "1", "--yes"]);
    let output = import(&user, older.as_bytes(), &["--copy", "--switch"]);
    assert_eq!(output.code, 0, "{output:?}");
    let shown = user.run(&["thread", "show"]);
    assert!(shown.contains("[redacted]") && !shown.contains("Why does the login fail?"), "{shown}");
    assert_eq!(user.json(&["verify"])["clean"], true);
}

#[test]
fn an_import_cannot_redact_existing_content() {
    let here = User::new();
    here.talk("Fix the login");
    let whole = export(&here, "Fix the login");
    let there = User::new();
    import(&there, whole.as_bytes(), &[]);
    here.run(&["redact", "1", "--yes"]);
    let redacted = export(&here, "Fix the login");
    assert!(redacted.contains("\"redacted\""), "{redacted}");
    for options in [&[][..], &["--copy"]] {
        let output = import(&there, redacted.as_bytes(), options);
        assert_eq!(output.code, 0, "{output:?}");
    }
    assert_eq!(there.json(&["thread", "list"])["threads"].as_array().map(Vec::len), Some(2));
    let mine =
        serde_json::from_str::<serde_json::Value>(whole.lines().next().expect("a header")).expect("JSON");
    assert_eq!(export(&there, mine["thread"].as_str().expect("an id")), whole);
    // If the content never existed here, the redaction is imported too.
    let elsewhere = User::new();
    import(&elsewhere, redacted.as_bytes(), &["--switch"]);
    assert!(elsewhere.run(&["thread", "show"]).contains("[redacted]"));
    assert_eq!(export(&elsewhere, "Fix the login"), redacted);
    assert_eq!(elsewhere.json(&["verify"])["clean"], true);
}
