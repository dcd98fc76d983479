//! The way of a request: limits, body, handler, answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CACHE_CONTROL, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    HeaderValue, RANGE, REFERRER_POLICY, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use retake_sync::wire::{INLINE_BYTES, LINE_BYTES, PART_BYTES, Problem, ProblemCode};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tracing::{info, warn};

use super::call::{Call, Reply, encode, range};
use super::limits::{Buckets, Rate};
use super::metrics::Metrics;
use super::routes::{Limit, RouteInfo};
use super::wakers::Wakers;
use crate::access::Credentials;
use crate::error::{HubError, status};
use crate::page;
use crate::secret;
use crate::service::Hub;

/// The longest wait for news.
const LONGEST_WAIT: u64 = 55;
/// How long a request may take to arrive.
const ARRIVAL: Duration = Duration::from_mins(2);
/// How long a request waits for a worker.
const QUEUE: Duration = Duration::from_secs(10);
const USUAL_BODY: u64 = 1 << 20;
const PAGE_BODY: u64 = 5 << 20;

/// What all requests share.
pub(super) struct Front {
    pub(super) hub: Arc<Hub>,
    pub(super) wakers: Arc<Wakers>,
    pub(super) metrics: Metrics,
    pub(super) buckets: Buckets,
    pub(super) workers: Semaphore,
    /// Set when the server stops, which ends streams.
    pub(super) stopping: tokio::sync::watch::Receiver<bool>,
    /// Whether a proxy in front names the address of the client.
    pub(super) behind_proxy: bool,
}

/// The address of the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) IpAddr);

/// Answers a request.
pub(super) async fn answer(front: Arc<Front>, route: Arc<RouteInfo>, request: Request) -> Response<Body> {
    let began = Instant::now();
    let method = request.method().clone();
    let mut response = match handle(&front, &route, request).await {
        Ok(response) => response,
        Err(error) => refusal(&error),
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let (status, took) = (response.status().as_u16(), began.elapsed());
    front.metrics.answered(method.as_str(), route.path, status, took);
    // The pattern of the path, because a path contains ids, and that of a link its secret.
    info!(%method, route = route.path, status, milliseconds = took.as_millis() as u64, "answered");
    response
}

async fn handle(
    front: &Arc<Front>,
    route: &Arc<RouteInfo>,
    request: Request,
) -> Result<Response<Body>, Refusal> {
    let (mut parts, body) = request.into_parts();
    let address = address(front, &parts);
    let credentials = credentials(&parts);
    limit(front, route.limit, credentials, address)?;
    let parameters =
        RawPathParams::from_request_parts(&mut parts, &()).await.map_err(|_| HubError::not_found())?;
    let parameters = parameters.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let body = read(body, route.limit).await?;
    front.metrics.bytes_in.inc_by(body.len() as u64);
    if route.limit == Limit::Bytes {
        const BYTES: Rate = Rate { burst: 512e6, per_second: 32e6 };
        take(front, ("bytes", &subject(credentials, address)), BYTES, body.len() as f64)?;
    }
    let text =
        |name| parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let call = Arc::new(Call { credentials, parameters, query, range: text(RANGE), body });
    let is_feed = route.path.ends_with("/feed");
    let reply = if is_feed { wait(front, route, &call).await } else { run(front, route, &call).await };
    let failed_login = |error: &HubError| error.code() == Some(ProblemCode::Unauthorized);
    if credentials.is_some() && reply.as_ref().is_err_and(failed_login) {
        // Limits failed logins per address.
        const GUESSES: Rate = Rate { burst: 300.0, per_second: 5.0 };
        take(front, ("guess", &address_key(address)), GUESSES, 1.0)?;
    }
    let reply = reply?;
    if parts.method != Method::GET && parts.method != Method::HEAD {
        // Changes of access are found by the counter that all hubs of the database watch.
        front.wakers.wake(call.space());
    }
    Ok(respond(front, reply, call.range.as_deref()))
}

/// Runs a handler in a thread of its own.
async fn run(front: &Arc<Front>, route: &Arc<RouteInfo>, call: &Arc<Call>) -> Result<Reply, HubError> {
    let busy = || HubError::new(ProblemCode::Unavailable, "the hub has too much to do; try again");
    let permit = tokio::time::timeout(QUEUE, front.workers.acquire()).await;
    let _permit = permit.map_err(|_| busy())?.map_err(|_| busy())?;
    let (front, route, call) = (Arc::clone(front), Arc::clone(route), Arc::clone(call));
    let handler = move || (route.handler)(&front.hub, &call);
    let done = tokio::task::spawn_blocking(handler).await;
    done.unwrap_or_else(|_| Err(HubError::Store("a handler panicked".to_owned())))
}

#[derive(Deserialize)]
struct WaitQuery {
    #[serde(default)]
    wait: u64,
}

/// Runs a handler until it has news or the time is over. Each run authorizes again.
async fn wait(front: &Arc<Front>, route: &Arc<RouteInfo>, call: &Arc<Call>) -> Result<Reply, HubError> {
    let seconds = call.query::<WaitQuery>().map_or(0, |query| query.wait).min(LONGEST_WAIT);
    let until = tokio::time::Instant::now() + Duration::from_secs(seconds);
    let mut stopping = front.stopping.clone();
    front.metrics.streams.inc();
    let mut news = None;
    let outcome = loop {
        if let Some(news) = &mut news {
            tokio::sync::watch::Receiver::borrow_and_update(news);
        }
        let reply = run(front, route, call).await;
        if !matches!(reply, Ok(Reply::Nothing(_)))
            || *stopping.borrow()
            || tokio::time::Instant::now() >= until
        {
            break reply;
        }
        // Only who may read a space waits for it. What happened before this line is found by another run.
        let Some(news) = &mut news else {
            news = Some(front.wakers.subscribe(call.space()));
            continue;
        };
        tokio::select! {
            _ = news.changed() => {}
            () = tokio::time::sleep_until(until) => {}
            _ = stopping.changed() => {}
        }
    };
    front.metrics.streams.dec();
    outcome
}

async fn read(body: Body, limit: Limit) -> Result<Bytes, HubError> {
    let most = match limit {
        Limit::Bytes => PART_BYTES.max(INLINE_BYTES) + LINE_BYTES,
        Limit::Page => PAGE_BODY,
        _ => USUAL_BODY,
    };
    let collected = tokio::time::timeout(ARRIVAL, Limited::new(body, most as usize).collect()).await;
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(HubError::new(ProblemCode::TooLarge, format!("the body has more than {most} bytes")))
        }
        _ => Err(HubError::invalid("the body did not arrive")),
    }
}

fn credentials(parts: &axum::http::request::Parts) -> Option<Credentials> {
    let header = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let token = header.strip_prefix("Bearer ")?.trim();
    Some(Credentials(secret::hash(token)))
}

/// The address of the client: of the connection, or the last one that the proxy added.
fn address(front: &Front, parts: &axum::http::request::Parts) -> IpAddr {
    let peer = parts.extensions.get::<Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
    if !front.behind_proxy {
        return peer;
    }
    let forwarded = parts.headers.get_all("x-forwarded-for").iter().next_back();
    let last = forwarded.and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
    last.unwrap_or(peer)
}

/// Networks of IPv6 count as one client: a single customer has 2^64 addresses.
fn address_key(address: IpAddr) -> Vec<u8> {
    // On `[::]`, an address of IPv4 arrives as `::ffff:1.2.3.4`.
    match address.to_canonical() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets()[..8].to_vec(),
    }
}

fn subject(credentials: Option<Credentials>, address: IpAddr) -> Vec<u8> {
    credentials.map_or_else(|| address_key(address), |Credentials(hash)| hash.to_vec())
}

fn limit(
    front: &Front,
    limit: Limit,
    credentials: Option<Credentials>,
    address: IpAddr,
) -> Result<(), Refusal> {
    const REQUESTS: Rate = Rate { burst: 2000.0, per_second: 200.0 };
    const ADDRESS: Rate = Rate { burst: 10_000.0, per_second: 1000.0 };
    const LOGIN: Rate = Rate { burst: 30.0, per_second: 1.0 };
    const SEARCH: Rate = Rate { burst: 50.0, per_second: 5.0 };
    let (subject, address) = (subject(credentials, address), address_key(address));
    take(front, ("address", &address), ADDRESS, 1.0)?;
    take(front, ("requests", &subject), REQUESTS, 1.0)?;
    match limit {
        Limit::Login => take(front, ("login", &address), LOGIN, 1.0),
        Limit::Search => take(front, ("search", &subject), SEARCH, 1.0),
        _ => Ok(()),
    }
}

fn take(front: &Front, subject: (&str, &[u8]), rate: Rate, amount: f64) -> Result<(), Refusal> {
    front.buckets.take(subject, rate, amount, Instant::now()).map_err(|wait| {
        front.metrics.limited.inc();
        let error = HubError::new(ProblemCode::TooMany, "too many requests; wait and try again");
        Refusal { error, wait: Some(wait) }
    })
}

/// An error, and when to try again.
struct Refusal {
    error: HubError,
    wait: Option<Duration>,
}

impl From<HubError> for Refusal {
    fn from(error: HubError) -> Self {
        Self { error, wait: None }
    }
}

fn refusal(refusal: &Refusal) -> Response<Body> {
    let problem = match &refusal.error {
        HubError::Problem(problem) => problem.clone(),
        error => {
            warn!(%error, "a request failed");
            let message = "the hub cannot reach its database or store; try again later".to_owned();
            Problem { code: ProblemCode::Unavailable, message, head: None, offset: None }
        }
    };
    let status = StatusCode::from_u16(status(problem.code)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = plain(status, "application/problem+json", encode(&problem).into());
    let wait = refusal.wait.or((status == StatusCode::SERVICE_UNAVAILABLE).then_some(Duration::from_secs(1)));
    if let Some(wait) = wait {
        let seconds = HeaderValue::from(wait.as_secs_f64().ceil() as u64);
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}

fn plain(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn respond(front: &Front, reply: Reply, asked: Option<&str>) -> Response<Body> {
    let response = match reply {
        Reply::Json(body) | Reply::Nothing(body) => plain(StatusCode::OK, "application/json", body.into()),
        Reply::Empty => plain(StatusCode::NO_CONTENT, "application/json", Bytes::new()),
        Reply::Bytes(bytes) => bytes_response(bytes.into(), asked),
        Reply::Page(html) => {
            let mut response = plain(StatusCode::OK, "text/html; charset=utf-8", html.into());
            let headers = response.headers_mut();
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(page::POLICY));
            headers.insert("x-robots-tag", HeaderValue::from_static("noindex, nofollow, noarchive"));
            response
        }
    };
    let length = axum::body::HttpBody::size_hint(response.body()).exact().unwrap_or(0);
    front.metrics.bytes_out.inc_by(length);
    response
}

fn bytes_response(bytes: Bytes, asked: Option<&str>) -> Response<Body> {
    let kind = "application/octet-stream";
    let length = bytes.len();
    let mut response = match asked.and_then(|asked| range(asked, length)) {
        None => plain(StatusCode::OK, kind, bytes),
        Some(Ok((from, end))) => {
            let mut response = plain(StatusCode::PARTIAL_CONTENT, kind, bytes.slice(from..end));
            if let Ok(value) = format!("bytes {from}-{}/{length}", end - 1).parse() {
                response.headers_mut().insert(CONTENT_RANGE, value);
            }
            response
        }
        Some(Err(())) => {
            let mut response = plain(StatusCode::RANGE_NOT_SATISFIABLE, kind, Bytes::new());
            if let Ok(value) = format!("bytes */{length}").parse() {
                response.headers_mut().insert(CONTENT_RANGE, value);
            }
            response
        }
    };
    response.headers_mut().insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    response
}

/// The answer for a path that no route has: the same as for what is absent.
pub(super) fn no_route() -> Response<Body> {
    refusal(&HubError::not_found().into())
}
