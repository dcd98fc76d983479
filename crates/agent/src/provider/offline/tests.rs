//! Tests of complete turns with the offline assistant, and of the ways to phrase instructions.

use std::sync::Arc;

use retake_model::entry::Block;
use retake_model::projection::Message;

use super::instructions::{Instruction, read};
use super::*;

fn text(text: &str) -> Part {
    Part::Text { text: text.to_owned(), seal: None }
}

fn message(speaker: Speaker, parts: Vec<Part>) -> Arc<Message> {
    Arc::new(Message { speaker, parts, entries: Vec::new() })
}

fn text_of(answer: &Answer) -> String {
    answer.blocks.iter().filter_map(Block::text).collect()
}

/// Runs a complete turn: every call gets a result, which is a failure if the input contains "missing".
/// Returns the calls of each round and the final text.
fn play(prompt: &str) -> (Vec<Vec<String>>, String) {
    let mut conversation = Conversation { messages: vec![message(Speaker::User, vec![text(prompt)])] };
    let mut rounds = Vec::new();
    for _ in 0..20 {
        let request = OfflineRequest { conversation: &conversation, attempt: 0 };
        let answer = answer(&request, &Cancel::new(), &mut |_| {}).expect("an answer");
        if answer.stop != Stop::ToolUse {
            return (rounds, text_of(&answer));
        }
        let (mut parts, mut results, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for block in &answer.blocks {
            match block {
                Block::Text { text: words, .. } => parts.push(text(words)),
                Block::ToolCall { call, name, input, .. } => {
                    names.push(format!("{name} {}", input.as_str()));
                    let (call, name) = (call.clone(), name.clone());
                    let failed = input.as_str().contains("missing");
                    let value = serde_json::from_str(input.as_str()).expect("JSON");
                    parts.push(Part::Call {
                        call: call.clone(),
                        given: None,
                        name: name.clone(),
                        input: value,
                        model: None,
                        seal: None,
                    });
                    results.push(Part::Result { call, name, text: "result".to_owned(), failed });
                }
                _ => {}
            }
        }
        rounds.push(names);
        conversation.messages.push(message(Speaker::Assistant, parts));
        conversation.messages.push(message(Speaker::User, results));
    }
    panic!("it never ends");
}

#[test]
fn a_turn_runs_its_rounds_in_order() {
    let check = |prompt: &str, rounds: &[&[&str]], last: &str| {
        let (played, words) = play(prompt);
        assert_eq!(played, rounds, "{prompt}");
        assert!(words.contains(last), "{words}");
    };
    check(
        "create a.txt with hi\nread a.txt\nlist\nrun ls -l\nsay over",
        &[
            &[r#"write {"path":"a.txt","content":"hi\n"}"#],
            &[r#"read {"path":"a.txt"}"#, "list {}"],
            &[r#"shell {"command":"ls -l"}"#],
        ],
        "over\n\nDone: wrote a.txt, read a.txt, listed the folder, ran `ls -l`.",
    );
    check(
        "read missing.txt then read b",
        &[&[r#"read {"path":"missing.txt"}"#, r#"read {"path":"b"}"#]],
        "1 of 2 failed: read missing.txt.",
    );
    check("read a\nsay between\nread b", &[&[r#"read {"path":"a"}"#], &[r#"read {"path":"b"}"#]], "Done");
    check("say hello", &[], "hello");
    check("ask which one?\nread a", &[], "which one?");
    check(
        "read a\nmake it nice",
        &[&[r#"read {"path":"a"}"#]],
        "I am only Retake's offline assistant, and did not understand: make it nice.",
    );
    check("What is the meaning of life?", &[], "offline assistant, not a model");
    check("", &[], "offline assistant");
}

#[test]
fn only_the_last_message_is_executed() {
    let conversation = Conversation {
        messages: vec![
            message(Speaker::User, vec![text("run rm -r old")]),
            message(Speaker::Assistant, vec![text("Done.")]),
            message(Speaker::User, vec![text("run what-a-context-file-says"), text("say hi")]),
        ],
    };
    let request = OfflineRequest { conversation: &conversation, attempt: 0 };
    let answer = answer(&request, &Cancel::new(), &mut |_| {}).expect("an answer");
    assert_eq!((text_of(&answer), answer.stop), ("hi".to_owned(), Stop::EndTurn));
    let nothing = OfflineRequest { conversation: &Conversation::default(), attempt: 0 };
    assert!(super::answer(&nothing, &Cancel::new(), &mut |_| {}).is_ok());
}

#[test]
fn the_fail_instruction_makes_an_attempt_fail() {
    let check = |prompt: &str, attempt: u32, fails: bool| {
        let conversation = Conversation { messages: vec![message(Speaker::User, vec![text(prompt)])] };
        let answered =
            answer(&OfflineRequest { conversation: &conversation, attempt }, &Cancel::new(), &mut |_| {});
        assert_eq!(answered.is_err(), fails, "{prompt} {attempt}");
        if let Err(error) = answered {
            assert!(error.retryable);
            assert_eq!(text_of(&error.partial), "before");
        }
    };
    check("say before\nfail\nsay after", 0, true);
    check("say before\nfail\nsay after", 1, false);
    check("say before\nfail always", 7, true);
}

#[test]
fn waiting_can_be_interrupted() {
    let conversation = Conversation { messages: vec![message(Speaker::User, vec![text("wait 60")])] };
    let cancel = Cancel::new();
    let mut pieces = 0;
    let began = std::time::Instant::now();
    let request = OfflineRequest { conversation: &conversation, attempt: 0 };
    let error = answer(&request, &cancel.clone(), &mut |_| {
        pieces += 1;
        if pieces == 3 {
            cancel.set();
        }
    })
    .expect_err("interrupted");
    assert_eq!(error.fault, Fault::Interrupted);
    assert_eq!(text_of(&error.partial), "Waiting . .");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn streamed_words_add_up_to_the_answer() {
    let prompt = "think about  it\nsay one two three\nread a\nglob *.rs";
    let conversation = Conversation { messages: vec![message(Speaker::User, vec![text(prompt)])] };
    let mut deltas = Vec::new();
    let request = OfflineRequest { conversation: &conversation, attempt: 0 };
    let answer = answer(&request, &Cancel::new(), &mut |delta| deltas.push(delta)).expect("an answer");
    let texts = deltas.iter().filter(|delta| matches!(delta, Delta::Text(_))).count();
    assert_eq!(texts, 3);
    let kinds: Vec<&str> = answer.blocks.iter().map(Block::kind).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_call", "tool_call"]);
    assert_eq!(answer.stop, Stop::ToolUse);
    let calls: Vec<usize> = deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::CallStarted { block, .. } => Some(*block),
            _ => None,
        })
        .collect();
    assert_eq!(calls, [2, 3]);
}

#[test]
fn instructions_are_recognised_in_ordinary_sentences() {
    let create = |path: &str, content: &str| Instruction::Create {
        path: path.to_owned(),
        content: content.to_owned(),
    };
    let edit = |path: &str, old: &str, new: &str| Instruction::Edit {
        path: path.to_owned(),
        old: old.to_owned(),
        new: new.to_owned(),
    };
    let read_file = |path: &str| Instruction::Read(path.to_owned());
    let search = |text: &str, path: Option<&str>| Instruction::Search {
        text: text.to_owned(),
        path: path.map(str::to_owned),
    };
    let run = |command: &str| Instruction::Run(command.to_owned());
    let check =
        |text: &str, expected: &[Instruction]| assert_eq!(read(text).instructions, expected, "{text}");
    check("create a.txt with hello world", &[create("a.txt", "hello world\n")]);
    check("Please create `src/a.rs` with \"fn a() {}\\n\\tb\"", &[create("src/a.rs", "fn a() {}\n\tb\n")]);
    check("create a.txt", &[create("a.txt", "")]);
    check(
        "create a.txt:\n\n```rust\nfn a() {}\n\nfn b() {}\n```\nread a.txt",
        &[create("a.txt", "fn a() {}\n\nfn b() {}\n"), read_file("a.txt")],
    );
    check("write a.txt with\n~~~\nx\n", &[create("a.txt", "x\n")]);
    check(
        "1. read a.txt.\n2) READ b\n- read ./c/d.txt",
        &[read_file("a.txt"), read_file("b"), read_file("./c/d.txt")],
    );
    check(
        "create a with b, then read a and then run echo x then read y",
        &[create("a", "b\n"), read_file("a"), run("echo x then read y")],
    );
    check("say first this then that", &[Instruction::Say("first this then that".to_owned())]);
    check("say \"a then read b\"", &[Instruction::Say("a then read b".to_owned())]);
    check(r#"edit a.txt: replace "x \"y\"" with """#, &[edit("a.txt", "x \"y\"", "")]);
    check(r#"edit a.txt replace "a" with "b"."#, &[edit("a.txt", "a", "b")]);
    check("list", &[Instruction::List(None)]);
    check("list src/.", &[Instruction::List(Some("src/.".to_owned()))]);
    check("search \"a b\" in src", &[search("a b", Some("src"))]);
    check("search needle", &[search("needle", None)]);
    check("search two words in src", &[search("two words", Some("src"))]);
    check("run `ls`", &[run("ls")]);
    check("wait 2.5", &[Instruction::Wait(2.5)]);
    check("wait 3s", &[Instruction::Wait(3.0)]);
    check("fail\nfail always", &[Instruction::Fail { always: false }, Instruction::Fail { always: true }]);
    for nothing in [
        "",
        "hello",
        "creation of a",
        "read",
        "read the manual please",
        "run",
        "run ``",
        "say",
        "wait",
        "wait long",
        "wait 1e9",
        "wait -1",
        "wait NaN",
        "fail me",
        "edit a",
        "edit a: replace x with y",
        "edit : replace \"a\" with \"b\"",
        "create",
        "create two words",
        "create a b with c",
        "search",
        "glob",
        "ß then ",
        "- ",
        "7.",
        "listen",
    ] {
        check(nothing, &[]);
    }
}

proptest::proptest! {
    #[test]
    fn any_text_can_be_parsed(text in "(create|edit|run|say|search|wait|\"|`|then| |\\n|:|é|```|[a-z.]){0,30}") {
        let reading = read(&text);
        proptest::prop_assert!(reading.instructions.len() + reading.not_understood.len() <= text.len());
    }
}
