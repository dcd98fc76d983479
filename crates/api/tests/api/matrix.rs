//! Every route × every reason for refusal. The routes come from the `OpenAPI` document.
//!
//! A refusal counts only if the same request passes with the right credential, so each row ends with that
//! control. No refused request may leave a trace in the log.

use crate::http::{Answer, Request};
use crate::routes::Route;
use crate::scene::Scene;
use crate::world::World;

/// Reasons for denying access, regardless of the route.
const KEPT_OUT: [&str; 4] =
    ["unauthorized", "host_not_allowed", "origin_not_allowed", "unsupported_media_type"];

/// A way to invalidate a request, and the expected response.
type BrokenRequest = (&'static str, fn(Request) -> Request, u16, &'static str);

const BROKEN_REQUESTS: &[BrokenRequest] = &[
    ("no token", |request| request.without("Authorization"), 401, "unauthorized"),
    ("a wrong token", |request| request.header("Authorization", WRONG), 401, "unauthorized"),
    ("an empty token", |request| request.header("Authorization", "Bearer "), 401, "unauthorized"),
    ("another scheme", |request| request.header("Authorization", "Basic OnJldGFrZQ=="), 401, "unauthorized"),
    ("an unknown cookie", unknown_cookie, 401, "unauthorized"),
    ("a foreign host", |request| request.header("Host", "evil.test"), 403, "host_not_allowed"),
    ("a host like ours", |request| request.header("Host", "127.0.0.1.evil.test"), 403, "host_not_allowed"),
    ("no host", |request| request.without("Host"), 403, "host_not_allowed"),
    ("a foreign origin", |request| request.header("Origin", "https://evil.test"), 403, "origin_not_allowed"),
    ("no origin to speak of", |request| request.header("Origin", "null"), 403, "origin_not_allowed"),
    ("our name at another port", |request| request.header("Origin", "http://127.0.0.1:1"), 403, FOREIGN),
    ("a page of another site", |request| request.header("Sec-Fetch-Site", "cross-site"), 403, FOREIGN),
];

/// Content types that any site can send without a preflight, and encodings that the server does not decode.
const WRONG_KINDS: &[BrokenRequest] = &[
    ("a form", |request| request.header("Content-Type", "application/x-www-form-urlencoded"), 415, KIND),
    ("a form with files", |request| request.header("Content-Type", "multipart/form-data"), 415, KIND),
    ("text", |request| request.header("Content-Type", "text/plain"), 415, KIND),
    ("no kind", |request| request.without("Content-Type"), 415, KIND),
    ("something packed", |request| request.header("Content-Encoding", "gzip"), 415, KIND),
    ("another alphabet", other_alphabet, 415, KIND),
];

const WRONG: &str = "Bearer retake_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const FOREIGN: &str = "origin_not_allowed";
const KIND: &str = "unsupported_media_type";

fn unknown_cookie(request: Request) -> Request {
    request.without("Authorization").header("Cookie", "retake=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
}

fn other_alphabet(request: Request) -> Request {
    request.header("Content-Type", "application/json; charset=latin1")
}

/// Checks that apply to every response.
fn says_nothing_to_others(what: &str, answer: &Answer) {
    for (name, _) in &answer.headers {
        assert!(!name.to_lowercase().starts_with("access-control-"), "{what}: {name}");
    }
    for (name, value) in [("cache-control", "no-store"), ("x-content-type-options", "nosniff")] {
        assert_eq!(answer.header(name), Some(value), "{what}");
    }
    assert!(answer.header("x-request-id").is_some_and(|name| !name.is_empty()), "{what}");
}

#[test]
fn every_route_requires_a_credential() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let scene = Scene::set(&client);
    let routes = Route::all(&client);
    let before = client.sequence();
    for route in &routes {
        let right = route.request(&client, &scene);
        let kinds = if route.kind.is_some() { WRONG_KINDS } else { &[] };
        for (what, spoil, status, code) in BROKEN_REQUESTS.iter().chain(kinds) {
            let answer = spoil(right.clone()).send();
            let row = format!("{} with {what}", route.name());
            assert_eq!((answer.status, answer.code().as_str()), (*status, *code), "{row}: {}", answer.text());
            answer.refused(*status, code);
            says_nothing_to_others(&row, &answer);
            if *status == 401 {
                assert!(answer.header("www-authenticate").is_some(), "{row}");
            }
        }
    }
    assert_eq!(client.sequence(), before, "a request that was refused left something in the log");
    // Control: the requests above are refused because of their defect.
    for route in &routes {
        let answer = route.request(&client, &scene).send();
        assert!(!KEPT_OUT.contains(&answer.code().as_str()), "{}: {}", route.name(), answer.text());
        assert!(answer.status < 500, "{}: {}", route.name(), answer.text());
        says_nothing_to_others(&route.name(), &answer);
    }
    assert!(client.sequence() > before, "the control changes something");
}

#[test]
fn a_replaced_token_is_refused_by_every_route() {
    let world = World::new();
    let server = world.serve();
    let old = server.client();
    let scene = Scene::set(&old);
    let routes = Route::all(&old);
    let requests: Vec<Request> = routes.iter().map(|route| route.request(&old, &scene)).collect();
    world.token().rotate().expect("a new token is written");
    let new = server.client();
    let before = new.sequence();
    for request in &requests {
        request.send().refused(401, "unauthorized");
    }
    assert_eq!(new.sequence(), before);
    for route in &routes {
        let answer = route.request(&new, &scene).send();
        assert!(!KEPT_OUT.contains(&answer.code().as_str()), "{}: {}", route.name(), answer.text());
    }
}

#[test]
fn undocumented_routes_require_a_credential_too() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    for path in
        ["/", "/logout", "/nowhere", "/v1/", "/v1/threads/", "//v1/threads", "/docs/../v1/threads", "/login"]
    {
        for method in ["GET", "POST", "OPTIONS", "HEAD", "TRACE", "PROPFIND"] {
            let request = client.request(method, path).without("Authorization");
            let answer = if method == "HEAD" { request.send_head() } else { request.send() };
            assert_eq!(answer.status, 401, "{method} {path}");
            says_nothing_to_others(path, &answer);
        }
    }
    // A preflight request of a browser for a page of another site.
    let asked = client
        .request("OPTIONS", "/v1/threads")
        .without("Authorization")
        .header("Origin", "https://evil.test");
    let answer = asked.header("Access-Control-Request-Method", "POST").send();
    answer.refused(403, "origin_not_allowed");
    says_nothing_to_others("a preflight", &answer);
    // Control.
    client.get("/nowhere").refused(404, "no_such_route");
    let other = client.delete("/v1/threads");
    other.refused(405, "method_not_allowed");
    assert_eq!(other.header("allow"), Some("GET, POST"));
}

#[test]
fn a_request_has_exactly_one_valid_host() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let check = |lines: &str, path: &str, expected: &[u16]| {
        let (address, token) = (client.address, client.token());
        let text = format!(
            "GET {path} HTTP/1.1\r\n{lines}Authorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        )
        .replace("ADDRESS", &address.to_string());
        let status = crate::http::raw(address, text.as_bytes()).map(|answer| answer.status);
        let status = status.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(expected.contains(&status), "{text}: {status}");
    };
    check("Host: ADDRESS\r\n", "/health", &[200]);
    check("Host: localhost\r\n", "/health", &[200]);
    check("Host: ADDRESS\r\n", "http://ADDRESS/health", &[200]);
    check("Host: ADDRESS\r\n", "http://evil.test/health", &[403]);
    check("Host: evil.test\r\n", "http://ADDRESS/health", &[403]);
    check("Host: ADDRESS\r\nHost: evil.test\r\n", "/health", &[400, 403]);
    check("Host: evil.test\r\nHost: ADDRESS\r\n", "/health", &[400, 403]);
    check("Host: user@127.0.0.1\r\n", "/health", &[400, 403]);
    check("Host: \r\n", "/health", &[400, 403]);
}
