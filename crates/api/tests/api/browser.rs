//! Browsers: a single-use link gives a cookie, and a cookie alone permits no changes.

use std::time::Duration;

use retake_api::new_login_link;
use retake_model::time::Timestamp;
use serde_json::json;

use crate::http::{Client, Request};
use crate::world::{Server, World};

const SOON: Duration = Duration::from_secs(3);

/// A login link, as the command line creates it.
fn link(world: &World) -> String {
    let timeline = world.timeline();
    let token = world.token().read().expect("a token");
    new_login_link(&timeline.store().runtime_database().expect("a ledger"), &token, timeline.now())
        .expect("a link")
}

/// A browser's requests: no token, but the cookie it received.
struct Browser {
    client: Client,
    cookie: String,
}

impl Browser {
    fn login(world: &World, server: &Server) -> Self {
        let client = server.client();
        let entered = client.request("GET", &link(world)).without("Authorization").send();
        assert_eq!((entered.status, entered.header("location")), (303, Some("/")), "{}", entered.text());
        let set = entered.header("set-cookie").expect("a cookie").to_owned();
        for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
            assert!(set.split("; ").any(|part| part == attribute), "{set} has no {attribute}");
        }
        let cookie = set.split(';').next().expect("a value").to_owned();
        Self { client, cookie }
    }

    fn request(&self, method: &str, path: &str) -> Request {
        self.client.request(method, path).without("Authorization").header("Cookie", &self.cookie)
    }
}

#[test]
fn a_login_link_is_single_use() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let link = link(&world);
    let follow = || client.request("GET", &link).without("Authorization").send();
    assert_eq!(follow().status, 303);
    follow().refused(401, "unauthorized");
    let other = format!("{}x", &link[..link.len() - 1]);
    client.request("GET", &other).without("Authorization").send().refused(401, "unauthorized");
    client.request("POST", &link).without("Authorization").send().refused(401, "unauthorized");
}

#[test]
fn a_login_link_expires_after_ten_minutes() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let timeline = world.timeline();
    let runtime_database = timeline.store().runtime_database().expect("a ledger");
    let made = |seconds_ago: i64| {
        let then = Timestamp::from_millis(timeline.now().millis() - 1000 * seconds_ago);
        let link =
            new_login_link(&runtime_database, &world.token().read().expect("a token"), then).expect("a link");
        client.request("GET", &link).without("Authorization").send().status
    };
    assert_eq!((made(9 * 60), made(10 * 60 + 1)), (303, 401));
}

#[test]
fn of_browsers_using_one_link_concurrently_one_logs_in() {
    let world = World::new();
    let server = world.serve();
    for _ in 0..5 {
        let (client, link) = (server.client(), link(&world));
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let follow = || client.request("GET", &link).without("Authorization").send().status;
            let browsers: Vec<_> = (0..8).map(|_| scope.spawn(follow)).collect();
            browsers.into_iter().map(|browser| browser.join().expect("an answer")).collect()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 303).count(), 1, "{statuses:?}");
    }
}

#[test]
fn a_cookie_permits_changes_only_from_pages_of_this_server() {
    let world = World::new();
    let server = world.serve();
    let browser = Browser::login(&world, &server);
    let own = format!("http://{}", server.address);
    browser.request("GET", "/v1/threads").send().done();
    assert_eq!(browser.request("GET", "/docs").send().status, 200);
    let change = || browser.request("POST", "/v1/threads").json(&json!({}));
    change().send().refused(403, "origin_not_allowed");
    change().header("Origin", "https://evil.test").send().refused(403, "origin_not_allowed");
    change().header("Sec-Fetch-Site", "same-site").send().refused(403, "origin_not_allowed");
    change().header("Origin", &own).send().done();
    change().header("Sec-Fetch-Site", "same-origin").send().done();
    // Another site can link here, but following a link changes nothing.
    let followed = browser.request("GET", "/docs").header("Sec-Fetch-Site", "cross-site");
    assert_eq!(followed.clone().header("Sec-Fetch-Mode", "navigate").send().status, 200);
    followed.header("Sec-Fetch-Mode", "no-cors").send().refused(403, "origin_not_allowed");
}

#[test]
fn logging_out_ends_the_session() {
    let world = World::new();
    let server = world.serve();
    let (leaving, staying) = (Browser::login(&world, &server), Browser::login(&world, &server));
    let origin = format!("http://{}", server.address);
    let left = leaving.request("POST", "/logout").header("Origin", &origin).send();
    assert_eq!(left.status, 303);
    assert!(left.header("set-cookie").is_some_and(|cookie| cookie.contains("Max-Age=0")));
    leaving.request("GET", "/v1/threads").send().refused(401, "unauthorized");
    staying.request("GET", "/v1/threads").send().done();
}

#[test]
fn a_new_token_ends_browser_sessions() {
    let world = World::new();
    let server = world.serve();
    let browser = Browser::login(&world, &server);
    let mut stream = browser.request("GET", "/v1/events").open();
    assert_eq!(stream.next(Duration::from_secs(5)).expect("a greeting").kind, "hello");
    world.token().rotate().expect("a new token is written");
    browser.request("GET", "/v1/threads").send().refused(401, "unauthorized");
    assert!(stream.next(Duration::from_secs(2)).is_none() && stream.is_over());
    Browser::login(&world, &server).request("GET", "/v1/threads").send().done();
}

#[test]
fn a_login_link_expires_with_its_token() {
    let world = World::new();
    let server = world.serve();
    let old = link(&world);
    // The token file was replaced without informing the runtime database.
    world.token().rotate().expect("a new token is written");
    let follow = |link: &str| server.client().request("GET", link).without("Authorization").send();
    follow(&old).refused(401, "unauthorized");
    assert_eq!(follow(&link(&world)).status, 303);
}

#[test]
fn cookies_of_two_stores_do_not_collide() {
    let (world, elsewhere) = (World::new(), World::new());
    let (server, second, other) = (world.serve(), world.serve(), elsewhere.serve());
    let (here, there) = (Browser::login(&world, &server), Browser::login(&elsewhere, &other));
    let name = |browser: &Browser| browser.cookie.split('=').next().expect("a name").to_owned();
    assert_ne!(name(&here), name(&there), "a browser sends both to both");
    // Browsers select cookies by host, not by port, and send both.
    let both = format!("{}; {}", there.cookie, here.cookie);
    for server in [&server, &second, &other] {
        let request = server.client().request("GET", "/v1/threads").without("Authorization");
        request.header("Cookie", &both).send().done();
    }
    let document = server.client().get("/openapi.json").done();
    assert_eq!(document["components"]["securitySchemes"]["cookie"]["name"], name(&here));
}

#[test]
fn a_browser_session_expires_after_a_month() {
    let world = World::new();
    let server = world.serve();
    let browser = Browser::login(&world, &server);
    let (name, _) = browser.cookie.split_once('=').expect("a name and a value");
    let timeline = world.timeline();
    let runtime_database = timeline.store().runtime_database().expect("a ledger");
    let token = world.token().read().expect("a token").hash();
    let day = 24 * 60 * 60 * 1000;
    let check = |days: i64, status: u16| {
        let value = format!("came-in-{days}-days-ago");
        let then = Timestamp::from_millis(timeline.now().millis() - days * day);
        let hash = *blake3::hash(value.as_bytes()).as_bytes();
        runtime_database
            .add_browser_session(&hash, &token, then, Timestamp::from_millis(0))
            .expect("it is written");
        let request = browser.request("GET", "/v1/threads").header("Cookie", &format!("{name}={value}"));
        assert_eq!(request.send().status, status, "{days} days ago");
    };
    check(29, 200);
    check(31, 401);
}

#[test]
fn a_refused_browser_gets_a_page_with_the_action() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let used = link(&world);
    client.request("GET", &used).without("Authorization").send();
    let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for path in ["/", "/docs", "/v1/threads", "/login/nonsense", used.as_str()] {
        let request = client.request("GET", path).without("Authorization");
        let page = request.clone().header("Accept", accept).send();
        assert_eq!(page.status, 401, "{path}");
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        let policy = page.header("content-security-policy").expect("a page has a policy");
        assert!(policy.contains("default-src 'none'"), "{policy}");
        let text = page.text();
        assert!(text.contains("retake serve link"), "{text}");
        let name = page.header("x-request-id").expect("a name");
        assert!(!name.is_empty() && text.contains(name), "{path} is in the log as {name}: {text}");
        assert!(!text.contains(used.trim_start_matches("/login/")), "a link is a secret");
        // Other clients still get JSON, including the request id.
        for accept in ["*/*", "application/json", ""] {
            let problem = request.clone().header("Accept", accept).send();
            assert_eq!(
                problem.refused(401, "unauthorized")["request"],
                problem.header("x-request-id").expect("a name")
            );
        }
    }
    // A logged-in browser gets an error page too.
    let lost = client.request("GET", "/nowhere").header("Accept", accept).send();
    assert_eq!((lost.status, lost.header("content-type")), (404, Some("text/html; charset=utf-8")));
    assert!(lost.text().contains("No route /nowhere"), "{}", lost.text());
}

#[test]
fn without_a_token_nobody_can_log_in() {
    type Breakage = fn(&World);
    let spoil: [(&str, Breakage); 3] = [
        ("gone", |world| std::fs::remove_file(world.token().path()).expect("it is ours")),
        ("empty", |world| std::fs::write(world.token().path(), "").expect("it is ours")),
        ("readable by others", |world| {
            let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            std::fs::set_permissions(world.token().path(), open).expect("it is ours");
        }),
    ];
    for (what, spoil) in spoil {
        let world = World::new();
        let server = world.serve();
        let client = server.client();
        let browser = Browser::login(&world, &server);
        let link = link(&world);
        let mut streams = [client.events(0), browser.request("GET", "/v1/events").open()];
        for stream in &mut streams {
            assert_eq!(stream.next(SOON).expect("a greeting").kind, "hello", "{what}");
        }
        spoil(&world);
        let link = client.request("GET", &link).without("Authorization");
        for request in [client.request("GET", "/v1/threads"), browser.request("GET", "/v1/threads"), link] {
            let problem = request.send().refused(401, "unauthorized");
            assert!(!problem.to_string().contains("serve.token"), "{what}: no path is shown: {problem}");
            assert!(
                problem["detail"].as_str().is_some_and(|text| text.contains("`retake serve token`")),
                "{problem}"
            );
        }
        for stream in &mut streams {
            assert!(stream.next(SOON).is_none() && stream.is_over(), "{what}: a stream goes on");
        }
    }
}
