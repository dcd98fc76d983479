//! The hook API: a script reads and replaces a conversation, reads and sets fields, and calls callbacks by
//! name.

use std::collections::BTreeSet;

use retake_model::entry::EntryVersion;
use retake_timeline::{Caller, Command, InsertPosition, NewEntry};
use serde_json::{Value, json};

use crate::world::World;

#[test]
fn entries_can_be_read_changed_and_written_back() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    client.get("/api/session").refused(404, "not_found");
    let thread = client.thread("Hooked");
    client.post(&format!("/v1/threads/{thread}/current"), &json!({})).done();
    client.say(&thread, "User", "one");
    let thinking = json!({"entries": [{"role": "AI", "blocks": [
        {"type": "thinking", "text": "hm"}, {"type": "text", "text": "two"},
    ], "of_mine": 7}]});
    client.post(&format!("/v1/threads/{thread}/entries"), &thinking).done();
    let mut whole = client.get("/api/session").done();
    assert_eq!(whole["session"]["thread"], thread.as_str());
    let ids = |whole: &Value| -> Vec<Value> {
        let entries = whole["session"]["entries"].as_array().expect("entries");
        entries.iter().map(|entry| entry["id"].clone()).collect()
    };
    let before = ids(&whole);
    let same = client.post("/api/session", &whole).done();
    assert_eq!(same["status"], "unchanged", "{same}");
    whole["session"]["entries"][1]["content"] = json!("other");
    let stale = client.request("POST", "/api/session").json(&whole).if_match(1).send();
    stale.refused(412, "version_conflict");
    let updated = client.post("/api/session", &whole).done();
    assert_eq!(updated["status"], "updated", "{updated}");
    assert!(updated["operation"].is_string() && updated["undoable"] == true, "{updated}");
    let after = client.get("/api/session").done();
    assert_eq!(ids(&after), before, "entries keep their identity");
    let entry = &after["session"]["entries"][1];
    assert_eq!((&entry["content"], &entry["of_mine"]), (&json!("other"), &json!(7)));
    assert_eq!(entry["blocks"][0]["text"], "hm", "what is beside the text survives an edit of it");
    client.post(&format!("/v1/threads/{thread}/undo"), &json!({})).done();
    assert_eq!(client.get("/api/session").done()["session"]["entries"][1]["content"], "two");
}

#[test]
fn every_field_is_readable_and_settable_fields_are_set() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Fields");
    let of = |field: &str| format!("/api/fields/{field}?thread={thread}");
    let all = client.get(&format!("/api/fields?thread={thread}")).done();
    let all = all["fields"].as_array().expect("fields").clone();
    let new = |name: &str, old: &Value| match (name, old) {
        ("temperature" | "top_p", _) => json!(0.5),
        ("max_tokens", _) => json!(1000),
        ("provider" | "model", _) => json!("own"),
        ("effort", _) => json!("low"),
        ("tags" | "roles" | "files" | "context_files" | "screenshots", _) => json!(["a.png", "b.png"]),
        (_, Value::Bool(old)) => json!(!old),
        _ => json!("something else"),
    };
    let mut set = 0;
    for field in &all {
        let name = field["name"].as_str().expect("a name");
        let read = client.get(&of(name)).done();
        let as_listed = ["name", "about", "settable"].iter().all(|fact| read[*fact] == field[*fact]);
        // Each earlier change increments the version and can be undone.
        let moves = matches!(name, "version" | "can_undo");
        assert!(as_listed && (moves || read["value"] == field["value"]), "{read}");
        let value = new(name, &field["value"]);
        let answer = client.put(&of(name), &json!({ "value": value }));
        if field["settable"] == false {
            answer.refused(422, "refused");
            continue;
        }
        let updated = answer.done();
        assert!(updated["operation"].is_string() && updated["status"] == "updated", "{name}: {updated}");
        let now = client.get(&of(name)).done()["value"].clone();
        let paths: Option<Vec<Value>> =
            now.as_array().map(|items| items.iter().map(|item| item["path"].clone()).collect());
        assert!(now == value || paths.is_some_and(|paths| json!(paths) == value), "{name}: {now}");
        set += 1;
    }
    assert!(set >= 19, "{set} fields can be set");
    client.put(&of("title"), &json!({"value": 7})).refused(422, "refused");
    client.put(&of("nothing"), &json!({"value": 7})).refused(404, "not_found");
    client.get(&of("nothing")).refused(404, "not_found");
}

#[test]
fn callbacks_do_what_their_routes_do() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Callbacks");
    let call = |name: &str, query: &str, arguments: Value| {
        let path = format!("/api/callbacks/{name}?thread={thread}{query}");
        client.post(&path, &json!({ "arguments": arguments }))
    };
    let names = client.get("/api/callbacks").done();
    assert!(
        names["callbacks"].as_array().expect("callbacks").iter().all(|one| one["about"] != ""),
        "{names}"
    );
    let added = call("add_entries", "", json!({"entries": [{"content": "hi"}]})).done();
    assert!(added["result"]["operation"].is_string(), "{added}");
    call("set_context_files", "", json!({"items": [{"path": "a.txt"}]})).done();
    call("save", "", json!({"name": "here"})).done();
    let ahead = call("clear", "&dry_run=true", json!({})).done();
    assert_eq!(ahead["result"]["dry_run"], true, "{ahead}");
    assert_eq!(client.entries(&thread).len(), 1);
    call("clear", "", json!({})).done();
    call("undo", "", json!({})).done();
    assert_eq!(client.entries(&thread).len(), 1);
    call("switch", "", json!({})).refused(422, "refused");
    call("save", "&dry_run=true", json!({"name": "x"})).refused(422, "refused");
    call("save", "", json!({"nothing": "x"})).refused(422, "refused");
    call("nothing", "", json!({})).refused(404, "not_found");
    let stale = client.request("POST", &format!("/api/callbacks/clear?thread={thread}")).json(&json!({}));
    stale.if_match(1).send().refused(412, "version_conflict");
}

#[test]
fn concurrent_writes_of_a_field_are_atomic() {
    let world = World::new();
    let servers = [world.serve(), world.serve()];
    let thread = servers[0].client().thread("Raced");
    let path = format!("/api/fields/tags?thread={thread}");
    for round in 0..12 {
        let both = std::thread::scope(|scope| {
            let asking: Vec<_> = servers
                .iter()
                .enumerate()
                .map(|(number, server)| {
                    let (client, path) = (server.client(), path.as_str());
                    let tags = json!([format!("one-{number}-{round}"), format!("other-{number}-{round}")]);
                    scope.spawn(move || {
                        client.put(path, &json!({ "value": tags })).done();
                        tags
                    })
                })
                .collect();
            asking.into_iter().map(|one| one.join().expect("it is set")).collect::<Vec<Value>>()
        });
        let now = servers[0].client().get(&path).done()["value"].clone();
        let now: BTreeSet<&str> = now.as_array().expect("tags").iter().filter_map(Value::as_str).collect();
        let set = |tags: &Value| {
            now == tags.as_array().expect("tags").iter().filter_map(Value::as_str).collect::<BTreeSet<_>>()
        };
        assert!(both.iter().any(set), "round {round}: {now:?}");
    }
}

#[test]
fn a_large_conversation_is_read_in_pages() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Large");
    let session = format!("/api/session?thread={thread}");
    let (timeline, id) = (world.timeline(), thread.parse().expect("an id"));
    let take = timeline.read().expect("a look").state(id).expect("a state").active;
    let say = |number: usize| {
        let entries: Vec<NewEntry> = (0..number)
            .map(|_| EntryVersion::from_text("User", &"x".repeat(4 << 20), timeline.now()).into())
            .collect();
        let command = Command::AddEntries { take, at: InsertPosition::End, entries };
        timeline.change(id, command, Caller::human()).expect("it is said");
    };
    say(2);
    client.get(&session).done();
    say(8);
    let refused = client.get(&session).refused(409, "conflict");
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("/entries")), "{refused}");
}

#[test]
fn a_list_of_files_is_written_back_as_it_was_read() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Lists");
    for list in ["files", "context_files", "screenshots"] {
        let field = format!("/api/fields/{list}?thread={thread}");
        let item = json!({"path": "a.rs", "lines": {"from": 1, "to": [2.5, null]}, "note": "\u{e9}"});
        client.put(&field, &json!({"value": ["plain.txt", item]})).done();
        let read = client.get(&field).done()["value"].clone();
        assert_eq!(read, json!([{"path": "plain.txt"}, item]), "{list}");
        let same = client.put(&field, &json!({"value": read})).done();
        assert_eq!(same["status"], "unchanged", "{list}: {same}");
        client.put(&field, &json!({"value": [{"file": "a.rs"}]})).refused(422, "refused");
    }
}

#[test]
fn numbers_round_trip_verbatim_on_every_route() {
    const NUMBERS: &str = "[12345678901234567890123,1.0,1e400,-0.10]";
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Numbers");
    let entry = format!(r#"{{"role":"AI","content":"hi","of_mine":{NUMBERS}}}"#);
    let entries = format!("/v1/threads/{thread}/entries");
    client
        .request("POST", &entries)
        .body("application/json", format!(r#"{{"entries":[{entry}]}}"#).as_bytes())
        .send()
        .done();
    let session = format!("/api/session?thread={thread}");
    let callback = format!("/api/callbacks/add_entries?thread={thread}");
    let called = client
        .request("POST", &callback)
        .body("application/json", format!(r#"{{"arguments":{{"entries":[{entry}]}}}}"#).as_bytes())
        .send();
    called.done();
    for path in [&entries, &session] {
        let text = client.get(path).text();
        assert_eq!(text.matches(NUMBERS).count(), 2, "{path}: {text}");
    }
    let file = format!("/api/fields/context_files?thread={thread}");
    let item = format!(r#"{{"value":[{{"path":"a","n":{NUMBERS}}}]}}"#);
    client.request("PUT", &file).body("application/json", item.as_bytes()).send().done();
    for path in
        [&file, &format!("/v1/threads/{thread}/lists/context_files"), &format!("/api/fields?thread={thread}")]
    {
        let text = client.get(path).text();
        assert!(text.contains(NUMBERS), "{path}: {text}");
    }
}
