//! HTTP details: several requests per connection, `Expect: 100-continue`, chunked bodies.

use std::io::{BufReader, Read, Write};
use std::time::Duration;

use serde_json::json;

use crate::http::{connect, read_answer};
use crate::world::World;

#[test]
fn requests_that_come_over_one_connection_are_answered_in_order() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let mut connection = connect(server.address).expect("there is room");
    let paths = ["/health", "/v1/threads", "/nowhere", "/health"];
    let heads: Vec<u8> = paths.iter().flat_map(|path| client.request("GET", path).head(true)).collect();
    connection.write_all(&heads).expect("the server reads");
    let mut reader = BufReader::new(connection);
    let statuses = paths.map(|path| read_answer(path, &mut reader).expect("an answer").status);
    assert_eq!(statuses, [200, 200, 404, 200]);
}

#[test]
fn expect_continue_is_answered_only_if_the_body_is_needed() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let body = json!({"title": "Waited"}).to_string();
    let request = client.request("POST", "/v1/threads").header("Content-Type", "application/json");
    let request = request.header("Expect", "100-continue").header("Content-Length", &body.len().to_string());
    let mut connection = connect(server.address).expect("there is room");
    connection.write_all(&request.head(false)).expect("the server reads");
    let mut response = [0; 25];
    connection.read_exact(&mut response).expect("a word");
    assert_eq!(&response, b"HTTP/1.1 100 Continue\r\n\r\n");
    connection.write_all(body.as_bytes()).expect("the server reads");
    let answer = read_answer("a body", &mut BufReader::new(connection)).expect("an answer");
    assert_eq!(answer.status, 201, "{}", answer.text());
    // Refused requests get their response immediately.
    for (spoilt, status) in [
        (request.clone().without("Authorization"), 401),
        (request.clone().header("Content-Length", "99999999999"), 413),
        (request.header("Content-Type", "text/plain"), 415),
    ] {
        let mut connection = connect(server.address).expect("there is room");
        connection.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket takes a time");
        connection.write_all(&spoilt.head(false)).expect("the server reads");
        let answer = read_answer("a body", &mut BufReader::new(connection)).expect("an answer");
        assert_eq!(answer.status, status, "{}", answer.text());
    }
}

#[test]
fn chunked_bodies_and_charset_parameters_are_accepted() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let request = client.request("POST", "/v1/threads").header("Transfer-Encoding", "chunked");
    for kind in ["application/json", "Application/JSON; charset=UTF-8", "application/json;charset=\"utf-8\";"]
    {
        let head = request.clone().header("Content-Type", kind).head(false);
        let mut connection = connect(server.address).expect("there is room");
        connection.write_all(&head).expect("the server reads");
        for piece in ["{", "\"private\"", ":true", "}"] {
            write!(connection, "{:x}\r\n{piece}\r\n", piece.len()).expect("the server reads");
        }
        connection.write_all(b"0\r\n\r\n").expect("the server reads");
        let answer = read_answer("pieces", &mut BufReader::new(connection)).expect("an answer");
        assert_eq!(answer.status, 201, "{kind}: {}", answer.text());
    }
}

#[test]
fn bodies_are_sent_and_accepted_only_where_expected() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let head = client.request("HEAD", "/health").send_head();
    assert_eq!(head.status, 200);
    // A route with only optional fields needs no body; one without a body refuses it.
    assert_eq!(client.request("POST", "/v1/threads").send().status, 201);
    client.request("GET", "/v1/threads").json(&json!({})).send().refused(400, "invalid_request");
}
