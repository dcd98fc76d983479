//! Moves of files that a crash interrupted: a server finishes them, at its start and before a preview.

use std::fs;
use std::sync::Arc;

use retake_model::time::Timestamp;
use retake_testing::interrupted_move::interrupt_in;
use retake_timeline::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::http::Client;
use crate::world::World;

/// Creates a thread in whose folder an agent replaced a file; returns its id.
fn changed(world: &World, client: &Client) -> String {
    let thread = client.thread("Fix the login");
    fs::write(world.project().join("a"), "one\n").expect("our folder");
    client.post("/v1/snapshots", &json!({"thread": thread})).done();
    fs::write(world.project().join("a"), "two\n").expect("our folder");
    client.post("/v1/snapshots", &json!({"thread": thread, "by": "agent"})).done();
    thread
}

fn pending(client: &Client, path: &str) -> Value {
    client.get(path).done()["pending_move"].clone()
}

#[test]
fn a_preview_finishes_an_interrupted_move_and_reports_it() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = changed(&world, &client);
    interrupt_in(&world.timeline());
    for path in ["", "/history"] {
        let pending = pending(&client, &format!("/v1/threads/{thread}{path}"));
        assert_eq!((&pending["exists"], &pending["running"]), (&json!(true), &json!(false)), "{pending}");
    }
    assert_eq!(world.read("a").as_deref(), Some("two\n"), "reading does nothing about it");
    let ahead = client.post(&format!("/v1/threads/{thread}/undo?dry_run=true"), &json!({})).done();
    assert_eq!(ahead["preview"]["recovered"][0]["paths"][0]["path"], "a", "{ahead}");
    assert_eq!(world.read("a").as_deref(), Some("one\n"));
    let ahead = client.post(&format!("/v1/threads/{thread}/undo?dry_run=true"), &json!({})).done();
    assert_eq!(ahead["preview"].get("recovered"), None, "it is reported once");
    assert_eq!(pending(&client, &format!("/v1/threads/{thread}/history")), Value::Null);

    // A preview of a change without files finishes it too.
    interrupt_in(&world.timeline());
    let ahead = client.post(&format!("/v1/threads/{thread}/reset?dry_run=true"), &json!({})).done();
    assert_eq!(ahead["preview"]["recovered"][0]["finished"], true, "{ahead}");
}

#[test]
fn a_preview_does_not_complete_moves_of_other_processes() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = changed(&world, &client);
    let timeline = world.timeline();
    interrupt_in(&timeline);
    let folder = timeline.read().expect("a look").queries().folders().expect("readable").remove(0).id;
    let lock = timeline.store().lock_folder(folder).expect("a lock");
    let undo = format!("/v1/threads/{thread}/undo?dry_run=true");
    let problem = client.post(&undo, &json!({})).refused(409, "conflict");
    assert!(!problem["action"].as_str().expect("text").contains("GET /v1/workspace/status"), "{problem}");
    assert_eq!(world.read("a").as_deref(), Some("two\n"));
    drop(lock);
    client.post(&undo, &json!({})).done();
    assert_eq!(world.read("a").as_deref(), Some("one\n"));
}

#[test]
fn a_server_finishes_interrupted_moves_when_it_starts() {
    let world = World::new();
    let server = world.serve();
    let thread = changed(&world, &server.client());
    server.stop();
    interrupt_in(&world.timeline());
    let away = world.project().with_file_name("away");
    fs::rename(world.project(), &away).expect("our folder");
    // The server also starts without the folder.
    let server = world.serve();
    let client = server.client();
    assert_eq!(pending(&client, &format!("/v1/threads/{thread}/history"))["exists"], false);
    server.stop();
    fs::rename(&away, world.project()).expect("our folder");
    let server = world.serve();
    assert_eq!(world.read("a").as_deref(), Some("one\n"));
    assert_eq!(pending(&server.client(), &format!("/v1/threads/{thread}/history")), Value::Null);
}

/// The system clock of a given boot, advanced by some milliseconds.
struct BootClock(&'static str, i64);

impl Clock for BootClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().millis() + self.1)
    }

    fn random(&self) -> [u8; 10] {
        SystemClock.random()
    }

    fn boot(&self) -> Option<String> {
        Some(self.0.to_owned())
    }
}

#[test]
fn a_preview_restores_files_that_a_power_cut_emptied() {
    let world = World::new();
    let server = world.serve_by(Arc::new(BootClock("a", 60_000)));
    let thread = changed(&world, &server.client());
    server.stop();
    fs::write(world.project().join("a"), "").expect("our folder");
    let server = world.serve_by(Arc::new(BootClock("b", 0)));
    let client = server.client();
    let ahead = client.post(&format!("/v1/threads/{thread}/undo?dry_run=true"), &json!({})).done();
    assert_eq!(ahead["preview"]["emptied"][0]["path"], "a", "{ahead}");
    assert_eq!(world.read("a").as_deref(), Some("two\n"));
    client.post(&format!("/v1/threads/{thread}/undo"), &json!({})).done();
    assert_eq!(world.read("a").as_deref(), Some("one\n"));
}
