//! Regression tests over HTTP for the defects of another program's first API of this kind.
//!
//! 1. *A failed retry leaves a copy behind.* It copied the thread before it checked the prompt and whether a
//!    turn could start; if either failed, an empty copy stayed in the list.
//! 2. *Files go back and the conversation does not.* It restored files first; if the conversation could not
//!    follow (no turn to undo, a failed write), the two stayed out of step.
//! 3. *A failed restore reports success*, and the conversation is truncated anyway.
//! 4. *The snapshot to restore is guessed*: the newest of twenty that differs from the folder, where a failed
//!    comparison counts as a difference. Any edit by the user makes every snapshot differ.
//! 5. *Parallel calls come back separately*: one message for each, which the provider refuses, so that a
//!    reloaded conversation could not continue.
//! 6. *Snapshots of one folder are restored in another*: list and restore used the server's folder, undo the
//!    thread's.
//! 7. *Saving over unreadable data*: any failure to load counted as no data.
//! 8. *An undo creates a new thread*, which the list shows beside the old one.
//! 9. *Errors are classified by their text*: any message with "not found" was a 404, everything else a 500.
//! 10. *A thread changes under a running turn.*
//!
//! `matrix.rs` checks that all routes need the token.

use retake_agent::Setup;
use retake_agent::provider::config::ProviderConfig;
use retake_agent::provider::{Secret, Stop, Wire};
use retake_model::projection::rules;
use retake_testing::fault_server::{FaultServer, Script, ScriptedAnswer, call, events, text_answer};
use serde_json::{Value, json};

use crate::http::Client;
use crate::world::{World, until};

/// Everything visible of a thread, its takes and the log.
fn picture(client: &Client, thread: &str) -> (i64, Value, Value, usize) {
    let takes = client.get(&format!("/v1/threads/{thread}/takes")).done();
    let shown = client.get(&format!("/v1/threads/{thread}")).done();
    let threads = client.get("/v1/threads?deleted=shown").done()["items"].as_array().expect("a list").len();
    (client.sequence(), takes, shown, threads)
}

/// A thread in which a turn wrote a file.
fn with_a_file(client: &Client, name: &str) -> String {
    let thread = client.thread(&format!("Thread of {name}"));
    client.prompt(&thread, &format!("create {name} with written by a turn"));
    client.idle(&thread);
    thread
}

#[test]
fn a_refused_retry_changes_nothing() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = with_a_file(&client, "a.txt");
    let empty = client.thread("Without a message");
    let check = |thread: &str, body: Value, status: u16| {
        let before = (picture(&client, thread), world.read("a.txt"));
        let answer = client.post(&format!("/v1/threads/{thread}/retry"), &body);
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
        assert!(!answer.code().is_empty(), "{body}");
        assert_eq!((picture(&client, thread), world.read("a.txt")), before, "{body}");
    };
    // No prompt, unknown provider or model, nothing to retry, no such message.
    check(&thread, json!({"prompt": ""}), 422);
    check(&thread, json!({"prompt": "  \n "}), 422);
    check(&thread, json!({"provider": "nobody"}), 422);
    check(&thread, json!({"model": "a-model-that-nobody-serves"}), 422);
    check(&thread, json!({"provider": "anthropic"}), 422);
    check(&thread, json!({"entry": "0".repeat(26)}), 404);
    check(&thread, json!({"unknown": 1}), 400);
    check(&empty, json!({}), 409);
    // Control: a valid retry starts in a new take, and the source is unchanged.
    let source = client.entries(&thread);
    let active = client.get(&format!("/v1/threads/{thread}")).done()["active"]["id"].clone();
    let started = client.post(&format!("/v1/threads/{thread}/retry"), &json!({"prompt": "say again"}));
    assert_eq!((started.status, started.done()["take"] == active), (202, false));
    client.idle(&thread);
    let path = format!("/v1/threads/{thread}/entries?take={}", active.as_str().expect("an id"));
    assert_eq!(client.get(&path).done()["items"], json!(source));
    assert_eq!(
        client.get(&format!("/v1/threads/{thread}/takes")).done()["items"].as_array().map(Vec::len),
        Some(2)
    );
}

#[test]
fn conversation_and_files_are_undone_together_or_not_at_all() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    std::fs::write(world.project().join("mine.txt"), "mine").expect("our folder");
    let check = |thread: &str, request: crate::http::Request, status: u16, code: &str| {
        let before = (picture(&client, thread), world.read("mine.txt"), world.read("a.txt"));
        request.send().refused(status, code);
        assert_eq!((picture(&client, thread), world.read("mine.txt"), world.read("a.txt")), before);
    };
    let patch_undo =
        |thread: &str| client.request("POST", &format!("/v1/threads/{thread}/patch-undo")).json(&json!({}));
    // Without a turn to undo, no file moves.
    let empty = client.thread("Empty");
    check(&empty, patch_undo(&empty), 409, "conflict");
    // If the thread has a newer version, neither conversation nor files move.
    let thread = with_a_file(&client, "a.txt");
    check(&thread, patch_undo(&thread).if_match(1), 412, "version_conflict");
    // If the files cannot be reached, the conversation stays.
    let away = world.folder().join("away");
    std::fs::rename(world.project(), &away).expect("our folder");
    let before = picture(&client, &thread);
    let answer = patch_undo(&thread).send();
    assert!((400..500).contains(&answer.status), "{}", answer.text());
    assert_eq!(picture(&client, &thread), before);
    std::fs::rename(&away, world.project()).expect("our folder");
    // Control: both move back, and both return.
    let done = patch_undo(&thread).send().done();
    assert!(done["files"]["paths"].to_string().contains("a.txt"), "{done}");
    assert_eq!((world.read("a.txt"), client.entries(&thread).len()), (None, 0));
    client.post(&format!("/v1/threads/{thread}/redo"), &json!({})).done();
    assert!(world.read("a.txt").is_some_and(|text| text.contains("written by a turn")));
    assert!(client.entries(&thread).len() > 1);
}

#[test]
fn without_captured_files_no_restore_is_reported() {
    let world = World::new();
    let server = world.serve_with(Setup { files: None, ..Setup::default() });
    let client = server.client();
    let thread = with_a_file(&client, "a.txt");
    let before = picture(&client, &thread);
    let answer = client.post(&format!("/v1/threads/{thread}/patch-undo"), &json!({}));
    answer.refused(409, "conflict");
    assert_eq!(picture(&client, &thread), before);
    assert!(world.read("a.txt").is_some());
    // Control: the conversation alone can move back, and the response lists no files.
    let done = client.post(&format!("/v1/threads/{thread}/undo"), &json!({})).done();
    assert!(done["files"].is_null(), "{done}");
}

#[test]
fn an_undo_reverts_only_the_changes_of_the_turn() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = with_a_file(&client, "a.txt");
    // The user's own edits, and many later versions unrelated to the turn.
    for number in 0..25 {
        std::fs::write(world.project().join("mine.txt"), number.to_string()).expect("our folder");
        client.post("/v1/snapshots", &json!({"thread": thread})).done();
    }
    let ahead = client.post(&format!("/v1/threads/{thread}/patch-undo?dry_run=true"), &json!({})).done();
    assert!(ahead["files"]["paths"].to_string().contains("a.txt"), "{ahead}");
    assert!(!ahead["files"]["paths"].to_string().contains("mine.txt"), "{ahead}");
    assert!(world.read("a.txt").is_some());
    client.post(&format!("/v1/threads/{thread}/patch-undo"), &json!({})).done();
    assert_eq!((world.read("a.txt"), world.read("mine.txt").as_deref()), (None, Some("24")));
    assert!(client.entries(&thread).is_empty());
}

/// A scripted provider.
pub(crate) fn scripted(scripts: Vec<Script>) -> (FaultServer, Setup) {
    let model = FaultServer::with(scripts).expect("a port is free");
    let provider = ProviderConfig {
        wire: Some("anthropic".to_owned()),
        base_url: Some(model.url()),
        key: Some(Secret::new("a-key-of-the-tests")),
        models: vec!["scripted-1".to_owned()],
        ..ProviderConfig::default()
    };
    let setup = Setup {
        provider: Some("scripted".to_owned()),
        providers: [("scripted".to_owned(), provider)].into_iter().collect(),
        ..Setup::default()
    };
    (model, setup)
}

#[test]
fn parallel_calls_stay_together() {
    let script = |answer: &ScriptedAnswer| Script::events(events(Wire::Anthropic, answer));
    let calls = ScriptedAnswer {
        blocks: vec![
            call("call_1", "list", &json!({})),
            call("call_2", "glob", &json!({"pattern": "*.txt"})),
            call("call_3", "read", &json!({"path": "not-there.txt"})),
        ],
        stop: Stop::ToolUse,
        ..text_answer("")
    };
    let (model, setup) =
        scripted(vec![script(&calls), script(&text_answer("done")), script(&text_answer("and on"))]);
    let world = World::new();
    let server = world.serve_with(setup.clone());
    let thread = server.client().thread("Together");
    server.client().prompt(&thread, "look around");
    server.client().idle(&thread);
    server.stop();
    // Another server loads the conversation.
    let server = world.serve_with(setup);
    server.client().prompt(&thread, "go on");
    server.client().idle(&thread);
    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests[1..] {
        let body: Value = serde_json::from_str(&request.body).expect("JSON is sent");
        let broken = rules::check(Wire::Anthropic, &body);
        assert!(broken.is_empty(), "{broken:?} in {body}");
        let messages = body["messages"].as_array().expect("messages").clone();
        let kinds = |message: &Value, kind: &str| -> Vec<String> {
            let blocks = message["content"].as_array().cloned().unwrap_or_default();
            let of_kind = blocks.iter().filter(|block| block["type"] == kind);
            let id =
                |block: &Value| block["id"].as_str().or(block["tool_use_id"].as_str()).map(str::to_owned);
            of_kind.filter_map(id).collect()
        };
        let at =
            messages.iter().position(|message| !kinds(message, "tool_use").is_empty()).expect("the calls");
        assert_eq!(kinds(&messages[at], "tool_use").len(), 3, "all calls are in one message: {body}");
        assert_eq!(kinds(&messages[at + 1], "tool_result"), kinds(&messages[at], "tool_use"), "{body}");
        for pair in messages.windows(2) {
            assert_ne!(pair[0]["role"], pair[1]["role"], "speakers alternate: {body}");
        }
    }
}

#[test]
fn a_snapshot_is_restored_in_the_folder_of_its_thread() {
    let world = World::new();
    let elsewhere = world.folder().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("our folder");
    let server = world.serve();
    let client = server.client();
    let write =
        |folder: &std::path::Path, text: &str| std::fs::write(folder.join("same.txt"), text).expect("ours");
    let read =
        |folder: &std::path::Path| std::fs::read_to_string(folder.join("same.txt")).expect("it is there");
    let here = client.thread("Here");
    let project = world.timeline().project(&elsewhere).expect("a project").id;
    let there = client.post("/v1/threads", &json!({"project": project, "title": "There"})).done();
    let there = there["thread"].as_str().expect("an id").to_owned();
    let snapshot = |thread: &str| {
        let taken = client.post("/v1/snapshots", &json!({"thread": thread, "note": "before"}));
        taken.done();
        taken.header("location").expect("a place").to_owned()
    };
    // The first request only registers the folder.
    for thread in [&here, &there] {
        snapshot(thread);
    }
    write(&world.project(), "here, before");
    write(&elsewhere, "there, before");
    let (of_here, of_there) = (snapshot(&here), snapshot(&there));
    write(&world.project(), "here, after");
    write(&elsewhere, "there, after");
    // A snapshot of another thread is refused, and no file moves.
    let wrong = client.post(&format!("{of_here}/restore"), &json!({"thread": there}));
    assert!((400..500).contains(&wrong.status), "{}", wrong.text());
    assert_eq!((read(&world.project()).as_str(), read(&elsewhere).as_str()), ("here, after", "there, after"));
    client.post(&format!("{of_there}/restore"), &json!({"thread": there})).done();
    assert_eq!(
        (read(&world.project()).as_str(), read(&elsewhere).as_str()),
        ("here, after", "there, before")
    );
    // Each list contains only its own.
    let of = |thread: &str| client.get(&format!("/v1/snapshots?thread={thread}")).text();
    let id = |place: &str| place.rsplit('/').next().expect("an id").to_owned();
    assert!(of(&there).contains(&id(&of_there)) && !of(&there).contains(&id(&of_here)));
    // The limit is respected, and bounded.
    client.get(&format!("/v1/snapshots?thread={there}&limit=101")).refused(400, "invalid_request");
    client.get(&format!("/v1/snapshots?thread={there}&limit=0")).refused(400, "invalid_request");
}

#[test]
fn saving_creates_no_content_and_overwrites_nothing() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let save = |body: Value| client.post("/v1/sessions", &body);
    // Nothing to save: nothing is created instead.
    save(json!({})).refused(404, "not_found");
    save(json!({"thread": "0".repeat(26)})).refused(404, "not_found");
    save(json!({"thread": "../../etc/passwd"})).refused(400, "invalid_request");
    assert_eq!(client.sequence(), 0);
    // Later changes do not affect a saved version.
    let thread = client.thread("Saved");
    client.say(&thread, "User", "first");
    let saved = save(json!({"thread": thread, "name": "a moment"})).done();
    client.say(&thread, "User", "second");
    save(json!({"thread": thread, "name": "a moment"})).done();
    client.thread("Another");
    client.delete(&format!("/v1/threads/{thread}")).done();
    save(json!({"thread": thread})).refused(409, "conflict");
    let then = client.get(&format!("/v1/threads/{thread}/entries?version={}", saved["version"])).done();
    assert_eq!(then["count"], 1, "{then}");
}

#[test]
fn a_saved_session_is_returned_updated_by_id_and_listed() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let save = |body: Value| client.post("/v1/sessions", &body);
    let thread = client.thread("Saved");
    client.say(&thread, "User", "first");
    let first = save(json!({"thread": thread, "name": "a moment"})).done();
    assert_eq!((&first["id"], &first["name"]), (&json!(thread), &json!("a moment")), "{first}");
    assert_eq!((&first["title"], &first["entries"]), (&json!("Saved"), &json!(1)), "{first}");
    client.say(&thread, "AI", "second");
    let again = save(json!({"id": first["id"]})).done();
    assert_eq!((&again["id"], &again["name"], &again["entries"]), (&first["id"], &first["name"], &json!(2)));
    // The first saved version is unchanged.
    let then = client.get(&format!("/v1/threads/{thread}/entries?version={}", first["version"])).done();
    assert_eq!(then["count"], 1, "{then}");
    let listed = client.get(&format!("/v1/threads/{thread}/saves")).done();
    let versions: Vec<&Value> =
        listed["items"].as_array().expect("a list").iter().map(|saved| &saved["version"]).collect();
    assert_eq!(versions, [&again["version"], &first["version"]], "{listed}");
    let page = client.get(&format!("/v1/threads/{thread}/saves?limit=1&cursor={}", again["version"])).done();
    assert_eq!(page["items"][0]["version"], first["version"], "{page}");
    // An unknown id creates nothing, and two different ids are refused.
    let before = client.sequence();
    save(json!({"id": "0".repeat(26)})).refused(404, "not_found");
    let other = client.thread("Other");
    save(json!({"id": thread, "thread": other})).refused(422, "refused");
    assert_eq!(client.sequence(), before + 1, "only the other thread was made");
}

#[test]
fn an_undo_does_not_affect_other_threads() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = with_a_file(&client, "a.txt");
    let threads = picture(&client, &thread).3;
    let undone = client.post(&format!("/v1/threads/{thread}/undo"), &json!({})).done();
    assert_eq!(undone["thread"], thread);
    client.post(&format!("/v1/threads/{thread}/redo"), &json!({})).done();
    client.post(&format!("/v1/threads/{thread}/patch-undo"), &json!({})).done();
    assert_eq!(picture(&client, &thread).3, threads);
    // Each is one operation, which the history lists and a jump reaches.
    let history = client.get(&format!("/v1/threads/{thread}/history")).text();
    assert_eq!(history.matches("\"type\":\"undone\"").count(), 2, "{history}");
}

#[test]
fn errors_are_identified_by_code_and_not_by_message() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (one, other) = (client.thread("not found"), client.thread("no such thread"));
    let rename = json!({"title": "not found"});
    client.post(&format!("/v1/threads/{other}/rename"), &rename).refused(409, "conflict");
    client.post(&format!("/v1/threads/{one}/undo"), &json!({"steps": 0})).refused(400, "invalid_request");
    client.post(&format!("/v1/threads/{one}/undo"), &json!({})).refused(409, "conflict");
    client.post(&format!("/v1/threads/{}/undo", "0".repeat(26)), &json!({})).refused(404, "not_found");
    client.post(&format!("/v1/threads/{one}/jump"), &json!({"version": 99})).refused(404, "not_found");
}

#[test]
fn a_thread_cannot_be_removed_while_a_turn_runs() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = with_a_file(&client, "a.txt");
    let entries = client.entries(&thread);
    let message = entries[0]["id"].clone();
    std::fs::write(world.project().join("mine.txt"), "mine").expect("our folder");
    for (prompt, state) in [("wait 60", "processing"), ("run sleep 60", "executing")] {
        let body = json!({"prompt": prompt, "approve": "all"});
        client.post(&format!("/v1/threads/{thread}/turns"), &body).done();
        let under_way = |turn: Value| turn["agent"]["state"] == state || !turn["partial"].is_null();
        until("the turn is under way", || under_way(client.turn(&thread)));
        until("it has come as far as it will", || {
            let before = client.sequence();
            std::thread::sleep(std::time::Duration::from_millis(200));
            client.sequence() == before
        });
        let before = picture(&client, &thread);
        let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
        let others = [(at("turns"), json!({"prompt": "say hi"})), (at("retry"), json!({}))];
        for (path, body) in others {
            let answer = client.post(&path, &body);
            let found = (answer.status, answer.code());
            assert_eq!(found, (409, "turn_running".to_owned()), "{prompt}, {path}: {}", answer.text());
            assert_eq!(picture(&client, &thread), before, "{prompt}, {path}");
        }
        // A fork and a branch stay in the background, and the turn continues.
        let active = client.get(&format!("/v1/threads/{thread}")).done()["active"]["id"].clone();
        for (path, body) in ["fork", "branch"].map(|route| (at(route), json!({"entry": message}))) {
            client.post(&path, &body).done();
            let thread = client.get(&format!("/v1/threads/{thread}")).done();
            assert_eq!(thread["active"]["id"], active, "{prompt}, {path}");
        }
        assert_eq!(client.turn(&thread)["running"], true, "{prompt}");
        // Undoing a running turn ends it, and nothing is added afterwards.
        let undone = client.post(&at("undo"), &json!({}));
        if undone.status == 409 {
            undone.refused(409, "turn_running");
            client.post(&at("turn/interrupt"), &json!({})).done();
            client.idle(&thread);
            client.post(&at("undo"), &json!({})).done();
        }
        client.idle(&thread);
        assert_eq!(client.entries(&thread), entries, "{prompt}");
        assert!(client.turn(&thread)["agent"].is_null(), "{prompt}: {}", client.turn(&thread));
        assert!(world.read("a.txt").is_some() && world.read("mine.txt").is_some(), "{prompt}");
    }
}
