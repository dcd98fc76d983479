//! Prompts, roles and context presets that threads share.

use serde_json::{Value, json};

use crate::http::{Answer, Client};
use crate::world::World;

fn settings(client: &Client, thread: &str) -> Value {
    client.get(&format!("/v1/threads/{thread}/settings")).done()
}

fn patch(client: &Client, thread: &str, name: &str, value: &str) -> Answer {
    client.request("PATCH", &format!("/v1/threads/{thread}/settings")).json(&json!({ name: value })).send()
}

fn set(client: &Client, thread: &str, name: &str, value: &str) {
    patch(client, thread, name, value).done();
}

fn undo(client: &Client, thread: &str) {
    client.post(&format!("/v1/threads/{thread}/undo"), &json!({})).done();
}

#[test]
fn prompts_and_roles_are_shared_by_the_threads_of_a_project() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (first, second) = (client.thread("First"), client.thread("Second"));
    for name in ["global_system_prompt", "project_system_prompt"] {
        let check = |expected: &str| {
            for thread in [&first, &second, &client.thread(&format!("New at {}", client.sequence()))] {
                assert_eq!(settings(&client, thread)[name], expected, "{name}");
            }
        };
        check("");
        set(&client, &first, name, "one");
        check("one");
        set(&client, &second, name, "two");
        check("two");
        set(&client, &second, name, "three");
        check("three");
        undo(&client, &second);
        check("two");
        // Values that another thread has set since are unchanged.
        undo(&client, &first);
        check("two");
        client.post(&format!("/v1/threads/{first}/redo"), &json!({})).done();
        check("two");
        undo(&client, &second);
        check("one");
        client.post(&format!("/v1/threads/{second}/redo"), &json!({})).done();
        check("two");
        // A refused change has no effect.
        let long = "x".repeat(5 << 20);
        let refused = patch(&client, &first, name, &long);
        assert_eq!(refused.status, 422, "{}", refused.text());
        check("two");
    }
    // All other settings belong to the thread.
    set(&client, &first, "base_system_prompt", "mine");
    assert_eq!(settings(&client, &second)["base_system_prompt"], "");

    let roles = |thread: &str| client.get(&format!("/v1/threads/{thread}/roles")).done()["roles"].clone();
    client.put(&format!("/v1/threads/{first}/roles"), &json!({"roles": ["Critic", "User"]})).done();
    assert_eq!(roles(&second), json!(["Critic", "User"]));
    client.post(&format!("/v1/threads/{second}/entries"), &json!({"entries": [{"content": "hi"}]})).done();
    assert_eq!(client.entries(&second)[0]["entry"]["role"], "Critic", "the first role is the usual one");
    undo(&client, &first);
    assert_ne!(roles(&second), json!(["Critic", "User"]));
}

#[test]
fn context_presets_are_saved_loaded_listed_and_deleted() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (first, second) = (client.thread("First"), client.thread("Second"));
    let list = |thread: &str| format!("/v1/threads/{thread}/lists/context_files");
    let presets = |thread: &str| format!("/v1/threads/{thread}/presets");
    let load =
        |name: &str| client.post(&format!("/v1/threads/{second}/presets/load"), &json!({ "name": name }));
    let names = |thread: &str| -> Vec<String> {
        let all = client.get(&format!("/v1/threads/{thread}/presets")).done();
        let items = all["items"].as_array().expect("a list").clone();
        items.iter().map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&first), Vec::<String>::new());
    let items = json!([{"path": "a.rs", "lines": [1, 2]}, {"path": "b.rs"}]);
    client.put(&list(&first), &json!({ "items": items })).done();
    client.post(&presets(&first), &json!({"name": "Both files"})).done();
    client.post(&presets(&first), &json!({"name": "only-b", "items": [{"path": "b.rs"}]})).done();
    // They belong to the project: another thread has them too.
    assert_eq!(names(&second), ["Both files", "only-b"]);
    let loaded = load("Both files").done();
    assert!(loaded["operation"].is_string() && loaded["undoable"] == true, "{loaded}");
    assert_eq!(client.get(&list(&second)).done()["items"], items);
    undo(&client, &second);
    assert_eq!(client.get(&list(&second)).done()["items"], json!([]));
    client.delete(&format!("{}/only-b", presets(&second))).done();
    assert_eq!(names(&first), ["Both files"]);
    client.delete(&format!("{}/only-b", presets(&second))).refused(404, "not_found");
    load("only-b").refused(404, "not_found");
    for bad in ["", "a/b", "\u{1b}[2J"] {
        client.post(&presets(&first), &json!({"name": bad})).refused(422, "refused");
    }
    client.delete(&format!("{}/Both%20files", presets(&second))).done();
    assert_eq!(names(&first), Vec::<String>::new());

    // Deleted and replaced presets can be restored, latest first.
    let former = client.get(&format!("{}?deleted=true", presets(&first))).done();
    assert_eq!(former["items"][0]["name"], "Both files", "{former}");
    let restore =
        |name: &str| client.post(&format!("/v1/threads/{first}/presets/restore"), &json!({ "name": name }));
    assert_eq!(restore("Both files").done()["items"], items);
    restore("Both files").refused(404, "not_found");
    client.post(&presets(&first), &json!({"name": "Both files", "items": []})).done();
    assert_eq!(restore("Both files").done()["items"], items, "what was replaced");
    assert_eq!(restore("Both files").done()["items"], json!([]), "and back");
    client.delete(&format!("{}/Both%20files", presets(&second))).done();

    // The same through callbacks.
    let call = |name: &str, arguments: Value| {
        let callback = format!("/api/callbacks/{name}_context_preset?thread={first}");
        client.post(&callback, &json!({ "arguments": arguments }))
    };
    call("save", json!({"name": "a name/with"})).refused(422, "refused");
    call("save", json!({"name": "two words"})).done();
    assert_eq!(names(&first), ["two words"]);
    call("load", json!({"name": "two words"})).done();
    call("delete", json!({})).refused(422, "refused");
    call("delete", json!({"name": "two words"})).done();
    call("delete", json!({"name": "two words"})).refused(404, "not_found");
}
