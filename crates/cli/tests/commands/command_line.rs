//! The command line without a command: prompts, typos, `--continue`, `--resume` and the overview.

use serde_json::Value;

use crate::support::Sandbox;
use crate::terminal::Terminal;

fn threads(sandbox: &Sandbox) -> usize {
    sandbox.json(&["thread", "list"])["threads"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_prompt_needs_no_command_and_a_typo_is_no_prompt() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.done(&["say Hello."]).trim(), "Hello.");
    sandbox.done(&["--no-pager", "say Hello again.", "--approve", "none"]);
    sandbox.done(&["-c", "say Hello once more."]);
    let entries = sandbox.json(&["show", "--all"])["entries"].as_array().map_or(0, Vec::len);
    assert_eq!((threads(&sandbox), entries), (1, 6));
    for line in
        [&["hello"][..], &["undoo"], &["fix", "the", "login"], &["-c", "hello"], &["take", "dlete", "x"]]
    {
        let output = sandbox.run(line);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{line:?}");
        assert!(
            !output.stderr.contains("'delete'") && !output.stderr.contains("'clear'"),
            "{}",
            output.stderr
        );
    }
    assert!(sandbox.run(&["undoo"]).stderr.contains("'undo'"));
    assert!(sandbox.run(&["fix", "the", "login"]).stderr.contains("in quotes"));
    assert_eq!(sandbox.run(&["-c", "undo"]).code, 2);
    let entries = sandbox.json(&["show", "--all"])["entries"].as_array().map_or(0, Vec::len);
    assert_eq!((threads(&sandbox), entries), (1, 6), "no typo was sent");
}

#[test]
fn without_a_command_the_next_commands_are_shown() {
    let sandbox = Sandbox::new();
    let next = |answer: &Value| -> Vec<String> {
        let next = answer["next"].as_array().expect("commands").iter();
        next.map(|next| next["command"].as_str().expect("a command").to_owned()).collect()
    };
    let fresh = sandbox.json(&[]);
    assert_eq!(next(&fresh), ["retake chat", "retake models", "retake demo"], "{fresh}");
    assert!(!sandbox.project().with_file_name("store").exists(), "looking creates no store");
    assert!(sandbox.done(&[]).contains("No thread here yet."));
    sandbox.done(&["say Hello."]);
    let answer = sandbox.json(&[]);
    assert_eq!((&answer["thread"]["title"], &answer["entries"]), (&"say Hello.".into(), &2.into()));
    assert_eq!(next(&answer), ["retake -c", "retake undo --dry-run", "retake tree"]);
    sandbox.done(&["draft", "set", "And then?"]);
    assert_eq!(next(&sandbox.json(&[]))[0], "retake run --draft");
    // Every suggested command exists.
    for command in next(&answer) {
        let words: Vec<&str> = command.split(' ').skip(1).chain(["--help"]).collect();
        assert_eq!(sandbox.run(&words).code, 0, "{command}");
    }
    for columns in [40, 80, 200] {
        let lines = sandbox.screen(columns, &[]);
        assert!(lines.iter().any(|line| line.starts_with("say Hello. / main")), "{lines:?}");
    }
}

#[test]
fn continue_chats_on_the_current_thread() {
    let sandbox = Sandbox::new();
    let (code, error) = sandbox.refused(&["-c"]);
    assert!(code == 3 && error["message"].to_string().contains("retake chat"), "{error}");
    sandbox.done(&["new", "First"]);
    sandbox.done(&["new", "Second"]);
    sandbox.done(&["switch", "First"]);
    assert_eq!(sandbox.run_with(&["-c"], "say one\n").code, 0);
    assert_eq!(sandbox.run_with(&["--resume", "Second"], "say two\nsay three\n").code, 0);
    let entries = |name: &str| sandbox.json(&["show", name])["entries"].as_array().map_or(0, Vec::len);
    assert_eq!((entries("First"), entries("Second")), (2, 4));
    assert_eq!(sandbox.refused(&["--resume", "Third"]).0, 3);
    let listed = sandbox.json(&["--resume"]);
    assert_eq!(listed["threads"].as_array().map(Vec::len), Some(2), "without a terminal, a list");
}

#[test]
fn a_thread_is_picked_by_number_or_title() {
    for (typed, title) in
        [("\n", "Third"), ("2\n", "Second"), ("fir\n", "First"), ("ir\n2\n", "First"), ("x\n\n", "Third")]
    {
        let sandbox = Sandbox::new();
        for name in ["First", "Second", "Third"] {
            sandbox.done(&["new", name]);
        }
        let mut terminal = Terminal::start(&sandbox, &["--resume"], &[("NO_COLOR", "1")]);
        for line in typed.split_inclusive('\n') {
            let asked = terminal.shown().matches("Number, or").count();
            terminal.wait_for("Number, or", asked.max(1));
            terminal.type_keys(line);
            terminal.wait_for(line.trim(), 1);
            if line != "\n" && !line.starts_with('2') && line != "fir\n" {
                terminal.wait_for("Number, or", asked.max(1) + 1);
            }
        }
        terminal.wait_for(&format!("{title} / main"), 1);
        terminal.wait_for_last("›");
        terminal.type_keys("\u{4}");
        assert_eq!(terminal.exit_code(), 0, "{typed:?}");
    }
    let sandbox = Sandbox::new();
    sandbox.done(&["new", "First"]);
    let mut terminal = Terminal::start(&sandbox, &["--resume"], &[]);
    terminal.wait_for("Number, or", 1);
    terminal.type_keys("\u{4}");
    assert_eq!(terminal.exit_code(), 0, "nothing is picked");
}

#[test]
fn help_is_grouped_and_fits() {
    let sandbox = Sandbox::new();
    for columns in [60, 80, 200] {
        for option in ["--help", "-h"] {
            let lines = sandbox.screen(columns, &[option]);
            for heading in ["Agent:", "Threads, takes and entries:", "History:", "Files:", "Store:", "Setup:"]
            {
                assert!(lines.iter().any(|line| line == heading), "{heading} in {lines:#?}");
            }
            assert!(!lines.iter().any(|line| line == "Commands:"), "listed once");
        }
    }
    assert!(sandbox.done(&["take", "--help"]).contains("Commands:"));
}
