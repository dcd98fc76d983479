//! Browser login, logout, and the start page.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::routing::{get, post};

use crate::dispatch::{refuse, request_name};
use crate::gate::STAY_SECONDS;
use crate::problem::{Code, Problem};
use crate::router::refusing_others;
use crate::service::Service;

/// Adds the routes for browsers. They are not in the OpenAPI document, because programs use a token.
pub(crate) fn add(router: Router, service: &Arc<Service>, home: &'static str) -> Router {
    let (entering, leaving) = (Arc::clone(service), Arc::clone(service));
    let enter = get(move |Path(ticket): Path<String>, request: Request| enter(entering, ticket, request));
    let leave = post(move |request: Request| leave(leaving, request));
    router
        .route("/login/{ticket}", refusing_others(enter, "GET"))
        .route("/logout", refusing_others(leave, "POST"))
        .route("/", refusing_others(get(move || async move { go(home) }), "GET"))
}

async fn enter(service: Arc<Service>, ticket: String, request: Request) -> Response<Body> {
    let gate = Arc::clone(&service);
    let entered = tokio::task::spawn_blocking(move || gate.gate.enter(&ticket)).await;
    match entered {
        Ok(Ok(cookie)) => {
            let attributes = format!("Path=/; HttpOnly; SameSite=Strict; Max-Age={STAY_SECONDS}");
            with_cookie(go("/"), &format!("{}={cookie}; {attributes}", service.gate.cookie()))
        }
        Ok(Err(problem)) => refuse(&problem, &request_name(&request)),
        Err(_) => refuse(&Problem::new(Code::Internal, "the server failed"), &request_name(&request)),
    }
}

async fn leave(service: Arc<Service>, request: Request) -> Response<Body> {
    let (headers, gate) = (request.headers().clone(), Arc::clone(&service));
    let left = tokio::task::spawn_blocking(move || gate.gate.leave(&headers)).await;
    if let Ok(Err(problem)) = left {
        return refuse(&problem, &request_name(&request));
    }
    let cookie = service.gate.cookie();
    with_cookie(go("/"), &format!("{cookie}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"))
}

fn go(place: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(place));
    response
}

fn with_cookie(mut response: Response<Body>, cookie: &str) -> Response<Body> {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}
