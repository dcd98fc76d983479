//! Turns over HTTP: start, watch, steer, approve, stop, retry; of two conflicting requests, one wins.

use std::sync::Barrier;
use std::time::Duration;

use retake_agent::Setup;
use serde_json::{Value, json};

use crate::http::{Answer, Client};
use crate::world::{World, until};

fn begin(client: &Client, thread: &str, prompt: &str, approve: &str) -> Answer {
    client.post(&format!("/v1/threads/{thread}/turns"), &json!({"prompt": prompt, "approve": approve}))
}

fn now(client: &Client, thread: &str) -> Value {
    client.get(&format!("/v1/threads/{thread}/turn")).done()
}

fn wait_until_over(client: &Client, thread: &str) {
    until("the turn is over", || now(client, thread)["running"] == false);
}

/// Waits for a pending approval; returns its call.
fn wait_for_question(client: &Client, thread: &str) -> String {
    until("somebody is asked", || {
        !now(client, thread)["pending_approvals"].as_array().expect("a list").is_empty()
    });
    now(client, thread)["pending_approvals"][0]["call"].as_str().expect("a name").to_owned()
}

fn texts(client: &Client, thread: &str) -> Vec<String> {
    let text = |entry: Value| entry["entry"]["content"].as_str().unwrap_or_default().to_owned();
    client.entries(thread).into_iter().map(text).collect()
}

/// Sends the same request concurrently; returns all responses.
fn at_once(many: usize, ask: impl Fn(usize) -> Answer + Sync) -> Vec<Answer> {
    let barrier = Barrier::new(many);
    let (ask, barrier) = (&ask, &barrier);
    std::thread::scope(|scope| {
        let asking = (0..many).map(|number| {
            scope.spawn(move || {
                barrier.wait();
                ask(number)
            })
        });
        let asking: Vec<_> = asking.collect();
        asking.into_iter().map(|one| one.join().expect("no panic")).collect()
    })
}

#[test]
fn a_turn_starts_sends_events_and_is_undone_with_its_files() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("A turn");
    let mut stream = client.events(client.sequence());
    let answer = begin(&client, &thread, "create a.txt with hi", "edits");
    assert_eq!(answer.status, 202, "{}", answer.text());
    let started = answer.done();
    assert!(started["operation"].is_string() && started["undoable"] == true, "{started}");
    assert_eq!(answer.header("location"), Some(format!("/v1/threads/{thread}/turn").as_str()));
    assert_eq!(answer.header("etag"), Some(format!("\"{}\"", started["version"]).as_str()));
    let mut response = Vec::new();
    while !response.iter().any(|event: &String| event == "ended") {
        let event = stream.next(Duration::from_secs(10)).expect("an event of the turn");
        if event.kind == "turn" {
            response.push(event.data["event"].as_str().unwrap_or_default().to_owned());
        }
    }
    assert!(
        response.contains(&"started".to_owned()) && response.contains(&"tool_ended".to_owned()),
        "{response:?}"
    );
    wait_until_over(&client, &thread);
    assert_eq!(world.read("a.txt").as_deref(), Some("hi\n"));
    let undone = client.post(&format!("/v1/threads/{thread}/undo"), &json!({})).done();
    assert_eq!(undone["files"]["paths"][0]["path"], "a.txt", "{undone}");
    assert_eq!((world.read("a.txt"), texts(&client, &thread).len()), (None, 0));
    client.post(&format!("/v1/threads/{thread}/redo"), &json!({})).done();
    assert_eq!(world.read("a.txt").as_deref(), Some("hi\n"));
}

#[test]
fn of_two_turns_started_concurrently_exactly_one_runs() {
    let world = World::new();
    let (one, other) = (world.serve(), world.serve());
    let clients = [one.client(), other.client()];
    for round in 0..6 {
        let thread = clients[0].thread(&format!("Race {round}"));
        let answers =
            at_once(4, |number| begin(&clients[number % 2], &thread, "wait 1 then say done", "none"));
        let started = answers.iter().filter(|answer| answer.status == 202).count();
        assert_eq!(started, 1, "{answers:?}");
        for refused in answers.iter().filter(|answer| answer.status != 202) {
            refused.refused(409, "turn_running");
        }
        let prompts = texts(&clients[1], &thread).iter().filter(|text| text.starts_with("wait")).count();
        assert_eq!(prompts, 1, "who was refused has changed nothing");
        clients[1].post(&format!("/v1/threads/{thread}/turn/interrupt"), &json!({})).done();
        wait_until_over(&clients[0], &thread);
    }
}

#[test]
fn of_concurrent_decisions_about_a_call_exactly_one_takes_effect() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    for round in 0..6 {
        let (thread, file) = (client.thread(&format!("Decided {round}")), format!("{round}.txt"));
        begin(&client, &thread, &format!("create {file} with x"), "ask").done();
        let call = wait_for_question(&client, &thread);
        let shown = now(&client, &thread);
        assert!(
            shown["pending_approvals"][0]["what"].to_string().contains(&file),
            "the very call is shown: {shown}"
        );
        let path = format!("/v1/threads/{thread}/turn/approve");
        let answers =
            at_once(6, |number| client.post(&path, &json!({"call": call, "allow": number % 2 == 0})));
        let accepted: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(accepted.len(), 1, "{answers:?}");
        for refused in answers.iter().filter(|answer| answer.status != 200) {
            refused.refused(409, "no_turn");
        }
        wait_until_over(&client, &thread);
        assert_eq!(world.read(&file).is_some(), accepted[0].json()["allowed"] == true);
        client.post(&path, &json!({"call": call, "allow": true})).refused(409, "no_turn");
    }
}

#[test]
fn a_turn_is_steered_and_stopped_by_another_client() {
    let world = World::new();
    let (one, other) = (world.serve(), world.serve());
    let (client, elsewhere) = (one.client(), other.client());
    let thread = client.thread("Steered");
    let path = |what: &str| format!("/v1/threads/{thread}/turn/{what}");
    elsewhere.post(&path("steer"), &json!({"message": "hello"})).refused(409, "no_turn");
    begin(&client, &thread, "create a.txt with x", "ask").done();
    wait_for_question(&elsewhere, &thread);
    assert_eq!(
        (now(&client, &thread)["in_this_server"] == true, now(&elsewhere, &thread)["in_this_server"] == true),
        (true, false)
    );
    let entry = elsewhere.post(&path("steer"), &json!({"message": "shorter"})).done()["entry"].clone();
    elsewhere.post(&path("steer"), &json!({"message": " "})).refused(422, "refused");
    let stopped = elsewhere.post(&path("interrupt"), &json!({})).done();
    assert_eq!(stopped["stopped"], true);
    wait_until_over(&client, &thread);
    let entries = client.entries(&thread);
    assert!(entries.iter().any(|item| item["id"] == entry), "the message is stored: {entries:?}");
    assert_eq!(world.read("a.txt"), None);
    client.post(&path("interrupt"), &json!({})).refused(409, "no_turn");
    client.post(&path("resume"), &json!({})).refused(409, "no_turn");
}

#[test]
fn a_failed_turn_is_resumed() {
    let world = World::new();
    let server = world.serve_with(Setup { attempts: 1, ..Setup::default() });
    let client = server.client();
    let thread = client.thread("Failing");
    begin(&client, &thread, "fail always", "none").done();
    wait_until_over(&client, &thread);
    let failed = now(&client, &thread);
    assert_eq!(failed["agent"]["state"], "failed", "{failed}");
    let version = client.version(&thread);
    let resume = client.request("POST", &format!("/v1/threads/{thread}/turn/resume")).json(&json!({}));
    let problem = resume.clone().if_match(version - 1).send().refused(412, "version_conflict");
    assert_eq!(problem["current"], version);
    let resumed = resume.if_match(version).key("again").send();
    assert_eq!(resumed.status, 202, "{}", resumed.text());
    wait_until_over(&client, &thread);
    let turns: Vec<Value> = client.get("/v1/turns").done()["items"].as_array().expect("a list").clone();
    assert!(turns.iter().all(|turn| turn["running"] == false), "{turns:?}");
}

#[test]
fn a_retry_with_a_key_runs_once() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Again");
    let retry = client.request("POST", &format!("/v1/threads/{thread}/retry"));
    retry.clone().json(&json!({})).send().refused(409, "conflict");
    begin(&client, &thread, "create a.txt with one", "edits").done();
    wait_until_over(&client, &thread);
    let body = json!({"prompt": "create b.txt with two", "approve": "edits", "name": "other"});
    let stale = client.version(&thread) - 1;
    retry.clone().json(&body).if_match(stale).send().refused(412, "version_conflict");
    let (first, second) =
        (retry.clone().json(&body).key("k").send(), retry.clone().json(&body).key("k").send());
    assert_eq!((first.status, second.status), (202, 202), "{} {}", first.text(), second.text());
    assert_eq!(first.body, second.body, "the first answer, both times");
    assert_eq!(second.header("idempotency-replayed"), Some("true"));
    wait_until_over(&client, &thread);
    let takes = client.get(&format!("/v1/threads/{thread}/takes")).done();
    assert_eq!(takes["items"].as_array().map(Vec::len), Some(2), "{takes}");
    assert_eq!((world.read("a.txt"), world.read("b.txt").as_deref()), (None, Some("two\n")));
    // The first take is inactive: its files are not in the folder.
    let first_take = takes["items"][0]["id"].as_str().expect("an id");
    let elsewhere = format!("/v1/threads/{thread}/turns?take={first_take}");
    client.post(&elsewhere, &json!({"prompt": "say hi"})).refused(409, "conflict");
    let compared = client.get(&format!("/v1/threads/{thread}/compare?one={first_take}&limit=1")).done();
    assert_eq!(compared["takes"][0]["entries"].as_array().map(Vec::len), Some(1), "{compared}");
    assert!(compared["takes"][0]["count"].as_u64() > Some(1));
    let paths: Vec<&Value> = compared["files"][0]["files"].as_array().expect("files").iter().collect();
    assert_eq!(paths.len(), 2, "{compared}");
}

#[test]
fn invalid_turn_requests_are_refused_and_change_nothing() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Refused");
    let version = client.version(&thread);
    let check = |body: Value, status: u16, code: &str| {
        client.post(&format!("/v1/threads/{thread}/turns"), &body).refused(status, code);
    };
    check(json!({}), 422, "refused");
    check(json!({"prompt": "x", "draft": true}), 422, "refused");
    check(json!({"prompt": "  "}), 422, "refused");
    check(json!({"draft": true}), 422, "refused");
    check(json!({"prompt": "x", "pictures": ["no base64"]}), 422, "refused");
    check(json!({"prompt": "x", "pictures": ["aGVsbG8="]}), 422, "refused");
    check(json!({"prompt": "x", "provider": "nobody"}), 422, "refused");
    check(json!({"prompt": "x", "provider": "anthropic"}), 422, "refused");
    check(json!({"prompt": "x", "model": "of-nobody"}), 422, "refused");
    check(json!({"prompt": "x", "approve": "everything"}), 400, "invalid_request");
    assert_eq!(client.version(&thread), version);
    client.post("/v1/threads/nothing/turns", &json!({"prompt": "x"})).refused(404, "not_found");
}

#[test]
fn one_undo_restores_a_compressed_conversation() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Long");
    let path = format!("/v1/threads/{thread}/compress");
    client.post(&path, &json!({"keep": 0})).refused(409, "conflict");
    for number in 0..6 {
        client.say(&thread, "User", &format!("question {number}"));
        client.say(&thread, "AI", &format!("answer {number}"));
    }
    let stale = client.version(&thread) - 1;
    let request = client.request("POST", &path).json(&json!({"keep": 2}));
    request.clone().if_match(stale).send().refused(412, "version_conflict");
    let compressed = request.key("c").send().done();
    assert!(compressed["operation"].is_string() && compressed["undoable"] == true, "{compressed}");
    assert_eq!(client.entries(&thread).len(), 3);
    client.post(&format!("/v1/threads/{thread}/undo"), &json!({})).done();
    assert_eq!(client.entries(&thread).len(), 12);
}

#[test]
fn a_partial_answer_ends_when_it_becomes_an_entry() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Partial");
    begin(&client, &thread, "wait 1 then create a.txt with hi", "ask").done();
    until("some of the answer has arrived", || !now(&client, &thread)["partial"].is_null());
    let call = wait_for_question(&client, &thread);
    let shown = now(&client, &thread);
    assert!(texts(&client, &thread).len() > 1, "the answer is an entry");
    assert_eq!((&shown["running"], &shown["partial"]), (&json!(true), &json!(null)), "{shown}");
    client.post(&format!("/v1/threads/{thread}/turn/approve"), &json!({"call": call, "allow": false})).done();
    wait_until_over(&client, &thread);
}

#[test]
fn auto_add_history_adds_the_changes_between_turns() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("History");
    let ask = |prompt: &str| {
        begin(&client, &thread, prompt, "edits").done();
        wait_until_over(&client, &thread);
    };
    let history = || -> Vec<String> {
        let entries = client.entries(&thread).into_iter().filter(|entry| entry["entry"]["role"] == "History");
        entries.map(|entry| entry["entry"]["content"].as_str().expect("a text").to_owned()).collect()
    };
    let write =
        |name: &str, text: &str| std::fs::write(world.project().join(name), text).expect("our folder");
    ask("create a.txt with one");
    write("a.txt", "mine\n");
    ask("say hi");
    assert_eq!(history(), Vec::<String>::new(), "nothing is added unless it is asked for");

    let on = json!({"auto_add_history": true});
    client.request("PATCH", &format!("/v1/threads/{thread}/settings")).json(&on).send().done();
    write("a.txt", "mine\nagain\n");
    write("b.txt", "new\n");
    let seen = client.version(&thread);
    let prompt = json!({"prompt": "say hi", "approve": "edits"});
    client.request("POST", &format!("/v1/threads/{thread}/turns")).json(&prompt).if_match(seen).send().done();
    wait_until_over(&client, &thread);
    let expected =
        ["Files changed since the last turn.\n\nBy hand:\n- changed a.txt (+2 -1)\n- added b.txt (+1 -0)\n"];
    assert_eq!(history(), expected, "also for a caller that names the version it saw");
    let entries = client.entries(&thread);
    let at = entries.iter().position(|entry| entry["entry"]["role"] == "History").expect("it is there");
    assert_eq!(entries[at + 1]["entry"]["content"], "say hi", "it stands before the prompt");
    // Each change is reported once, without those of the turn itself.
    ask("create c.txt with one");
    ask("say hi");
    assert_eq!(history(), expected);
    // It is undone with its turn.
    for _ in 0..3 {
        client.post(&format!("/v1/threads/{thread}/undo"), &json!({})).done();
    }
    assert_eq!(history(), Vec::<String>::new());
}

#[test]
fn turns_are_listed_by_page_and_undone_by_name() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Turns");
    let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    for prompt in ["create a.txt with one", "create b.txt with two", "create a.txt with three"] {
        begin(&client, &thread, prompt, "all").done();
        wait_until_over(&client, &thread);
    }
    let page = client.get(&at("turns?limit=2")).done();
    assert_eq!(
        (&page["count"], &page["items"][0]["number"], &page["next"]),
        (&json!(3), &json!(3), &json!("2"))
    );
    let rest = client.get(&at("turns?limit=2&cursor=2")).done();
    assert_eq!((&rest["items"][0]["prompt"], &rest["next"]), (&json!("create a.txt with one"), &Value::Null));
    let turn = client.get(&at("turns/2")).done();
    assert_eq!((&turn["files"][0]["path"], &turn["status"]), (&json!("b.txt"), &json!("finished")));
    client.get(&at("turns/4")).refused(404, "not_found");
    let diff = client.get(&at("diff?of=turn:2&detail=paths")).done();
    assert_eq!((&diff["count"], &diff["items"][0]["path"]), (&json!(1), &json!("b.txt")));
    let file = client.get(&at("workspace/file?path=a.txt&at=turn:1")).done();
    assert_eq!(file["text"], "one\n");
    let blame = client.get(&at("blame?path=a.txt")).done();
    assert_eq!(blame["origins"][0]["in_turn"]["number"], 3);
    client.post(&at("undo"), &json!({"to": "turn:1", "steps": 2})).refused(422, "refused");
    let undone = client.post(&at("undo"), &json!({"to": "turn:1"})).done();
    let numbers: Vec<_> =
        undone["turns"].as_array().expect("a list").iter().map(|turn| &turn["number"]).collect();
    assert_eq!(numbers, [&json!(3), &json!(2)]);
    assert_eq!((world.read("a.txt").as_deref(), world.read("b.txt")), (Some("one\n"), None));
}

#[test]
fn any_version_is_read_without_going_there() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Peek");
    let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    for prompt in ["create a.txt with one", "create b.txt with two"] {
        begin(&client, &thread, prompt, "all").done();
        wait_until_over(&client, &thread);
    }
    let version = client.get(&at("undo-status")).done()["version"].clone();
    let first = client.get(&at("entries?at=turn:1")).done()["count"].as_u64();
    let last = client.get(&at("entries?at=turn:last")).done()["count"].as_u64();
    assert!(first < last, "{first:?} {last:?}");
    client.get(&at("entries?at=turn:1&version=2")).refused(422, "refused");
    client.get(&at("entries?at=turn:5")).refused(404, "not_found");
    let files = client.get(&at("workspace/files?at=turn:1")).done();
    assert_eq!(
        (&files["items"][0]["path"], files["items"].as_array().map(Vec::len)),
        (&json!("a.txt"), Some(1))
    );
    let hits = |query: &str| {
        let found = client.get(&format!("/v1/search?q=create&thread={thread}{query}")).done();
        found["items"].as_array().map(Vec::len)
    };
    assert!(hits("&at=turn:1") < hits("&at=turn:2"));
    client.get("/v1/search?q=create&at=turn:1").refused(422, "refused");
    client.get(&format!("/v1/search?q=create&thread={thread}&take=x")).refused(400, "invalid_request");
    assert_eq!(client.get(&at("undo-status")).done()["version"], version);
}
