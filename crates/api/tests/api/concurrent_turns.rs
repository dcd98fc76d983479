//! Concurrent requests on turns: one of two starts, a call is decided once, and a failed turn can be resumed.

use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Answer, Client, Request};
use crate::races::at_once;
use crate::world::{World, until};

fn begin(client: &Client, thread: &str, prompt: &str) -> Request {
    client
        .request("POST", &format!("/v1/threads/{thread}/turns"))
        .json(&json!({"prompt": prompt, "approve": "edits"}))
}

fn count(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

#[test]
fn of_turns_started_concurrently_on_one_take_exactly_one_runs() {
    let world = World::new();
    let servers = [world.serve(), world.serve()];
    let client = servers[0].client();
    let thread = client.thread("Contended");
    for round in 0..8 {
        let requests: Vec<Request> = (0..4)
            .map(|number| {
                begin(&servers[number % 2].client(), &thread, &format!("wait 30 then say {round} {number}"))
            })
            .collect();
        let before = client.entries(&thread).len();
        let answers = at_once(&requests);
        let texts: Vec<String> = answers.iter().map(Answer::text).collect();
        assert_eq!(count(&answers, 202), 1, "round {round}: {texts:?}");
        for answer in answers.iter().filter(|answer| answer.status != 202) {
            answer.refused(409, "turn_running");
        }
        assert_eq!(client.turn(&thread)["running"], true);
        client.post(&format!("/v1/threads/{thread}/turn/interrupt"), &json!({})).done();
        client.idle(&thread);
        let prompts = client.entries(&thread).len() - before;
        assert!(prompts <= 2, "one prompt and what was answered to it, not {prompts} entries");
    }
}

#[test]
fn of_turns_that_expect_the_same_version_one_starts() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Versions");
    for round in 0..8 {
        let version = client.version(&thread);
        let turn = begin(&client, &thread, &format!("say {round}")).if_match(version);
        let change =
            client.request("POST", &format!("/v1/threads/{thread}/save")).json(&json!({"name": "now"}));
        let answers = at_once(&[turn, change.if_match(version)]);
        let won = count(&answers, 202) + count(&answers, 200);
        assert_eq!(won, 1, "{:?}", answers.iter().map(Answer::text).collect::<Vec<_>>());
        client.idle(&thread);
    }
}

#[test]
fn a_turn_with_an_idempotency_key_starts_once() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Once");
    let request = begin(&client, &thread, "create once.txt with once").key("turn");
    let requests: Vec<Request> = vec![request.clone(); 8];
    let answers = at_once(&requests);
    assert!(count(&answers, 202) >= 1 && count(&answers, 202) + count(&answers, 409) == 8);
    client.idle(&thread);
    let again = request.send();
    assert_eq!((again.status, again.header("idempotency-replayed")), (202, Some("true")));
    let prompts =
        client.entries(&thread).iter().filter(|entry| entry.to_string().contains("create once.txt")).count();
    assert_eq!(prompts, 1);
    assert_eq!(world.read("once.txt").as_deref().map(str::trim_end), Some("once"));
}

/// The pending approvals of a thread's turn.
fn asked(client: &Client, thread: &str) -> Vec<Value> {
    client.turn(thread)["pending_approvals"].as_array().expect("a list").clone()
}

#[test]
fn one_of_several_decisions_about_a_call_takes_effect() {
    let world = World::new();
    let servers = [world.serve(), world.serve()];
    let client = servers[0].client();
    let thread = client.thread("Asked");
    for round in 0..4 {
        let body = json!({"prompt": format!("run echo {round} >> ran.txt"), "approve": "ask"});
        client.post(&format!("/v1/threads/{thread}/turns"), &body).done();
        until("the call waits", || !asked(&client, &thread).is_empty());
        let waiting = asked(&client, &thread)[0].clone();
        let call =
            ["call", "id"].iter().find_map(|name| waiting[*name].as_str()).expect("it has a name").to_owned();
        let path = format!("/v1/threads/{thread}/turn/approve");
        let requests: Vec<Request> = (0..6)
            .map(|number| {
                let decision = json!({"call": call, "allow": number % 2 == 0});
                servers[number % 2].client().request("POST", &path).json(&decision)
            })
            .collect();
        let answers = at_once(&requests);
        let accepted: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 200).collect();
        let texts: Vec<String> = answers.iter().map(Answer::text).collect();
        assert_eq!(accepted.len(), 1, "round {round}: {texts:?}");
        assert_eq!(count(&answers, 409), 5, "{texts:?}");
        client.idle(&thread);
        let ran =
            world.read("ran.txt").unwrap_or_default().lines().any(|line| line.trim() == round.to_string());
        assert_eq!(json!(ran), accepted[0].json()["allowed"], "what was decided is what was done");
    }
}

#[test]
fn a_failed_turn_is_resumed_once_at_the_expected_version() {
    let world = World::new();
    let server = world.serve_with(retake_agent::Setup { attempts: 1, ..retake_agent::Setup::default() });
    let client = server.client();
    let thread = client.thread("Failing");
    client.prompt(&thread, "fail then say well");
    client.idle(&thread);
    assert_eq!(client.turn(&thread)["agent"]["state"], "failed", "{}", client.turn(&thread));
    let version = client.version(&thread);
    let resume = client.request("POST", &format!("/v1/threads/{thread}/turn/resume")).json(&json!({}));
    resume.clone().if_match(version - 1).send().refused(412, "version_conflict");
    assert_eq!(client.version(&thread), version);
    let answers = at_once(&vec![resume.if_match(version); 4]);
    let texts: Vec<String> = answers.iter().map(Answer::text).collect();
    assert_eq!(count(&answers, 202), 1, "{texts:?}");
    client.idle(&thread);
}

#[test]
fn partial_text_is_sent_to_streams_that_request_it() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (thread, other) = (client.thread("Watched"), client.thread("Other"));
    let open = |query: String| client.request("GET", &format!("/v1/events?{query}")).open();
    let mut all = open(format!("thread={thread}"));
    let mut quiet = open(format!("thread={thread}&turns=false"));
    let mut elsewhere = open(format!("thread={other}"));
    client.prompt(&thread, "say hello there");
    client.idle(&thread);
    let mut numbers = Vec::new();
    while let Some(event) = all.next(Duration::from_millis(500)) {
        if event.kind == "turn" {
            assert_eq!((event.id, &event.data["thread"]), (None, &json!(thread)));
            numbers.push(event.data["number"].as_u64().expect("a number"));
        }
    }
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "nothing is missed");
    assert!(numbers.len() > 3);
    while let Some(event) = quiet.next(Duration::from_millis(300)) {
        assert_ne!(event.kind, "turn");
    }
    while let Some(event) = elsewhere.next(Duration::from_millis(300)) {
        assert_eq!(event.kind, "hello");
    }
}
