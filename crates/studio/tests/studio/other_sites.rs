//! A page of another site in the same browser cannot read, change or show anything of the studio.
//!
//! ```text
//!   foreign page (another port, another name) ──fetch, form, img, script, WebSocket, EventSource, iframe──▶ retake serve
//! ```
//!
//! The browser is logged in, so that it sends its cookies. `127.0.0.1` and `localhost` are different sites; two ports
//! of one host are the same site, and the server still distinguishes them.

use std::io::{Read, Write};
use std::net::TcpStream;

use retake_testing::fault_server::{FaultServer, Script};
use serde_json::json;

use crate::studio::Studio;
use crate::views::api;

const PAGE: &str = "<!doctype html><title>stranger</title><body>";

/// Tries everything that a page can do to another server; returns what it learned.
const ATTEMPTS: &str = r#"
const [server, thread] = arguments;
const known = [];
const change = `${server}/v1/threads/${thread}/entries`;
const body = JSON.stringify({ entries: [{ content: "by a stranger" }] });
const bodies = [undefined, "text/plain", "application/json", "application/x-www-form-urlencoded"];
for (const credentials of ["include", "omit"]) {
  for (const mode of ["cors", "no-cors"]) {
    for (const path of ["/studio", `/studio/threads/${thread}`, "/v1/threads", "/openapi.json", "/health", "/studio/studio.js"]) {
      try {
        const answer = await fetch(server + path, { credentials, mode });
        if (answer.type !== "opaque" || (await answer.text()) !== "") known.push(`${mode} ${path}: ${answer.status}`);
      } catch {}
    }
    for (const type of bodies) {
      for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
        try {
          const headers = type ? { "Content-Type": type } : {};
          const answer = await fetch(change, { method, body, headers, credentials, mode });
          if (answer.type !== "opaque") known.push(`${method} ${type}: ${answer.status}`);
        } catch {}
      }
    }
  }
}
navigator.sendBeacon(change, body);
const loaded = (element, address) => new Promise((done) => {
  element.onload = () => { known.push(`<${element.localName}> loaded`); done(); };
  element.onerror = done;
  element[element.localName === "link" ? "href" : "src"] = address;
  document.body.append(element);
  setTimeout(done, 1500);
});
await loaded(new Image(), `${server}/studio/icon.svg`);
await loaded(document.createElement("script"), `${server}/studio/studio.js`);
await loaded(Object.assign(document.createElement("link"), { rel: "stylesheet" }), `${server}/studio/studio.css`);
await new Promise((done) => {
  const events = new EventSource(`${server}/v1/events?after=0`, { withCredentials: true });
  events.onopen = events.onmessage = () => { known.push("events"); done(); };
  events.onerror = () => { events.close(); done(); };
});
await new Promise((done) => {
  const socket = new WebSocket(`${server.replace("http", "ws")}/v1/events`);
  socket.onopen = () => { known.push("a socket"); done(); };
  socket.onerror = done;
});
const frame = document.createElement("iframe");
frame.name = "frame";
frame.src = `${server}/studio/threads/${thread}`;
document.body.append(frame);
const form = document.createElement("form");
Object.assign(form, { method: "post", action: change, target: "frame", enctype: "text/plain" });
const field = Object.assign(document.createElement("input"), { name: '{"entries":[{"content":"by a form","x":"', value: '"}]}' });
form.append(field);
document.body.append(form);
await new Promise((done) => setTimeout(done, 500));
try { if (frame.contentDocument?.body?.textContent) known.push("the frame's text"); } catch {}
form.submit();
await new Promise((done) => setTimeout(done, 500));
const opened = window.open(`${server}/studio/threads/${thread}`);
await new Promise((done) => setTimeout(done, 500));
try { if (opened?.document?.title) known.push("the window's title"); } catch {}
opened?.close();
return known;
"#;

#[test]
fn a_page_of_another_site_can_neither_read_nor_change() {
    let studio = Studio::with_thread();
    studio.ask("say something");
    let thread = studio.thread();
    let before = studio.entries();
    let page = Script::status(200, PAGE);
    let page = Script { headers: vec![("content-type".to_owned(), "text/html".to_owned())], ..page };
    let stranger = FaultServer::with(vec![page]).expect("a port is free");
    let port = stranger.url().rsplit(':').next().expect("there is a port").to_owned();
    // The same host at another port, and another name, which is another site for the browser.
    for host in ["127.0.0.1", "localhost"] {
        studio.browser.go(&format!("http://{host}:{port}/"));
        let known = studio.browser.run(&wrapped(ATTEMPTS), &[json!(studio.server.url), json!(thread)]);
        assert_eq!(known, json!([]), "as {host}");
    }
    studio.browser.go(&format!("{}/studio/threads/{thread}", studio.server.url));
    studio.browser.until("document.getElementById('conversation')");
    assert_eq!(studio.entries(), before, "{:?}", studio.browser.texts(".entry"));
    let history = api(&studio.browser, "GET", &format!("/v1/threads/{thread}/history"), &json!(null));
    assert!(!history.to_string().contains("stranger"), "{history}");
}

/// Control: the same attempts from the studio's own page succeed.
#[test]
fn the_same_requests_by_the_studio_succeed() {
    let studio = Studio::with_thread();
    let arguments = [json!(studio.server.url), json!(studio.thread())];
    let known = studio.browser.run(&wrapped(ATTEMPTS), &arguments).to_string();
    for done in
        ["cors /v1/threads: 200", "POST application/json: 201", "events", "<script> loaded", "<img> loaded"]
    {
        assert!(known.contains(done), "{done} is not in {known}");
    }
}

/// DNS rebinding: an attacker's host name that resolves to this machine is refused.
#[test]
fn another_host_name_is_refused() {
    let studio = Studio::with_thread();
    let address = studio.server.url.trim_start_matches("http://").to_owned();
    let token = studio.server.sandbox.done(&["serve", "token"]).trim().to_owned();
    let port = address.rsplit(':').next().expect("there is a port").to_owned();
    let status = |host: &str, further: &str| {
        let mut connection = TcpStream::connect(&address).expect("the server listens");
        let request = format!(
            "GET /v1/threads HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{further}Connection: close\r\n\r\n"
        );
        connection.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("it answers");
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status(&address, ""), "200");
    for host in [
        "evil.example",
        &format!("evil.example:{port}"),
        "127.0.0.1.evil.example",
        "0.0.0.0",
        "[::ffff:1.2.3.4]",
        "",
    ] {
        assert!(status(host, "").starts_with('4'), "{host:?}: {}", status(host, ""));
    }
    assert!(status(&address, "Host: evil.example\r\n").starts_with('4'));
    assert!(status(&address, "Origin: http://evil.example\r\n").starts_with('4'));
    assert!(status(&address, "Origin: null\r\n").starts_with('4'));
}

#[test]
fn the_studio_refuses_to_be_framed() {
    let studio = Studio::with_thread();
    let address = format!("{}/studio/threads/{}", studio.server.url, studio.thread());
    let script = "return fetch(arguments[0]).then((answer) => [...answer.headers].map(([name, value]) => `${name}: ${value}`));";
    let headers = studio.browser.run(script, &[json!(address)]).to_string();
    for part in [
        "frame-ancestors 'none'",
        "default-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "nosniff",
        "no-referrer",
    ] {
        assert!(headers.contains(part), "{part} is not in {headers}");
    }
    assert!(!headers.contains("unsafe-inline") && !headers.contains("access-control-allow"), "{headers}");
}

fn wrapped(script: &str) -> String {
    format!("return (async function () {{ {script} }}).apply(null, arguments);")
}
