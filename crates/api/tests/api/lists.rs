//! Lists and lookups: pages that lose nothing during writes, cursors, names and id prefixes.

use serde_json::{Value, json};

use crate::http::Client;
use crate::world::World;

fn names(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().expect("a list");
    items.iter().map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn pages_of_takes_continue_where_the_last_one_ended() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Branched");
    let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    for number in 1..=6 {
        client.post(&at("branch"), &json!({"name": format!("branch {number}")})).done();
    }
    let all = client.get(&at("takes")).done();
    let first = client.get(&at("takes?limit=3")).done();
    let gone = first["items"][1]["id"].as_str().expect("an id");
    client.delete(&at(&format!("takes/{gone}"))).done();
    let next = first["next"].as_str().expect("more");
    let rest = client.get(&at(&format!("takes?cursor={next}"))).done();
    assert_eq!([names(&first), names(&rest)].concat(), names(&all), "none is left out, none comes twice");
    assert_eq!(rest["next"], Value::Null);
}

#[test]
fn invalid_cursors_are_refused_by_every_list() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Cursors");
    for list in ["entries", "takes", "trace", "changes", "history"] {
        for wrong in ["x", "-1"] {
            client.get(&format!("/v1/threads/{thread}/{list}?cursor={wrong}")).refused(422, "refused");
        }
    }
    for list in ["threads", "worktrees", "snapshots", "search", "tree"] {
        for wrong in ["x", "-1"] {
            client.get(&format!("/v1/{list}?cursor={wrong}")).refused(422, "refused");
        }
    }
}

#[test]
fn threads_and_takes_are_found_by_name_and_id_prefix() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("A name/with a slash");
    let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    client.post(&at("branch"), &json!({"name": "other way"})).done();
    let take = client.get(&format!("/v1/threads/{thread}")).done()["active"]["id"].clone();
    let take = take.as_str().expect("an id");
    let find = |text: &str| client.request("GET", &format!("/v1/find?q={}", encoded(text))).send();
    let check = |text: &str, with_take: bool| {
        let found = find(text).done();
        assert_eq!(found["thread"]["id"], thread.as_str(), "{text}: {found}");
        let wanted = if with_take { json!(take) } else { Value::Null };
        assert_eq!(found["take"]["id"], wanted, "{text}: {found}");
    };
    check("A name/with a slash", false);
    check(&thread, false);
    check(&thread[..12], false);
    check("A name/with a slash/other way", true);
    check(take, true);
    check(&take[..12], true);
    find("nothing of that name").refused(404, "not_found");
    find("").refused(404, "not_found");
    client.get("/v1/find").refused(400, "invalid_request");
    // Several match: the error lists them.
    two_of_one_name(&world, &client);
    let several = find("Twice").refused(409, "conflict");
    assert_eq!(several["candidates"].as_array().map(Vec::len), Some(2), "{several}");
    // A thread of the server's project takes precedence.
    let mine = client.get("/v1/threads?title=Twice").done()["items"][0].clone();
    let home = mine["home"].as_str().expect("a project");
    let found = client.get(&format!("/v1/find?q=Twice&project={home}")).done();
    assert_eq!(found["thread"]["id"], mine["id"]);
}

/// Two projects with a thread of the same name, neither of them the server's.
fn two_of_one_name(world: &World, client: &Client) {
    for name in ["one", "two"] {
        let folder = world.folder().join(name);
        std::fs::create_dir(&folder).expect("our folder");
        let made = client.post("/v1/projects", &json!({"folder": folder})).done();
        client.post("/v1/threads", &json!({"title": "Twice", "project": made["id"]})).done();
    }
}

fn encoded(text: &str) -> String {
    let encoded: Vec<String> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    encoded.concat()
}
