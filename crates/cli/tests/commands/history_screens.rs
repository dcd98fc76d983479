//! Text output of takes and history at terminal width, with hostile stored text.

use std::fmt::Write;

use crate::support::Sandbox;
use unicode_width::UnicodeWidthStr;

/// A project with everything that a drawing can show.
fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.config(), "[history]\ntyping_pause_ms = 60000\n").expect("the folder is ours");
    let run = |arguments: &[&str]| sandbox.done(arguments);
    run(&["thread", "new", "Fix the login", "--tag", "bug", "--tag", "auth"]);
    run(&["entry", "add", "Why does the login fail with an expired token, but only on Mondays?"]);
    run(&["entry", "add", "--role", "AI", "Because the cache is keyed by weekday."]);
    run(&["entry", "add", "Fix it, and add a test."]);
    run(&["entry", "add", "--role", "AI", "Done: fourteen files changed."]);
    run(&["entry", "edit", "2", "Because Monday is 0."]);
    run(&["take", "branch", "2"]);
    run(&["entry", "add", "Only change the key, please."]);
    run(&["take", "branch", "--name", "日本語の試み"]);
    run(&["entry", "add", "日本語で説明してください。表示幅は二倍です。もっと長い文章もここに入ります。"]);
    run(&["take", "fork", "3", "-k", "main"]);
    run(&["draft", "set", "Fix it, but"]);
    run(&["draft", "set", "Fix it, but leave the tests alone."]);
    run(&["take", "branch", "4", "-k", "main", "--name", "שלום"]);
    // Without joined emoji: terminals disagree about their width.
    run(&["entry", "add", "למה הכניסה נכשלת? 😀"]);
    run(&["take", "promote", "--title", "The other way"]);
    run(&["take", "switch", "main_take_1"]);
    run(&["save", "before the rewrite"]);
    run(&["thread", "new", "Notes"]);
    run(&["thread", "pin"]);
    run(&["entry", "add", "Buy milk"]);
    run(&["thread", "switch", "Fix the login"]);
    sandbox
}

fn drawn(sandbox: &Sandbox, columns: u16, arguments: &[&str]) -> String {
    let lines = sandbox.screen(columns, arguments);
    sandbox.redact(&lines.join("\n"))
}

#[test]
fn the_tree_is_printed() {
    let sandbox = project();
    insta::assert_snapshot!("tree_80", drawn(&sandbox, 80, &["tree"]));
    insta::assert_snapshot!("tree_160", drawn(&sandbox, 160, &["tree"]));
    insta::assert_snapshot!("tree_entries_80", drawn(&sandbox, 80, &["tree", "--entries"]));
    insta::assert_snapshot!("take_list_80", drawn(&sandbox, 80, &["take", "list"]));
}

#[test]
fn history() {
    let sandbox = project();
    for arguments in
        [&["undo", "2"][..], &["redo"], &["undo", "2"], &["settings", "set", "top_p", "0.5"], &["undo"]]
    {
        sandbox.done(arguments);
    }
    insta::assert_snapshot!("history_80", drawn(&sandbox, 80, &["history"]));
    insta::assert_snapshot!("history_all_80", drawn(&sandbox, 80, &["history", "--all", "-n", "18"]));
}

#[test]
fn changes_are_described() {
    let sandbox = project();
    let mut reported = String::new();
    for arguments in [
        &["undo"][..],
        &["redo"],
        &["undo", "4"],
        &["jump", "before the rewrite"],
        &["jump", "3"],
        &["redo", "20"],
        &["save", "here"],
        &["take", "switch", "main"],
        &["take", "branch", "2", "--name", "b"],
        &["take", "fork", "1", "--name", "f"],
        &["take", "delete", "f"],
        &["take", "rename", "c"],
        &["take", "promote", "b"],
        &["take", "promote", "c", "--switch"],
        &["draft", "set", "word"],
        &["draft", "clear"],
        &["settings", "set", "top_p", "0.5"],
        &["role", "add", "Reviewer"],
        &["context", "add", "a.rs"],
        &["truncate", "1"],
        &["clear"],
        &["undo"],
        &["reset", "--yes"],
    ] {
        let output = sandbox.run(arguments);
        write!(reported, "$ retake {}\n{}{}", arguments.join(" "), output.stdout, output.stderr)
            .expect("writing to memory cannot fail");
    }
    insta::assert_snapshot!("changes", sandbox.redact(&reported));
}

#[test]
fn lines_fit_the_terminal() {
    let sandbox = project();
    for columns in [40, 60, 80, 100] {
        for arguments in [&["tree"][..], &["tree", "--entries"], &["history"], &["take", "list"]] {
            let lines = sandbox.screen(columns, arguments);
            let piped = sandbox.done(arguments);
            // No line was wrapped: as many lines as without a width limit.
            assert_eq!(lines.len(), piped.trim_end().lines().count(), "{arguments:?} at {columns}");
            for line in lines {
                assert!(line.width() <= usize::from(columns), "{line:?} at {columns}");
            }
        }
    }
}

#[test]
fn stored_text_never_acts_on_the_terminal() {
    const HOSTILE: &str =
        "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[31mred\u{9b}31m\u{202e}evil\u{2066}\u{8}\u{8}\r\u{200b}";
    let sandbox = Sandbox::new();
    let run = |arguments: &[&str]| {
        for how in [&["--color", "never"][..], &["--color", "always"], &["--json"]] {
            let arguments = [arguments, how].concat();
            let output = sandbox.run(&arguments);
            for text in [&output.stdout, &output.stderr] {
                assert_harmless(text, &arguments);
            }
        }
    };
    sandbox.done(&["thread", "new", "Fix the login"]);
    run(&["entry", "add", HOSTILE]);
    run(&["entry", "add", "--role", "AI", HOSTILE]);
    run(&["entry", "edit", "1", &format!("{HOSTILE} again")]);
    run(&["take", "branch", "1"]);
    run(&["take", "fork", "1"]);
    run(&["draft", "set", HOSTILE]);
    run(&["draft"]);
    run(&["settings", "set", "project_system_prompt", HOSTILE]);
    run(&["settings"]);
    run(&["settings", "get", "project_system_prompt"]);
    run(&["context", "add", HOSTILE]);
    run(&["context"]);
    run(&["tree"]);
    run(&["tree", "--entries"]);
    run(&["take", "list"]);
    run(&["history", "--all"]);
    run(&["undo", "3"]);
    run(&["redo", "2"]);
    run(&["jump", HOSTILE]);
    run(&["take", "switch", HOSTILE]);
    run(&["take", "rename", HOSTILE]);
    run(&["take", "branch", "--name", HOSTILE]);
    run(&["take", "promote", "--title", HOSTILE]);
    run(&["save", HOSTILE]);
    run(&["role", "add", HOSTILE]);
    run(&["settings", "set", HOSTILE, "1"]);
    run(&["settings", "set", "model", HOSTILE]);
    run(&["undo", "-t", HOSTILE]);
    run(&["context", "remove", HOSTILE]);
    run(&["thread", "show", "-k", "main"]);
    // JSON contains the text itself, with unsafe characters escaped.
    let shown = sandbox.json(&["thread", "show", "-k", "main"]);
    assert_eq!(shown["entries"][1]["entry"]["blocks"][0]["text"], HOSTILE);
}

/// No control characters except line breaks, and colours only as `ESC [ numbers m`.
fn assert_harmless(text: &str, arguments: &[&str]) {
    let mut rest = text;
    while let Some(at) = rest.find(dangerous) {
        let colour = rest[at..].strip_prefix("\u{1b}[").and_then(|code| {
            let end = code.find(|character: char| !character.is_ascii_digit() && character != ';')?;
            code[end..].strip_prefix('m')
        });
        let allowed = arguments.contains(&"always");
        rest = colour.filter(|_| allowed).unwrap_or_else(|| panic!("{arguments:?} wrote {:?}", &rest[at..]));
    }
}

fn dangerous(character: char) -> bool {
    (character.is_control() && character != '\n')
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}
