//! Idempotency keys: a request is executed once, regardless of repeats, servers and crashes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use retake_model::id::RequestId;
use retake_model::time::Timestamp;
use retake_store::runtime::RequestState;
use retake_timeline::{Caller, Clock, Command, SystemClock, Timeline};
use serde_json::{Value, json};

use crate::http::{Answer, Client};
use crate::routes::Route;
use crate::scene::Scene;
use crate::world::{World, until};

/// Checks that the second response repeats the first and is marked as a replay.
#[track_caller]
fn is_the_same(what: &str, first: &Answer, second: &Answer) {
    assert_eq!(second.header("idempotency-replayed"), Some("true"), "{what}: {}", second.text());
    assert_eq!((second.status, second.json()), (first.status, first.json()), "{what}");
    for name in ["etag", "location", "content-type"] {
        assert_eq!(second.header(name), first.header(name), "{what}: {name}");
    }
}

#[test]
fn a_request_with_an_idempotency_key_runs_once_on_every_route() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let routes: Vec<Route> = Route::all(&client).into_iter().filter(|route| route.keyed).collect();
    assert!(routes.len() > 15, "{routes:?}");
    let mut carried_out = 0;
    for (number, route) in routes.iter().enumerate() {
        let scene = Scene::set(&client);
        let request = route.request(&client, &scene).key(&format!("key {number}"));
        let first = request.send();
        assert_eq!(first.header("idempotency-replayed"), None, "{}", route.name());
        client.idle(&scene.thread);
        let sequence = client.sequence();
        let second = request.send();
        assert_eq!(client.sequence(), sequence, "{} was carried out twice", route.name());
        if (200..300).contains(&first.status) {
            carried_out += 1;
            is_the_same(&route.name(), &first, &second);
        } else {
            let found = (second.status, second.code(), second.header("idempotency-replayed"));
            assert_eq!(found, (first.status, first.code(), None), "{}: {}", route.name(), first.text());
        }
    }
    assert!(carried_out > 15, "only {carried_out} routes were tried");
}

#[test]
fn idempotency_keys_survive_restarts_and_are_shared_by_servers() {
    let world = World::new();
    let server = world.serve();
    let thread = server.client().thread("Once");
    let say = |client: &Client| {
        let body = json!({"entries": [{"role": "User", "content": "once"}]});
        client.request("POST", &format!("/v1/threads/{thread}/entries")).json(&body).key("say it").send()
    };
    let first = say(&server.client());
    assert_eq!(first.status, 201, "{}", first.text());
    let other = world.serve();
    is_the_same("another server", &first, &say(&other.client()));
    server.stop();
    other.stop();
    let server = world.serve();
    is_the_same("a restart", &first, &say(&server.client()));
    assert_eq!(server.client().entries(&thread).len(), 1);
    // Control: without a key, or with another one, the request is executed again.
    server.client().say(&thread, "User", "once");
    assert_eq!(server.client().entries(&thread).len(), 2);
}

#[test]
fn reusing_a_key_for_another_request_is_refused() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (one, other) = (client.thread("One"), client.thread("Other"));
    let ask = |path: String, body: &Value| client.request("POST", &path).json(body).key("used").send();
    let (tags, other_tags) = (json!({"add": ["a"]}), json!({"add": ["b"]}));
    let first = ask(format!("/v1/threads/{one}/tags"), &tags);
    first.done();
    let sequence = client.sequence();
    ask(format!("/v1/threads/{one}/tags"), &other_tags).refused(422, "key_reused");
    ask(format!("/v1/threads/{other}/tags"), &tags).refused(422, "key_reused");
    ask(format!("/v1/threads/{one}/undo"), &json!({})).refused(422, "key_reused");
    assert_eq!(client.sequence(), sequence);
    is_the_same("the first one", &first, &ask(format!("/v1/threads/{one}/tags"), &tags));
}

#[test]
fn a_refused_request_does_not_consume_its_key() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (one, other) = (client.thread("One"), client.thread("Other"));
    let rename = || {
        let path = format!("/v1/threads/{other}/rename");
        client.request("POST", &path).json(&json!({"title": "One"})).key("rename").send()
    };
    rename().refused(409, "conflict");
    rename().refused(409, "conflict");
    client.post(&format!("/v1/threads/{one}/rename"), &json!({"title": "Moved"})).done();
    let done = rename();
    done.done();
    is_the_same("what was done at last", &done, &rename());
}

#[test]
fn of_sixteen_concurrent_requests_with_one_key_one_runs() {
    let world = World::new();
    let servers = [world.serve(), world.serve()];
    let thread = servers[0].client().thread("Crowded");
    for round in 0..8 {
        let key = format!("round {round}");
        let ask = |number: usize| {
            let body = json!({"entries": [{"role": "User", "content": key}]});
            let client = servers[number % servers.len()].client();
            client.request("POST", &format!("/v1/threads/{thread}/entries")).json(&body).key(&key).send()
        };
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..16).map(|number| scope.spawn(move || ask(number))).collect();
            asking.into_iter().map(|one| one.join().expect("an answer")).collect()
        });
        let (done, waiting): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
        let first = done.iter().filter(|answer| answer.header("idempotency-replayed").is_none());
        assert_eq!(first.count(), 1, "round {round}");
        assert!(done.iter().all(|answer| answer.json() == done[0].json()), "round {round}");
        for answer in waiting {
            answer.refused(409, "request_in_progress");
            assert!(answer.header("retry-after").is_some());
        }
        let again = ask(0);
        assert_eq!((again.status, again.json()), (201, done[0].json()));
        assert_eq!(servers[0].client().entries(&thread).len(), round + 1);
    }
}

/// Simulates a server that dies during a request: its row in the runtime database and, if `done`, the
/// operation.
fn die(timeline: &Timeline, thread: &str, key: &str, body: &Value, done: bool) {
    let request = RequestId::of(key.as_bytes());
    let asked = format!("POST /v1/threads/{thread}/rename\n{body}");
    let fingerprint = *blake3::hash(asked.as_bytes()).as_bytes();
    let sequence = timeline.read().expect("a look").queries().last_sequence().expect("a log");
    let runtime_database = timeline.store().runtime_database().expect("a ledger");
    let started =
        runtime_database.begin_request(request, &fingerprint, sequence, "server-that-died", timeline.now());
    assert_eq!(started.expect("it is written"), RequestState::New);
    if done {
        let title = body["title"].as_str().expect("a title").to_owned();
        let caller = Caller { request: Some(request), ..Caller::human() };
        let thread = thread.parse().expect("an id");
        timeline.change(thread, Command::Rename { title }, caller).expect("the change is made");
    }
}

#[test]
fn after_a_crash_the_stored_change_answers_the_repeated_request() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Before");
    let timeline = world.timeline();
    let ask = |key: &str, body: &Value| {
        client.request("POST", &format!("/v1/threads/{thread}/rename")).json(body).key(key).send()
    };
    // Executed, but the response was lost.
    let body = json!({"title": "Done"});
    die(&timeline, &thread, "done", &body, true);
    let version = client.version(&thread);
    let answer = ask("done", &body);
    let found = answer.done();
    assert_eq!(answer.header("idempotency-replayed"), Some("true"));
    assert_eq!((&found["recovered"], &found["version"]), (&json!(true), &json!(version)), "{found}");
    assert_eq!(found["kind"]["to"], "Done");
    is_the_same("what was found", &answer, &ask("done", &body));
    assert_eq!(client.version(&thread), version, "it was not done again");
    // Started, but not executed.
    let body = json!({"title": "Not yet"});
    die(&timeline, &thread, "begun", &body, false);
    let answer = ask("begun", &body);
    answer.done();
    assert_eq!(answer.header("idempotency-replayed"), None);
    assert_eq!(client.version(&thread), version + 1, "it is done now");
    is_the_same("what was done", &answer, &ask("begun", &body));
    // Started for a different request.
    die(&timeline, &thread, "other", &json!({"title": "This"}), false);
    ask("other", &json!({"title": "That"})).refused(422, "key_reused");
}

#[test]
fn a_request_in_progress_on_another_server_does_not_start_again() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Before");
    let timeline = world.timeline();
    let body = json!({"title": "After"});
    let alive = timeline.store().lock_alive_as("server-that-died").expect("it says that it is there");
    die(&timeline, &thread, "busy", &body, false);
    let ask =
        || client.request("POST", &format!("/v1/threads/{thread}/rename")).json(&body).key("busy").send();
    ask().refused(409, "request_in_progress");
    drop(alive);
    ask().done();
}

#[test]
fn a_lost_answer_is_rebuilt_from_the_log() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (thread, gone) = (client.thread("Kept"), client.thread("Gone"));
    let ask = |thread: &str, key: &str| {
        let body = json!({"entries": [{"role": "User", "content": "once"}]});
        client.request("POST", &format!("/v1/threads/{thread}/entries")).json(&body).key(key).send()
    };
    let (kept, lost) = (ask(&thread, "kept").done(), ask(&gone, "lost"));
    lost.done();
    // Any stored answer may contain purged content.
    world.timeline().store().purge_threads(&[gone.parse().expect("an id")]).expect("it is destroyed");
    let found = ask(&thread, "kept");
    assert_eq!(found.header("idempotency-replayed"), Some("true"));
    let found = found.done();
    for field in ["thread", "version", "operation", "undoable"] {
        assert_eq!(found[field], kept[field], "{field}");
    }
    assert_eq!(found["recovered"], true);
    ask(&gone, "lost").refused(409, "conflict");
    assert_eq!(client.entries(&thread).len(), 1);
}

#[test]
fn an_idempotency_key_is_one_short_line() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let request = client.request("POST", "/v1/threads").json(&json!({}));
    for wrong in ["", &"k".repeat(201), "caf\u{e9}"] {
        request.clone().key(wrong).send().refused(400, "invalid_request");
    }
    request.key(&"k".repeat(200)).send().done();
}

/// Makes writes of responses fail, optionally also writes that release a request, until it is dropped.
pub(crate) struct FailingDatabase(rusqlite::Connection);

impl FailingDatabase {
    pub(crate) fn of(world: &World, columns: &str) -> Self {
        let connection = rusqlite::Connection::open(world.store().join("ledger.db")).expect("a ledger");
        let trigger = format!(
            "CREATE TRIGGER failing BEFORE UPDATE OF {columns} ON request BEGIN SELECT RAISE(FAIL, 'as if full'); END"
        );
        connection.execute_batch(&trigger).expect("it fails from now on");
        Self(connection)
    }

    pub(crate) fn mend(self) {
        self.0.execute_batch("DROP TRIGGER failing").expect("it fails no more");
    }
}

#[test]
fn a_result_that_cannot_be_stored_is_still_sent() {
    for columns in ["status", "status, owner"] {
        let world = World::new();
        let server = world.serve();
        let client = server.client();
        let thread = client.thread("Full");
        let say = || {
            let body = json!({"entries": [{"role": "User", "content": "once"}]});
            client.request("POST", &format!("/v1/threads/{thread}/entries")).json(&body).key("say").send()
        };
        let failing = FailingDatabase::of(&world, columns);
        let first = say();
        assert_eq!(first.status, 201, "{columns}: {}", first.text());
        let again = say();
        assert_eq!(again.header("idempotency-replayed"), Some("true"), "{columns}: {}", again.text());
        failing.mend();
        let last = say();
        for answer in [&again, &last] {
            assert_eq!(answer.json()["operation"], first.json()["operation"], "{columns}: {}", answer.text());
        }
        is_the_same(columns, &again, &last);
        assert_eq!(client.entries(&thread).len(), 1, "{columns}");
    }
}

#[test]
fn dry_runs_with_a_key_are_computed_each_time() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Ahead");
    client.say(&thread, "User", "one");
    let ask = |query: &str| {
        let path = format!("/v1/threads/{thread}/truncate{query}");
        client.request("POST", &path).json(&json!({"pairs": 0})).key("truncate").send()
    };
    let first = ask("?dry_run=true");
    first.done();
    client.say(&thread, "User", "two");
    let second = ask("?dry_run=true");
    assert_eq!(second.header("idempotency-replayed"), None);
    assert_ne!(second.header("etag"), first.header("etag"), "it is computed from where the thread is now");
    // The key is still free for the actual change.
    ask("").done();
    assert_eq!(client.entries(&thread).len(), 0);
}

#[test]
fn a_steering_message_sent_again_after_a_crash_is_delivered_once() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Steered");
    client.prompt(&thread, "wait 3");
    until("the turn runs", || client.turn(&thread)["running"] == true);
    let steer = || {
        let path = format!("/v1/threads/{thread}/turn/steer");
        client.request("POST", &path).json(&json!({"message": "once"})).key("steer").send()
    };
    let failing = FailingDatabase::of(&world, "status");
    let (first, second) = (steer().done(), steer().done());
    failing.mend();
    assert_eq!(second["entry"], first["entry"], "{second}");
    client.idle(&thread);
    let count = client.entries(&thread).iter().filter(|entry| entry["entry"]["content"] == "once").count();
    assert_eq!(count, 1);
}

#[test]
fn the_document_describes_answers_to_idempotency_keys() {
    let world = World::new();
    let server = world.serve();
    let document = server.client().get("/openapi.json").done();
    let mut keyed = 0;
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let Some(post) = methods.get("post") else { continue };
        keyed += 1;
        let (status, good) = post["responses"]
            .as_object()
            .expect("answers")
            .iter()
            .find(|(status, _)| status.starts_with('2'))
            .expect("an answer that is good");
        let choices = good["content"]["application/json"]["schema"]["anyOf"].to_string();
        assert!(choices.contains("/RecoveredChange\""), "{path} {status}: {good}");
        assert!(good["headers"]["Idempotency-Replayed"].is_object(), "{path}: {good}");
    }
    assert!(keyed > 15, "{keyed}");
}

/// The system clock, with an offset set by the test.
struct AdvancedClock(AtomicI64);

impl Clock for AdvancedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().millis() + self.0.load(Ordering::SeqCst))
    }

    fn random(&self) -> [u8; 10] {
        SystemClock.random()
    }
}

#[test]
fn stored_answers_expire_after_a_week_without_a_restart() {
    let world = World::new();
    let clock = Arc::new(AdvancedClock(AtomicI64::new(0)));
    let server = world.serve_by(clock.clone());
    let client = server.client();
    let thread = client.thread("Old");
    let tag = |key: &str| {
        let path = format!("/v1/threads/{thread}/tags");
        client.request("POST", &path).json(&json!({"add": [key]})).key(key).send()
    };
    tag("old").done();
    is_the_same("before a week is over", &tag("old"), &tag("old"));
    clock.0.store(8 * 24 * 60 * 60 * 1000, Ordering::SeqCst);
    tag("new").done();
    let again = tag("old");
    assert_eq!(again.header("idempotency-replayed"), None, "{}", again.text());
}
