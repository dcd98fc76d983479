//! Turns with tools: conversation and files together, step by step.

use retake_agent::Cancel;
use retake_agent::Reply;
use retake_agent::approval::ApprovalMode;
use retake_model::agent::TurnEnd;
use retake_model::operation::{Actor, OperationKind};
use retake_store::runtime::TraceFilter;
use retake_testing::fault_server::{Script, ScriptStep};
use serde_json::json;

use crate::stored;
use crate::world::{KEY, RecordingObserver, World, calls, text};

#[test]
fn one_undo_reverts_a_turn_with_its_tool_calls_and_files() {
    let world = World::new(vec![
        calls(&[("call_1", "write", json!({"path": "new.txt", "content": "by the tool\n"}))]),
        text("Done."),
    ]);
    std::fs::write(world.project.join("mine.txt"), "by hand\n").expect("the temporary folder is writable");
    let (outcome, _) = world.run("make a file");
    assert_eq!(outcome.how, TurnEnd::Completed);
    assert_eq!(world.read("new.txt").as_deref(), Some("by the tool\n"));
    let transcript = world.transcript();
    assert_eq!(transcript.len(), 4, "{transcript:?}");
    assert!(transcript[3].ends_with("Done."), "{transcript:?}");
    let reader = world.runtime.timeline.read().expect("the store is readable");
    let history = reader.history(world.thread).list(None, 100).expect("a history");
    let by_tool = history
        .iter()
        .find(|item| {
            item.actor == Actor::ToolCall { call: "call_1".to_owned() } && item.kind.added().is_some()
        })
        .expect("the result");
    let files =
        reader.files(world.thread).at(by_tool.version).expect("the store is readable").expect("files");
    assert_eq!(files.version, by_tool.version, "the result and its files are one operation");
    drop(reader);
    world.check_requests();
    world.check_rest();

    world.undo();
    assert_eq!(world.transcript(), Vec::<String>::new());
    assert_eq!(world.read("new.txt"), None);
    assert_eq!(world.read("mine.txt").as_deref(), Some("by hand\n"));
    assert_eq!(world.read("kept.txt").as_deref(), Some("kept\n"));
}

#[test]
fn parallel_calls_share_one_message_and_their_results_another() {
    let world = World::new(vec![
        calls(&[
            ("a", "read", json!({"path": "kept.txt"})),
            ("b", "read", json!({"path": "missing.txt"})),
            ("c", "list", json!({})),
        ]),
        text("Read."),
    ]);
    world.run("read them");
    let messages = world.last_messages();
    assert_eq!(messages.len(), 3, "{messages:#?}");
    let results = messages[2]["content"].as_array().expect("blocks");
    let ids: Vec<&str> = results.iter().filter_map(|block| block["tool_use_id"].as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(results[1]["is_error"], json!(true));
    world.check_requests();
}

#[test]
fn a_denied_call_does_not_run_and_the_model_gets_the_reason() {
    let write = || calls(&[("w", "write", json!({"path": "new.txt", "content": "x"}))]);
    let check = |mode: ApprovalMode, reply: Option<Reply>, runs: bool| {
        let mut world = World::new(vec![write(), text("I see.")]);
        world.runtime.approval.mode = mode;
        let mut witness = RecordingObserver { reply, ..RecordingObserver::default() };
        world.run_with("write", &Cancel::new(), &mut witness).expect("the turn runs");
        assert_eq!(world.read("new.txt").is_some(), runs, "{mode:?}");
        let result = &world.last_messages()[2]["content"][0];
        assert_eq!(result["is_error"].as_bool().unwrap_or_default(), !runs, "{result}");
        world.check_requests();
        world.check_rest();
    };
    let reply = |allowed| Some(Reply { allowed, remember: false, reason: Some("not now".to_owned()) });
    check(ApprovalMode::AllowAll, None, true);
    check(ApprovalMode::AllowEdits, None, true);
    check(ApprovalMode::Deny, reply(true), false);
    check(ApprovalMode::Ask, reply(true), true);
    check(ApprovalMode::Ask, reply(false), false);
}

#[test]
fn an_always_allowed_call_needs_no_further_approval() {
    let write = |id: &str| calls(&[(id, "write", json!({"path": "new.txt", "content": "x"}))]);
    let other = calls(&[("w3", "write", json!({"path": "new.txt", "content": "y"}))]);
    let mut world = World::new(vec![write("w1"), text("1"), write("w2"), text("2"), other, text("3")]);
    world.runtime.approval.mode = ApprovalMode::Ask;
    let remember = Some(Reply { allowed: true, remember: true, reason: None });
    let mut witness = RecordingObserver { reply: remember, ..RecordingObserver::default() };
    world.run_with("write", &Cancel::new(), &mut witness).expect("the turn runs");
    std::fs::remove_file(world.project.join("new.txt")).expect("it is there");
    let never = Some(Reply { allowed: false, remember: false, reason: None });
    for (prompt, exists) in [("again", true), ("something else", false)] {
        let _ = std::fs::remove_file(world.project.join("new.txt"));
        let mut witness = RecordingObserver { reply: never.clone(), ..RecordingObserver::default() };
        world.run_with(prompt, &Cancel::new(), &mut witness).expect("the turn runs");
        assert_eq!(world.read("new.txt").is_some(), exists, "{prompt}");
    }
}

#[test]
fn the_trace_has_every_request_and_no_key() {
    let world = World::new(vec![
        calls(&[("s", "shell", json!({"command": "echo $SCRIPTED_KEY done"}))]),
        text("The key is not here."),
    ]);
    world.run(&format!("my key is {KEY}"));
    let runtime_database =
        world.runtime.timeline.store().runtime_database().expect("the runtime database opens");
    let mut kinds = Vec::new();
    let filter = TraceFilter { bodies: true, ..TraceFilter::default() };
    runtime_database
        .read_trace(&filter, &mut |trace_number| {
            assert!(
                !trace_number.facts.contains(KEY) && !trace_number.body.unwrap_or_default().contains(KEY),
                "{}",
                trace_number.kind
            );
            kinds.push(trace_number.kind);
            Ok(())
        })
        .expect("it is read");
    assert_eq!(kinds, ["request", "answer", "tool_call", "tool_result", "request", "answer"]);
    assert_eq!(world.server.requests()[0].header("x-api-key"), Some(KEY), "the control: it was sent");
}

#[test]
fn a_key_echoed_by_the_provider_is_in_no_record() {
    let echo = |script: Script| {
        let acts = script.acts.into_iter().map(|act| match act {
            ScriptStep::Send(bytes) => {
                let event = String::from_utf8(bytes).expect("text");
                let event = event.replace("\"scripted", &format!("\"{KEY}")).replace("end_turn", KEY);
                ScriptStep::Send(event.replace("\"msg", &format!("\"{KEY}-msg")).into_bytes())
            }
            other => other,
        });
        Script { acts: acts.collect(), ..script }
    };
    let world = World::new(vec![echo(text("Hello."))]);
    world.run("hello");
    let requests = world.server.requests();
    assert_eq!(requests[0].header("x-api-key"), Some(KEY), "the control: it was sent");
    let mut hidden = 0;
    let runtime_database =
        world.runtime.timeline.store().runtime_database().expect("the runtime database opens");
    runtime_database
        .read_trace(&TraceFilter::default(), &mut |trace_number| {
            hidden += trace_number.facts.matches("[key]").count();
            Ok(())
        })
        .expect("it is read");
    assert!(hidden > 0, "the control: it was echoed");
    let places = stored::places(&world.folder.path().join("store"), KEY.as_bytes());
    assert!(places.is_empty(), "{places:?}");
}

#[test]
fn the_log_contains_each_step_of_a_turn() {
    let world = World::new(vec![calls(&[("a", "list", json!({}))]), text("Listed.")]);
    world.run("list");
    let reader = world.runtime.timeline.read().expect("the store is readable");
    let history = reader.history(world.thread).list(None, 100).expect("a history");
    let turns: Vec<_> =
        history.iter().filter(|item| matches!(item.kind, OperationKind::TurnAdvanced { .. })).collect();
    assert_eq!(turns.len(), 5, "asked, answered, runs, ended, answered");
    assert!(turns.iter().all(|item| item.turn == turns[0].turn), "one turn, undone together");
}

#[test]
fn undoing_a_turn_keeps_a_file_the_user_created_during_it() {
    let world = World::new(vec![
        calls(&[("call_1", "write", json!({"path": "made/new.txt", "content": "by the tool\n"}))]),
        text("Done."),
    ]);
    let (mine, kept) = (world.project.join("mine.txt"), world.project.join("kept.txt"));
    let mut witness = RecordingObserver::default();
    *witness.at.get_mut().expect("one thread") = Some(Box::new(move |event| {
        if matches!(event, retake_agent::TurnEvent::ToolStarted { .. }) {
            std::fs::write(&mine, "by hand, meanwhile\n").expect("the temporary folder is writable");
            std::fs::write(&kept, "changed by hand, meanwhile\n").expect("the temporary folder is writable");
        }
    }));
    world.run_with("make a file", &Cancel::new(), &mut witness).expect("the turn runs");
    assert_eq!(world.read("made/new.txt").as_deref(), Some("by the tool\n"));
    let reader = world.runtime.timeline.read().expect("the store is readable");
    let history = reader.history(world.thread).list(None, 100).expect("a history");
    let seen = history.iter().find(|item| matches!(item.kind, OperationKind::ExternalEdits { paths: 2 }));
    assert_eq!(seen.expect("what the user did").actor, Actor::Human);
    drop(reader);
    world.check_rest();
    world.undo();
    assert_eq!(world.read("made/new.txt"), None);
    assert_eq!(world.read("mine.txt").as_deref(), Some("by hand, meanwhile\n"));
    assert_eq!(world.read("kept.txt").as_deref(), Some("changed by hand, meanwhile\n"));
}
