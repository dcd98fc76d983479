//! Entries: presentation, pages, and writing.

use serde_json::{Value, json};

use crate::http::Client;
use crate::routes::Route;
use crate::scene::Scene;
use crate::world::World;

/// A thread with the given number of entries.
fn talk(client: &Client, title: &str, count: usize) -> String {
    let thread = client.thread(title);
    let entries: Vec<Value> =
        (1..=count).map(|number| json!({"content": format!("entry {number}")})).collect();
    client.post(&format!("/v1/threads/{thread}/entries"), &json!({ "entries": entries })).done();
    thread
}

#[test]
fn all_entries_of_a_take_are_collapsed_and_expanded_at_once() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = talk(&client, "Folded", 120);
    let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    let id = |index: usize| client.entries(&thread)[index]["id"].as_str().expect("an id").to_owned();
    let first = client.get(&at("entries?limit=1")).done()["take"].as_str().expect("a take").to_owned();
    client.put(&at(&format!("entries/{}/view", id(7))), &json!({"source": true})).done();
    client.post(&at("branch"), &json!({"entry": id(119)})).done();
    client.say(&thread, "User", "only in the branch");
    let (version, sequence) = (client.version(&thread), client.sequence());
    let check = |query: &str, body: Value, entries: u64, collapsed: usize| {
        let response = client.put(&at(&format!("entries/view{query}")), &body).done();
        assert_eq!(response["entries"], entries, "{query} {body}: {response}");
        let now = client.entries(&thread);
        let found = now.iter().filter(|entry| entry["collapsed"] == true).count();
        assert_eq!(found, collapsed, "{query} {body}");
        assert_eq!(now[7]["source"], true, "what was not said stays as it was");
    };
    check("", json!({"collapsed": true}), 121, 121);
    check(&format!("?take={first}"), json!({"collapsed": false}), 120, 1);
    check("", json!({"collapsed": false}), 121, 0);
    check("", json!({"collapsed": true, "source": true}), 121, 121);
    assert_eq!(
        (client.version(&thread), client.sequence()),
        (version, sequence),
        "it is not part of history"
    );
    client.put(&at("entries/view"), &json!({})).refused(422, "refused");
    client.put(&at("entries/view"), &json!({"colapsed": true})).refused(400, "invalid_request");
    let nothing = "/v1/threads/000000000000000000000000/entries/view";
    client.put(nothing, &json!({"collapsed": true})).refused(404, "not_found");
}

#[test]
fn the_view_of_a_missing_entry_cannot_be_set() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (thread, other) = (talk(&client, "One", 2), talk(&client, "Other", 2));
    let entry = |thread: &str, index: usize| client.entries(thread)[index]["id"].clone();
    let show = |entry: &Value| {
        let entry = entry.as_str().expect("an id");
        client.put(&format!("/v1/threads/{thread}/entries/{entry}/view"), &json!({"collapsed": true}))
    };
    show(&entry(&other, 0)).refused(404, "not_found");
    let last = entry(&thread, 1);
    // The route finds it in any take.
    client.post(&format!("/v1/threads/{thread}/branch"), &json!({"entry": entry(&thread, 0)})).done();
    show(&last).done();
    client.post(&format!("/v1/threads/{thread}/undo"), &json!({})).done();
    assert_eq!(client.entries(&thread)[1]["collapsed"], true);
    let gone = last.as_str().expect("an id");
    client.delete(&format!("/v1/threads/{thread}/entries/{gone}")).done();
    show(&last).refused(404, "not_found");
}

#[test]
fn pages_of_entries_are_of_one_version() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = talk(&client, "Paged", 10);
    let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    let contents = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().expect("a list");
        items.iter().map(|item| item["entry"]["content"].as_str().expect("a text").to_owned()).collect()
    };
    let wanted: Vec<String> = (1..=10).map(|number| format!("entry {number}")).collect();
    let id = |index: usize| client.entries(&thread)[index]["id"].as_str().expect("an id").to_owned();
    let insert =
        || drop(client.post(&at("entries"), &json!({"first": true, "entries": [{"content": "x"}]})).done());
    let remove = || drop(client.delete(&at(&format!("entries/{}", id(0)))).done());
    let branch = || drop(client.post(&at("branch"), &json!({"entry": id(0)})).done());
    let meanwhile: [&dyn Fn(); 3] = [&insert, &remove, &branch];
    for (number, change) in meanwhile.iter().enumerate() {
        let mut page = client.get(&at("entries?limit=4")).done();
        let mut found = contents(&page);
        while let Some(next) = page["next"].as_str() {
            change();
            page = client.get(&at(&format!("entries?limit=4&cursor={next}"))).done();
            found.extend(contents(&page));
        }
        assert_eq!(found, wanted, "change {number}");
        while contents(&client.get(&at("entries")).done()) != wanted {
            client.post(&at("undo"), &json!({})).done();
        }
    }
    // A page can start anywhere.
    assert_eq!(contents(&client.get(&at("entries?start=9")).done()), wanted[8..]);
    assert_eq!(contents(&client.get(&at("entries?start=11")).done()), [""; 0]);
    let next = client.get(&at("entries?limit=4&version=2")).done()["next"].as_str().expect("more").to_owned();
    for wrong in ["cursor=4", "cursor=x", "cursor=2.", "cursor=2.-1"] {
        client.get(&at(&format!("entries?{wrong}"))).refused(422, "refused");
    }
    client.get(&at(&format!("entries?start=3&cursor={next}"))).refused(422, "refused");
    client.get(&at(&format!("entries?version=1&cursor={next}"))).refused(422, "refused");
    client.get(&at("entries?cursor=99999.4")).refused(404, "not_found");
}

#[test]
fn an_edit_of_text_in_blocks_without_text_is_refused() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("New");
    let thinking = json!([{"type": "thinking", "text": "hm"}]);
    let check = |blocks: Value, edited: bool| {
        let body = json!({"entries": [{"content": "said", "blocks": blocks}]});
        client.post(&format!("/v1/threads/{thread}/entries"), &body).done();
        let entries = client.entries(&thread);
        let entry = &entries.last().expect("just added")["entry"];
        assert_eq!((&entry["content"], entry["edited"].is_string()), (&json!("said"), edited), "{entry}");
    };
    check(json!([]), false);
    check(thinking, false);
    check(json!([{"type": "text", "text": "said"}]), false);
    check(json!([{"type": "text", "text": "something else"}]), true);
}

/// A picture of one pixel; each number gives a different one.
fn gif(number: u8) -> Vec<u8> {
    [b"GIF89a\x01\0\x01\0\0\0\0;".as_slice(), &[number]].concat()
}

#[test]
fn only_pictures_of_the_thread_are_served() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (thread, other) = (client.thread("Pictures"), client.thread("Other"));
    let show = |thread: &str, bytes: &[u8]| {
        let blob = blob_of(bytes);
        let block = json!({"type": "image", "media": "image/gif", "blob": blob});
        let encoded = data_encoding::BASE64.encode(bytes);
        let body = json!({"entries": [{"blocks": [block]}], "pictures": [encoded]});
        client.post(&format!("/v1/threads/{thread}/entries"), &body).done();
        blob
    };
    let read = |thread: &str, blob: &str| client.get(&format!("/v1/threads/{thread}/pictures/{blob}"));
    let (own, foreign) = (show(&thread, &gif(1)), show(&other, &gif(2)));
    assert_eq!(read(&thread, &own).done()["base64"], data_encoding::BASE64.encode(&gif(1)));
    read(&thread, &foreign).refused(404, "not_found");
    // A captured file is a blob too, but not a picture of the conversation.
    std::fs::write(world.project().join("secret.txt"), gif(3)).expect("our folder");
    client.post("/v1/snapshots", &json!({"thread": thread})).done();
    read(&thread, &blob_of(&gif(3))).refused(404, "not_found");
    // Pictures of earlier versions remain available, since the thread can return to them.
    client.post(&format!("/v1/threads/{thread}/clear"), &json!({})).done();
    read(&thread, &own).done();
    read(&thread, &"0".repeat(64)).refused(404, "not_found");
}

fn blob_of(bytes: &[u8]) -> String {
    use retake_model::content::{ContentId, Kind};
    ContentId::of(Kind::Blob, bytes).to_string()
}

#[test]
fn errors_show_no_internals() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let scene = Scene::set(&client);
    let routes = Route::all(&client);
    let json = routes.iter().filter(|route| route.kind.as_deref() == Some("application/json"));
    for route in json {
        for body in
            [json!([]), json!(7), json!({"entries": [[]]}), json!({"session": []}), json!({"value": [{}]})]
        {
            let mut request = route.request(&client, &scene);
            request.path = request.path.replace("/fields/draft", "/fields/files");
            let answer = request.json(&body).send();
            if answer.status >= 400 {
                let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
                let leaks = ["struct ", "enum ", "variant "].iter().any(|word| detail.contains(word));
                assert!(!leaks, "{} {body}: {detail}", route.name());
            }
        }
    }
}

#[test]
fn thinking_in_a_text_is_stored_once() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Thinking");
    client.say(&thread, "AI", "<think>hm</think>\nyes");
    let blocks = |index: usize| client.entries(&thread)[index]["entry"]["blocks"].clone();
    assert_eq!(blocks(0), json!([{"type": "thinking", "text": "hm"}, {"type": "text", "text": "yes"}]));
    assert_eq!(client.entries(&thread)[0]["entry"]["edited"], json!(null), "nobody has edited it");
    // User text is stored unchanged.
    client.say(&thread, "User", "<think>hm</think>yes");
    assert_eq!(blocks(1), json!([{"type": "text", "text": "<think>hm</think>yes"}]));
    // A text that differs from its blocks is an edit of them.
    let both = json!({"entries": [{"role": "AI", "content": "no", "blocks": [
        {"type": "thinking", "text": "hm"}, {"type": "text", "text": "yes"},
    ]}]});
    client.post(&format!("/v1/threads/{thread}/entries"), &both).done();
    assert_eq!(blocks(2), json!([{"type": "thinking", "text": "hm"}, {"type": "text", "text": "no"}]));
}

#[test]
fn several_roles_are_read_at_once() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Roles");
    for (role, text) in
        [("User", "red one"), ("AI", "red two"), ("System", "red three"), ("Vendor API", "red four")]
    {
        client.say(&thread, role, text);
    }
    let count = |path: &str| client.get(path).done()["items"].as_array().expect("a list").len();
    for (query, found) in [
        ("", 4),
        ("role=AI", 1),
        ("role=user&role=AI", 2),
        ("role=Vendor+API&role=System", 2),
        ("role=Nobody", 0),
    ] {
        assert_eq!(count(&format!("/v1/threads/{thread}/entries?{query}")), found, "{query}");
        assert_eq!(count(&format!("/v1/search?q=red&{query}")), found, "search, {query}");
    }
    client.get(&format!("/v1/threads/{thread}/entries?limit=1&limit=2")).refused(400, "invalid_request");
}
