//! Thinking blocks that a provider binds to the request they answer.

use retake_agent::provider::known::dialect;
use retake_agent::provider::{Stop, Wire};
use retake_agent::{ModelBackend, TurnEvent};
use retake_model::agent::TurnEnd;
use retake_model::entry::{Block, Fields};
use retake_model::id::EntryId;
use retake_model::projection::THOUGHTS_OMITTED;
use retake_testing::fault_server::{Script, ScriptedAnswer, events, text_answer};
use retake_timeline::{Caller, Command};
use serde_json::{Value, json};

use crate::world::{World, text};

const MODEL: &str = "claude-sonnet-5-5";
const REFUSAL: &str = r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation"}}"#;

/// An answer that starts with a thinking block.
fn thought(signature: &str) -> Script {
    let thought = Block::Thinking {
        text: "hm".to_owned(),
        signature: Some(signature.to_owned()),
        extra: Fields::default(),
    };
    let answer = ScriptedAnswer {
        blocks: vec![thought, Block::of_text("So.")],
        stop: Stop::EndTurn,
        ..text_answer("")
    };
    Script::events(events(Wire::Anthropic, &answer))
}

fn world(scripts: Vec<Script>) -> World {
    let mut world = World::new(scripts);
    if let ModelBackend::Remote { endpoint, .. } = &mut world.runtime.backend {
        endpoint.dialect = dialect("anthropic", Wire::Anthropic, MODEL);
        endpoint.model = MODEL.to_owned();
    }
    world
}

/// The signatures of the thinking blocks in each request.
fn sent(world: &World) -> Vec<Vec<String>> {
    let of = |body: &str| {
        let body: Value = serde_json::from_str(body).expect("JSON");
        let messages = body["messages"].as_array().expect("messages").clone();
        let blocks =
            messages.iter().flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
        blocks.filter_map(|block| Some(block["signature"].as_str()?.to_owned())).collect()
    };
    world.server.requests().iter().map(|request| of(&request.body)).collect()
}

#[test]
fn a_thought_is_sent_back_until_an_earlier_entry_changes() {
    let world = world(vec![thought("one"), thought("two"), thought("three"), thought("four")]);
    world.run("first");
    world.run("second");
    let first = {
        let reader = world.runtime.timeline.read().expect("a look");
        let state = reader.state(world.thread).expect("a state");
        let take = state.take(&reader.queries(), state.active).expect("a take").expect("it is there");
        reader.entries(world.thread, &take).page(0..1).expect("entries")[0].id
    };
    edit(&world, first);
    world.run("third");
    world.run("fourth");
    let one = || "one".to_owned();
    assert_eq!(sent(&world), [vec![], vec![one()], vec![], vec!["three".to_owned()]]);
    world.check_requests();
    let header = |number: usize| world.server.requests()[number].header("anthropic-beta").map(str::to_owned);
    assert_eq!(header(0).as_deref(), Some("thinking-binding-controls-2026-08-01"));
}

fn edit(world: &World, entry: EntryId) {
    let edit = Command::EditEntry { take: world.take(), entry, text: "changed".to_owned() };
    world.runtime.timeline.change(world.thread, edit, Caller::human()).expect("an edit");
}

#[test]
fn refused_thoughts_are_dropped_and_never_sent_again() {
    let world = world(vec![thought("one"), Script::status(400, REFUSAL), thought("two"), text("Done.")]);
    world.run("first");
    let (outcome, events) = world.run("second");
    assert_eq!(outcome.how, TurnEnd::Completed, "{:?}", outcome.message);
    assert!(!events.iter().any(|event| matches!(event, TurnEvent::Retrying { .. })), "at once");
    world.run("third");
    assert_eq!(sent(&world), [vec![], vec!["one".to_owned()], vec![], vec!["two".to_owned()]]);
    let marked = world.entries().iter().filter(|entry| entry.extra.contains_key(THOUGHTS_OMITTED)).count();
    assert_eq!(marked, 1);
    world.check_requests();
}

#[test]
fn a_request_without_thoughts_is_not_repeated_again() {
    let world = world(vec![thought("one"), Script::status(400, REFUSAL), Script::status(400, REFUSAL)]);
    world.run("first");
    let (outcome, _) = world.run("second");
    assert_eq!(outcome.how, TurnEnd::Failed);
    assert_eq!(world.server.requests().len(), 3);
}

#[test]
fn an_unknown_model_gives_one_notice_per_turn() {
    let mut world = World::new(vec![text("One."), text("Two.")]);
    world.runtime.sized = false;
    for _ in 0..2 {
        let (_, events) = world.run("hello");
        let notices: Vec<_> =
            events.iter().filter(|event| matches!(event, TurnEvent::Notice { .. })).collect();
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert!(
            json!(notices[0])["message"].as_str().is_some_and(|message| message.contains("agent.window"))
        );
    }
    let body: Value = serde_json::from_str(&world.server.requests()[0].body).expect("JSON");
    assert_eq!(body["max_tokens"], 8_192);
}

#[test]
fn a_deployment_that_refuses_encrypted_reasoning_is_asked_without_it() {
    const UNSUPPORTED: &str = r#"{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include"}}"#;
    let answer = Script::events(events(Wire::Responses, &text_answer("Done.")));
    let mut world = World::new(vec![Script::status(400, UNSUPPORTED), answer]);
    if let ModelBackend::Remote { endpoint, .. } = &mut world.runtime.backend {
        endpoint.wire = Wire::Responses;
        endpoint.dialect = dialect("azure", Wire::Responses, "my-deployment");
    }
    let (outcome, _) = world.run("first");
    assert_eq!(outcome.how, TurnEnd::Completed, "{:?}", outcome.message);
    let asked: Vec<bool> = world
        .server
        .requests()
        .iter()
        .map(|request| request.body.contains("reasoning.encrypted_content"))
        .collect();
    assert_eq!(asked, [true, false]);
}
