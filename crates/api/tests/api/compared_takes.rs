//! Comparing takes over HTTP: their turns aligned by prompts, their files, and requests that are refused.

use serde_json::{Value, json};

use crate::world::{World, until};

#[test]
fn takes_are_compared_turn_by_turn() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Compared");
    let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    let active = || client.get(&format!("/v1/threads/{thread}")).done()["active"]["id"].clone();
    let id = |value: &Value| value.as_str().expect("an id").to_owned();
    let prompt = |text: &str| {
        client.post(&at("turns"), &json!({"prompt": text, "approve": "all"})).done();
        until("the turn is over", || client.get(&at("turn")).done()["running"] == false);
    };
    let main = id(&active());
    prompt("create a.txt with one");
    let last = id(&client.entries(&thread).last().expect("an answer")["id"]);
    client.post(&at("branch"), &json!({"entry": last, "name": "second"})).done();
    let second = id(&active());
    assert_ne!(main, second);
    prompt("create b.txt with two");
    let compare = |query: &str| client.get(&at(&format!("compare?{query}")));
    let found = compare(&format!("one={main}")).done();
    assert_eq!(found["takes"][0]["count"], 0, "{found}");
    assert_eq!(found["takes"][1]["name"], "second", "{found}");
    let turns = found["turns"].as_array().expect("a list");
    assert_eq!((turns.len(), &turns[0]["entries"][0]), (1, &Value::Null), "{found}");
    assert_eq!(found["files"][0]["files"][0]["path"], "b.txt", "{found}");
    assert_eq!(found["files"].as_array().map(Vec::len), Some(1));
    let few = compare(&format!("one={main}&other={second}&limit=1&detail=paths")).done();
    assert_eq!(few["takes"][1]["entries"].as_array().map(Vec::len), Some(1), "{few}");
    assert_eq!(few["takes"][1]["count"], found["takes"][1]["count"], "{few}");
    // The first is the active one already, or one is named twice.
    compare(&format!("one={second}")).refused(422, "refused");
    compare(&format!("one={main}&other={second}&other={second}")).refused(422, "refused");
    compare(&format!("one={main}&other={thread}")).refused(404, "not_found");
    let many = format!("one={main}{}", format!("&other={second}").repeat(8));
    assert_ne!(compare(&many).status, 200);
    // A preview of an undo names the prompts that it takes back.
    let preview = client.post(&at("undo?dry_run=true"), &json!({})).done();
    let expected = json!([{"number": 2, "prompt": "create b.txt with two"}]);
    assert_eq!(preview["preview"]["turns"], expected, "{preview}");
    assert!(world.read("b.txt").is_some());
}
