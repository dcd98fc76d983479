//! Browsers: a link that holds once becomes a cookie, and a cookie alone changes nothing.

use retake_api::new_ticket;
use retake_model::time::Timestamp;
use serde_json::json;

use crate::http::{Client, Request};
use crate::world::{Server, World};

/// A link, as the command line makes it.
fn link(world: &World) -> String {
    let timeline = world.timeline();
    new_ticket(&timeline.store().ledger().expect("a ledger"), timeline.now()).expect("a link")
}

/// What a browser sends: no token, and the cookie that it was given.
struct Browser {
    client: Client,
    cookie: String,
}

impl Browser {
    fn enter(world: &World, server: &Server) -> Self {
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
fn a_link_lets_one_browser_in_and_no_second() {
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
fn a_link_that_is_ten_minutes_old_lets_nobody_in() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let timeline = world.timeline();
    let ledger = timeline.store().ledger().expect("a ledger");
    let made = |seconds_ago: i64| {
        let then = Timestamp::from_millis(timeline.now().millis() - 1000 * seconds_ago);
        let link = new_ticket(&ledger, then).expect("a link");
        client.request("GET", &link).without("Authorization").send().status
    };
    assert_eq!((made(9 * 60), made(10 * 60 + 1)), (303, 401));
}

#[test]
fn of_browsers_that_follow_one_link_at_once_one_gets_in() {
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
fn a_cookie_looks_but_changes_only_from_a_page_of_this_server() {
    let world = World::new();
    let server = world.serve();
    let browser = Browser::enter(&world, &server);
    let own = format!("http://{}", server.address);
    browser.request("GET", "/v1/threads").send().done();
    assert_eq!(browser.request("GET", "/docs").send().status, 200);
    let change = || browser.request("POST", "/v1/threads").json(&json!({}));
    change().send().refused(403, "origin_not_allowed");
    change().header("Origin", "https://evil.test").send().refused(403, "origin_not_allowed");
    change().header("Sec-Fetch-Site", "same-site").send().refused(403, "origin_not_allowed");
    change().header("Origin", &own).send().done();
    change().header("Sec-Fetch-Site", "same-origin").send().done();
    // A link of another site may lead here, and even then nothing is done by following it.
    let followed = browser.request("GET", "/docs").header("Sec-Fetch-Site", "cross-site");
    assert_eq!(followed.clone().header("Sec-Fetch-Mode", "navigate").send().status, 200);
    followed.header("Sec-Fetch-Mode", "no-cors").send().refused(403, "origin_not_allowed");
}

#[test]
fn a_browser_leaves_and_is_out() {
    let world = World::new();
    let server = world.serve();
    let (leaving, staying) = (Browser::enter(&world, &server), Browser::enter(&world, &server));
    let origin = format!("http://{}", server.address);
    let left = leaving.request("POST", "/leave").header("Origin", &origin).send();
    assert_eq!(left.status, 303);
    assert!(left.header("set-cookie").is_some_and(|cookie| cookie.contains("Max-Age=0")));
    leaving.request("GET", "/v1/threads").send().refused(401, "unauthorized");
    staying.request("GET", "/v1/threads").send().done();
}

#[test]
fn a_new_token_puts_browsers_out() {
    let world = World::new();
    let server = world.serve();
    let browser = Browser::enter(&world, &server);
    let mut stream = browser.request("GET", "/v1/events").open();
    assert_eq!(stream.next(std::time::Duration::from_secs(5)).expect("a greeting").kind, "hello");
    world.token().rotate().expect("a new token is written");
    browser.request("GET", "/v1/threads").send().refused(401, "unauthorized");
    assert!(stream.next(std::time::Duration::from_secs(2)).is_none() && stream.is_over());
    Browser::enter(&world, &server).request("GET", "/v1/threads").send().done();
}
