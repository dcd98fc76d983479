//! Requests during a turn: removing its take or folder is refused, and the turn stays visible.

use std::time::Duration;

use serde_json::{Value, json};

use crate::http::Client;
use crate::routes::Route;
use crate::scene::Scene;
use crate::world::{Server, World, until};

/// Starts a turn in the active take whose command runs until it is stopped.
fn run_on(client: &Client, thread: &str) {
    let body = json!({"prompt": "run while true; do date >> ticks.txt; sleep 0.05; done", "approve": "all"});
    client.post(&format!("/v1/threads/{thread}/turns"), &body).done();
    until("the command runs", || client.turn(thread)["agent"]["state"] == "executing");
}

/// Whether the agent is shown as running.
fn at_work(turn: &Value) -> bool {
    ["calling", "processing", "executing", "post_tools"].iter().any(|state| turn["agent"]["state"] == *state)
}

/// Stops all turns and waits until no command runs.
fn end(world: &World, client: &Client, thread: &str, what: &str) {
    // One of the requests may have stopped it already.
    client.post(&format!("/v1/threads/{thread}/turn/interrupt"), &json!({}));
    until("nothing runs", || {
        let turns = client.get("/v1/turns").done();
        turns["items"].as_array().is_some_and(|turns| turns.iter().all(|turn| turn["running"] == false))
    });
    let before = world.read("ticks.txt");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(world.read("ticks.txt"), before, "{what}: the command goes on");
}

/// A thread with a turn in its active take.
fn running(server: &Server) -> (Client, Scene) {
    let client = server.client();
    let scene = Scene::set(&client);
    run_on(&client, &scene.thread);
    (client, scene)
}

#[test]
fn the_turn_status_is_correct_during_every_request() {
    let world = World::new();
    let server = world.serve();
    let routes = Route::all(&server.client());
    for route in routes.iter().filter(|route| route.versioned) {
        let (client, scene) = running(&server);
        let answer = route.request(&client, &scene).send();
        assert!(answer.status < 500, "{}: {}", route.name(), answer.text());
        until(&format!("{} shows what runs", route.name()), || {
            let turn = client.turn(&scene.thread);
            (turn["running"] == true) == at_work(&turn)
        });
        let shown = client.get(&format!("/v1/threads/{}", scene.thread)).done();
        let runs = client.turn(&scene.thread)["running"] == true;
        assert!(!runs || shown["deleted"].is_null(), "{}: a turn runs in what was deleted", route.name());
        end(&world, &client, &scene.thread, &route.name());
    }
}

#[test]
fn the_folder_of_a_running_turn_cannot_be_removed() {
    let world = World::new();
    let server = world.serve();
    let check = |prompt: &str, started: fn(&Value) -> bool| {
        let client = server.client();
        let scene = Scene::set(&client);
        let (thread, of) = (&scene.thread, |rest: &str| format!("/v1/threads/{}{rest}", scene.thread));
        let active = client.get(&of("")).done()["active"]["id"].as_str().expect("an id").to_owned();
        client.post(&of("/turns"), &json!({"prompt": prompt, "approve": "all"})).done();
        until("the turn is under way", || started(&client.turn(thread)));
        let refused = || {
            client.delete(&of("")).refused(409, "turn_running");
            client.delete(&of(&format!("/takes/{active}"))).refused(409, "turn_running");
            for body in [json!({}), json!({"conversation_alone": true})] {
                client.post(&of(&format!("/takes/{active}/promote")), &body).refused(409, "turn_running");
            }
        };
        refused();
        // The turn would continue in the folder of another take.
        let other = json!({"scope": "conversation"});
        client.post(&of(&format!("/takes/{}/switch", scene.other)), &other).refused(409, "turn_running");
        assert_eq!(client.turn(thread)["running"], true, "{prompt}: the turn goes on");
        client.post(&of("/turn/interrupt"), &json!({})).done();
        client.idle(thread);
        // Control: without a running turn, the request succeeds.
        client.delete(&of("")).done();
        client.post(&of("/restore"), &json!({})).done();
        let promoted = json!({"conversation_alone": true, "title": format!("Was {thread}")});
        client.post(&of(&format!("/takes/{active}/promote")), &promoted).done();
    };
    // The last thread of a project cannot be deleted.
    server.client().thread("Kept");
    check("wait 60", |turn| !turn["partial"].is_null());
    check("run sleep 60", |turn| turn["agent"]["state"] == "executing");
}
