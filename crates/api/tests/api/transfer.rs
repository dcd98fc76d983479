//! Export and import of threads.

use serde_json::json;

use crate::keys::FailingDatabase;
use crate::world::World;

const LINES: &str = "application/x-ndjson";

#[test]
fn an_export_is_imported_elsewhere_byte_for_byte() {
    let (from, to) = (World::new(), World::new());
    let (server, other) = (from.serve(), to.serve());
    let (client, there) = (server.client(), other.client());
    std::fs::write(from.project().join("a.txt"), "held\n").expect("our folder");
    let thread = client.thread("Moves");
    client.say(&thread, "User", "hello");
    client.post("/v1/snapshots", &json!({"thread": thread})).done();
    std::fs::write(from.project().join("a.txt"), "changed\n").expect("our folder");
    client.post("/v1/snapshots", &json!({"thread": thread, "by": "agent"})).done();
    let export = format!("/v1/threads/{thread}/export");
    let file = client.get(&export);
    assert_eq!((file.status, file.header("content-type")), (200, Some(LINES)), "{}", file.text());
    assert_eq!(file.header("content-length"), Some(file.body.len().to_string().as_str()));

    let import = |query: &str, body: &[u8]| {
        there.request("POST", &format!("/v1/import{query}")).body(LINES, body).send()
    };
    let sequence = there.sequence();
    let ahead = import("?dry_run=true", &file.body).done();
    assert_eq!(
        (&ahead["dry_run"], &ahead["new_operations"]),
        (&json!(true), &json!(client.version(&thread)))
    );
    there.get(&format!("/v1/threads/{thread}")).refused(404, "not_found");
    assert_eq!(there.sequence(), sequence);
    let imported = import("?current=true", &file.body).done();
    assert_eq!((&imported["thread"], &imported["current"]), (&json!(thread), &json!(true)));
    assert_eq!(there.get(&export).body, file.body, "the same bytes come out again");
    assert_eq!(import("", &file.body).done()["new_operations"], 0);
    let copy = import("?copy=true", &file.body).done();
    assert_ne!(copy["thread"], json!(thread));

    // Diverged threads are not merged.
    client.say(&thread, "User", "one way");
    there.say(&thread, "User", "another way");
    import("", &client.get(&export).body).refused(409, "conflict");
}

#[test]
fn an_invalid_export_is_refused_completely() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Whole");
    let file = client.get(&format!("/v1/threads/{thread}/export")).body;
    let before = client.sequence();
    let text = String::from_utf8(file.clone()).expect("text");
    let short = &file[..file.len() - 10];
    let changed = text.replacen("\"object\"", "\"objekt\"", 1);
    let deep = vec![b'['; 100_000];
    for wrong in [&b""[..], b"{}\n", b"\xff\xfe", &deep, short, changed.as_bytes()] {
        for query in ["", "?dry_run=true", "?copy=true"] {
            let answer = client.request("POST", &format!("/v1/import{query}")).body(LINES, wrong).send();
            answer.refused(422, "refused");
        }
    }
    let request = client.request("POST", "/v1/import");
    request.body("application/json", &file).send().refused(415, "unsupported_media_type");
    assert_eq!(client.sequence(), before);
}

#[test]
fn a_refused_import_creates_no_project() {
    let (from, to) = (World::new(), World::new());
    let (server, other) = (from.serve(), to.serve());
    let (client, there) = (server.client(), other.client());
    let thread = client.thread("Whole");
    let file = client.get(&format!("/v1/threads/{thread}/export")).body;
    let import = |body: &[u8]| there.request("POST", "/v1/import").body(LINES, body).send();
    let projects = || there.get("/v1/projects").done()["items"].as_array().map(Vec::len);
    for wrong in [&b""[..], b"{}\n", &file[..file.len() - 10]] {
        import(wrong).refused(422, "refused");
        assert_eq!(projects(), Some(0));
    }
    import(&file).done();
    assert_eq!(projects(), Some(1));
}

#[test]
fn a_take_is_exported_as_text() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Read me");
    client.say(&thread, "User", "# hello <script>");
    let export = |query: &str| client.get(&format!("/v1/threads/{thread}/export?{query}"));
    let markdown = export("format=markdown");
    assert_eq!(markdown.header("content-type"), Some("text/markdown; charset=utf-8"));
    assert!(markdown.text().starts_with("# Read me\n"), "{}", markdown.text());
    let json = export("format=json").done();
    assert_eq!(
        (&json["thread"]["title"], json["entries"].as_array().map(Vec::len)),
        (&json!("Read me"), Some(1))
    );
    assert_eq!(export("without_files=true").status, 200);
    for wrong in ["format=html", "take=x", "format=retake&other=1"] {
        export(wrong).refused(400, "invalid_request");
    }
    let take = json["take"]["id"].as_str().expect("an id");
    for wrong in ["format=json&without_files=true", &format!("take={take}")] {
        export(wrong).refused(422, "refused");
    }
    client.get("/v1/threads/00000000000000000000000000/export").refused(404, "not_found");
}

#[test]
fn repeating_a_copy_after_a_crash_returns_the_same_one() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Original");
    client.say(&thread, "User", "hello");
    let file = client.get(&format!("/v1/threads/{thread}/export")).body;
    let copy = || client.request("POST", "/v1/import?copy=true").body(LINES, &file).key("copy").send();
    let failing = FailingDatabase::of(&world, "status");
    let (first, second) = (copy().done(), copy().done());
    failing.mend();
    assert_eq!(second["thread"], first["thread"], "{second}");
    assert_ne!(first["thread"], thread.as_str());
    assert_eq!(client.get("/v1/threads").done()["items"].as_array().map(Vec::len), Some(2));
}
