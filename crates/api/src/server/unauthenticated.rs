//! Limits the number and lifetime of connections without a credential.
//!
//! ```text
//!   accepted ──► unauthenticated ──valid credential──► authenticated: no longer counted here
//!                     │
//!                     └── expired, or the oldest when the limit is reached ──► closed
//! ```
//!
//! A client that opens connections without sending requests blocks only other clients without a credential.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tokio::sync::Notify;

/// How long a connection may still send its credential before it is closed for the limit.
const HEARING: Duration = Duration::from_millis(100);

/// One connection.
#[derive(Clone, Default)]
pub(crate) struct Connection(Arc<ConnectionState>);

#[derive(Default)]
struct ConnectionState {
    /// Whether one of its requests was authenticated.
    is_authenticated: AtomicBool,
    /// Notified to close it.
    close: Notify,
}

impl Connection {
    /// Marks it as authenticated, so that it stays open.
    pub(crate) fn authenticated(&self) {
        self.0.is_authenticated.store(true, Ordering::Relaxed);
    }

    fn is_authenticated(&self) -> bool {
        self.0.is_authenticated.load(Ordering::Relaxed)
    }

    /// Returns when it must be closed because it has no credential.
    pub(super) async fn expired(&self, lifetime: Duration) {
        let asked = tokio::time::timeout(lifetime, self.0.close.notified()).await.is_ok();
        if asked {
            // In a burst of connections, the credential of this one may still be in the socket.
            tokio::time::sleep(HEARING).await;
        }
        if self.is_authenticated() {
            std::future::pending::<()>().await;
        }
    }
}

/// All connections without a credential, oldest first.
pub(super) struct UnauthenticatedConnections {
    most: usize,
    open: Mutex<VecDeque<Connection>>,
}

impl UnauthenticatedConnections {
    pub(super) fn new(most: usize) -> Self {
        Self { most, open: Mutex::default() }
    }

    /// Adds a connection, and closes the oldest one if there are too many.
    pub(super) fn add(&self) -> Connection {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|connection| !connection.is_authenticated());
        if open.len() >= self.most {
            close_oldest(&mut open);
        }
        let connection = Connection::default();
        open.push_back(connection.clone());
        connection
    }

    /// Forgets a closed connection.
    pub(super) fn remove(&self, connection: &Connection) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|known| !Arc::ptr_eq(&known.0, &connection.0));
    }
}

fn close_oldest(open: &mut VecDeque<Connection>) {
    if let Some(oldest) = open.pop_front() {
        oldest.0.close.notify_one();
    }
}

/// The router for one connection, which it attaches to each request.
#[derive(Clone)]
pub(super) struct ConnectionService {
    pub(super) router: TowerToHyperService<axum::Router>,
    pub(super) connection: Connection,
}

impl Service<Request<Incoming>> for ConnectionService {
    type Response = Response<Body>;
    type Error = <TowerToHyperService<axum::Router> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<axum::Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.connection.clone());
        self.router.call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_unauthenticated_connection_is_closed_first() {
        let all = UnauthenticatedConnections::new(2);
        let closed = |connection: &Connection| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
            let wait = async {
                tokio::time::timeout(2 * HEARING, connection.expired(Duration::from_mins(1))).await.is_ok()
            };
            runtime.block_on(wait)
        };
        let (known, first) = (all.add(), all.add());
        known.authenticated();
        let (second, third) = (all.add(), all.add());
        assert!(closed(&first) && !closed(&second) && !closed(&third) && !closed(&known));
        all.remove(&second);
        let fourth = all.add();
        assert!(!closed(&third) && !closed(&fourth));
        let fifth = all.add();
        assert!(closed(&third) && !closed(&fourth) && !closed(&fifth));
    }
}
