//! Undo, redo and jump in a named take, over HTTP.

use serde_json::{Value, json};

use crate::http::Client;
use crate::world::{World, until};

/// Creates a thread with two takes, the first one active; returns the thread and the second take.
fn two_takes(client: &Client) -> (String, String) {
    let thread = client.thread("Two takes");
    client.say(&thread, "User", "first");
    let main = client.get(&format!("/v1/threads/{thread}")).done()["all_takes"][0]["id"].clone();
    let entry = client.entries(&thread)[0]["id"].clone();
    let branched = client.post(&format!("/v1/threads/{thread}/branch"), &json!({ "entry": entry })).done();
    let second = branched["kind"]["take"].as_str().expect("an id").to_owned();
    let main = main.as_str().expect("an id");
    client.post(&format!("/v1/threads/{thread}/takes/{main}/switch"), &json!({})).done();
    (thread, second)
}

fn count(client: &Client, thread: &str, take: &str) -> usize {
    let page = client.get(&format!("/v1/threads/{thread}/entries?take={take}")).done();
    page["items"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_change_of_a_take_that_is_not_active_is_undone_there() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (thread, second) = two_takes(&client);
    let body = json!({"entries": [{"role": "User", "content": "beside"}]});
    let added = client.post(&format!("/v1/threads/{thread}/entries?take={second}"), &body).done();
    assert_eq!(added["undoable"], true);
    client.say(&thread, "User", "here");

    let route = |name: &str| format!("/v1/threads/{thread}/{name}?take={second}");
    let ahead = client.post(&format!("{}&dry_run=true", route("undo")), &json!({})).done();
    assert_eq!(
        (&ahead["preview"]["entries_before"], &ahead["preview"]["entries_after"]),
        (&json!(2), &json!(1)),
        "{ahead}"
    );
    let undone = client.post(&route("undo"), &json!({})).done();
    assert_eq!((&undone["can_redo"], count(&client, &thread, &second)), (&json!(true), 1), "{undone}");
    assert_eq!(client.entries(&thread).len(), 2, "the active take is as it was");
    assert_eq!(client.get(&route("undo-status")).done()["can_redo"], true);
    assert_eq!(client.get(&format!("/v1/threads/{thread}/undo-status")).done()["can_redo"], false);
    let redoable = |path: &str| {
        let items = client.get(path).done()["items"].as_array().cloned().unwrap_or_default();
        items.iter().filter(|item| item["redoable"] == true).map(|item| item["version"].clone()).collect()
    };
    let in_second: Vec<Value> = redoable(&route("history"));
    assert_eq!(in_second, [added["version"].clone()]);
    client.post(&route("redo"), &json!({})).done();
    assert_eq!(count(&client, &thread, &second), 2);
    client.post(&route("jump"), &json!({"version": added["version"].as_u64().expect("a number") - 1})).done();
    assert_eq!((count(&client, &thread, &second), client.entries(&thread).len()), (1, 2));

    let nobody = thread.clone();
    for name in ["undo", "redo"] {
        let path = format!("/v1/threads/{thread}/{name}?take={nobody}");
        client.post(&path, &json!({})).refused(404, "not_found");
    }
    client.get(&format!("/v1/threads/{thread}/undo-status?take={nobody}")).refused(404, "not_found");
}

#[test]
fn a_turn_in_a_worktree_is_undone_with_its_files_and_without_a_folder_it_is_refused() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (thread, second) = two_takes(&client);
    let folder = world.store().with_file_name("worktree");
    let of_take = |name: &str| format!("/v1/threads/{thread}/takes/{second}/{name}");
    client.post(&of_take("worktree"), &json!({ "folder": folder })).done();
    let turn = json!({"prompt": "create made.txt with hello", "approve": "edits"});
    client.post(&format!("/v1/threads/{thread}/turns?take={second}"), &turn).done();
    until("the turn is over", || {
        client.get(&format!("/v1/threads/{thread}/turn?take={second}")).done()["running"] == false
    });
    assert!(folder.join("made.txt").exists());
    let undo = format!("/v1/threads/{thread}/undo?take={second}");
    let undone = client.post(&undo, &json!({})).done();
    assert!(!folder.join("made.txt").exists(), "{undone}");
    assert_eq!(count(&client, &thread, &second), 1);
    client.post(&format!("/v1/threads/{thread}/redo?take={second}"), &json!({})).done();
    assert!(folder.join("made.txt").exists());

    client.post(&of_take("worktree/remove"), &json!({"remove": true})).done();
    let refused = client.post(&undo, &json!({})).refused(409, "conflict");
    assert!(refused.to_string().contains("take switch"), "{refused}");
    client.post(&undo, &json!({"scope": "conversation"})).done();
    assert_eq!(count(&client, &thread, &second), 1);
}
