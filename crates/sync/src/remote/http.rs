//! A small blocking HTTP client: one request, one answer of bounded size.

use std::io;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Method, Url};
use tokio::runtime::{Builder, Runtime};

use super::RemoteError;

const CONNECT: Duration = Duration::from_secs(15);
/// How long nothing may arrive.
const SILENCE: Duration = Duration::from_mins(1);

/// Sends requests, and reuses connections.
#[derive(Debug)]
pub(crate) struct HttpClient {
    runtime: Runtime,
    client: reqwest::Client,
}

/// A request.
pub(crate) struct Request<'request> {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: &'request [u8],
    /// The longest body of the answer.
    pub(crate) most: u64,
    /// How long the server may take to answer, beyond the usual.
    pub(crate) wait: Duration,
}

/// An answer, whatever its status.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl HttpClient {
    pub(crate) fn new() -> io::Result<Self> {
        // rustls needs a process-wide provider; an earlier choice is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .redirect(Policy::none())
            .user_agent(concat!("retake/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(io::Error::other)?;
        Ok(Self { runtime: Builder::new_current_thread().enable_all().build()?, client })
    }

    /// Sends a request. `place` is named in errors.
    pub(crate) fn send(&self, place: &str, request: Request<'_>) -> Result<Answer, RemoteError> {
        let Request { method, url, headers, body, most, wait } = request;
        let unreachable = |error| RemoteError::Unreachable { place: place.to_owned(), error };
        let silence = SILENCE + wait;
        self.runtime.block_on(async {
            let late = || unreachable(io::ErrorKind::TimedOut.into());
            let sent = self.client.request(method, url).headers(headers).body(body.to_vec()).send();
            // A large body takes its time; the server answers when it has all of it.
            let upload = Duration::from_millis(body.len() as u64 / 16);
            let answer = tokio::time::timeout(silence + upload, sent).await.map_err(|_| late())?;
            let mut answer = answer.map_err(|error| unreachable(described(&error)))?;
            let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
            let mut body = Vec::new();
            loop {
                let chunk = tokio::time::timeout(SILENCE, answer.chunk()).await.map_err(|_| late())?;
                let Some(chunk) = chunk.map_err(|error| unreachable(described(&error)))? else { break };
                if (body.len() + chunk.len()) as u64 > most {
                    return Err(RemoteError::Damaged(format!("an answer is longer than {most} bytes")));
                }
                body.extend_from_slice(&chunk);
            }
            Ok(Answer { status, headers, body })
        })
    }
}

/// The innermost reason: reqwest's own message has the address and little else.
fn described(error: &reqwest::Error) -> io::Error {
    let mut reason: &dyn std::error::Error = error;
    while let Some(below) = reason.source() {
        reason = below;
    }
    io::Error::other(reason.to_string())
}
