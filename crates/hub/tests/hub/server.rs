//! The server over HTTP, on the embedded database.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use retake_hub::http::{ServeOptions, serve};
use retake_hub::service::Settings;
use retake_hub::{access, accounts};
use retake_sync::wire::Role;
use retake_testing::{HttpAnswer, HttpClient};

use crate::equipment::{Account, TestBundle, TestHub, next, noise, sqlite, thread};

/// A running server.
pub(crate) struct Server {
    pub(crate) hub: TestHub,
    pub(crate) address: SocketAddr,
    metrics: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let hub = TestHub::on(sqlite, Settings::default());
        let stop = Arc::new(AtomicBool::new(false));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let options = ServeOptions {
            address: any,
            metrics: Some(any),
            connections: 64,
            workers: 8,
            behind_proxy: false,
        };
        let (sender, receiver) = std::sync::mpsc::channel();
        let (shared, stopper) = (Arc::clone(&hub.hub), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            serve(&shared, &options, &stopper, |address, metrics| {
                sender.send((address, metrics.expect("an address"))).expect("a test");
            })
            .expect("a server");
        });
        let (address, metrics) = receiver.recv().expect("an address");
        Self { hub, address, metrics, stop, thread: Some(thread) }
    }

    fn client(&self) -> HttpClient {
        HttpClient::new(self.address)
    }

    fn ask(&self, by: Option<&Account>, method: &str, target: &str, body: &[u8]) -> HttpAnswer {
        ask(&mut self.client(), by, method, target, body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a clean end");
        }
    }
}

fn ask(client: &mut HttpClient, by: Option<&Account>, method: &str, target: &str, body: &[u8]) -> HttpAnswer {
    let token = by.map(|account| format!("Bearer {}", account.token));
    let headers: Vec<(&str, &str)> = token.iter().map(|token| ("authorization", token.as_str())).collect();
    client.send(method, target, &headers, body).expect("an answer")
}

fn push_body(bundle: &TestBundle) -> Vec<u8> {
    let mut body = serde_json::to_vec(&bundle.request).expect("a request");
    body.push(b'\n');
    body.extend(&bundle.bytes);
    body
}

#[test]
fn a_device_logs_in_pushes_and_reads() {
    let server = Server::start();
    let ada = server.hub.account("ada");
    let started = server.ask(None, "POST", "/v1/auth/device", br#"{"name":"phone"}"#).json();
    let code = serde_json::json!({"user_code": started["user_code"]}).to_string();
    assert_eq!(server.ask(Some(&ada), "POST", "/v1/auth/approve", code.as_bytes()).status, 204);
    let question = serde_json::json!({"device_code": started["device_code"]}).to_string();
    let done = server.ask(None, "POST", "/v1/auth/token", question.as_bytes());
    assert_eq!(done.status, 200, "{}", done.json());
    let token = done.json()["token"].as_str().expect("a token").to_owned();
    let phone = Account { token, ..server.hub.account("other") };
    let account = server.ask(Some(&phone), "GET", "/v1/account", b"").json();
    assert_eq!(account["account"], "ada");
    let space = account["spaces"][0]["id"].as_str().expect("a space").to_owned();

    let id = thread(1);
    let one = next(id, None, &noise(1, 1000));
    let pushed = server.ask(Some(&phone), "POST", &format!("/v1/s/{space}/t/{id}/push"), &push_body(&one));
    assert_eq!((pushed.status, pushed.json()["seq"].as_u64()), (200, Some(1)), "{}", pushed.json());
    let again = server.ask(Some(&phone), "POST", &format!("/v1/s/{space}/t/{id}/push"), &push_body(&one));
    assert_eq!((again.status, again.json()["code"].as_str()), (409, Some("moved")));
    let log = server.ask(Some(&ada), "GET", &format!("/v1/s/{space}/t/{id}/log"), b"").json();
    let name = log["bundles"][0]["bundle"].as_str().expect("a bundle");
    let target = format!("/v1/s/{space}/t/{id}/b/1/{name}");
    assert_eq!(server.ask(Some(&ada), "GET", &target, b"").body, one.bytes);
    let bearer = format!("Bearer {}", ada.token);
    let headers = [("authorization", bearer.as_str()), ("range", "bytes=10-19")];
    let part = server.client().send("GET", &target, &headers, b"").expect("an answer");
    assert_eq!((part.status, part.body.as_slice()), (206, &one.bytes[10..20]));
    assert_eq!(part.header("cache-control"), Some("no-store"));
}

#[test]
fn a_feed_waits_and_ends_when_the_token_is_revoked() {
    let server = Server::start();
    let ada = server.hub.account("ada");
    let feed = |after: u64, wait: u64| format!("/v1/s/{}/feed?after={after}&wait={wait}", ada.space);
    let began = Instant::now();
    assert_eq!(
        server.ask(Some(&ada), "GET", &feed(0, 0), b"").json()["events"].as_array().map(Vec::len),
        Some(0)
    );
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.ask(Some(&ada), "GET", &feed(0, 30), b""));
        std::thread::sleep(Duration::from_millis(300));
        // Not through this server: as another hub on the same database does.
        let one = next(thread(1), None, b"one");
        server.hub.push(&ada, &ada.space, &one).expect("a push");
        let answer = waiting.join().expect("a client").json();
        assert_eq!(answer["events"][0]["thread"], thread(1).to_string());
    });
    assert!(began.elapsed() < Duration::from_secs(5), "the news came late");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.ask(Some(&ada), "GET", &feed(1, 30), b""));
        std::thread::sleep(Duration::from_millis(600));
        let hub = &server.hub.hub;
        let revoked = hub.write(|connection| {
            let caller = access::caller(connection, ada.credentials)?;
            accounts::revoke(connection, &caller, &ada.device, hub.now())
        });
        revoked.expect("a change");
        let revoked_at = Instant::now();
        let answer = waiting.join().expect("a client");
        assert_eq!(answer.status, 401);
        assert!(revoked_at.elapsed() < Duration::from_secs(1), "after {:?}", revoked_at.elapsed());
    });
}

#[test]
fn strange_names_of_spaces_are_absent() {
    let server = Server::start();
    let ada = server.hub.account("ada");
    for (by, status) in [(None, 401), (Some(&ada), 404)] {
        for name in ["%00", "%00x", "x"] {
            let answer = server.ask(by, "GET", &format!("/v1/s/{name}/feed?wait=20"), b"");
            assert_eq!(answer.status, status, "{name}");
        }
    }
}

#[test]
fn a_stop_ends_streams_and_answers_requests() {
    let server = Server::start();
    let ada = server.hub.account("ada");
    let target = format!("/v1/s/{}/feed?wait=50", ada.space);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.ask(Some(&ada), "GET", &target, b""));
        std::thread::sleep(Duration::from_millis(300));
        let began = Instant::now();
        server.stop.store(true, Ordering::SeqCst);
        assert_eq!(waiting.join().expect("a client").status, 200);
        assert!(began.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn a_link_is_a_page_without_scripts() {
    let server = Server::start();
    let ada = server.hub.account("ada");
    server.hub.push(&ada, &ada.space, &next(thread(1), None, b"one")).expect("a push");
    let page = serde_json::json!({"title": "<Title>", "entries": [{"role": "User", "text": "<script>"}]});
    let new = serde_json::json!({"take": "main", "version": 1, "days": 30, "page": page}).to_string();
    let target = format!("/v1/s/{}/t/{}/links", ada.space, thread(1));
    let link = server.ask(Some(&ada), "POST", &target, new.as_bytes()).json();
    let shown = server.ask(None, "GET", link["path"].as_str().expect("a path"), b"");
    let html = String::from_utf8(shown.body.clone()).expect("text");
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script"), "{html}");
    for (header, expected) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("x-robots-tag", "noindex, nofollow, noarchive"),
    ] {
        assert_eq!(shown.header(header), Some(expected));
    }
    let policy = shown.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("script-src"), "{policy}");
    assert_eq!(
        server
            .ask(Some(&ada), "DELETE", &format!("/v1/links/{}", link["id"].as_str().unwrap_or("")), b"")
            .status,
        204
    );
    assert_eq!(server.ask(None, "GET", link["path"].as_str().expect("a path"), b"").status, 404);
}

#[test]
fn requests_are_limited() {
    let server = Server::start();
    let eve = Account { token: "rth_guess".to_owned(), ..server.hub.account("eve") };
    let mut client = server.client();
    let mut statuses = Vec::new();
    for _ in 0..400 {
        statuses.push(ask(&mut client, Some(&eve), "GET", "/v1/account", b"").status);
    }
    assert!(statuses.contains(&401) && statuses.last() == Some(&429), "{statuses:?}");
    let large = vec![b'x'; 2 << 20];
    let refused = server.ask(None, "POST", "/v1/auth/device", &large);
    assert_eq!((refused.status, refused.json()["code"].as_str()), (413, Some("too_large")));
    let ada = server.hub.account("ada");
    let mut last = 200;
    for _ in 0..120 {
        last = ask(&mut client, Some(&ada), "GET", &format!("/v1/s/{}/threads?text=word", ada.space), b"")
            .status;
    }
    assert_eq!(last, 429);
}

#[test]
fn metrics_and_health_are_answered() {
    let server = Server::start();
    assert_eq!(server.ask(None, "GET", "/health", b"").json()["ok"], true);
    let hub = server.ask(None, "GET", "/v1/hub", b"").json();
    assert_eq!(hub["protocol"], 1);
    let text = HttpClient::new(server.metrics).send("GET", "/metrics", &[], b"").expect("an answer").body;
    let text = String::from_utf8(text).expect("text");
    assert!(
        text.contains("retake_hub_requests_total{method=\"GET\",route=\"/health\",status=\"200\"} 1"),
        "{text}"
    );
    assert_eq!(server.ask(None, "GET", "/metrics", b"").status, 404, "it is not for devices");
    let absent = server.ask(None, "POST", "/health", b"");
    assert_eq!((absent.status, absent.json()["code"].as_str()), (404, Some("not_found")));
    let ada = server.hub.account("ada");
    let ben = server.hub.account("ben");
    let team = server.hub.organization(&ada, &[(&ben, Role::Reader)]);
    let info = server.ask(Some(&ben), "GET", &format!("/v1/s/{team}"), b"").json();
    assert_eq!(info["role"], "reader");
}
