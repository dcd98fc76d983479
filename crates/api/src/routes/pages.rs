//! Browser login, logout, and the start page.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::routing::{get, post};

use crate::auth::{Auth, SESSION_SECONDS};
use crate::dispatch::{refuse, request_name};
use crate::problem::{Code, Problem};
use crate::router::refusing_others;

/// Adds the routes for browsers. They are not in the `OpenAPI` document, because programs use a token.
pub(crate) fn add(router: Router, auth: &Arc<Auth>, home: &'static str) -> Router {
    let (for_login, for_logout) = (Arc::clone(auth), Arc::clone(auth));
    let login = get(move |Path(ticket): Path<String>, request: Request| login(for_login, ticket, request));
    let logout = post(move |request: Request| logout(for_logout, request));
    router
        .route("/login/{ticket}", refusing_others(login, "GET"))
        .route("/logout", refusing_others(logout, "POST"))
        .route("/", refusing_others(get(move || async move { redirect(home) }), "GET"))
}

async fn login(auth: Arc<Auth>, ticket: String, request: Request) -> Response<Body> {
    let worker = Arc::clone(&auth);
    let logged_in = tokio::task::spawn_blocking(move || worker.login(&ticket)).await;
    match logged_in {
        Ok(Ok(cookie)) => {
            let attributes = format!("Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS}");
            with_cookie(redirect("/"), &format!("{}={cookie}; {attributes}", auth.cookie()))
        }
        Ok(Err(problem)) => refuse(&problem, &request_name(&request)),
        Err(_) => refuse(&Problem::new(Code::Internal, "the server failed"), &request_name(&request)),
    }
}

async fn logout(auth: Arc<Auth>, request: Request) -> Response<Body> {
    let (headers, worker) = (request.headers().clone(), Arc::clone(&auth));
    let logged_out = tokio::task::spawn_blocking(move || worker.logout(&headers)).await;
    if let Ok(Err(problem)) = logged_out {
        return refuse(&problem, &request_name(&request));
    }
    let cookie = auth.cookie();
    with_cookie(redirect("/"), &format!("{cookie}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"))
}

fn redirect(address: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(address));
    response
}

fn with_cookie(mut response: Response<Body>, cookie: &str) -> Response<Body> {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}
