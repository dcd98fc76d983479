//! Calls over a real connection, to a server with many kinds of failure.

use std::time::{Duration, Instant};

use retake_agent::Cancel;
use retake_agent::provider::{
    Answer, CallError, Client, Delta, Dialect, Endpoint, Fault, Platform, Secret, SignIn, Stop, Timeouts,
    Wire,
};
use retake_testing::fault_server::{
    Chaos, FaultServer, Script, ScriptStep, ScriptedAnswer, call, chaos, events, text_answer,
};
use serde_json::json;

const WIRES: [Wire; 4] = [Wire::Anthropic, Wire::Chat, Wire::Responses, Wire::Gemini];
const LONG: &str = "hello world, here I am, and I have more to say than fits into a few pieces";
const KEY: &str = "sk-very-secret-key";

fn endpoint(wire: Wire, url: &str) -> Endpoint {
    Endpoint {
        provider: "scripted".to_owned(),
        wire,
        dialect: Dialect::of(wire),
        base_url: url.to_owned(),
        model: "scripted-1".to_owned(),
        key: Some(Secret::new(KEY)),
        key_hint: "set SCRIPTED_KEY".to_owned(),
        headers: vec![("x-team".to_owned(), "blue-team".to_owned())],
        timeouts: Timeouts {
            first_byte: Duration::from_millis(400),
            stall: Duration::from_millis(400),
            ..Timeouts::default()
        },
        platform: Platform::Direct,
        sign_in: SignIn::Key,
    }
}

fn ask(client: &Client, endpoint: &Endpoint) -> Result<Answer, CallError> {
    client.call(endpoint, &json!({"stream": true}).into(), &Cancel::new(), &mut |_| {})
}

fn one(wire: Wire, script: Script) -> Result<Answer, CallError> {
    let server = FaultServer::with(vec![script]).expect("a port");
    ask(&Client::new().expect("a client"), &endpoint(wire, &server.url()))
}

fn text(answer: &Answer) -> String {
    answer.blocks.iter().filter_map(|block| block.text()).collect()
}

#[test]
fn every_wire_streams_and_sends_its_key_where_it_belongs() {
    let client = Client::new().expect("a client");
    let check = |wire: Wire, path: &str, header: &str, value: &str| {
        let scripted = ScriptedAnswer {
            blocks: vec![call("c", "read", &json!({"path": "ä"}))],
            stop: Stop::ToolUse,
            ..text_answer("")
        };
        let scripts = [1, 3, 1000].map(|size| Script::events(events(wire, &scripted)).in_chunks_of(size));
        let server = FaultServer::with(scripts.to_vec()).expect("a port");
        for _ in 0..3 {
            let mut deltas = Vec::new();
            let body = json!({"model": "scripted-1", "stream": true});
            let endpoint = endpoint(wire, &server.url());
            let answer =
                client.call(&endpoint, &body.clone().into(), &Cancel::new(), &mut |delta| deltas.push(delta));
            assert_eq!(answer.expect("an answer").blocks, scripted.blocks, "{wire:?}");
            assert!(matches!(
                deltas.iter().find(|delta| matches!(delta, Delta::CallStarted { .. })),
                Some(Delta::CallStarted { block: 0, .. })
            ));
        }
        let requests = server.requests();
        assert_eq!(requests[0].path, path);
        assert_eq!(requests[0].header(header), Some(value));
        assert_eq!(requests[0].header("x-team"), Some("blue-team"));
        assert!(requests[0].body.contains("scripted-1"));
        assert_eq!(server.connections(), 1, "the connection is used again");
    };
    check(Wire::Anthropic, "/v1/messages", "x-api-key", KEY);
    check(Wire::Chat, "/chat/completions", "authorization", &format!("Bearer {KEY}"));
    check(Wire::Responses, "/responses", "authorization", &format!("Bearer {KEY}"));
    check(Wire::Gemini, "/models/scripted-1:streamGenerateContent?alt=sse", "x-goog-api-key", KEY);
}

#[test]
fn an_error_status_becomes_an_error_with_an_action() {
    let check = |script: Script, fault: Fault, wait: Option<u64>, words: &str| {
        let status = script.status;
        let error = one(Wire::Chat, script).expect_err("no success");
        assert_eq!(error.fault, fault, "{}", error.message);
        assert_eq!(error.status, Some(status));
        assert_eq!(error.retry_after.map(|wait| wait.as_secs()), wait);
        assert!(error.message.contains(words), "{}", error.message);
        assert!(!error.message.contains(KEY), "{}", error.message);
        assert!(error.partial.is_empty());
    };
    let echo = format!(r#"{{"error":{{"message":"Incorrect key {KEY}"}}}}"#);
    check(
        Script::status(401, &echo),
        Fault::Key,
        None,
        "scripted: Incorrect key [key] [401]. The key was refused: set SCRIPTED_KEY.",
    );
    check(Script::status(404, ""), Fault::NotFound, None, "scripted-1");
    check(Script::status(429, "{}").with_header("retry-after", "7"), Fault::Busy, Some(7), "Too many");
    check(Script::status(429, "{}").with_header("retry-after-ms", "2500"), Fault::Busy, Some(2), "");
    check(Script::status(529, "{}"), Fault::Busy, None, "overloaded");
    check(Script::status(500, &"x".repeat(1 << 20)), Fault::Server, None, "xxx");
    check(Script::status(413, ""), Fault::TooLong, None, "too long");
}

#[test]
fn a_redirect_is_not_followed_with_a_key() {
    let elsewhere =
        FaultServer::with(vec![Script::events(events(Wire::Chat, &text_answer("caught")))]).expect("a port");
    let script = Script::status(307, "").with_header("location", &elsewhere.url());
    let error = one(Wire::Chat, script).expect_err("not followed");
    assert_eq!((error.fault, error.status), (Fault::Refused, Some(307)));
    assert_eq!(elsewhere.connections(), 0);
}

#[test]
fn a_broken_connection_keeps_the_content_received() {
    for wire in WIRES {
        let all = events(wire, &text_answer(LONG));
        let check = |script: Script, fault: Fault| {
            let error = one(wire, script).expect_err("a broken stream");
            assert_eq!(error.fault, fault, "{wire:?} {}", error.message);
            assert!(error.retryable);
            assert!(LONG.starts_with(&text(&error.partial)));
            assert!(!text(&error.partial).is_empty(), "{wire:?}");
        };
        let good = || Script::events(all.clone());
        check(good().with_fault_after(5, ScriptStep::Cut), Fault::Network);
        check(good().with_fault_after(5, ScriptStep::Stall), Fault::Stalled);
        check(good().with_fault_after(5, ScriptStep::Send(b": the end\n\n".to_vec())), Fault::Cut);
        check(good().with(5, ScriptStep::Send(b"data: \xff\xfe\n\n".to_vec())), Fault::Protocol);
    }
}

#[test]
fn a_complete_answer_survives_a_broken_connection() {
    for wire in WIRES {
        let all = events(wire, &text_answer(LONG));
        let acts = if wire == Wire::Chat { all.len() - 2 } else { all.len() };
        let answer =
            one(wire, Script::events(all).with_fault_after(acts, ScriptStep::Cut)).expect("a whole answer");
        assert_eq!(text(&answer), LONG);
    }
}

#[test]
fn a_response_that_is_not_a_stream_is_detected() {
    let check = |kind: &str, body: &str, words: &str| {
        let mut script = Script::status(200, body);
        script.headers = vec![("content-type".to_owned(), kind.to_owned())];
        let error = one(Wire::Chat, script).expect_err("no stream");
        assert_eq!(error.fault, Fault::Protocol);
        assert!(error.message.contains(words), "{}", error.message);
    };
    check("application/json; charset=utf-8", r#"{"choices":[]}"#, "received JSON");
    check("text/html", "<html>", "received a web page");
    let script = Script::status(200, r#"{"error":{"code":429,"message":"Slow down."}}"#);
    let error =
        one(Wire::Chat, script.with_header("content-type", "application/json")).expect_err("a report");
    assert_eq!((error.fault, error.status), (Fault::Busy, Some(429)));
    assert!(error.message.starts_with("Slow down. [429] "), "{}", error.message);
}

#[test]
fn a_silent_server_times_out() {
    let script = Script { status: 200, headers: Vec::new(), acts: vec![ScriptStep::Stall] };
    let error = one(Wire::Chat, script).expect_err("nothing came");
    assert_eq!(error.fault, Fault::Stalled);
    let error = ask(&Client::new().expect("a client"), &endpoint(Wire::Chat, "http://127.0.0.1:1"))
        .expect_err("nobody");
    assert_eq!((error.fault, error.retryable), (Fault::Network, false));
    assert!(
        error.message.contains("the server of scripted is running at http://127.0.0.1:1 "),
        "{}",
        error.message
    );
    let error = ask(&Client::new().expect("a client"), &endpoint(Wire::Chat, "http://192.0.2.1"))
        .expect_err("unencrypted");
    assert_eq!(error.fault, Fault::Insecure);
}

#[test]
fn an_interrupt_closes_the_connection_at_once() {
    for acts in [0, 5] {
        let script = Script::events(events(Wire::Anthropic, &text_answer("hello world")))
            .with_fault_after(acts, ScriptStep::Stall);
        let server = FaultServer::with(vec![script]).expect("a port");
        let client = Client::new().expect("a client");
        let cancel = Cancel::new();
        let mut endpoint = endpoint(Wire::Anthropic, &server.url());
        endpoint.timeouts = Timeouts::default();
        let other = cancel.clone();
        let setter = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(150));
            other.set();
            Instant::now()
        });
        let error = client.call(&endpoint, &json!({}).into(), &cancel, &mut |_| {}).expect_err("interrupted");
        let late = setter.join().expect("the thread only sets it").elapsed();
        assert_eq!(error.fault, Fault::Interrupted);
        assert!(!error.retryable);
        assert!(late < Duration::from_millis(50), "{late:?}");
        assert_eq!(error.partial.is_empty(), acts == 0);
        let started = Instant::now();
        while server.disconnects() == 0 {
            assert!(started.elapsed() < Duration::from_secs(2), "the server still writes");
            std::thread::sleep(Duration::from_millis(5));
        }
        let error = client.call(&endpoint, &json!({}).into(), &cancel, &mut |_| {}).expect_err("still set");
        assert_eq!(error.fault, Fault::Interrupted);
    }
}

#[test]
fn an_endless_answer_takes_bounded_memory() {
    let piece = format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "x".repeat(1 << 20)}}]}));
    let script = Script::events(std::iter::repeat_n(piece, 16));
    let error = one(Wire::Chat, script).expect_err("too much");
    assert_eq!(error.fault, Fault::TooLarge);
    assert!(text(&error.partial).len() > 4 << 20);
    let script = Script::events(std::iter::repeat_n("data: no end of it".repeat(1 << 16), 16));
    assert_eq!(one(Wire::Chat, script).expect_err("too much").fault, Fault::TooLarge);
}

#[test]
fn encryption_works_or_the_error_explains_why_not() {
    let server =
        FaultServer::with(vec![Script::events(events(Wire::Chat, &text_answer(LONG)))]).expect("a port");
    let url = server.url().replace("http:", "https:");
    let error =
        ask(&Client::new().expect("a client"), &endpoint(Wire::Chat, &url)).expect_err("no encryption there");
    assert_eq!(error.fault, Fault::Network, "{}", error.message);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn in_chaos_every_call_ends_in_an_answer_or_an_error_with_the_content_received() {
    for wire in WIRES {
        let scripted = text_answer(LONG);
        let server =
            FaultServer::start(move |_, before| chaos(before as u64, 60, wire, &text_answer(LONG)).0)
                .expect("a port");
        let client = Client::new().expect("a client");
        let mut endpoint = endpoint(wire, &server.url());
        endpoint.timeouts = Timeouts {
            first_byte: Duration::from_millis(300),
            stall: Duration::from_millis(300),
            ..Timeouts::default()
        };
        let mut outcomes = std::collections::BTreeMap::<&str, usize>::new();
        for seed in 0..80 {
            let before = server.requests().len() as u64;
            let (_, planned) = chaos(before, 60, wire, &scripted);
            let mut shown = String::new();
            let answered =
                client.call(&endpoint, &json!({"seed": seed}).into(), &Cancel::new(), &mut |delta| {
                    if let Delta::Text(piece) = delta {
                        shown.push_str(&piece);
                    }
                });
            let received = match &answered {
                Ok(answer) => text(answer),
                Err(error) => text(&error.partial),
            };
            assert_eq!(received, shown, "{wire:?} {planned:?}");
            assert!(LONG.starts_with(&received), "{wire:?} {planned:?} {received}");
            assert_eq!(answered.is_ok(), planned.is_harmless(), "{wire:?} {planned:?} {answered:?}");
            *outcomes.entry(if answered.is_ok() { "good" } else { "bad" }).or_default() += 1;
        }
        assert!(outcomes["good"] > 15 && outcomes["bad"] > 15, "{outcomes:?}");
    }
    assert!(matches!(chaos(7, 0, Wire::Chat, &text_answer("x")).1, Chaos::None));
}

#[test]
fn keep_alives_without_content_time_out() {
    let mut script = Script::events(events(Wire::Chat, &text_answer(LONG)));
    for _ in 0..200 {
        script = script
            .with(1, ScriptStep::Send(": still here\n\n".into()))
            .with(1, ScriptStep::Pause(Duration::from_millis(50)));
    }
    let server = FaultServer::with(vec![script]).expect("a port");
    let mut endpoint = endpoint(Wire::Chat, &server.url());
    endpoint.timeouts.answer = Duration::from_millis(900);
    let start = Instant::now();
    let error = ask(&Client::new().expect("a client"), &endpoint).expect_err("it does not end");
    assert_eq!(error.fault, Fault::Overlong, "{}", error.message);
    assert!(error.message.contains("answer_seconds") && !error.fault.is_retryable(), "{}", error.message);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
