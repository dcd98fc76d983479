//! The API without a socket: a request goes through the gate to its route and comes back whole.
//!
//! For proofs, which ask far more than sockets could carry. Everything is as it is in a server, except what belongs to
//! connections: how many there are, how slow they may be, and how a request is read off them.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::BodyExt;
use retake_agent::Cancel;
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::dispatch::Lanes;
use crate::endpoint::EVENTS;
use crate::router::router;
use crate::server::ServeError;
use crate::service::{Options, Service};

/// How long a stream that says nothing is listened to.
const SILENCE: Duration = Duration::from_millis(2);
/// How many pieces of a stream are heard.
const PIECES: usize = 4;

/// A server without a socket. Dropping it stops it, as a server stops.
pub struct InProcess {
    service: Arc<Service>,
    router: Router,
    /// Taken when it stops.
    runtime: Option<Runtime>,
    tail: Option<JoinHandle<()>>,
    stop: Cancel,
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// The path and the query, as they stand in the first line of a request.
    pub target: String,
    /// The headers, in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// The headers, in order.
    pub headers: Vec<(String, String)>,
    /// The body; of a stream, how it begins.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// No connection would carry it: it would be refused before it is a request.
    #[error("this is not HTTP")]
    NotHttp,
    /// The server made a mistake that it did not notice itself.
    #[error("the server panicked")]
    Panicked,
    /// The answer broke off.
    #[error("the answer broke off")]
    BrokeOff,
}

impl InProcess {
    /// Starts it.
    pub fn start(options: Options) -> Result<Self, ServeError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .worker_threads(1)
            .max_blocking_threads(Lanes::most(&options.limits) + options.limits.streams + 16)
            .build()?;
        let stop = Cancel::new();
        let service =
            Service::new(options, stop.clone()).map_err(|problem| ServeError::Start(problem.detail))?;
        let tail = crate::events::follow(&service)?;
        let router = router(&service, None);
        Ok(Self { service, router, runtime: Some(runtime), tail: Some(tail), stop })
    }

    /// The document, as it is served.
    pub fn document(&self) -> &Value {
        &self.service.document().value
    }

    /// Asks, and waits for the answer.
    pub fn ask(&self, asked: &Asked) -> Result<Answered, AskError> {
        let request = request(asked).ok_or(AskError::NotHttp)?;
        let runtime = self.runtime.as_ref().ok_or(AskError::BrokeOff)?;
        let router = self.router.clone();
        // As a task of its own: a panic in it is told, not passed on.
        let answering = runtime.spawn(async move {
            let Ok(response) = router.oneshot(request).await;
            read(response).await
        });
        runtime.block_on(answering).map_err(|_| AskError::Panicked)?.ok_or(AskError::BrokeOff)
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.stop.set();
        self.service.turns.end_all(self.service.limits.farewell);
        if let Some(tail) = self.tail.take() {
            // A thread that panicked has said so already.
            let _ = tail.join();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

fn request(asked: &Asked) -> Option<Request<Body>> {
    let mut request = Request::new(Body::from(asked.body.clone()));
    *request.method_mut() = Method::from_bytes(asked.method.as_bytes()).ok()?;
    *request.uri_mut() = asked.target.parse::<Uri>().ok()?;
    let headers = request.headers_mut();
    for (name, value) in &asked.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_bytes(value).ok()?);
    }
    if !asked.body.is_empty() && !headers.contains_key(CONTENT_LENGTH) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(asked.body.len()));
    }
    Some(request)
}

async fn read(response: Response<Body>) -> Option<Answered> {
    let status = response.status().as_u16();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = response.headers().iter();
    let headers: Vec<(String, String)> =
        headers.map(|(name, value)| (name.to_string(), text(value))).collect();
    let endless = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == EVENTS);
    let mut body = response.into_body();
    if !endless {
        let body = body.collect().await.ok()?.to_bytes().to_vec();
        return Some(Answered { status, headers, body });
    }
    let mut heard = Vec::new();
    for _ in 0..PIECES {
        match tokio::time::timeout(SILENCE, body.frame()).await {
            Ok(Some(Ok(frame))) => heard.extend_from_slice(frame.data_ref().map_or(&[], |piece| piece)),
            Ok(Some(Err(_))) => return None,
            Ok(None) | Err(_) => break,
        }
    }
    Some(Answered { status, headers, body: heard })
}
