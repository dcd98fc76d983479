//! The story that Retake is made for, in eight requests: go back with code and conversation, keep edits made by hand, correct
//! one sentence of the assistant, try the same prompt twice, compare, keep the better take, and go on elsewhere.

use serde_json::{Value, json};

use crate::http::Client;
use crate::world::{World, until};

fn wait_until_over(client: &Client, thread: &str) {
    until("the turn is over", || {
        client.get(&format!("/v1/threads/{thread}/turn")).done()["running"] == false
    });
}

#[test]
fn going_back_and_on_takes_eight_requests() {
    let (world, elsewhere) = (World::new(), World::new());
    let (server, other) = (world.serve(), elsewhere.serve());
    let (client, there) = (server.client(), other.client());
    let write =
        |name: &str, text: &str| std::fs::write(world.project().join(name), text).expect("our folder");
    write("readme.md", "# Login\n\none\ntwo\nthree\n");
    let thread = client.thread("Fix the login");
    let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    let prompt = |text: &str| {
        client.post(&at("turns"), &json!({"prompt": text, "approve": "all"})).done();
        wait_until_over(&client, &thread);
    };
    prompt("create login.md with key = date\nsay The cache is keyed by weekday.");
    prompt("create login.md with key = weekday");
    prompt("run for n in 01 02 03 04 05 06 07 08 09 10 11 12; do echo wrong > part$n.md; done");
    prompt("run sed -i s/one/ONE/ readme.md");
    let text = world.read("readme.md").expect("a file");
    write("readme.md", &text.replace("three", "three, by hand"));
    write("mine.md", "by hand\n");
    let is_wrong = |entry: &&Value| {
        entry["entry"]["role"] == "AI" && entry["entry"]["content"].to_string().contains("keyed by weekday")
    };
    let entries = client.entries(&thread);
    let sentence =
        entries.iter().find(is_wrong).expect("the wrong sentence")["id"].as_str().expect("an id").to_owned();
    let active = || {
        client.get(&format!("/v1/threads/{thread}")).done()["active"]["id"]
            .as_str()
            .expect("an id")
            .to_owned()
    };
    let main = active();

    let undone = client.post(&at("undo"), &json!({"to": "turn:1"})).done();
    assert_eq!(undone["turns"].as_array().map(Vec::len), Some(3), "{undone}");
    assert_eq!(world.read("login.md").as_deref(), Some("key = date\n"));
    assert_eq!(world.read("readme.md").as_deref(), Some("# Login\n\none\ntwo\nthree, by hand\n"));
    assert_eq!((world.read("mine.md").as_deref(), world.read("part07.md")), (Some("by hand\n"), None));
    let edit = json!({"content": "The cache is keyed by date."});
    client.request("PATCH", &at(&format!("entries/{sentence}"))).json(&edit).send().done();
    prompt("create attempt.md with keyed by date");
    let message = client.get(&at("turns/last")).done()["entry"].clone();
    client.post(&at("retry"), &json!({"entry": message, "name": "second", "approve": "all"})).done();
    wait_until_over(&client, &thread);
    let second = active();
    let compared = client.get(&at(&format!("compare?one={main}&other={second}"))).done();
    assert_eq!(compared["takes"][1]["name"], "second", "{compared}");
    assert_eq!(compared["turns"][0]["same_prompt"], true, "{compared}");
    // Merging is another way on: previewed here, so that nothing changes.
    let merge = client.post(&at(&format!("takes/{main}/merge?dry_run=true")), &json!({})).done();
    assert_eq!((&merge["dry_run"], &merge["preview"]["kind"]["type"]), (&json!(true), &json!("take_merged")));
    let kept = client.post(&at(&format!("takes/{second}/keep")), &json!({})).done();
    assert_eq!(kept["kind"]["deleted"], json!(["main"]), "{kept}");
    let export = client.get(&at("export"));
    let imported = there
        .request("POST", "/v1/import?current=true")
        .body("application/x-ndjson", &export.body)
        .send()
        .done();
    assert_eq!(imported["thread"], json!(thread));

    assert_eq!(there.entries(&thread), client.entries(&thread));
    assert_eq!(there.get(&at("turns")).done()["count"], 2);
    let file = there.get(&at("workspace/file?path=mine.md&at=turn:last")).done();
    assert_eq!(file["text"], "by hand\n");
    client.post(&at("undo"), &json!({})).done();
    assert_eq!(
        active(),
        second,
        "an undo of the keep brings the other take back, and leaves this one active"
    );
    let takes = client.get(&at("takes")).done();
    assert_eq!(takes["items"].as_array().map(Vec::len), Some(2));
}
