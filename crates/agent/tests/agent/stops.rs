//! Incomplete answers: the turn reports the reason and does not retry at cost without limit.

use retake_agent::TurnEvent;
use retake_agent::provider::{Stop, Wire};
use retake_model::agent::TurnEnd;
use retake_model::entry::Block;
use retake_testing::fault_server::{
    FaultServer, Script, ScriptStep, ScriptedAnswer, call, events, text_answer,
};
use serde_json::{Value, json};

use crate::world::{World, text};

/// An empty Anthropic stream with the given stop reason.
fn nothing(delta: &Value) -> Script {
    let start = json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let datas = [start, json!({"type": "message_delta", "delta": delta}), json!({"type": "message_stop"})];
    Script::events(datas.iter().map(|data| format!("data: {data}\n\n")))
}

/// A call of `write` cut off by the output limit.
fn cut(content: &str) -> Script {
    let input = json!({"path": "a.txt", "content": content});
    let scripted =
        ScriptedAnswer { blocks: vec![call("c", "write", &input)], stop: Stop::MaxTokens, ..text_answer("") };
    let mut all = events(Wire::Anthropic, &scripted);
    all.remove(all.iter().rposition(|event| event.contains("partial_json")).expect("the last piece"));
    Script::events(all)
}

fn limits(world: &World) -> Vec<u64> {
    let limit = |body: &str| serde_json::from_str::<Value>(body).expect("JSON")["max_tokens"].as_u64();
    world.server.requests().iter().map(|request| limit(&request.body).expect("a limit")).collect()
}

#[test]
fn an_empty_answer_with_a_reason_is_reported_and_not_repeated() {
    let check = |delta: Value, words: &[&str]| {
        let world = World::served_by(FaultServer::start(move |_, _| nothing(&delta)).expect("a free port"));
        let (outcome, _) = world.run("hello");
        assert_eq!(outcome.how, TurnEnd::Failed);
        let message = outcome.message.expect("a message");
        for word in words {
            assert!(message.contains(word), "{message}");
        }
        assert_eq!(world.server.requests().len(), 1, "{message}");
        world.check_rest();
    };
    check(
        json!({"stop_reason": "max_tokens"}),
        &["cut at max_tokens=8192", "retake settings set max_tokens"],
    );
    check(
        json!({"stop_reason": "refusal", "stop_details": {"explanation": "Blocked under the policy."}}),
        &["refused", "Blocked under the policy."],
    );
    check(json!({"stop_reason": "novelty"}), &["novelty"]);
}

#[test]
fn an_empty_answer_without_a_reason_is_requested_once_more() {
    let empty = || nothing(&json!({"stop_reason": "end_turn"}));
    let world = World::new(vec![empty(), text("Here.")]);
    assert_eq!(world.run("hello").0.how, TurnEnd::Completed);
    let world = World::new(vec![empty(), empty(), text("Too late.")]);
    let (outcome, _) = world.run("hello");
    assert_eq!((outcome.how, world.server.requests().len()), (TurnEnd::Failed, 2));
}

#[test]
fn a_truncated_text_reports_the_limit() {
    let scripted = ScriptedAnswer { stop: Stop::MaxTokens, ..text_answer("half of it") };
    let world = World::new(vec![Script::events(events(Wire::Anthropic, &scripted))]);
    let (outcome, received) = world.run("hello");
    assert_eq!(outcome.how, TurnEnd::Completed);
    let detail = received.iter().find_map(|event| match event {
        TurnEvent::Answered { stop_detail, .. } => stop_detail.clone(),
        _ => None,
    });
    assert_eq!(detail.as_deref(), Some("cut at max_tokens=8192"));
}

#[test]
fn a_truncated_call_raises_the_limit_once() {
    let world = World::new(vec![cut("one two three"), text("In smaller steps, then.")]);
    let (outcome, received) = world.run("write a lot");
    assert_eq!(outcome.how, TurnEnd::Completed);
    assert_eq!(limits(&world), [8192, 4 * 8192]);
    let result = received.iter().find_map(|event| match event {
        TurnEvent::ToolEnded { text, .. } => Some(text.clone()),
        _ => None,
    });
    assert!(result.expect("a result").starts_with("The call was cut at max_tokens=8192 and did not run."));
    assert_eq!(world.read("a.txt"), None);
    world.check_requests();
    world.check_rest();
}

#[test]
fn the_turn_stops_after_two_truncated_calls() {
    let world = World::served_by(FaultServer::start(|_, _| cut("one two three")).expect("a free port"));
    let (outcome, _) = world.run("write a lot");
    assert_eq!(outcome.how, TurnEnd::Failed);
    assert_eq!(limits(&world), [8192, 4 * 8192]);
    let message = outcome.message.expect("a message");
    assert!(message.contains("cut at max_tokens=32768 twice in a row"), "{message}");
    let open =
        world.entries().iter().flat_map(|entry| entry.blocks.clone()).fold(
            0_i32,
            |open, block| match block {
                Block::ToolCall { .. } => open + 1,
                Block::ToolResult { .. } => open - 1,
                _ => open,
            },
        );
    assert_eq!(open, 0, "every call has a result");
}

#[test]
fn the_turn_stops_after_the_same_malformed_call_twice() {
    let malformed = |broken: &str| {
        let scripted = ScriptedAnswer {
            blocks: vec![call("c", "list", &json!({}))],
            stop: Stop::ToolUse,
            ..text_answer("")
        };
        let all = events(Wire::Anthropic, &scripted).into_iter();
        let piece =
            |event: String| event.replace(r#""partial_json":"{}""#, &format!(r#""partial_json":"{broken}""#));
        Script::events(all.map(piece))
    };
    let world =
        World::served_by(FaultServer::start(move |_, _| malformed("{nonsense")).expect("a free port"));
    let (outcome, _) = world.run("list");
    assert_eq!((outcome.how, world.server.requests().len()), (TurnEnd::Failed, 2));
    assert!(outcome.message.expect("a message").contains("same malformed tool call twice"));
    // A different mistake does not stop the turn: the model gets an error result.
    let world = World::new(vec![malformed("{nonsense"), malformed("{others"), text("I give up.")]);
    assert_eq!(world.run("list").0.how, TurnEnd::Completed);
}

#[test]
fn a_local_server_that_is_not_running_is_not_retried() {
    let world = World::new(vec![Script::events([]).with_fault_after(0, ScriptStep::Cut)]);
    let mut runtime = world.runtime;
    if let retake_agent::ModelBackend::Remote { endpoint, .. } = &mut runtime.backend {
        endpoint.base_url = "http://127.0.0.1:1".to_owned();
    }
    let mut witness = crate::world::RecordingObserver::default();
    let take =
        runtime.timeline.read().expect("the store is readable").state(world.thread).expect("a state").active;
    let entry = retake_model::entry::EntryVersion::from_text("User", "hello", runtime.timeline.now());
    let prompt = retake_agent::TurnRequest::with(retake_model::command::Prompt::Entry(entry.into()));
    let outcome = runtime
        .run(world.thread, take, prompt, &retake_agent::Cancel::new(), &mut witness)
        .expect("the turn runs");
    assert_eq!(outcome.how, TurnEnd::Failed);
    assert!(!witness.events.iter().any(|event| matches!(event, TurnEvent::Retrying { .. })));
    assert!(outcome.message.expect("a message").contains("is running at http://127.0.0.1:1"));
}
