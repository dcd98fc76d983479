//! Shutdown: acknowledged changes are stored, running turns can be resumed, and no client waits.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use retake_testing::fault_server::{Script, ScriptStep};
use serde_json::{Value, json};

use crate::http::connect;
use crate::process::Process;
use crate::reported_defects::scripted;
use crate::world::{World, until};

const SOON: Duration = Duration::from_secs(5);

/// The texts of a thread's entries, joined.
fn texts_of(entries: &[Value]) -> String {
    entries.iter().map(Value::to_string).collect()
}

#[test]
fn turns_that_run_are_left_to_be_resumed() {
    let check = |prompt: &str, approve: &str, begun: fn(&Value) -> bool| {
        let world = World::new();
        let server = world.serve();
        let client = server.client();
        let thread = client.thread("Running");
        let body = json!({"prompt": prompt, "approve": approve});
        client.post(&format!("/v1/threads/{thread}/turns"), &body).done();
        until("the turn is under way", || begun(&client.turn(&thread)));
        let mut events = client.events(client.sequence());
        assert_eq!(events.next(SOON).expect("a greeting").kind, "hello");
        let took = server.stop();
        assert!(took < SOON, "{prompt}: it took {took:?} to stop");
        let states: Vec<Value> = std::iter::from_fn(|| events.next(SOON))
            .filter(|event| event.kind == "turn" && event.data["event"] == "state")
            .map(|event| event.data["state"].clone())
            .collect();
        assert_eq!(states.last(), Some(&json!("shutting_down")), "{prompt}: {states:?}");
        let server = world.serve();
        let client = server.client();
        let turn = client.turn(&thread);
        assert_eq!(turn["running"], false, "{prompt}: {turn}");
        assert_eq!(turn["agent"]["state"], "shutting_down", "{prompt}: {turn}");
        assert_eq!(turn["agent"]["unfinished"], true, "{prompt}: {turn}");
        let entries = client.entries(&thread);
        assert!(texts_of(&entries).contains(prompt), "{prompt}: what was asked is there");
        let history = client.get(&format!("/v1/threads/{thread}/history")).text();
        assert!(
            history.contains("interrupted") || texts_of(&entries).contains("interrupted"),
            "{prompt}: {history}"
        );
        // It is a turn like any other: the next turn starts and closes it, and undo reverts both.
        client.prompt(&thread, "say on");
        client.idle(&thread);
        client.post(&format!("/v1/threads/{thread}/undo"), &json!({"steps": 2})).done();
        assert!(client.entries(&thread).is_empty(), "{prompt}");
    };
    check("wait 60", "edits", |turn| !turn["partial"].is_null());
    check("run sleep 60", "all", |turn| turn["agent"]["state"] == "executing");
    check("run echo hi", "ask", |turn| {
        turn["pending_approvals"].as_array().is_some_and(|asked| !asked.is_empty())
    });
}

#[test]
fn shutdown_ends_running_commands() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Command");
    let body = json!({"prompt": "run while true; do date >> ticks.txt; sleep 0.1; done", "approve": "all"});
    client.post(&format!("/v1/threads/{thread}/turns"), &body).done();
    until("it ticks", || world.read("ticks.txt").is_some());
    server.stop();
    let before = world.read("ticks.txt");
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(world.read("ticks.txt"), before);
}

#[test]
fn acknowledged_changes_survive_shutdown() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let threads: Vec<String> = (0..4).map(|number| client.thread(&format!("Thread {number}"))).collect();
    let acknowledged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (index, thread) in threads.iter().enumerate() {
            let (client, acknowledged) = (client.clone(), &acknowledged);
            scope.spawn(move || {
                for number in 0.. {
                    let text = format!("<{index}/{number}>");
                    let body = json!({"entries": [{"role": "User", "content": text}]});
                    let path = format!("/v1/threads/{thread}/entries");
                    match client.request("POST", &path).json(&body).try_send() {
                        Ok(answer) if answer.status == 201 => {
                            acknowledged.lock().expect("no panic").push((thread.clone(), text));
                        }
                        Ok(answer) => assert_eq!(answer.status, 503, "{}", answer.text()),
                        Err(_) => return,
                    }
                }
            });
        }
        until("enough is written", || acknowledged.lock().expect("no panic").len() > 40);
        let took = server.stop();
        assert!(took < SOON, "it took {took:?} to stop under load");
    });
    let server = world.serve();
    let there: Vec<String> =
        threads.iter().map(|thread| texts_of(&server.client().entries(thread))).collect();
    let acknowledged = acknowledged.into_inner().expect("no panic");
    assert!(acknowledged.len() > 20, "only {} were written", acknowledged.len());
    for (thread, text) in &acknowledged {
        let index = threads.iter().position(|known| known == thread).expect("one of them");
        assert!(there[index].contains(text), "{text} was acknowledged and is gone");
    }
}

#[test]
fn idle_connections_do_not_delay_shutdown() {
    let limits = retake_api::Limits { connections: 6, ..retake_api::Limits::default() };
    let world = World::with(limits);
    let server = world.serve();
    let client = server.client();
    let address = server.address;
    let mut streams: Vec<_> = (0..2).map(|_| client.events(0)).collect();
    for stream in &mut streams {
        assert_eq!(stream.next(SOON).expect("a greeting").kind, "hello");
    }
    // One has sent nothing, one half a line; with the others they reach the connection limit.
    let mut idle: Vec<TcpStream> = (0..4).map(|_| connect(address).expect("there is room")).collect();
    idle[0].write_all(b"GET /hea").expect("the server reads");
    std::thread::sleep(Duration::from_millis(200));
    let took = server.stop();
    assert!(took < SOON, "it took {took:?} to stop");
    for stream in &mut streams {
        assert!(stream.next(SOON).is_none() && stream.is_over());
    }
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}

#[test]
fn shutdown_answers_received_requests_and_waits_briefly_for_others() {
    let limits =
        retake_api::Limits { shutdown_grace: Duration::from_secs(2), ..retake_api::Limits::default() };
    let world = World::with(limits);
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Busy");
    let body = json!({"entries": [{"role": "User", "content": "half"}]}).to_string();
    let path = format!("/v1/threads/{thread}/entries");
    let request = client.request("POST", &path).header("Content-Type", "application/json");
    let head = request.header("Content-Length", &body.len().to_string()).head(false);
    let mut half = connect(server.address).expect("there is room");
    half.write_all(&[head.as_slice(), &body.as_bytes()[..10]].concat()).expect("the server reads");
    std::thread::sleep(Duration::from_millis(100));
    server.tell_to_stop();
    // The rest arrives just in time.
    half.write_all(&body.as_bytes()[10..]).expect("the server reads");
    let answer = crate::http::read_answer("the half", &mut std::io::BufReader::new(half)).expect("an answer");
    assert!([201, 503].contains(&answer.status), "{}", answer.text());
    server.stop();
    let server = world.serve();
    assert_eq!(server.client().entries(&thread).len(), usize::from(answer.status == 201));
    // Here it never arrives.
    let mut half = connect(server.address).expect("there is room");
    let address = server.address.to_string();
    let head = String::from_utf8(head).expect("text").replace(&client.address.to_string(), &address);
    half.write_all(head.as_bytes()).expect("the server reads");
    std::thread::sleep(Duration::from_millis(100));
    let took = server.stop();
    assert!(took < SOON, "it took {took:?} to stop");
}

#[test]
fn a_silent_model_does_not_delay_shutdown() {
    let (model, setup) = scripted(vec![Script::events([]).with(0, ScriptStep::Stall)]);
    let world = World::new();
    let server = world.serve_with(setup);
    let client = server.client();
    let (talking, compressing) = (client.thread("Talking"), client.thread("Compressing"));
    let entries: Vec<Value> = ["User", "AI"]
        .iter()
        .cycle()
        .take(40)
        .map(|role| json!({"role": role, "content": "words"}))
        .collect();
    client.post(&format!("/v1/threads/{compressing}/entries"), &json!({"entries": entries})).done();
    client.prompt(&talking, "say something");
    let path = format!("/v1/threads/{compressing}/compress");
    let compress = client.request("POST", &path).json(&json!({"keep": 2}));
    let waiting = std::thread::spawn(move || compress.try_send());
    until("both have asked", || model.requests().len() == 2);
    // Other requests are served during that time.
    client.get("/health").done();
    let took = server.stop();
    assert!(took < SOON, "it took {took:?} to stop");
    if let Ok(answer) = waiting.join().expect("no panic") {
        assert!(answer.status >= 400, "{}", answer.text());
    }
    let server = world.serve();
    let client = server.client();
    assert_eq!(client.turn(&talking)["agent"]["state"], "shutting_down", "{}", client.turn(&talking));
    assert_eq!(client.entries(&compressing).len(), 40, "nothing was compressed");
}

#[test]
fn the_turn_of_a_stopped_server_can_be_resumed_or_closed() {
    for go_on in [true, false] {
        let world = World::new();
        let server = world.serve();
        let client = server.client();
        let thread = client.thread("Stopped");
        client.prompt(&thread, "create first.txt with one then wait 2 then create second.txt with two");
        until("the answer comes", || !client.turn(&thread)["partial"].is_null());
        server.stop();
        let server = world.serve();
        let client = server.client();
        if go_on {
            let body = json!({"approve": "edits"});
            client.post(&format!("/v1/threads/{thread}/turn/resume"), &body).done();
            client.idle(&thread);
            assert!(world.read("second.txt").is_some());
        } else {
            let closed = client.post(&format!("/v1/threads/{thread}/turn/interrupt"), &json!({})).done();
            assert_eq!(closed["closed"], true);
        }
        assert!(client.turn(&thread)["agent"].is_null(), "{}", client.turn(&thread));
        client.post(&format!("/v1/threads/{thread}/undo"), &json!({})).done();
        assert_eq!((world.read("first.txt"), world.read("second.txt")), (None, None));
        assert!(client.entries(&thread).is_empty());
    }
}

#[test]
fn the_turn_of_a_killed_server_can_be_resumed_or_closed() {
    for go_on in [true, false] {
        let world = World::new();
        let killed = Process::start(&world, None);
        let client = killed.client();
        let thread = client.thread("Killed");
        client.prompt(&thread, "create first.txt with one then wait 2 then create second.txt with two");
        until("the first file is there", || world.read("first.txt").is_some());
        until("the answer comes", || !client.turn(&thread)["partial"].is_null());
        killed.kill();
        let server = world.serve();
        let client = server.client();
        let turn = client.turn(&thread);
        assert_eq!((turn["running"].clone(), turn["agent"].is_null()), (json!(false), false), "{turn}");
        // The interrupted turn blocks nothing, but a new one does not replace it without being asked to.
        if go_on {
            let body = json!({"approve": "edits"});
            client.post(&format!("/v1/threads/{thread}/turn/resume"), &body).done();
            client.idle(&thread);
            assert!(world.read("second.txt").is_some());
        } else {
            let closed = client.post(&format!("/v1/threads/{thread}/turn/interrupt"), &json!({})).done();
            assert_eq!(closed["closed"], true);
            assert!(client.turn(&thread)["agent"].is_null());
        }
        client.post(&format!("/v1/threads/{thread}/undo"), &json!({})).done();
        assert_eq!((world.read("first.txt"), world.read("second.txt")), (None, None), "both scope went");
        assert!(client.entries(&thread).is_empty());
    }
}
