//! What the next request holds, over HTTP, and outputs that are left out of it.

use serde_json::{Value, json};

use crate::world::{World, until};

#[test]
fn an_output_leaves_the_context_and_comes_back() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    std::fs::write(world.project().join("long.txt"), "a long line of a file\n".repeat(500))
        .expect("our folder");
    let thread = client.thread("By size");
    let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    client.post(&at("turns"), &json!({"prompt": "read long.txt", "approve": "all"})).done();
    until("the turn is over", || client.get(&at("turn")).done()["running"] == false);
    let size = || client.get(&at("context")).done();
    let tokens = |size: &Value| size["tokens"].as_u64().expect("a number");
    let before = size();
    let entries = before["entries"].as_array().expect("a list");
    let largest = entries.iter().max_by_key(|entry| entry["tokens"].as_u64()).expect("there are entries");
    assert_eq!(
        (largest["role"].as_str(), largest["not_in_context"].as_array().map(Vec::len)),
        (Some("Tool"), Some(0))
    );
    assert!(before["window"].as_u64() > Some(tokens(&before)), "{before}");
    let entry = largest["id"].as_str().expect("an id");
    let put = |entry: &str, parts: Value| {
        client
            .request("PUT", &at(&format!("entries/{entry}/context")))
            .json(&json!({"not_in_context": parts}))
            .send()
    };
    put(entry, json!(["output"])).done();
    let without = size();
    assert!(tokens(&without) < tokens(&before) / 2, "{without}");
    // The entry keeps its output.
    let texts: Vec<String> = client.entries(&thread).iter().map(Value::to_string).collect();
    assert!(texts.iter().any(|text| text.contains("a long line of a file")), "{texts:?}");
    put(entry, json!(["sound"])).refused(400, "invalid_request");
    put(&thread, json!(["output"])).refused(404, "not_found");
    client.post(&at("undo"), &json!({"unit": "operation"})).done();
    assert_eq!(tokens(&size()), tokens(&before));
    client.post(&at("redo"), &json!({"unit": "operation"})).done();
    put(entry, json!([])).done();
    assert_eq!(tokens(&size()), tokens(&before));
}
