//! Where a browser comes in, and where it goes from there.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::routing::{get, post};

use crate::dispatch::refuse;
use crate::gate::COOKIE_NAME;
use crate::router::refusing_others;
use crate::service::Service;

/// A browser stays in for so long, unless the token changes.
const STAY_SECONDS: u32 = 30 * 24 * 60 * 60;

/// Adds the ways in and out. They are not part of the document: no program needs them.
pub(crate) fn add(router: Router, service: &Arc<Service>, home: &'static str) -> Router {
    let (entering, leaving) = (Arc::clone(service), Arc::clone(service));
    let enter = get(move |Path(ticket): Path<String>| enter(entering, ticket));
    let leave = post(move |request: Request| leave(leaving, request));
    router
        .route("/enter/{ticket}", refusing_others(enter, "GET"))
        .route("/leave", refusing_others(leave, "POST"))
        .route("/", refusing_others(get(move || async move { go(home) }), "GET"))
}

async fn enter(service: Arc<Service>, ticket: String) -> Response<Body> {
    let entered = tokio::task::spawn_blocking(move || service.gate.enter(&ticket)).await;
    match entered {
        Ok(Ok(cookie)) => {
            let attributes = format!("Path=/; HttpOnly; SameSite=Strict; Max-Age={STAY_SECONDS}");
            with_cookie(go("/"), &format!("{COOKIE_NAME}={cookie}; {attributes}"))
        }
        Ok(Err(problem)) => refuse(&problem, ""),
        Err(_) => {
            refuse(&crate::problem::Problem::new(crate::problem::Code::Internal, "the server failed"), "")
        }
    }
}

async fn leave(service: Arc<Service>, request: Request) -> Response<Body> {
    let headers = request.headers().clone();
    let left = tokio::task::spawn_blocking(move || service.gate.leave(&headers)).await;
    match left {
        Ok(Err(problem)) => refuse(&problem, ""),
        _ => with_cookie(go("/"), &format!("{COOKIE_NAME}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")),
    }
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
