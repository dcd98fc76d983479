//! The server: it accepts, as many as there may be, and stops without leaving anything half done.

mod patient;
mod unauthenticated;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use retake_agent::Cancel;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tracing::{info, warn};

use crate::dispatch::Lanes;
use crate::gate::name_of_address;
use crate::router::router;
use crate::service::{Options, Service};
use patient::Patient;
pub(crate) use unauthenticated::Connection;
use unauthenticated::{OnConnection, Unauthenticated};

/// Why a server did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("{address} cannot be listened on: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What happened.
        error: std::io::Error,
    },
    /// What requests share could not be made.
    #[error("{0}")]
    Start(String),
    /// The system gives no threads or no sockets.
    #[error("the server could not run: {0}")]
    System(#[from] std::io::Error),
}

/// How long the end of the last answer has to reach its client.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Serves until it is told to stop. `ready` is told the address, once there is one.
pub fn serve(
    mut options: Options,
    address: SocketAddr,
    stop: &Cancel,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("retake-serve")
        .max_blocking_threads(Lanes::most(&options.limits) + options.limits.streams + 16)
        .build()?;
    let pages = options.pages.take();
    options.hosts.push(name_of_address(address));
    let service = Service::new(options, stop.clone()).map_err(|problem| ServeError::Start(problem.detail))?;
    service.recover();
    let tail = crate::events::follow(&service)?;
    let served = runtime.block_on(listen(&service, router(&service, pages), address, stop, ready));
    // Whatever ended the loop: turns are told, and what follows the log ends too.
    stop.set();
    service.turns.end_all(service.limits.farewell);
    // A thread that panicked has said so already.
    let _ = tail.join();
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

async fn listen(
    service: &Arc<Service>,
    router: Router,
    address: SocketAddr,
    stop: &Cancel,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let failed = |error| ServeError::Listen { address, error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    ready(local);
    info!(address = %local, "listening");
    let router = TowerToHyperService::new(router);
    let graceful = GracefulShutdown::new();
    let connections = Arc::new(Semaphore::new(service.limits.connections));
    // Half of the places at most, so that the others are never all taken.
    let most = service.limits.unauthenticated.min(service.limits.connections / 2).max(1);
    let unauthenticated = Arc::new(Unauthenticated::new(most));
    let lifetime = service.limits.unauthenticated_lifetime;
    loop {
        let arrival = async {
            // Whoever comes when there is no room waits in the system's queue.
            let permit = connections.clone().acquire_owned().await.map_err(std::io::Error::other)?;
            Ok::<_, std::io::Error>((permit, listener.accept().await?.0))
        };
        let arrived = tokio::select! {
            () = stop.wait() => break,
            arrived = arrival => arrived,
        };
        let (permit, stream) = match arrived {
            Ok(arrived) => arrived,
            Err(error) => {
                // No more files, or the client is gone already: others may have better luck in a moment.
                warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let facts = unauthenticated.add();
        let on_connection = OnConnection { router: router.clone(), connection: facts.clone() };
        let watched = graceful.watch(connection(service, stream, on_connection));
        let (service, unauthenticated) = (Arc::clone(service), Arc::clone(&unauthenticated));
        tokio::spawn(async move {
            service.metrics.connections.inc();
            tokio::select! {
                // What the client has sent is read first: it may be a credential.
                biased;
                // A client that breaks off, or is too slow, is no news.
                _ = watched => {}
                () = facts.expired(lifetime) => {}
            }
            service.metrics.connections.dec();
            unauthenticated.remove(&facts);
            drop(permit);
        });
    }
    drop(listener);
    info!("stopping");
    let ending = service.turns.cancel_all();
    // Who has not even asked by now is not waited for.
    let answered = async {
        service.busy.nothing().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    let over = async {
        tokio::select! {
            () = graceful.shutdown() => {}
            () = answered => {}
        }
    };
    // Longer than the farewell nobody is waited for.
    let _ = tokio::time::timeout(service.limits.farewell, over).await;
    info!(turns = ending, "stopped");
    Ok(())
}

type Http = http1::Connection<TokioIo<Patient<TcpStream>>, OnConnection>;

fn connection(service: &Service, stream: TcpStream, router: OnConnection) -> Http {
    // Answers are small, and a stream of events must not wait for more.
    let _ = stream.set_nodelay(true);
    let patient = Patient::new(stream, service.limits.unread, service.metrics.slow_readers.clone());
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(service.limits.head)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(patient), router)
}
