//! Handles every request: authentication, limits, idempotency, logging. Rules for all routes live here.
//!
//! ```text
//!   request ─► auth ─► body, bounded in size and time ─► a worker ─► key known? ─► the route's function
//!      │         │                                                        │                 │
//!      └─ id     └─ 401 403                408 413 415               first answer           ▼
//!   answer ◄─ headers, log, metrics ◄───────────────────────────────────────────────── Reply or Problem
//! ```

mod admission;
mod body;
pub(crate) mod headers;
mod in_flight;

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::header::{CONTENT_LENGTH, ETAG, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response};
use axum::middleware::Next;
use tracing::{error, info};

pub(crate) use admission::Admission;
use in_flight::InFlight;

use crate::auth::LOGIN_PATH;
use crate::endpoint::{Endpoint, Identity, IncomingRequest, Reply, ReplyBody, RequestBodyKind};
use crate::idempotency;
use crate::page;
use crate::problem::{self, Code, Problem};
use crate::server::Connection;
use crate::service::Service;

/// The id of a request in the log.
#[derive(Clone)]
struct LoggedRequestId(String);

/// The pattern of the matched route.
#[derive(Clone, Copy)]
struct Route(&'static str);

/// Marks a stored answer.
pub(crate) const REPLAYED: &str = "idempotency-replayed";

/// Authenticates a request, and logs and counts its response.
pub(crate) async fn front(service: Arc<Service>, mut request: Request, next: Next) -> Response<Body> {
    let started = Instant::now();
    let (answering, name) = service.admission.in_flight.begin();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let for_people = headers::wants_page(&method, request.headers());
    let admitted = authenticate(&service, &request);
    let mut response = match admitted {
        Ok(who) => {
            request.extensions_mut().insert(LoggedRequestId(name.clone()));
            if let Some(who) = who {
                if let Some(connection) = request.extensions().get::<Connection>() {
                    connection.authenticated();
                }
                request.extensions_mut().insert(who);
            }
            next.run(request).await
        }
        Err(problem) => refuse(&problem, &name),
    };
    if for_people && let Some(problem) = response.extensions().get::<Problem>().cloned() {
        let page = page::refusal(&problem, &name);
        headers::kind(response.headers_mut(), page::HTML);
        response.headers_mut().remove(CONTENT_LENGTH);
        *response.body_mut() = Body::from(page);
    }
    let took = started.elapsed();
    let route = response.extensions().get::<Route>().map_or("other", |route| route.0);
    let status = response.status().as_u16();
    service.metrics.answered(method_name(&method), route, status, took);
    // The path of a login link is a secret until it is used.
    let shown = if path.starts_with(LOGIN_PATH) { LOGIN_PATH } else { &path };
    info!(
        request = name,
        method = method.as_str(),
        path = shown,
        route,
        status,
        micros = took.as_micros() as u64,
        "answered"
    );
    headers::finish(response.headers_mut(), &name);
    answering.hold_until_sent(response)
}

/// The id of a request that passed authentication.
pub(crate) fn request_name(request: &Request) -> String {
    request.extensions().get::<LoggedRequestId>().map_or_else(String::new, |name| name.0.clone())
}

/// Runs a route.
pub(crate) async fn handle(
    service: Arc<Service>,
    endpoint: Arc<Endpoint>,
    request: Request,
) -> Response<Body> {
    let name = request_name(&request);
    let answered = answer(service, &endpoint, request).await;
    let mut response = match answered {
        Ok(reply) => respond(reply),
        Err(problem) => {
            if problem::status(problem.code).is_server_error() {
                error!(request = name, code = problem.code.name(), detail = problem.message, "failed");
            }
            refuse(&problem, &name)
        }
    };
    response.extensions_mut().insert(Route(endpoint.path));
    response
}

pub(crate) async fn no_such_route(request: Request) -> Response<Body> {
    let name = request_name(&request);
    refuse(&Problem::new(Code::NoSuchRoute, format!("no route {}", request.uri().path())), &name)
}

pub(crate) async fn method_not_allowed(request: Request) -> Response<Body> {
    let name = request_name(&request);
    let detail = format!("this route does not support {}", request.method());
    refuse(&Problem::new(Code::MethodNotAllowed, detail), &name)
}

/// The response for a problem.
pub(crate) fn refuse(problem: &Problem, name: &str) -> Response<Body> {
    let body = serde_json::to_vec(&problem::document(problem, name)).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = problem::status(problem.code);
    let headers = response.headers_mut();
    headers::kind(headers, "application/problem+json");
    match problem.code {
        Code::Unauthorized => {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"retake\""));
        }
        Code::Unavailable | Code::TooMany | Code::RequestInProgress => {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        _ => {}
    }
    if let Some(current) = problem.details.get("current").and_then(serde_json::Value::as_u64) {
        headers.insert(ETAG, headers::version(current));
    }
    // Browsers show a page instead of JSON.
    response.extensions_mut().insert(problem.clone());
    response
}

/// The identity of the caller; `None` for login links, which are credentials themselves.
fn authenticate(service: &Service, request: &Request) -> Result<Option<Identity>, Problem> {
    let (method, headers) = (request.method(), request.headers());
    service.auth.check_host(method, request.uri(), headers)?;
    if *method == Method::GET && request.uri().path().starts_with(LOGIN_PATH) {
        return Ok(None);
    }
    service.auth.authenticate(method, headers).map(Some)
}

async fn answer(service: Arc<Service>, endpoint: &Arc<Endpoint>, request: Request) -> Result<Reply, Problem> {
    let (mut parts, body) = request.into_parts();
    let who = parts.extensions.get::<Identity>().cloned();
    let who = who.ok_or_else(|| Problem::new(Code::Unauthorized, "the request is not authenticated"))?;
    let path = path_of(&mut parts).await?;
    let expected = headers::expected(&parts.headers)?;
    if expected.is_some() && !endpoint.versioned {
        return Err(Problem::invalid("this route changes no thread and accepts no If-Match"));
    }
    let key = headers::key(&parts.headers)?.filter(|_| endpoint.method == Method::POST);
    headers::check_kind(&parts.headers, endpoint)?;
    let arriving = body::BodyReader(&service.admission);
    let (content, weight) = match endpoint.takes {
        RequestBodyKind::Nothing => arriving.nothing(body).await?,
        RequestBodyKind::Json(_) => arriving.in_memory(&parts.headers, body).await?,
        RequestBodyKind::File(_) => {
            arriving.in_file(&parts.headers, body, service.timeline.store().folder()).await?
        }
    };
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let mut arrived = IncomingRequest {
        who,
        path,
        query,
        body: content,
        expected,
        request: None,
        made: None,
        last_event: headers::last_event(&parts.headers)?,
    };
    let permit = service.admission.admit(endpoint.admission_class).await?;
    let endpoint = Arc::clone(endpoint);
    let worked = tokio::task::spawn_blocking(move || {
        // In the worker, because hashing a file body reads it.
        let key =
            key.map(|key| idempotency::IdempotencyKey::of(&key, &endpoint.method, &parts.uri, &arrived.body));
        arrived.request = key.as_ref().map(|key| key.request);
        let reply = idempotency::execute(&service, &endpoint, arrived, key);
        service.log_recoveries();
        drop((permit, weight));
        reply
    });
    match worked.await {
        Ok(reply) => reply,
        Err(_) => {
            Err(Problem::new(Code::Internal, "the server failed; it is unknown whether anything changed"))
        }
    }
}

async fn path_of(parts: &mut Parts) -> Result<Vec<(String, String)>, Problem> {
    let params = RawPathParams::from_request_parts(parts, &()).await;
    let params = params.map_err(|_| Problem::not_found("the path is not valid UTF-8"))?;
    Ok(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn respond(reply: Reply) -> Response<Body> {
    let body = match reply.body {
        ReplyBody::Bytes(bytes) => Body::from(bytes),
        ReplyBody::Stream(body) => body,
    };
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    headers::kind(headers, reply.kind);
    if let Some(version) = reply.version {
        headers.insert(ETAG, headers::version(version));
    }
    if let Some(location) = reply.location.and_then(|location| HeaderValue::from_str(&location).ok()) {
        headers.insert(LOCATION, location);
    }
    if reply.replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// The method for metrics: a fixed set of labels, whatever a client sends.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        _ => "other",
    }
}
