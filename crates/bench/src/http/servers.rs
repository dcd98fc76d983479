//! The two servers: Retake's, and the baseline.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use retake_agent::provider::config::ProviderEnvironment;
use retake_agent::{Cancel, Setup};
use retake_api::{Limits, Options, TokenFile};
use retake_timeline::{Rules, Timeline};

use crate::Outcome;
use crate::baseline::RawInsert;

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A server process, which ends with this value.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl Server {
    /// Starts this program as a server.
    pub(crate) fn start(which: &str, folder: &Path) -> Outcome<Self> {
        let mut child =
            Command::new(std::env::current_exe()?).arg(which).arg(folder).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let (address, token) = line.trim().split_once(' ').ok_or("the server printed nothing")?;
        Ok(Self { child, address: address.parse()?, token: token.to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Retake's server.
pub(crate) fn ours(folder: &Path) -> Outcome<()> {
    let timeline = Timeline::open(folder, Rules::default())?;
    let file = TokenFile::at(folder.join("serve.token"));
    let token = file.read_or_create()?;
    let options = Options {
        timeline,
        setup: Setup::default(),
        provider_environment: ProviderEnvironment::from_process,
        folder: folder.to_owned(),
        token: file,
        hosts: Vec::new(),
        limits: Limits::default(),
        pages: None,
    };
    retake_api::serve(options, ANY_PORT, &Cancel::new(), |address| println!("{address} {}", token.secret()))?;
    Ok(())
}

/// The baseline: a handler that inserts its body durably.
pub(crate) fn baseline(folder: &Path) -> Outcome<()> {
    let baseline = Arc::new(Mutex::new(RawInsert::open(folder)?));
    let handler = move |body: String| {
        let baseline = Arc::clone(&baseline);
        async move {
            let inserted = tokio::task::spawn_blocking(move || {
                baseline.lock().unwrap_or_else(PoisonError::into_inner).insert_text(&body).is_ok()
            });
            match inserted.await {
                Ok(true) => (StatusCode::CREATED, "{}"),
                _ => (StatusCode::INTERNAL_SERVER_ERROR, "{}"),
            }
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(ANY_PORT).await?;
        println!("{} none", listener.local_addr()?);
        axum::serve(listener, Router::new().route("/", post(handler))).await?;
        Ok(())
    })
}
