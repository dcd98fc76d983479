//! The table of routes. The campaign `hub-tenants` takes every route from it and asks with the tokens of others.

use axum::http::Method;
use retake_sync::bundle::FORMAT;
use retake_sync::wire::{
    ApproveRequest, HubInfo, LoginRequest, NewLink, NewSpace, PROTOCOL, PackRow, PushRequest, RedactRequest,
    Role, SearchQuery, SetRole, SupportGrant, ThreadChange, TokenRequest,
};
use serde::Deserialize;

use super::call::{Call, Reply, encode};
use crate::access;
use crate::accounts;
use crate::audit;
use crate::error::HubError;
use crate::service::Hub;
use crate::uploads::{self, Part};
use crate::{feed, links, packs, page, redaction, search, spaces, threads};

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requires {
    /// Everybody: the request contains the secret, or there is none.
    Public,
    /// Every device with a token.
    Device,
    /// Members of the space in the path.
    Space,
    /// Members of the space, and the thread must exist there.
    Thread,
}

/// A route.
#[derive(Clone, Debug)]
pub struct RouteInfo {
    /// The method.
    pub method: Method,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// Who may use it.
    pub requires: Requires,
    pub(crate) limit: Limit,
    pub(crate) handler: Handler,
}

pub(crate) type Handler = fn(&Hub, &Call) -> Result<Reply, HubError>;

/// What a request counts as, for rate limits and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Usual,
    Login,
    Search,
    /// The body contains a bundle or a part of one.
    Bytes,
    Page,
}

fn route(method: Method, path: &'static str, requires: Requires, handler: Handler) -> RouteInfo {
    RouteInfo { method, path, requires, limit: Limit::Usual, handler }
}

impl RouteInfo {
    fn limited(self, limit: Limit) -> Self {
        Self { limit, ..self }
    }
}

/// All routes.
pub fn all() -> Vec<RouteInfo> {
    use Requires::{Device, Public, Space, Thread};
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    const PUT: Method = Method::PUT;
    const PATCH: Method = Method::PATCH;
    const DELETE: Method = Method::DELETE;
    vec![
        route(GET, "/health", Public, health),
        route(GET, "/v1/hub", Public, hub_info),
        route(POST, "/v1/auth/device", Public, start_login).limited(Limit::Login),
        route(POST, "/v1/auth/token", Public, finish_login).limited(Limit::Login),
        route(POST, "/v1/auth/approve", Device, approve_login).limited(Limit::Login),
        route(GET, "/v1/account", Device, account),
        route(GET, "/v1/devices", Device, devices),
        route(DELETE, "/v1/devices/{device}", Device, revoke_device),
        route(GET, "/v1/links", Device, list_links),
        route(DELETE, "/v1/links/{link}", Device, revoke_link),
        route(POST, "/v1/spaces", Device, create_space),
        route(GET, "/v1/s/{space}", Space, space_info),
        route(GET, "/v1/s/{space}/members", Space, members),
        route(PUT, "/v1/s/{space}/members/{account}", Space, set_role),
        route(DELETE, "/v1/s/{space}/members/{account}", Space, remove_member),
        route(GET, "/v1/s/{space}/audit", Space, audit_log),
        route(GET, "/v1/s/{space}/feed", Space, read_feed),
        route(GET, "/v1/s/{space}/threads", Space, find_threads).limited(Limit::Search),
        route(GET, "/v1/s/{space}/uploads/{bundle}", Space, upload_state),
        route(PATCH, "/v1/s/{space}/uploads/{bundle}", Space, upload_part).limited(Limit::Bytes),
        route(GET, "/v1/s/{space}/p/{project}/packs", Space, list_packs),
        route(POST, "/v1/s/{space}/p/{project}/packs", Space, push_pack).limited(Limit::Bytes),
        route(GET, "/v1/s/{space}/p/{project}/packs/{number}", Space, read_pack),
        route(POST, "/v1/s/{space}/t/{thread}/push", Space, push).limited(Limit::Bytes),
        route(GET, "/v1/s/{space}/t/{thread}/log", Thread, log),
        route(GET, "/v1/s/{space}/t/{thread}/b/{number}/{bundle}", Thread, read_bundle),
        route(PATCH, "/v1/s/{space}/t/{thread}", Thread, change_thread),
        route(DELETE, "/v1/s/{space}/t/{thread}", Thread, purge),
        route(GET, "/v1/s/{space}/t/{thread}/redactions", Thread, redactions),
        route(POST, "/v1/s/{space}/t/{thread}/redactions", Thread, redact),
        route(POST, "/v1/s/{space}/t/{thread}/links", Thread, create_link).limited(Limit::Page),
        route(PUT, "/v1/s/{space}/t/{thread}/support", Thread, grant_support),
        route(GET, "/l/{token}", Public, open_link).limited(Limit::Login),
    ]
}

fn health(hub: &Hub, _: &Call) -> Result<Reply, HubError> {
    hub.check_health()?;
    Ok(Reply::Json(b"{\"ok\":true}".to_vec()))
}

#[expect(clippy::unnecessary_wraps, reason = "all handlers have one type")]
fn hub_info(hub: &Hub, _: &Call) -> Result<Reply, HubError> {
    let capabilities = ["search", "links", "redactions", "packs"].map(str::to_owned).to_vec();
    let bundle_bytes = hub.settings.bundle_bytes;
    Ok(Reply::json(&HubInfo { protocol: PROTOCOL, bundle_format: FORMAT, bundle_bytes, capabilities }))
}

fn start_login(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    let request: LoginRequest = call.json()?;
    hub.write(|connection| Ok(Reply::json(&accounts::start_login(connection, &request.name, hub.now())?)))
}

fn finish_login(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    let request: TokenRequest = call.json()?;
    let done = hub.write(|connection| accounts::finish_login(connection, &request.device_code, hub.now()))?;
    Ok(Reply::json(&done?))
}

fn approve_login(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    let request: ApproveRequest = call.json()?;
    let done = hub.write(|connection| {
        let caller = access::caller(connection, call.credentials)?;
        accounts::approve(connection, &caller, &request.user_code, hub.now())
    })?;
    done.map(|()| Reply::Empty)
}

fn account(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.read(|connection| {
        let caller = access::caller(connection, call.credentials)?;
        Ok(Reply::json(&spaces::account(connection, &caller)?))
    })
}

fn devices(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.read(|connection| {
        let caller = access::caller(connection, call.credentials)?;
        Ok(Reply::json(&accounts::devices(connection, &caller)?))
    })
}

fn revoke_device(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.write(|connection| {
        let caller = access::caller(connection, call.credentials)?;
        accounts::revoke(connection, &caller, call.parameter("device"), hub.now())?;
        Ok(Reply::Empty)
    })
}

fn list_links(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.read(|connection| {
        let caller = access::caller(connection, call.credentials)?;
        Ok(Reply::json(&links::list(connection, &caller)?))
    })
}

fn revoke_link(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.write(|connection| {
        let caller = access::caller(connection, call.credentials)?;
        links::revoke(connection, &caller, call.parameter("link"), hub.now())?;
        Ok(Reply::Empty)
    })
}

fn create_space(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    let new: NewSpace = call.json()?;
    hub.write(|connection| {
        let caller = access::caller(connection, call.credentials)?;
        let quota = hub.settings.quota;
        Ok(Reply::json(&spaces::create_organization(connection, &caller, &new.name, quota, hub.now())?))
    })
}

fn space_info(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.read(|connection| {
        let space = access::space(connection, call.credentials, call.space(), Role::Reader)?;
        Ok(Reply::json(&spaces::info(connection, &space)?))
    })
}

fn members(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.read(|connection| {
        let space = access::space(connection, call.credentials, call.space(), Role::Reader)?;
        Ok(Reply::json(&spaces::members(connection, &space)?))
    })
}

fn set_role(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.write(|connection| {
        let space = access::space(connection, call.credentials, call.space(), Role::Owner)?;
        let SetRole { role } = call.json()?;
        spaces::set_role(connection, &space, call.parameter("account"), role, hub.now())?;
        Ok(Reply::Empty)
    })
}

fn remove_member(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.write(|connection| {
        let space = access::space(connection, call.credentials, call.space(), Role::Reader)?;
        spaces::remove_member(connection, &space, call.parameter("account"), hub.now())?;
        Ok(Reply::Empty)
    })
}

fn audit_log(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.read(|connection| {
        let space = access::space(connection, call.credentials, call.space(), Role::Owner)?;
        Ok(Reply::json(&audit::list(connection, &space)?))
    })
}

#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: u64,
}

impl After {
    /// Numbers in the database have a sign.
    fn of(call: &Call) -> Result<u64, HubError> {
        let Self { after } = call.query()?;
        Ok(after.min(i64::MAX as u64))
    }
}

fn read_feed(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    let (caller, reply) = hub.read(|connection| {
        let space = access::space(connection, call.credentials, call.space(), Role::Reader)?;
        let after = After::of(call)?;
        let feed = feed::read(connection, &space, after)?;
        let caller = space.caller().clone();
        // A position that is ahead of the hub is news too.
        let is_news = !feed.events.is_empty() || feed.seq != after;
        Ok((caller, if is_news { Reply::json(&feed) } else { Reply::Nothing(encode(&feed)) }))
    })?;
    // To the hour: every device reads the feed, and a write for each request would cost more than the request.
    if hub.now() - caller.last_seen > 60 * 60 * 1000 {
        hub.write(|connection| accounts::seen(connection, &caller.device, hub.now()))?;
    }
    Ok(reply)
}

fn find_threads(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.read(|connection| {
        let space = access::space(connection, call.credentials, call.space(), Role::Reader)?;
        let query: SearchQuery = call.query()?;
        Ok(Reply::json(&search::search(connection, &space, &query)?))
    })
}

fn upload_state(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.read(|connection| {
        let space = access::space(connection, call.credentials, call.space(), Role::Member)?;
        Ok(Reply::json(&uploads::state(connection, &space, call.bundle()?, hub.now())?))
    })
}

#[derive(Deserialize)]
struct PartQuery {
    at: u64,
    of: u64,
}

fn upload_part(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    // As if absent, whatever else is wrong with the request.
    hub.read(|connection| access::space(connection, call.credentials, call.space(), Role::Member))?;
    let PartQuery { at, of } = call.query()?;
    if at > hub.settings.bundle_bytes {
        return Err(HubError::invalid("`at`"));
    }
    let part = Part { id: call.bundle()?, start: at, bytes: call.body.len() as u64, whole: of };
    Ok(Reply::json(&hub.upload(call.credentials, call.space(), part, &call.body)?))
}

fn list_packs(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.read(|connection| {
        let space = access::space(connection, call.credentials, call.space(), Role::Reader)?;
        Ok(Reply::json(&packs::list(connection, &space, &call.project()?, After::of(call)?)?))
    })
}

fn push_pack(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.read(|connection| access::space(connection, call.credentials, call.space(), Role::Member))?;
    let (row, bytes): (PackRow, _) = call.line()?;
    hub.push_pack(call.credentials, (call.space(), &call.project()?), row, bytes)?;
    Ok(Reply::Empty)
}

fn read_pack(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    let place = (call.space(), &call.project()?);
    Ok(Reply::Bytes(hub.pack(call.credentials, place, call.number()?)?))
}

fn push(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    let place = call.thread()?;
    let (request, bytes): (PushRequest, _) = match call.line() {
        Ok(read) => read,
        Err(error) => {
            // As if absent, whatever else is wrong with the request.
            hub.read(|connection| access::push(connection, call.credentials, place))?;
            return Err(error);
        }
    };
    Ok(Reply::json(&hub.push(call.credentials, place, &request, bytes)?))
}

fn log(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    let found = hub.read(|connection| {
        let thread = access::thread(connection, call.credentials, call.thread()?, Role::Reader, hub.now())?;
        let list = threads::log(connection, &thread, After::of(call)?)?;
        Ok((thread, list))
    });
    let (thread, list) = found?;
    if thread.by_support() {
        hub.write(|connection| {
            let id = thread.id().to_string();
            Ok(audit::record(connection, thread.space(), "read by support", &id, hub.now())?)
        })?;
    }
    Ok(Reply::json(&list))
}

fn read_bundle(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    let body = hub.read(|connection| {
        let thread = access::thread(connection, call.credentials, call.thread()?, Role::Reader, hub.now())?;
        threads::bundle(connection, &thread, call.number()?, call.bundle()?)
    })?;
    Ok(Reply::Bytes(hub.body(body)?))
}

fn change_thread(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.write(|connection| {
        let thread = access::thread(connection, call.credentials, call.thread()?, Role::Member, hub.now())?;
        let ThreadChange { deleted } = call.json()?;
        threads::set_deleted(connection, &thread, deleted, hub.now())?;
        Ok(Reply::Empty)
    })
}

#[derive(Deserialize)]
struct Expect {
    expect: Option<u64>,
}

fn purge(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    let place = call.thread()?;
    let Expect { expect } = call.query().or_else(|error| {
        hub.read(|connection| access::thread(connection, call.credentials, place, Role::Member, hub.now()))?;
        Err(error)
    })?;
    hub.purge(call.credentials, place, expect)?;
    Ok(Reply::Empty)
}

fn redactions(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.read(|connection| {
        let thread = access::thread(connection, call.credentials, call.thread()?, Role::Reader, hub.now())?;
        Ok(Reply::json(&redaction::list(connection, &thread)?))
    })
}

fn redact(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    let place = call.thread()?;
    hub.read(|connection| access::thread(connection, call.credentials, place, Role::Member, hub.now()))?;
    let request: RedactRequest = call.json()?;
    hub.redact(call.credentials, place, &request.content)?;
    Ok(Reply::Empty)
}

fn create_link(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.write(|connection| {
        let thread = access::thread(connection, call.credentials, call.thread()?, Role::Member, hub.now())?;
        let new: NewLink = call.json()?;
        Ok(Reply::json(&links::create(connection, &thread, &new, hub.now())?))
    })
}

fn grant_support(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    hub.write(|connection| {
        let thread = access::thread(connection, call.credentials, call.thread()?, Role::Member, hub.now())?;
        let grant: SupportGrant = call.json()?;
        links::grant_support(connection, &thread, grant, hub.now())?;
        Ok(Reply::Empty)
    })
}

fn open_link(hub: &Hub, call: &Call) -> Result<Reply, HubError> {
    let shared = hub.read(|connection| links::open(connection, call.parameter("token"), hub.now()))?;
    Ok(Reply::Page(page::draw(&shared)))
}
