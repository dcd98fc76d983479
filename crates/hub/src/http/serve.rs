//! The server: accepts connections within limits, and stops without losing a request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::routing::{MethodFilter, MethodRouter};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt;
use tracing::{info, warn};

use super::dispatch::{self, Front, Peer};
use super::limits::Buckets;
use super::metrics::Metrics;
use super::routes;
use super::wakers::{self, Wakers};
use crate::service::Hub;

/// Time for a client to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// Time for the requests under way when the server stops.
const GRACE: Duration = Duration::from_secs(10);
/// Between two searches for what expired.
const CLEANING: Duration = Duration::from_mins(10);

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The address for devices.
    pub address: SocketAddr,
    /// The address for metrics, which is not for devices.
    pub metrics: Option<SocketAddr>,
    /// The most connections.
    pub connections: usize,
    /// The most requests that work at a time.
    pub workers: usize,
    /// Whether a proxy in front names the address of the client in `X-Forwarded-For`.
    pub behind_proxy: bool,
}

/// Why a server did not start or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Binding the address failed.
    #[error("cannot listen on {address}: {error}. Another program may be using the port")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        error: std::io::Error,
    },
    /// The system refused threads or sockets.
    #[error("the hub cannot run: {0}")]
    System(#[from] std::io::Error),
}

/// Serves until `stop` is set, which is seen within a twentieth of a second. Calls `ready` with the bound addresses, first the one for devices.
pub fn serve(
    hub: &Arc<Hub>,
    options: &ServeOptions,
    stop: &Arc<AtomicBool>,
    ready: impl FnOnce(SocketAddr, Option<SocketAddr>),
) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("retake-hub")
        .max_blocking_threads(options.workers + 4)
        .build()?;
    let wakers = Arc::new(Wakers::default());
    let (stopping, stopped) = watch::channel(false);
    let watcher = {
        let (wakers, hub, stop) = (Arc::clone(&wakers), Arc::clone(hub), Arc::clone(stop));
        std::thread::Builder::new()
            .name("hub-watch".to_owned())
            .spawn(move || wakers::watch(&wakers, &hub, &stop, &stopping))?
    };
    let front = Arc::new(Front {
        hub: Arc::clone(hub),
        wakers,
        metrics: Metrics::new(),
        buckets: Buckets::new(std::time::Instant::now()),
        workers: Semaphore::new(options.workers),
        stopping: stopped.clone(),
        behind_proxy: options.behind_proxy,
    });
    let served = runtime.block_on(listen(&front, options, stopped, ready));
    stop.store(true, Ordering::SeqCst);
    // A panic in the thread has been logged already.
    let _ = watcher.join();
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

fn router(front: &Arc<Front>) -> Router {
    let mut router = Router::new();
    for route in routes::all() {
        let (path, route, front) = (route.path, Arc::new(route), Arc::clone(front));
        let filter = MethodFilter::try_from(route.method.clone()).expect("routes have common methods");
        let handler =
            move |request: Request| dispatch::answer(Arc::clone(&front), Arc::clone(&route), request);
        router = router.route(path, MethodRouter::new().on(filter, handler));
    }
    router
        .method_not_allowed_fallback(|| std::future::ready(dispatch::no_route()))
        .fallback(|| std::future::ready(dispatch::no_route()))
}

async fn listen(
    front: &Arc<Front>,
    options: &ServeOptions,
    mut stop: watch::Receiver<bool>,
    ready: impl FnOnce(SocketAddr, Option<SocketAddr>),
) -> Result<(), ServeError> {
    let bind = async |address: SocketAddr| {
        TcpListener::bind(address).await.map_err(|error| ServeError::Listen { address, error })
    };
    let listener = bind(options.address).await?;
    let metrics = match options.metrics {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let local = listener.local_addr()?;
    let metrics_local = metrics.as_ref().map(TcpListener::local_addr).transpose()?;
    if let Some(metrics) = metrics {
        tokio::spawn(serve_metrics(Arc::clone(front), metrics));
    }
    ready(local, metrics_local);
    info!(address = %local, "listening");
    let router = router(front);
    let graceful = GracefulShutdown::new();
    let connections = Arc::new(Semaphore::new(options.connections));
    let mut cleaning = tokio::time::interval(CLEANING);
    while !*stop.borrow() {
        let arrival = async {
            // Further connections wait in the system's accept queue.
            let permit = connections.clone().acquire_owned().await.map_err(std::io::Error::other)?;
            let (stream, peer) = listener.accept().await?;
            Ok::<_, std::io::Error>((permit, stream, peer))
        };
        let arrived = tokio::select! {
            _ = stop.changed() => continue,
            _ = cleaning.tick() => {
                clean_up(front);
                continue;
            }
            arrived = arrival => arrived,
        };
        let (permit, stream, peer) = match arrived {
            Ok(arrived) => arrived,
            Err(error) => {
                // Out of file descriptors, or the client disconnected: pause and try again.
                warn!(%error, "failed to accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let router = router.clone().map_request(move |mut request: hyper::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(Peer(peer.ip()));
            request.map(axum::body::Body::new)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(64 * 1024)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
        let watched = graceful.watch(connection);
        let front = Arc::clone(front);
        tokio::spawn(async move {
            front.metrics.connections.inc();
            // Disconnects and timeouts of clients are not logged.
            let _ = watched.await;
            front.metrics.connections.dec();
            drop(permit);
        });
    }
    drop(listener);
    info!("stopping");
    // Requests under way are answered; streams end with what they have.
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
    info!("stopped");
    Ok(())
}

fn clean_up(front: &Arc<Front>) {
    let hub = Arc::clone(&front.hub);
    tokio::task::spawn_blocking(move || {
        if let Err(error) = hub.clean_up() {
            warn!(%error, "cannot remove what expired");
        }
    });
}

/// Metrics have an address of their own, which only the operator's network reaches.
async fn serve_metrics(front: Arc<Front>, listener: TcpListener) {
    let text = move || {
        let front = Arc::clone(&front);
        async move {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(axum::http::header::CONTENT_TYPE, kind)], front.metrics.text())
        }
    };
    let router = Router::new().route("/metrics", axum::routing::get(text));
    while let Ok((stream, _)) = listener.accept().await {
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let http = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .serve_connection(TokioIo::new(stream), service)
                .await;
            drop(http);
        });
    }
}
