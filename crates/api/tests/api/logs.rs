//! The log has requests and results, but no secrets: no token, cookie or body.

use std::path::Path;
use std::time::Duration;

use retake_api::new_login_link;
use serde_json::{Value, json};

use crate::process::{Process, log_of};
use crate::world::World;

/// Occurs in bodies, queries and headers, and must not occur in the log.
const SECRET: &str = "xyzzy-nobody-may-read-this";

/// The secrets that a text contains.
fn found<'a>(text: &str, secrets: &[&'a str]) -> Vec<&'a str> {
    secrets.iter().copied().filter(|secret| text.contains(secret)).collect()
}

#[test]
fn the_log_has_every_request_and_no_secret() {
    let world = World::new();
    let server = Process::start(&world, Some(Duration::from_millis(500)));
    let client = server.client();
    let timeline = world.timeline();
    let link = new_login_link(
        &timeline.store().runtime_database().expect("a ledger"),
        &world.token().read().expect("a token"),
        timeline.now(),
    )
    .expect("a link");
    let entered = client.request("GET", &link).without("Authorization").send();
    let cookie =
        entered.header("set-cookie").expect("a cookie").split(';').next().expect("a value").to_owned();
    let ticket = link.rsplit('/').next().expect("a ticket").to_owned();
    client.request("GET", &link).without("Authorization").send().refused(401, "unauthorized");
    // A valid request, and one invalid request per message.
    let thread = client.thread(SECRET);
    let added = client.say(&thread, "User", SECRET);
    assert_eq!(added["version"], 2);
    let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    client.request("GET", "/v1/threads").without("Authorization").header("Cookie", &cookie).send().done();
    client.get(&format!("/v1/threads?title={SECRET}")).done();
    client.request("GET", "/v1/threads").header("Authorization", &format!("Bearer {SECRET}")).send();
    client.request("GET", "/v1/threads").header("Host", SECRET).send();
    client.request("GET", "/v1/threads").header("Origin", SECRET).send();
    client
        .request("POST", "/v1/threads")
        .json(&json!({SECRET: SECRET}))
        .send()
        .refused(400, "invalid_request");
    client.request("POST", "/v1/threads").json(&json!({})).key(SECRET).send().done();
    client.request("POST", "/v1/threads").body(SECRET, SECRET.as_bytes()).send();
    client.post(&at("rename"), &json!({"title": SECRET.repeat(100)})).refused(422, "refused");
    client.get(&format!("/v1/events?after={SECRET}")).refused(400, "invalid_request");
    client
        .request("GET", "/v1/events")
        .header("Last-Event-ID", SECRET)
        .send()
        .refused(400, "invalid_request");
    client.prompt(&thread, &format!("say {SECRET} then fail always"));
    client.post(&at("turn/interrupt"), &json!({}));
    client.idle(&thread);
    let mut stream = client.events(0);
    while stream.next(Duration::from_millis(100)).is_some() {}
    // Without a token all access is denied, and only the log gives the reason.
    let token = client.token().to_owned();
    let away = world.folder().join("token");
    std::fs::rename(world.token().path(), &away).expect("our folder");
    assert_eq!(client.get("/health").status, 401);
    std::fs::rename(&away, world.token().path()).expect("our folder");
    let name = client.get("/health").header("x-request-id").expect("a name").to_owned();
    let metrics = client.get("/metrics").text();
    drop((stream, server));

    let log = std::fs::read_to_string(log_of(&world)).expect("there is a log");
    let cookie = cookie.split_once('=').expect("a name and a value").1;
    let secrets = [SECRET, token.as_str(), cookie, &ticket];
    assert_eq!(found(&log, &secrets), Vec::<&str>::new(), "{log}");
    assert_eq!(found(&metrics, &secrets), Vec::<&str>::new(), "{metrics}");
    // Control: the expected fields are in the log.
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let answered = || lines.iter().filter(|line| line["message"] == "answered");
    let last = answered().find(|line| line["request"] == name.as_str()).expect("the request is there");
    assert_eq!(
        (&last["method"], &last["path"], &last["status"]),
        (&json!("GET"), &json!("/health"), &json!(200))
    );
    assert!(last["micros"].as_u64().is_some_and(|micros| micros > 0));
    let entering = answered().filter(|line| line["path"] == "/login/").count();
    assert_eq!(entering, 2, "a link is logged without what makes it one");
    assert!(answered().any(|line| line["route"] == "/v1/threads/{thread}/entries" && line["status"] == 201));
    secrets_are_kept_as_hashes(&world.store(), &[&token, cookie, &ticket]);
}

/// The store contains the token only in the token file.
fn secrets_are_kept_as_hashes(store: &Path, secrets: &[&str]) {
    let mut looked_at = 0;
    for entry in std::fs::read_dir(store).expect("our folder") {
        let path = entry.expect("readable").path();
        let Ok(bytes) = std::fs::read(&path) else { continue };
        looked_at += 1;
        let text = String::from_utf8_lossy(&bytes);
        let own = path.file_name().is_some_and(|name| name == "serve.token");
        assert_eq!(found(&text, secrets).len(), usize::from(own), "{}", path.display());
    }
    assert!(looked_at > 2, "the store has files");
}
