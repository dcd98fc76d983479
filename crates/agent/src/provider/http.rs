//! HTTP client: one request, one stream of events, and prompt cancellation.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::Response;
use reqwest::header::HeaderValue;
use reqwest::redirect::Policy;
use retake_model::projection::Body;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, timeout};

use super::decoder::{self, Decoder};
use super::endpoint::{Endpoint, Target, is_loopback};
use super::events::EventStreamError;
use super::fault::{CallError, DecodeError, Fault};
use super::status;
use super::stream_reader::StreamReader;
use super::{Answer, Delta, EndpointError, Stop};
use crate::cancel::Cancel;

/// Connect timeout.
const CONNECT: Duration = Duration::from_secs(15);

/// Maximum bytes read of an error response.
const REFUSAL_BYTES: usize = 64 * 1024;

/// Maximum bytes read of a list of models.
const LIST_BYTES: usize = 8 << 20;

/// Timeout for reading the body of an error response.
const REFUSAL_WAIT: Duration = Duration::from_secs(5);

/// How long to wait for usage counts after the model has stopped.
const REST: Duration = Duration::from_secs(5);

/// Maximum bytes of a stream, including bytes without content.
const STREAM_BYTES: u64 = 256 << 20;

/// Grace period for connections to close after cancellation.
const FAREWELL: Duration = Duration::from_millis(5);

/// Calls models. Reuses connections, so that the rounds of a turn need no new handshake.
///
/// Blocks the calling thread; do not use it in asynchronous code. Threads that call concurrently should each
/// have their own client.
#[derive(Debug)]
pub struct Client {
    /// `None` only while the client is dropped.
    runtime: Option<Runtime>,
    connectors: Mutex<BTreeMap<Route, reqwest::Client>>,
}

/// A request for a short text, such as a list of models.
pub(super) struct Fetch {
    /// The address.
    pub(super) url: reqwest::Url,
    /// The timeout.
    pub(super) wait: Duration,
}

/// How to connect to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Route {
    encrypted: bool,
    loopback: bool,
}

impl Client {
    /// A client without connections.
    pub fn new() -> std::io::Result<Self> {
        // rustls needs a process-wide provider; an earlier choice is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime: Some(runtime), connectors: Mutex::default() })
    }

    /// Streams one answer. Calls `on` for every piece in order, on this thread. `cancel` ends the call
    /// promptly from any thread, even while nothing arrives.
    pub fn call(
        &self,
        endpoint: &Endpoint,
        body: &Body,
        cancel: &Cancel,
        on: &mut dyn FnMut(Delta),
    ) -> Result<Answer, CallError> {
        let target = endpoint.target().map_err(|bad| unsendable(&bad))?;
        let connector =
            self.connector(Route { encrypted: target.url.scheme() == "https", loopback: target.loopback })?;
        let signing = match endpoint.sign_in.address() {
            Some(url) => {
                self.connector(Route { encrypted: url.scheme() == "https", loopback: is_loopback(url) })?
            }
            None => connector.clone(),
        };
        let runtime = self.runtime.as_ref().expect("there until the client goes");
        let answered = runtime.block_on(async {
            let mut decoder = Decoder::new(endpoint.wire);
            let streamed = tokio::select! {
                biased;
                () = cancel.wait() => Err(CallError::new(Fault::Interrupted, "interrupted")),
                streamed = timeout(
                    endpoint.timeouts.answer,
                    stream((&connector, &signing), endpoint, target, body, &mut decoder, on),
                ) => streamed.unwrap_or_else(|_| Err(overlong(endpoint))),
            };
            let answered = match streamed {
                Ok(()) => decoder.finish(on),
                Err(error) => Err(error.keeping(decoder.partial())),
            };
            if answered.is_err() {
                // Background tasks close the connections and run only inside the runtime. Without the close,
                // the server keeps generating and the user keeps paying.
                tokio::time::sleep(FAREWELL).await;
            }
            answered
        });
        let answered = answered.map(|answer| redacted(answer, endpoint));
        answered.map_err(|error| CallError {
            message: endpoint.redact(&error.message).into_owned(),
            partial: Box::new(redacted(*error.partial, endpoint)),
            ..error
        })
    }

    /// Reads one short text from the provider of an endpoint, authenticated with its key.
    pub(super) fn fetch(&self, endpoint: &Endpoint, fetch: Fetch) -> Result<String, CallError> {
        let target = endpoint.target().map_err(|bad| unsendable(&bad))?;
        let route =
            |url: &reqwest::Url| Route { encrypted: url.scheme() == "https", loopback: is_loopback(url) };
        let connector = self.connector(route(&fetch.url))?;
        let signing = self.connector(route(endpoint.sign_in.address().unwrap_or(&fetch.url)))?;
        let mut target = Target { url: fetch.url, ..target };
        target.headers.insert("accept", HeaderValue::from_static("application/json"));
        let runtime = self.runtime.as_ref().expect("there until the client goes");
        let read = runtime.block_on(async {
            let read = async {
                endpoint.sign_in.authorize(&signing, endpoint, &mut target, ("GET", "")).await?;
                let loopback = target.loopback;
                let response = connector.get(target.url).headers(target.headers).send().await;
                let response = response.map_err(|error| unreachable(endpoint, loopback, &error))?;
                if !response.status().is_success() {
                    return Err(refused(endpoint, response).await);
                }
                whole(endpoint, response).await
            };
            timeout(fetch.wait, read)
                .await
                .unwrap_or_else(|_| Err(stalled("the server did not answer", fetch.wait)))
        });
        read.map_err(|error| CallError { message: endpoint.redact(&error.message).into_owned(), ..error })
    }

    fn connector(&self, route: Route) -> Result<reqwest::Client, CallError> {
        let mut connectors = self.connectors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connector) = connectors.get(&route) {
            return Ok(connector.clone());
        }
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("retake/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .tcp_nodelay(true);
        if route.loopback {
            // Do not send requests for this machine through a proxy.
            builder = builder.no_proxy();
        }
        if !route.encrypted && route.loopback {
            // Load no certificates, so that a machine without any can still reach its local model.
            builder = builder.tls_certs_only([]);
        }
        let connector = builder.build().map_err(|error| {
            CallError::new(
                Fault::Network,
                format!("no connection can be made on this machine: {}", causes(&error)),
            )
        })?;
        connectors.insert(route, connector.clone());
        Ok(connector)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A hanging DNS lookup must not delay the drop.
            runtime.shutdown_background();
        }
    }
}

async fn stream(
    (connector, signing): (&reqwest::Client, &reqwest::Client),
    endpoint: &Endpoint,
    mut target: Target,
    body: &Body,
    decoder: &mut Decoder,
    on: &mut dyn FnMut(Delta),
) -> Result<(), CallError> {
    let loopback = target.loopback;
    let body = endpoint.platform.body(endpoint.wire, body, &mut target.headers);
    endpoint.sign_in.authorize(signing, endpoint, &mut target, ("POST", &body)).await?;
    let request = connector.post(target.url).headers(target.headers).body(body);
    let response = match timeout(endpoint.timeouts.first_byte, request.send()).await {
        Err(_) => return Err(stalled("the server did not begin to answer", endpoint.timeouts.first_byte)),
        Ok(Err(error)) => return Err(unreachable(endpoint, loopback, &error)),
        Ok(Ok(response)) => response,
    };
    if !response.status().is_success() {
        if response.status().as_u16() == 401 {
            endpoint.sign_in.forget();
        }
        return Err(refused(endpoint, response).await);
    }
    if let Some(kind) = unstreamed(&response) {
        let body = beginning(response).await;
        // Some servers report failures with a success status.
        if status::is_report(&body) {
            return Err(decoder::error(status::reported(&body)));
        }
        let excerpt = status::shorten(&body);
        let message =
            format!("{}: expected a stream of events, but received {kind}: {excerpt}", endpoint.provider);
        return Err(CallError::new(Fault::Protocol, message));
    }
    read(response, endpoint, decoder, on).await
}

async fn read(
    mut response: Response,
    endpoint: &Endpoint,
    decoder: &mut Decoder,
    on: &mut dyn FnMut(Delta),
) -> Result<(), CallError> {
    let mut reader = StreamReader::of(endpoint.platform);
    let mut events = Vec::new();
    let mut total = 0_u64;
    let mut whole_since = None;
    loop {
        let idle_limit = if decoder.is_whole() {
            let since = *whole_since.get_or_insert_with(Instant::now);
            endpoint.timeouts.stall.min(REST.saturating_sub(since.elapsed()))
        } else {
            endpoint.timeouts.stall
        };
        let arrived = match timeout(idle_limit, response.chunk()).await {
            // A complete answer needs no clean end of the stream.
            Err(_) | Ok(Err(_)) if decoder.is_whole() => return Ok(()),
            Err(_) => return Err(stalled("no more data arrived", endpoint.timeouts.stall)),
            Ok(Err(error)) => {
                let message = format!("the connection to {} broke: {}", endpoint.provider, causes(&error));
                return Err(CallError::new(Fault::Network, message));
            }
            Ok(Ok(arrived)) => arrived,
        };
        total += arrived.as_ref().map_or(0, |bytes| bytes.len() as u64);
        if total > STREAM_BYTES {
            return Err(decoder::error(DecodeError::TooLarge));
        }
        let read = match &arrived {
            Some(bytes) => reader.feed(bytes, &mut events),
            None => reader.finish(&mut events),
        };
        for event in events.drain(..) {
            if !decoder.feed(&event, on)? {
                // Reading to the end makes the connection reusable, but is not worth a longer wait.
                let _ = timeout(FAREWELL, response.chunk()).await;
                return Ok(());
            }
        }
        read?;
        if arrived.is_none() {
            return Ok(());
        }
        // Yield, so that cancellation works however fast the server sends.
        tokio::task::yield_now().await;
    }
}

/// Removes secrets from the metadata of an answer. The model's own content stays unchanged.
fn redacted(answer: Answer, endpoint: &Endpoint) -> Answer {
    let redact = |text: String| endpoint.redact(&text).into_owned();
    Answer {
        model: answer.model.map(redact),
        response_id: answer.response_id.map(redact),
        stop_detail: answer.stop_detail.map(redact),
        stop: match answer.stop {
            Stop::Other(word) => Stop::Other(redact(word)),
            stop => stop,
        },
        ..answer
    }
}

/// Describes the response if it is clearly not an event stream.
fn unstreamed(response: &Response) -> Option<&'static str> {
    let kind = response.headers().get("content-type")?.to_str().ok()?.to_lowercase();
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/json" => Some("JSON"),
        "text/html" => Some("a web page"),
        _ => None,
    }
}

async fn refused(endpoint: &Endpoint, response: Response) -> CallError {
    let code = response.status().as_u16();
    let wait = asked_wait(&response);
    let body = beginning(response).await;
    let error = status::refusal(&endpoint.provider, &endpoint.model, &endpoint.key_hint, code, &body);
    CallError { retry_after: wait.or(error.retry_after), ..error }
}

fn asked_wait(response: &Response) -> Option<Duration> {
    let header = |name: &str| response.headers().get(name)?.to_str().ok();
    let millis = header("retry-after-ms").and_then(|text| text.trim().parse::<u64>().ok());
    match millis {
        Some(millis) => Some(Duration::from_millis(millis)),
        None => status::retry_after(header("retry-after")?, jiff::Timestamp::now()),
    }
}

/// Reads a short response completely, as text.
async fn whole(endpoint: &Endpoint, mut response: Response) -> Result<String, CallError> {
    let broken = |error: reqwest::Error| {
        let message = format!("the connection to {} broke: {}", endpoint.provider, causes(&error));
        CallError::new(Fault::Network, message)
    };
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > LIST_BYTES {
            let message = format!("{}: the answer has more than {} MiB", endpoint.provider, LIST_BYTES >> 20);
            return Err(CallError::new(Fault::TooLarge, message));
        }
    }
    String::from_utf8(bytes)
        .map_err(|_| CallError::new(Fault::Protocol, EventStreamError::NotText.to_string()))
}

/// Reads the first bytes of a response that is not a stream, as text.
async fn beginning(mut response: Response) -> String {
    let mut bytes = Vec::new();
    while let Ok(Ok(Some(chunk))) = timeout(REFUSAL_WAIT, response.chunk()).await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() >= REFUSAL_BYTES {
            bytes.truncate(REFUSAL_BYTES);
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn unsendable(bad: &EndpointError) -> CallError {
    let fault = match bad {
        EndpointError::Insecure { .. } => Fault::Insecure,
        EndpointError::Key { .. } => Fault::Key,
        EndpointError::Address { .. } | EndpointError::Header { .. } => Fault::Refused,
    };
    CallError::new(fault, bad.to_string())
}

fn overlong(endpoint: &Endpoint) -> CallError {
    let Endpoint { provider, timeouts, .. } = endpoint;
    let seconds = timeouts.answer.as_secs_f64();
    let message = format!(
        "the answer of {provider} did not end within {seconds} seconds; providers.{provider}.answer_seconds is the limit"
    );
    CallError::new(Fault::Overlong, message)
}

fn stalled(what: &str, waited: Duration) -> CallError {
    CallError::new(Fault::Stalled, format!("{what} for {} seconds", waited.as_secs_f64()))
}

fn unreachable(endpoint: &Endpoint, loopback: bool, error: &reqwest::Error) -> CallError {
    let provider = &endpoint.provider;
    let advice = match (error.is_connect(), loopback) {
        (true, true) => format!("check that the server of {provider} is running at {}", endpoint.base_url),
        (true, false) => "check the network connection".to_owned(),
        (false, _) => "the connection broke".to_owned(),
    };
    let message = format!("{provider} cannot be reached; {advice} ({})", causes(error));
    let failed = CallError::new(Fault::Network, message);
    // Do not retry a local server that is not running: it will not start by itself.
    CallError { retryable: failed.retryable && !(loopback && error.is_connect()), ..failed }
}

/// The innermost causes of an error, without the URL, which may contain secrets.
fn causes(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let mut last = None;
    while let Some(inner) = cause {
        last = Some(inner.to_string());
        cause = inner.source();
    }
    status::shorten(&last.unwrap_or_else(|| "it failed".to_owned()))
}
