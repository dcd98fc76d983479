//! Every route with every id of another account: the answer is that for an id that does not exist.
//!
//! Ada owns an organization with threads, links, uploads, packs and devices. The stranger asks every route of the router's own
//! table with Ada's ids, and again with random ids of the same form. Status and body must be equal, and afterwards
//! everything of Ada's is as before. Ada asks too, and finds each of them: so the ids are right.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use retake_hub::http::{Requires, RouteInfo, routes};
use retake_model::id::ThreadId;
use retake_sync::bundle::BundleId;
use retake_testing::{HttpAnswer, HttpClient, free_port};
use serde_json::json;

use super::bundles::Push;
use super::processes::{Engine, Site};
use crate::rng::Rng;
use crate::violation::{BoxError, CampaignError, Violation};

/// The caller that uses Ada's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranger {
    /// An account of its own.
    OtherAccount,
    /// A device of Ada's whose token was revoked.
    Revoked,
    /// Nobody: no token.
    Nobody,
    /// The control: a member of the organization, who sees it.
    Member,
}

/// What was asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct TenantReport {
    /// Routes.
    pub routes: u64,
    /// Requests with ids of others.
    pub requests: u64,
    /// Routes on which Ada found hers.
    pub found: u64,
}

/// The ids in a path.
#[derive(Clone, Debug)]
struct Ids {
    space: String,
    thread: String,
    bundle: String,
    project: String,
    link: String,
    device: String,
    token: String,
    account: String,
}

struct Asker {
    client: HttpClient,
    authorization: Option<String>,
}

impl Asker {
    fn new(address: SocketAddr, token: Option<&str>) -> Self {
        Self { client: HttpClient::new(address), authorization: token.map(|token| format!("Bearer {token}")) }
    }

    fn ask(&mut self, method: &str, target: &str, body: &[u8]) -> Result<HttpAnswer, BoxError> {
        let authorization = self.authorization.iter().map(|value| ("authorization", value.as_str()));
        let headers: Vec<(&str, &str)> = authorization.collect();
        loop {
            // A server closes connections that are idle.
            let answer = match self.client.send(method, target, &headers, body) {
                Err(_) => self.client.send(method, target, &headers, body)?,
                Ok(answer) => answer,
            };
            if answer.status != 429 {
                return Ok(answer);
            }
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
    }
}

fn target_of(route: &RouteInfo, ids: &Ids) -> String {
    let path = route
        .path
        .replace("{space}", &ids.space)
        .replace("{thread}", &ids.thread)
        .replace("{bundle}", &ids.bundle)
        .replace("{project}", &ids.project)
        .replace("{link}", &ids.link)
        .replace("{device}", &ids.device)
        .replace("{token}", &ids.token)
        .replace("{account}", &ids.account)
        .replace("{number}", "1");
    if route.path.ends_with("/uploads/{bundle}") && route.method == "PATCH" {
        return format!("{path}?at=0&of=10");
    }
    path
}

/// A body that the route accepts, as far as the ids allow.
fn body_of(route: &RouteInfo, ids: &Ids) -> Result<Vec<u8>, BoxError> {
    let page = json!({"title": "t", "entries": []});
    let value = match (route.method.as_str(), route.path) {
        (_, "/v1/auth/device" | "/v1/spaces") => json!({"name": "x"}),
        (_, "/v1/auth/token") => json!({"device_code": ids.token}),
        (_, "/v1/auth/approve") => json!({"user_code": "BBBB-BBBB"}),
        ("PUT", path) if path.contains("/members/") => json!({"role": "owner"}),
        ("PATCH", path) if path.ends_with("/t/{thread}") => json!({"deleted": true}),
        (_, path) if path.ends_with("/links") => {
            json!({"take": "main", "version": 1, "days": 1, "page": page})
        }
        (_, path) if path.ends_with("/redactions") => json!({"content": [ids.bundle]}),
        (_, path) if path.ends_with("/support") => json!({"days": 1}),
        ("PATCH", _) => return Ok(b"0123456789".to_vec()),
        ("POST", path) if path.ends_with("/push") => {
            let thread = ids.thread.parse::<ThreadId>()?;
            return Ok(Push::behind(thread, None, b"of a stranger")?.body());
        }
        ("POST", path) if path.ends_with("/packs") => {
            let mut line = serde_json::to_vec(&json!({"number": 2, "pack": BundleId::of(b"x"), "bytes": 1}))?;
            line.extend(b"\nx");
            return Ok(line);
        }
        _ => return Ok(Vec::new()),
    };
    Ok(serde_json::to_vec(&value)?)
}

/// Asks every route with the ids of another account.
pub fn tenants(seed: u64, engine: Engine, stranger: Stranger) -> Result<TenantReport, CampaignError> {
    let site = Site::new(engine)?;
    let port = free_port();
    let _hub = site.start(port)?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut ada =
        Asker::new(address, Some(&site.administer(&["account", "add", "ada", "--device", "laptop"])?));
    let eve_token = site.administer(&["account", "add", "eve", "--device", "laptop"])?;
    let ids = belongings(&mut ada)?;
    let revoked = site.administer(&["token", "add", "ada", "phone"])?;
    let mut eve = match stranger {
        Stranger::OtherAccount => Asker::new(address, Some(&eve_token)),
        Stranger::Nobody => Asker::new(address, None),
        Stranger::Revoked => {
            let mut phone = Asker::new(address, Some(&revoked));
            let info = phone.ask("GET", "/v1/account", b"")?.json();
            let device = info["device"].as_str().ok_or_else(|| CampaignError::trouble("no device"))?;
            site.administer(&["token", "revoke", "ada", device])?;
            phone
        }
        Stranger::Member => {
            let target = format!("/v1/s/{}/members/eve", ids.space);
            let added = ada.ask("PUT", &target, br#"{"role":"reader"}"#)?;
            if added.status != 204 {
                return Err(CampaignError::trouble(format!("adding a member: {}", added.json())));
            }
            Asker::new(address, Some(&eve_token))
        }
    };
    let before = state(&mut ada, &ids)?;
    let mut rng = Rng::new(seed);
    let mut report = TenantReport::default();
    for route in routes() {
        report.routes += 1;
        // Each id of Ada's alone, and all of them together; the others do not exist.
        for mask in masks(&route) {
            let absent = random_ids(&mut rng);
            let asked = mixed(&ids, &absent, mask);
            report.requests += 1;
            let method = route.method.as_str();
            let foreign = eve.ask(method, &target_of(&route, &asked), &body_of(&route, &asked)?)?;
            let none = eve.ask(method, &target_of(&route, &absent), &body_of(&route, &absent)?)?;
            let same = (foreign.status, &foreign.body) == (none.status, &none.body) || makes_new(&route);
            let open = route.requires != Requires::Public && foreign.status < 300 && !is_own(&route);
            if !same || open {
                let what = format!(
                    "{method} {} with ids of another account: {} {}; with ids that do not exist: {} {}",
                    route.path,
                    foreign.status,
                    String::from_utf8_lossy(&foreign.body),
                    none.status,
                    String::from_utf8_lossy(&none.body)
                );
                return Err(Violation { campaign: "hub-tenants", seed, step: report.requests, what }.into());
            }
        }
    }
    let after = state(&mut ada, &ids)?;
    if before != after {
        let what = format!("a stranger changed something: {before:?} became {after:?}");
        return Err(Violation { campaign: "hub-tenants", seed, step: report.requests, what }.into());
    }
    for route in routes().into_iter().filter(|route| route.method == "GET") {
        let answer = ada.ask("GET", &target_of(&route, &ids), b"")?;
        if answer.status != 200 {
            let what = format!("Ada's own {} was answered with {}", route.path, answer.status);
            return Err(CampaignError::trouble(what));
        }
        report.found += 1;
    }
    Ok(report)
}

/// Routes whose answer has a new secret or id each time.
fn makes_new(route: &RouteInfo) -> bool {
    ["/v1/auth/device", "/v1/spaces", "/health"].contains(&route.path)
}

/// Routes about the caller alone.
fn is_own(route: &RouteInfo) -> bool {
    !route.path.contains('{')
}

const PARAMETERS: [&str; 8] =
    ["{space}", "{thread}", "{bundle}", "{project}", "{link}", "{device}", "{token}", "{account}"];

fn masks(route: &RouteInfo) -> BTreeSet<u32> {
    let used: Vec<u32> = (0..8).filter(|at| route.path.contains(PARAMETERS[*at as usize])).collect();
    let all = used.iter().fold(0, |mask, at| mask | 1 << at);
    used.iter().map(|at| 1 << at).chain([all]).collect()
}

fn mixed(ids: &Ids, absent: &Ids, mask: u32) -> Ids {
    let pick =
        |at: u32, mine: &String, other: &String| if mask & (1 << at) == 0 { other } else { mine }.clone();
    Ids {
        space: pick(0, &ids.space, &absent.space),
        thread: pick(1, &ids.thread, &absent.thread),
        bundle: pick(2, &ids.bundle, &absent.bundle),
        project: pick(3, &ids.project, &absent.project),
        link: pick(4, &ids.link, &absent.link),
        device: pick(5, &ids.device, &absent.device),
        // A token is the permission itself, and is never known to a stranger.
        token: absent.token.clone(),
        account: pick(7, &ids.account, &absent.account),
    }
}

fn random_ids(rng: &mut Rng) -> Ids {
    let mut id = || format!("{:013x}{:013x}", rng.next_u64() >> 12, rng.next_u64() >> 12);
    let (space, link, device, token, account) = (id(), id(), id(), id(), id());
    let mut bytes = || [rng.next_u64().to_be_bytes(), rng.next_u64().to_be_bytes()].concat();
    let mut thread = [0; 16];
    thread.copy_from_slice(&bytes());
    let (bundle, project) = (BundleId::of(&bytes()).to_string(), BundleId::of(&bytes()).to_string());
    Ids {
        space,
        thread: ThreadId::from_bytes(thread).to_string(),
        bundle,
        project,
        link,
        device,
        token,
        account,
    }
}

/// Creates one of everything.
fn belongings(ada: &mut Asker) -> Result<Ids, BoxError> {
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned).ok_or("an answer without an id");
    let space = text(&ada.ask("POST", "/v1/spaces", br#"{"name":"team"}"#)?.json()["id"])?;
    let thread = ThreadId::from_bytes([7; 16]);
    let push = Push::behind(thread, None, b"one")?;
    let pushed = ada.ask("POST", &format!("/v1/s/{space}/t/{thread}/push"), &push.body())?;
    if pushed.status != 200 {
        return Err(format!("a push was answered with {}", pushed.json()).into());
    }
    let bundle = push.request.row.bundle.to_string();
    // An upload that is not complete, under the name of the same bundle.
    let part = &push.bytes[..10];
    let target = format!("/v1/s/{space}/uploads/{bundle}?at=0&of={}", push.bytes.len());
    ada.ask("PATCH", &target, part)?;
    let project = BundleId::of(b"project").to_string();
    let mut line = serde_json::to_vec(&json!({"number": 1, "pack": BundleId::of(b"pack"), "bytes": 4}))?;
    line.extend(b"\npack");
    ada.ask("POST", &format!("/v1/s/{space}/p/{project}/packs"), &line)?;
    let new = json!({"take": "main", "version": 1, "days": 1, "page": {"title": "t", "entries": []}});
    let link =
        ada.ask("POST", &format!("/v1/s/{space}/t/{thread}/links"), &serde_json::to_vec(&new)?)?.json();
    let device = text(&ada.ask("GET", "/v1/account", b"")?.json()["device"])?;
    let token = text(&link["path"])?.trim_start_matches("/l/").to_owned();
    let thread = thread.to_string();
    Ok(Ids {
        space,
        thread,
        bundle,
        project,
        link: text(&link["id"])?,
        device,
        token,
        account: "ada".to_owned(),
    })
}

/// What Ada sees, which a stranger must not change.
fn state(ada: &mut Asker, ids: &Ids) -> Result<Vec<String>, BoxError> {
    let (space, thread) = (&ids.space, &ids.thread);
    let mut seen = Vec::new();
    for target in [
        "/v1/devices".to_owned(),
        "/v1/links".to_owned(),
        "/v1/account".to_owned(),
        format!("/v1/s/{space}/members"),
        format!("/v1/s/{space}/feed"),
        format!("/v1/s/{space}/threads"),
        format!("/v1/s/{space}/audit"),
        format!("/v1/s/{space}/uploads/{}", ids.bundle),
        format!("/v1/s/{space}/p/{}/packs", ids.project),
        format!("/v1/s/{space}/t/{thread}/log"),
        format!("/v1/s/{space}/t/{thread}/redactions"),
    ] {
        let answer = ada.ask("GET", &target, b"")?;
        seen.push(format!("{target}: {} {}", answer.status, String::from_utf8_lossy(&answer.body)));
    }
    Ok(seen)
}
