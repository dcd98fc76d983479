//! `verify`, `repair`, `gc`, `purge`, `redact` and `usage`.

use std::fs;

use crate::tools::support::User;

const SECRET: &str = "the password is correct-horse-battery";

/// How often a text occurs in the files of the store.
fn occurrences(user: &User, text: &str) -> usize {
    let files = crate::tools::support::everything_below(&user.path("store"));
    let files = files.iter().filter(|path| path.is_file());
    files
        .map(|path| {
            let bytes = fs::read(path).expect("a file");
            bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
        })
        .sum()
}

/// Flips a byte of this text in the store.
fn damage(user: &User, text: &str) {
    let path = user.path("store/retake.db");
    let mut bytes = fs::read(&path).expect("a database");
    let place = bytes.windows(text.len()).position(|window| window == text.as_bytes());
    bytes[place.expect("the text is stored as it is")] ^= 1;
    fs::write(&path, bytes).expect("a database");
}

#[test]
fn verify_reports_a_clean_store() {
    let user = User::new();
    user.talk("Fix the login");
    user.run(&["search", "cookie"]);
    let report = user.json(&["verify"]);
    assert_eq!(report["clean"], true);
    assert_eq!(report["operations"], 4);
    assert_eq!(report["threads"], 1);
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(0));
    assert!(user.run(&["verify"]).contains("clean"));
}

#[test]
fn damage_is_reported_and_repaired() {
    let user = User::new();
    user.talk("Fix the login");
    damage(&user, "Why does the login fail?");
    let output = user.try_run(&["verify", "--json"]);
    assert_eq!(output.code, 6, "{output:?}");
    let report: serde_json::Value = serde_json::from_str(&output.out).expect("an answer in JSON");
    assert_eq!(report["clean"], false);
    assert!(report["problems"].as_array().is_some_and(|problems| !problems.is_empty()), "{report}");
    let output = user.try_run(&["verify"]);
    assert_eq!(output.code, 6);
    assert!(output.out.contains("✗") && output.out.contains("retake repair"), "{output:?}");
    let repaired = user.json(&["repair"]);
    assert!(repaired["changes"].as_array().is_some_and(|changes| !changes.is_empty()), "{repaired}");
    assert_eq!(user.json(&["verify"])["clean"], true);
    assert!(user.run(&["thread", "show"]).contains("The cookie has expired."));
    assert!(user.run(&["repair"]).contains("No repairs were needed"));
}

#[test]
fn destructive_commands_ask_first() {
    let user = User::new();
    user.talk("Fix the login");
    for command in [&["purge", "Fix the login"][..], &["redact", "1"]] {
        let error = user.refused(5, command);
        assert!(error.contains("--yes"), "{error}");
    }
    assert_eq!(user.json(&["thread", "show"])["entries"].as_array().map(Vec::len), Some(2));
}

#[test]
fn purge_destroys_only_the_named_threads() {
    let user = User::new();
    user.talk("Keep");
    user.run(&["thread", "new", "Secret"]);
    user.run(&["entry", "add", SECRET]);
    user.run(&["search", "password"]);
    let preview = user.json(&["purge", "Secret", "--dry-run"]);
    assert_eq!(preview["purged"]["threads"], 1);
    assert_eq!(preview["threads"][0]["title"], "Secret");
    assert!(occurrences(&user, SECRET) > 0);
    let done = user.json(&["purge", "Secret", "--yes"]);
    assert_eq!(done["purged"]["operations"], preview["purged"]["operations"]);
    assert_eq!(occurrences(&user, SECRET), 0);
    assert_eq!(occurrences(&user, "correct"), 0, "no word of it is left in the index");
    user.refused(3, &["thread", "show", "Secret"]);
    assert_eq!(
        user.json(&["search", "password", "--history", "--all"])["hits"].as_array().map(Vec::len),
        Some(0)
    );
    assert!(user.run(&["thread", "show", "Keep"]).contains("cookie"));
    assert_eq!(user.json(&["verify"])["clean"], true);
}

#[test]
fn a_killed_purge_is_completed_by_the_next_command_and_by_verify() {
    let user = User::new();
    user.talk("Keep");
    let mark = user.path("store").join("erasing");
    for command in [&["entry", "add", "more"][..], &["gc", "--yes"], &["search", "more"], &["verify"]] {
        user.run(&["thread", "new", "Secret"]);
        user.run(&["entry", "add", "the password is zanzibarsecret"]);
        user.run(&["search", "password"]);
        let [index, aside] = ["search.db", "aside"].map(|name| user.path("store").join(name));
        std::fs::rename(&index, &aside).expect("the store is ours");
        user.run(&["purge", "Secret", "--yes"]);
        assert!(!mark.exists(), "the control");
        std::fs::rename(&aside, &index).expect("the store is ours");
        std::fs::write(&mark, "").expect("the store is ours");
        assert!(occurrences(&user, "zanzibarsecret") > 0, "the control: a word of it is in the index");
        user.run(command);
        assert_eq!(occurrences(&user, "zanzibarsecret"), 0, "{command:?}");
        assert!(!mark.exists(), "{command:?}");
    }
    assert_eq!(user.json(&["verify"])["clean"], true);
}

#[test]
fn purge_of_deleted_threads_spares_recent_ones() {
    let user = User::new();
    user.talk("Keep");
    user.talk("Gone");
    user.run(&["thread", "delete", "Gone"]);
    let none = user.json(&["purge", "--deleted", "--older-than", "1", "--yes"]);
    assert_eq!(none["threads"].as_array().map(Vec::len), Some(0));
    let one = user.json(&["purge", "--deleted", "--yes"]);
    assert_eq!(one["threads"][0]["title"], "Gone");
    user.run(&["thread", "show", "Keep"]);
    user.refused(2, &["purge"]);
    user.refused(2, &["purge", "Keep", "--deleted"]);
}

#[test]
fn purging_the_current_thread_makes_another_one_current() {
    let user = User::new();
    for title in ["First", "Second", "Third"] {
        user.talk(title);
    }
    assert_eq!(user.json(&["project"])["title"], "Third");
    user.run(&["purge", "Third", "--yes"]);
    assert_eq!(user.json(&["project"])["title"], "Second", "the most lately changed of the others");
    user.run(&["purge", "First", "--yes"]);
    assert_eq!(user.json(&["project"])["title"], "Second");
    user.run(&["purge", "Second", "--yes"]);
    assert_eq!(user.json(&["project"])["current"], serde_json::Value::Null, "the last one may go too");
    assert_eq!(user.json(&["verify"])["clean"], true);
}

#[test]
fn redact_destroys_every_version_everywhere() {
    let user = User::new();
    user.talk("Fix the login");
    user.run(&["entry", "add", SECRET]);
    user.run(&["take", "branch", "last", "--name", "other"]);
    user.run(&["entry", "edit", "last", &format!("{SECRET}, or was")]);
    user.run(&["take", "promote", "other"]);
    user.run(&["search", "password"]);
    assert!(occurrences(&user, SECRET) > 0 && occurrences(&user, "battery") > occurrences(&user, SECRET));
    let done = user.json(&["redact", "3", "-t", "Fix the login", "--yes"]);
    assert_eq!(done["versions"].as_array().map(Vec::len), Some(2), "{done}");
    assert_eq!(done["remaining"].as_array().map(Vec::len), Some(0), "{done}");
    assert_eq!(occurrences(&user, SECRET), 0);
    assert_eq!(occurrences(&user, "battery"), 0, "no word of it is left in the index");
    for thread in ["Fix the login", "other"] {
        assert!(user.run(&["thread", "show", thread, "--all"]).contains("[redacted]"), "{thread}");
    }
    assert_eq!(
        user.json(&["search", "password", "--history", "--all"])["hits"].as_array().map(Vec::len),
        Some(0)
    );
    assert_eq!(user.json(&["verify"])["clean"], true);
}

#[test]
fn redact_reports_remaining_copies() {
    let user = User::new();
    user.run(&["thread", "new", "Quoted"]);
    user.run(&["entry", "add", SECRET]);
    user.run(&["entry", "add", "--role", "AI", &format!("You said: {SECRET}")]);
    let done = user.json(&["redact", "1", "--yes"]);
    assert_eq!(done["remaining"].as_array().map(Vec::len), Some(1), "{done}");
    let done = user.json(&["redact", "2", "--yes"]);
    assert_eq!(done["remaining"].as_array().map(Vec::len), Some(0), "{done}");
    nothing_is_left(&user);
}

/// Fails if a word of the secret is in any file of the store, including compressed content.
fn nothing_is_left(user: &User) {
    for path in
        crate::tools::support::everything_below(&user.path("store")).iter().filter(|path| path.is_file())
    {
        let bytes = fs::read(path).expect("a file");
        for word in ["correct-horse", "battery"] {
            let holds = |bytes: &[u8]| bytes.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!holds(&bytes), "{word} is in {}", path.display());
            // Every possible start of a compressed frame, used or freed.
            for at in (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&[0x28, 0xb5, 0x2f, 0xfd])) {
                let mut plain = Vec::new();
                if let Ok(mut decoder) = zstd::Decoder::new(&bytes[at..]) {
                    let mut piece = [0; 4096];
                    while let Ok(read @ 1..) = std::io::Read::read(&mut decoder, &mut piece) {
                        plain.extend_from_slice(&piece[..read]);
                    }
                }
                assert!(!holds(&plain), "{word} is compressed in {} at {at}", path.display());
            }
        }
    }
}

#[test]
fn redact_leaves_no_byte_of_a_prompt_in_titles_drafts_names_and_the_trace() {
    let user = User::new();
    // The title comes from the prompt, and the trace contains it.
    let long = format!("{SECRET} {}", "and much more of it ".repeat(40));
    user.run(&["run", "--new", &long]);
    user.run(&["thread", "rename", SECRET]);
    user.run(&["draft", "set", &long]);
    user.run(&["draft", "set", "the password is correct-horse-bat"]);
    user.run(&["take", "fork", "1"]);
    user.run(&["thread", "new", "Elsewhere"]);
    user.run(&["draft", "set", &format!("to paste: {long}")]);
    user.run(&["thread", "new", "the password"]);
    user.run(&["thread", "switch", SECRET]);
    user.run(&["undo"]);
    user.run(&["search", "password"]);
    let before = user.json(&["history", "--all"]);
    // The prompt first, then every quote of it.
    let mut redacted = 0;
    while let Some(id) = user.json(&["search", "password", "--history"])["hits"][0]["entry"].as_str() {
        user.json(&["redact", id, "--yes"]);
        redacted += 1;
        assert!(redacted < 10, "what is redacted is not found any more");
    }
    assert!(redacted > 0);
    nothing_is_left(&user);
    assert_eq!(user.json(&["verify"])["clean"], true);
    let after = user.json(&["history", "--all"]);
    assert_eq!(
        after["operations"].as_array().map(Vec::len),
        before["operations"].as_array().map(Vec::len),
        "the history goes on"
    );
    user.run(&["undo"]);
    user.run(&["redo"]);
    assert!(user.run(&["thread", "info"]).contains("[redacted]"));
    let titles = user.run(&["thread", "list"]);
    assert!(
        titles.contains("Elsewhere") && titles.contains("the password"),
        "others are left alone: {titles}"
    );
}

#[test]
fn an_entry_that_was_deleted_can_be_redacted_by_its_id() {
    let user = User::new();
    user.run(&["thread", "new", "Deleted"]);
    user.run(&["entry", "add", SECRET]);
    let id = user.json(&["entry", "show", "1"])["id"].as_str().expect("an id").to_owned();
    user.run(&["entry", "delete", "1"]);
    user.run(&["redact", &id, "--yes"]);
    assert_eq!(occurrences(&user, SECRET), 0);
    user.run(&["undo"]);
    assert!(user.run(&["thread", "show"]).contains("[redacted]"));
}

#[test]
fn gc_removes_nothing_that_history_refers_to() {
    let user = User::new();
    user.talk("Fix the login");
    user.run(&["undo", "2"]);
    let dry = user.json(&["gc", "--dry-run", "--grace", "0"]);
    assert_eq!((&dry["unreachable"], &dry["dry_run"]), (&0.into(), &true.into()));
    assert!(user.run(&["gc"]).contains("Nothing to delete"));
}

#[test]
fn gc_removes_packs_left_by_an_interrupted_purge() {
    let user = User::new();
    user.talk("Fix the login");
    let packs = user.path("store").join("packs");
    std::fs::create_dir_all(&packs).expect("the store is ours");
    let left = packs.join("00000099.pack");
    std::fs::write(&left, "purged").expect("the store is ours");
    user.run(&["gc", "--dry-run", "--grace", "0"]);
    assert!(left.exists(), "a dry run removes nothing");
    let output = user.run(&["gc", "--grace", "0"]);
    assert!(output.contains("an interrupted purge left 6 B"), "{output}");
    assert!(!left.exists());
}

#[test]
fn usage_is_compared_with_the_budget_and_a_change_warns() {
    let user = User::new();
    user.talk("Fix the login");
    let usage = user.json(&["usage"]);
    assert_eq!((&usage["threads"], &usage["operations"]), (&1.into(), &4.into()));
    assert!(usage["total"].as_u64().is_some_and(|total| total > 0));
    assert!(user.try_run(&["entry", "add", "no budget, no warning"]).err.is_empty());
    user.run(&["config", "set", "storage.budget", "1 GB"]);
    assert!(user.try_run(&["entry", "add", "far from it"]).err.is_empty());
    user.run(&["config", "set", "storage.budget", "10 kB"]);
    let output = user.try_run(&["entry", "add", "beyond it"]);
    assert_eq!(output.code, 0, "a budget never stops anyone: {output:?}");
    assert!(output.err.contains("storage.budget"), "{output:?}");
    assert!(user.try_run(&["entry", "add", "quietly", "--quiet"]).err.is_empty());
    assert_eq!(user.json(&["usage"])["budget_status"]["state"], "over");
}

/// Flips a byte of every copy of this text.
fn damage_all(user: &User, text: &str) {
    let path = user.path("store/retake.db");
    let mut bytes = fs::read(&path).expect("a database");
    let places: Vec<usize> = (0..bytes.len().saturating_sub(text.len()))
        .filter(|&at| bytes[at..].starts_with(text.as_bytes()))
        .collect();
    assert!(!places.is_empty(), "the text is stored as it is");
    for place in places {
        bytes[place] ^= 1;
    }
    fs::write(&path, bytes).expect("a database");
}

#[test]
fn a_completed_move_is_reported_even_if_its_details_cannot_be_read() {
    let user = User::new();
    user.talk("Fix the login");
    user.run(&["draft", "set", "a draft of a moment that is damaged later"]);
    user.run(&["entry", "edit", "1", "edited"]);
    user.run(&["draft", "set", "something else"]);
    damage_all(&user, "a draft of a moment that is damaged later");
    let undone = user.json(&["undo", "3"]);
    assert_eq!(undone["steps"], 3, "{undone}");
    assert!(undone["report_failed"].as_str().is_some_and(|why| why.contains("damaged")), "{undone}");
    assert!(user.run(&["entry", "show", "1"]).contains("Why does the login fail?"), "it was carried out");
    let output = user.run(&["redo", "3"]);
    assert!(output.contains("Done, but the details cannot be shown"), "{output}");
    assert!(user.run(&["entry", "show", "1"]).contains("edited"));
}
