//! Oversized input: refused with little memory, and the server still works afterwards.
//!
//! The server runs in a separate process, so that its memory can be measured and a stack overflow detected.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use retake_testing::fault_server::{Script, ScriptStep};
use serde_json::{Value, json};

use crate::http::{Answer, Client, Request, connect, raw, read_answer};
use crate::process::Process;
use crate::reported_defects::scripted;
use crate::routes::Route;
use crate::scene::Scene;
use crate::world::{World, until};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// Sends a body of undeclared length in chunks until the server refuses; returns the number of bytes sent.
fn pour(request: &Request, bytes: u64) -> (Answer, u64) {
    let mut connection = connect(request.address()).expect("the server listens");
    let head = request.clone().header("Transfer-Encoding", "chunked").head(false);
    connection.write_all(&head).expect("the server reads");
    let answering = connection.try_clone().expect("a socket");
    let answer = std::thread::spawn(move || read_answer("a great deal", &mut BufReader::new(answering)));
    let piece = vec![b' '; 1 << 20];
    let mut sent = 0;
    while sent < bytes && !answer.is_finished() {
        let wrote = connection
            .write_all(format!("{:x}\r\n", piece.len()).as_bytes())
            .and_then(|()| connection.write_all(&piece))
            .and_then(|()| connection.write_all(b"\r\n"));
        if wrote.is_err() {
            break;
        }
        sent += piece.len() as u64;
    }
    // Everything was sent: end the body.
    let _ = connection.write_all(b"0\r\n\r\n");
    let answer = answer.join().expect("no panic");
    (answer.unwrap_or_else(|error| panic!("{} {}: {error}", request.method, request.path)), sent)
}

#[test]
fn a_body_of_a_gibibyte_is_refused_without_buffering() {
    let world = World::new();
    let mut server = Process::start(&world, None);
    let client = server.client();
    let scene = Scene::set(&client);
    let before = (server.most_memory(), client.sequence());
    for route in Route::all(&client).iter().filter(|route| route.kind.is_some()) {
        // A declared length is refused immediately.
        let request = route.request(&client, &scene);
        let head = request.clone().header("Content-Length", &GIB.to_string()).head(false);
        let answer = raw(client.address, &head).unwrap_or_else(|error| panic!("{}: {error}", route.name()));
        answer.refused(413, "body_too_large");
        // An undeclared one is refused when it exceeds the limit.
        let (answer, sent) = pour(&request, GIB);
        let problem = answer.refused(413, "body_too_large");
        let limit = problem["limit"].as_u64().expect("the limit is named");
        assert!(sent < limit + 32 * MIB, "{}: {sent} bytes were taken", route.name());
    }
    let taken = server.most_memory() - before.0;
    assert!(taken < 96 * MIB, "{} MiB were taken", taken / MIB);
    assert!(server.is_well());
    assert_eq!(client.sequence(), before.1);
}

/// A text with a hundred thousand opening brackets.
fn deep(open: &str, close: &str) -> String {
    const MAX_DEPTH: usize = 100_000;
    format!("{}1{}", open.repeat(MAX_DEPTH), close.repeat(MAX_DEPTH))
}

#[test]
fn json_nested_a_hundred_thousand_levels_is_refused_everywhere() {
    let world = World::new();
    let mut server = Process::start(&world, None);
    let client = server.client();
    let scene = Scene::set(&client);
    let document = client.get("/openapi.json").done();
    let before = client.sequence();
    for route in Route::all(&client).iter().filter(|route| route.kind.as_deref() == Some("application/json"))
    {
        let operation = &document["paths"][&route.path][route.method.to_lowercase()];
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let fields = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        for value in [deep("[", "]"), deep("{\"a\":", "}"), "[".repeat(100_000)] {
            let inside = fields.clone().chain(["unknown"]).map(|name| format!("{{{name:?}:{value}}}"));
            let entries =
                format!("{{\"entries\":[{{\"role\":\"User\",\"content\":\"x\",\"more\":{value}}}]}}");
            for body in inside.chain([value.clone(), entries]) {
                let started = Instant::now();
                let answer = route.request(&client, &scene).body("application/json", body.as_bytes()).send();
                let shown = &body[..body.len().min(60)];
                assert!((400..500).contains(&answer.status), "{} {shown}: {}", route.name(), answer.text());
                assert!(started.elapsed() < Duration::from_secs(2), "{} {shown}", route.name());
            }
        }
    }
    assert!(server.is_well());
    assert_eq!(client.sequence(), before);
}

/// Whether the server closed the connection; its last bytes, if any.
fn let_go(connection: &mut TcpStream) -> Option<Vec<u8>> {
    let mut response = Vec::new();
    connection.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket takes a time");
    match connection.read_to_end(&mut response) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
        _ => Some(response),
    }
}

#[test]
fn five_hundred_slow_clients_are_disconnected_and_block_nothing() {
    let world = World::new();
    let mut server = Process::start(&world, Some(Duration::from_millis(1500)));
    let client = server.client();
    let thread = client.thread("Busy");
    let before = server.most_memory();
    let body = json!({"entries": [{"role": "User", "content": "slowly"}]}).to_string();
    let request = client.request("POST", &format!("/v1/threads/{thread}/entries"));
    let request = request.header("Content-Type", "application/json");
    let head = request.header("Content-Length", &body.len().to_string()).head(false);
    let mut slow: Vec<TcpStream> = Vec::new();
    for number in 0..500 {
        let mut connection = connect(client.address).expect("there is room");
        // Half of them do not finish their headers.
        let first = if number % 2 == 0 { &head[..head.len() - 2] } else { &head[..] };
        connection.write_all(first).expect("the server reads");
        slow.push(connection);
    }
    // They keep sending slowly while others are served.
    let mut slowest = Duration::ZERO;
    for byte in body.bytes().take(8) {
        for (number, connection) in slow.iter_mut().enumerate() {
            let piece = if number % 2 == 0 { b'x' } else { byte };
            let _ = connection.write_all(&[piece]);
        }
        for _ in 0..3 {
            let started = Instant::now();
            client.get("/health").done();
            client.say(&thread, "User", "quickly");
            slowest = slowest.max(started.elapsed());
        }
    }
    assert!(slowest < Duration::from_secs(2), "others waited {slowest:?}");
    let mut timed_out = 0;
    for (number, connection) in slow.iter_mut().enumerate() {
        let response = let_go(connection).unwrap_or_else(|| panic!("client {number} is still waited for"));
        if number % 2 == 1 {
            let response = String::from_utf8_lossy(&response);
            assert!(
                response.starts_with("HTTP/1.1 408 ") && response.contains("request_timeout"),
                "{number}: {response}"
            );
            timed_out += 1;
        }
    }
    assert_eq!(timed_out, 250);
    assert_eq!(client.entries(&thread).len(), 24, "of the slow ones nothing is there");
    let taken = server.most_memory() - before;
    assert!(taken < 96 * MIB, "{} MiB were taken", taken / MIB);
    assert!(server.is_well());
}

#[test]
fn request_bodies_in_memory_have_a_common_limit() {
    let world = World::new();
    let mut server = Process::start(&world, Some(Duration::from_secs(2)));
    let client = server.client();
    let thread = client.thread("Large");
    let before = server.most_memory();
    let path = format!("/v1/threads/{thread}/entries");
    let request = client.request("POST", &path).header("Content-Type", "application/json");
    let head = request.header("Content-Length", &(16 * MIB).to_string()).head(false);
    let statuses: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let send = || {
            let mut connection = connect(client.address).expect("there is room");
            let piece = vec![b' '; 1 << 20];
            connection.write_all(&head).expect("the server reads");
            // Everything but the end, which is never sent.
            let _ = (0..15).try_for_each(|_| connection.write_all(&piece));
            let_go(&mut connection).expect("nobody is waited for without an end")
        };
        let clients: Vec<_> = (0..24).map(|_| scope.spawn(send)).collect();
        clients.into_iter().map(|client| client.join().expect("no panic")).collect()
    });
    let count = |start: &[u8]| statuses.iter().filter(|response| response.starts_with(start)).count();
    let (timed_out, no_room) = (count(b"HTTP/1.1 408 "), count(b"HTTP/1.1 503 "));
    assert!(timed_out >= 1 && no_room >= 1, "{timed_out} timed out, {no_room} found no room");
    let taken = server.most_memory() - before;
    assert!(taken < 256 * MIB, "{} MiB were taken", taken / MIB);
    // The reserved memory is free again: the same body, now complete, is accepted.
    let body = format!("{}{}", " ".repeat(15 << 20), json!({"entries": [{"content": "large"}]}));
    let again = client.request("POST", &path).body("application/json", body.as_bytes()).send();
    assert_eq!(again.status, 201, "{}", again.text());
    assert!(server.is_well());
}

#[test]
fn compressed_bodies_are_refused() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let body = json!({"title": "packed"}).to_string();
    for packing in ["gzip", "deflate", "br", "zstd", "gzip, gzip", "identity, gzip"] {
        let request = client.request("POST", "/v1/threads").body("application/json", body.as_bytes());
        request.header("Content-Encoding", packing).send().refused(415, "unsupported_media_type");
    }
    let head = client.request("POST", "/v1/threads").header("Content-Type", "application/json");
    let packed = head.header("Transfer-Encoding", "gzip, chunked").head(false);
    let answer = raw(client.address, &[packed.as_slice(), b"0\r\n\r\n"].concat());
    assert!(answer.is_ok_and(|answer| (400..500).contains(&answer.status)));
}

/// Sends bytes and returns the status, or `None` if the server closed the connection.
fn status_of(client: &Client, bytes: &[u8]) -> Option<u16> {
    raw(client.address, bytes).ok().map(|answer| answer.status)
}

#[test]
fn malformed_requests_are_refused_and_do_no_harm() {
    let world = World::new();
    let mut server = Process::start(&world, Some(Duration::from_millis(1500)));
    let client = server.client();
    let head = String::from_utf8(client.request("POST", "/v1/threads").head(false)).expect("text");
    let first = head.trim_end();
    let hostile: Vec<Vec<u8>> = vec![
        b"\0\0\0\0\r\n\r\n".to_vec(),
        b"GET /health\r\n\r\n".to_vec(),
        b"GET /health HTTP/9.9\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(200_000)).into_bytes(),
        format!("{first}\r\nX: {}\r\n\r\n", "a".repeat(200_000)).into_bytes(),
        format!("{first}\r\n{}\r\n", "X: y\r\n".repeat(500)).into_bytes(),
        format!("{first}\r\nX: a\0b\r\n\r\n").into_bytes(),
        format!("{first}\r\nContent-Length: -1\r\n\r\n").into_bytes(),
        format!("{first}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!").into_bytes(),
        format!("{first}\r\nContent-Length: 99999999999999999999999\r\n\r\n").into_bytes(),
        format!("{first}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").into_bytes(),
        format!("{first}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n")
            .into_bytes(),
        format!("{first}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").into_bytes(),
    ];
    for bytes in &hostile {
        let status = status_of(&client, bytes);
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{shown}: {status:?}");
    }
    assert!(server.is_well());
    assert_eq!(client.get("/v1/threads").done()["items"], Value::Array(Vec::new()));
}

/// Chunked encoding takes precedence over a length, and the server ignores further bytes on that connection:
/// a proxy that took them for the rest of a body must not smuggle in a request.
#[test]
fn a_request_with_two_lengths_closes_the_connection() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let request = client.request("POST", "/v1/threads").header("Content-Type", "application/json");
    for first in ["Content-Length", "Transfer-Encoding"] {
        let both = [("Content-Length", "7"), ("Transfer-Encoding", "chunked")];
        let mut request = request.clone();
        for (name, value) in
            both.iter().filter(|both| both.0 == first).chain(both.iter().filter(|both| both.0 != first))
        {
            request = request.header(name, value);
        }
        let mut connection = connect(client.address).expect("the server listens");
        let behind = client.request("GET", "/health").head(false);
        connection
            .write_all(&[request.head(false).as_slice(), b"2\r\n{}\r\n0\r\n\r\n", behind.as_slice()].concat())
            .expect("it is read");
        let response = let_go(&mut connection).expect("the server lets go");
        let response = String::from_utf8_lossy(&response).into_owned();
        assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{first} first: {response}");
    }
}

/// Authenticated connections that stay open.
fn kept(client: &Client, many: usize) -> Vec<TcpStream> {
    let open = |_| {
        let mut connection = connect(client.address).expect("a place");
        connection.write_all(&client.request("GET", "/health").head(true)).expect("the server reads");
        let mut first = [0; 12];
        connection.read_exact(&mut first).expect("an answer");
        assert_eq!(&first, b"HTTP/1.1 200");
        connection
    };
    (0..many).map(open).collect()
}

#[test]
fn requests_above_the_limit_wait_and_are_served() {
    let limits = retake_api::Limits {
        connections: 8,
        head: Duration::from_millis(700),
        ..retake_api::Limits::default()
    };
    let world = World::with(limits);
    let server = world.serve();
    let idle = kept(&server.client(), 8);
    let started = Instant::now();
    server.client().get("/health").done();
    let waited = started.elapsed();
    assert!(waited > Duration::from_millis(200) && waited < Duration::from_secs(5), "{waited:?}");
    drop(idle);
}

#[test]
fn unauthenticated_connections_displace_no_others() {
    let world = World::new();
    let mut server = Process::start(&world, None);
    let client = server.client();
    let streams = kept(&client, 20);
    let idle: Vec<TcpStream> = (0..1_150).map_while(|_| connect(client.address).ok()).collect();
    assert!(idle.len() > 1_000, "{} connections", idle.len());
    let slowest = (0..20)
        .map(|_| {
            let started = Instant::now();
            client.get("/health").done();
            started.elapsed()
        })
        .max();
    assert!(slowest < Some(Duration::from_secs(1)), "{slowest:?}");
    // The server gives each connection a moment to send a request before it closes it.
    let open = || {
        let metrics = client.get("/metrics").text();
        let gauge = metrics.lines().find_map(|line| line.strip_prefix("retake_connections "));
        gauge.expect("a gauge").parse::<usize>().expect("a number")
    };
    let started = Instant::now();
    while open() > 160 {
        assert!(started.elapsed() < Duration::from_secs(1), "{} are open", open());
        std::thread::sleep(Duration::from_millis(20));
    }
    // Only unauthenticated connections are closed to make room.
    for mut connection in streams {
        connection.write_all(&client.request("GET", "/health").head(true)).expect("it is open");
    }
    // Soon all idle ones are closed.
    for mut connection in idle {
        assert!(let_go(&mut connection).is_some(), "it is still open");
    }
    assert!(server.is_well());
}

/// Repetitive JSON: small on the wire, large in memory.
fn many(item: &str, bytes: usize) -> String {
    format!("[{}{item}]", format!("{item},").repeat(bytes / (item.len() + 1)))
}

#[test]
fn json_that_expands_in_memory_is_refused_everywhere() {
    let world = World::new();
    let mut server = Process::start(&world, None);
    let client = server.client();
    let scene = Scene::set(&client);
    let document = client.get("/openapi.json").done();
    let before = (server.most_memory(), client.sequence());
    for route in Route::all(&client).iter().filter(|route| route.kind.as_deref() == Some("application/json"))
    {
        let operation = &document["paths"][&route.path][route.method.to_lowercase()];
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let fields = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let kinds = [many("0", 1_100_000), many("{\"a\":0}", 1_400_000)];
        for (name, value) in fields.chain(["unknown"]).zip(kinds.iter().cycle()) {
            let body = format!("{{{name:?}:{value}}}");
            let answer = route.request(&client, &scene).body("application/json", body.as_bytes()).send();
            answer.refused(413, "body_too_large");
        }
    }
    let taken = server.most_memory() - before.0;
    assert!(taken < 64 * MIB, "{} MiB were taken", taken / MIB);
    assert!(server.is_well());
    assert_eq!(client.sequence(), before.1);
}

#[test]
fn concurrent_requests_with_the_largest_allowed_json_take_bounded_memory() {
    let world = World::new();
    let mut server = Process::start(&world, None);
    let client = server.client();
    let scene = Scene::set(&client);
    let before = server.most_memory();
    let path = format!("/api/fields/draft?thread={}", scene.thread);
    let body = format!("{{\"value\":{}}}", many("{\"a\":0}", 1_320_000));
    let request = client.request("PUT", &path).body("application/json", body.as_bytes());
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..6).map(|_| scope.spawn(|| request.send().status)).collect();
        // Small requests are served at the same time.
        for number in 0..20 {
            client.say(&scene.thread, "User", &number.to_string());
        }
        clients.into_iter().map(|client| client.join().expect("an answer")).collect()
    });
    assert!(statuses.iter().all(|status| *status == 422), "they wait for each other: {statuses:?}");
    let taken = server.most_memory() - before;
    assert!(taken < 768 * MIB, "{} MiB were taken", taken / MIB);
    assert!(server.is_well());
}

#[test]
fn the_number_of_entries_added_at_once_is_limited() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Many");
    let add = |count: usize| {
        let entries = vec![json!({"content": "x"}); count];
        client.post(&format!("/v1/threads/{thread}/entries"), &json!({"entries": entries}))
    };
    add(10_001).refused(422, "refused");
    add(10_000).done();
}

#[test]
fn a_page_of_large_entries_has_fewer_of_them() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Large");
    for number in 0..12 {
        client.say(&thread, "User", &format!("{number}{}", "x".repeat(1 << 20)));
    }
    client.say(&thread, "User", &"y".repeat(10 << 20));
    for number in 0..120 {
        client.say(&thread, "User", &format!("small {number}"));
    }
    let (mut cursor, mut seen, mut pages) = (String::new(), 0, 0);
    loop {
        let page = client.get(&format!("/v1/threads/{thread}/entries?limit=500{cursor}"));
        // A page contains the text of an entry twice.
        assert!(page.body.len() < 24 << 20, "a page of {} bytes", page.body.len());
        let page = page.done();
        for item in page["items"].as_array().expect("a list") {
            seen += 1;
            assert_eq!(item["number"], seen, "no entry is left out, and none comes twice");
        }
        pages += 1;
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, 133);
    assert!((3..=5).contains(&pages), "large entries take several pages, and small ones do not: {pages}");
}

#[test]
fn requests_that_wait_for_a_model_are_limited_and_block_no_others() {
    let limits = retake_api::Limits {
        workers: 3,
        models: 2,
        queue: Duration::from_millis(300),
        ..retake_api::Limits::default()
    };
    let stalled = || Script::events([]).with(0, ScriptStep::Stall);
    let (model, setup) = scripted((0..8).map(|_| stalled()).collect());
    let world = World::with(limits);
    let server = world.serve_with(setup);
    let client = server.client();
    let scenes: Vec<Scene> = (0..4).map(|_| Scene::set(&client)).collect();
    let compress = |scene: &Scene| {
        client
            .request("POST", &format!("/v1/threads/{}/compress", scene.thread))
            .json(&json!({"keep": 1}))
            .try_send()
    };
    std::thread::scope(|scope| {
        for scene in &scenes[..2] {
            scope.spawn(move || compress(scene));
        }
        until("both ask the model", || model.requests().len() == 2);
        for scene in &scenes[2..] {
            let refused = compress(scene).expect("an answer");
            refused.refused(429, "too_many");
            assert!(refused.header("retry-after").is_some());
            // The callback of the same name, too.
            let path = format!("/api/callbacks/compress?thread={}", scene.thread);
            client.post(&path, &json!({"arguments": {"keep": 1}})).refused(429, "too_many");
        }
        client.get("/v1/threads").done();
        client.say(&scenes[0].thread, "User", "meanwhile");
        server.tell_to_stop();
    });
}

#[test]
fn an_overloaded_server_still_reports_its_health() {
    let limits =
        retake_api::Limits { workers: 0, queue: Duration::from_millis(200), ..retake_api::Limits::default() };
    let world = World::with(limits);
    let server = world.serve();
    let client = server.client();
    client.get("/v1/threads").refused(503, "unavailable");
    client.get("/health").done();
    assert_eq!(client.get("/metrics").status, 200);
}
