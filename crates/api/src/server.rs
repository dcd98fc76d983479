//! The server: accepts connections within limits, and shuts down gracefully.

mod unauthenticated;
mod write_timeout;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use retake_agent::Cancel;
use retake_surface::{Code, Failure};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tracing::{info, warn};

use crate::auth::name_of_address;
use crate::dispatch::Admission;
use crate::router::router;
use crate::service::{Options, Service};
pub(crate) use unauthenticated::Connection;
use unauthenticated::{ConnectionService, UnauthenticatedConnections};
use write_timeout::WriteTimeout;

/// Why a server did not start or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Binding the address failed.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        error: std::io::Error,
    },
    /// The shared state could not be created.
    #[error("{}", .0.message)]
    Start(Failure),
    /// The system refused threads or sockets.
    #[error("the server cannot run: {0}")]
    System(#[from] std::io::Error),
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Listen { .. } => Self::refused(format!(
                "{error}. Another server may be running; `--listen 127.0.0.1:0` picks a free port"
            )),
            ServeError::Start(failure) => failure,
            ServeError::System(_) => Self::new(Code::Failed, error),
        }
    }
}

/// Time for turns to end before the streams do.
const TURN_GRACE: Duration = Duration::from_secs(1);
/// Time for the last responses to reach their clients.
const CLOSE_GRACE: Duration = Duration::from_millis(500);

/// Serves until `stop` is set. Calls `ready` with the bound address.
pub fn serve(
    mut options: Options,
    address: SocketAddr,
    stop: &Cancel,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("retake-serve")
        .max_blocking_threads(Admission::max_workers(&options.limits) + options.limits.streams + 16)
        .build()?;
    let pages = options.pages.take();
    options.hosts.push(name_of_address(address));
    let service = Service::new(options, stop.clone()).map_err(ServeError::Start)?;
    service.recover();
    let tail = crate::events::follow(&service)?;
    let served = runtime.block_on(listen(&service, router(&service, pages), address, stop, ready));
    // However the loop ended, stop the turns and the log follower.
    stop.set();
    service.turns.end_all(service.admission.limits.shutdown_grace);
    // A panic in the thread has been logged already.
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
    let connections = Arc::new(Semaphore::new(service.admission.limits.connections));
    // At most half of the connections may be unauthenticated.
    let most = service.admission.limits.unauthenticated.min(service.admission.limits.connections / 2).max(1);
    let unauthenticated = Arc::new(UnauthenticatedConnections::new(most));
    let lifetime = service.admission.limits.unauthenticated_lifetime;
    loop {
        let arrival = async {
            // Further connections wait in the system's accept queue.
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
                // Out of file descriptors, or the client disconnected: pause and try again.
                warn!(%error, "failed to accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let facts = unauthenticated.add();
        let on_connection = ConnectionService { router: router.clone(), connection: facts.clone() };
        let watched = graceful.watch(connection(service, stream, on_connection));
        let (service, unauthenticated) = (Arc::clone(service), Arc::clone(&unauthenticated));
        tokio::spawn(async move {
            service.metrics.connections.inc();
            tokio::select! {
                // Read what the client has sent first: it may be a credential.
                biased;
                // Disconnects and timeouts of clients are not logged.
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
    let ending = service.turns.shut_down_all();
    // Streams end after the turns, so that they deliver their last events.
    let _ = tokio::time::timeout(TURN_GRACE, service.turns.nothing()).await;
    service.event_bus.close();
    // Do not wait for connections without a request.
    let answered = async {
        service.admission.in_flight.nothing().await;
        tokio::time::sleep(CLOSE_GRACE).await;
    };
    let over = async {
        tokio::select! {
            () = graceful.shutdown() => {}
            () = answered => {}
        }
    };
    // Wait no longer than the shutdown grace period.
    let _ = tokio::time::timeout(service.admission.limits.shutdown_grace, over).await;
    info!(turns = ending, "stopped");
    Ok(())
}

type Http = http1::Connection<TokioIo<WriteTimeout<TcpStream>>, ConnectionService>;

fn connection(service: &Service, stream: TcpStream, router: ConnectionService) -> Http {
    // Responses are small, and events must not be delayed.
    let _ = stream.set_nodelay(true);
    let patient = WriteTimeout::new(
        stream,
        service.admission.limits.write_timeout,
        service.metrics.slow_readers.clone(),
    );
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(service.admission.limits.head)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(patient), router)
}
