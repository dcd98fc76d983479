//! The API without a socket, for test campaigns that send more requests than sockets can carry.
//!
//! Everything works as in a server, except for connections: their limits, timeouts and HTTP parsing.

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

use crate::dispatch::Admission;
use crate::endpoint::EVENTS;
use crate::router::router;
use crate::server::ServeError;
use crate::service::{Options, Service};

/// How long to wait for the next chunk of a stream.
const STREAM_IDLE_TIME: Duration = Duration::from_millis(2);
/// How many chunks of a stream to read.
const MAX_STREAM_CHUNKS: usize = 4;

/// A server without a socket. Dropping it shuts it down gracefully.
pub struct InProcess {
    service: Arc<Service>,
    router: Router,
    /// Taken on drop.
    runtime: Option<Runtime>,
    tail: Option<JoinHandle<()>>,
    stop: Cancel,
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientRequest {
    /// The method.
    pub method: String,
    /// The request target: path and query.
    pub target: String,
    /// The headers, in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientResponse {
    /// The status.
    pub status: u16,
    /// The headers, in order.
    pub headers: Vec<(String, String)>,
    /// The body; for a stream, its first chunks.
    pub body: Vec<u8>,
}

/// Why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The request is not valid HTTP.
    #[error("not a valid HTTP request")]
    NotHttp,
    /// The server panicked without catching it.
    #[error("the server panicked")]
    Panicked,
    /// The response ended early.
    #[error("the response ended early")]
    BrokeOff,
}

impl InProcess {
    pub fn start(options: Options) -> Result<Self, ServeError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .worker_threads(1)
            .max_blocking_threads(Admission::max_workers(&options.limits) + options.limits.streams + 16)
            .build()?;
        let stop = Cancel::new();
        let service = Service::new(options, stop.clone()).map_err(ServeError::Start)?;
        let tail = crate::events::follow(&service)?;
        let router = router(&service, None);
        Ok(Self { service, router, runtime: Some(runtime), tail: Some(tail), stop })
    }

    /// The `OpenAPI` document.
    pub fn document(&self) -> &Value {
        &self.service.document().value
    }

    /// Sends a request and waits for the response.
    pub fn ask(&self, asked: &ClientRequest) -> Result<ClientResponse, ClientError> {
        let request = request(asked).ok_or(ClientError::NotHttp)?;
        let runtime = self.runtime.as_ref().ok_or(ClientError::BrokeOff)?;
        let router = self.router.clone();
        // In a separate task, so that a panic becomes an error.
        let answering = runtime.spawn(async move {
            let Ok(response) = router.oneshot(request).await;
            read(response).await
        });
        runtime.block_on(answering).map_err(|_| ClientError::Panicked)?.ok_or(ClientError::BrokeOff)
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.stop.set();
        self.service.turns.end_all(self.service.admission.limits.shutdown_grace);
        self.service.event_bus.close();
        if let Some(tail) = self.tail.take() {
            // A panic in the thread has been logged already.
            let _ = tail.join();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

fn request(asked: &ClientRequest) -> Option<Request<Body>> {
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

async fn read(response: Response<Body>) -> Option<ClientResponse> {
    let status = response.status().as_u16();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = response.headers().iter();
    let headers: Vec<(String, String)> =
        headers.map(|(name, value)| (name.to_string(), text(value))).collect();
    let endless = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == EVENTS);
    let mut body = response.into_body();
    if !endless {
        let body = body.collect().await.ok()?.to_bytes().to_vec();
        return Some(ClientResponse { status, headers, body });
    }
    let mut received = Vec::new();
    for _ in 0..MAX_STREAM_CHUNKS {
        match tokio::time::timeout(STREAM_IDLE_TIME, body.frame()).await {
            Ok(Some(Ok(frame))) => received.extend_from_slice(frame.data_ref().map_or(&[], |piece| piece)),
            Ok(Some(Err(_))) => return None,
            Ok(None) | Err(_) => break,
        }
    }
    Some(ClientResponse { status, headers, body: received })
}
