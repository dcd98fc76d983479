//! Connections that have not shown a credential: few at once, and not for long.
//!
//! ```text
//!   accepted ──► unauthenticated ──a request is let in──► authenticated: no longer counted here
//!                     │
//!                     └── too old, or the oldest when another one needs its place ──► closed
//! ```
//!
//! Whoever opens connections and says nothing thus takes places from others like itself, and from nobody else.

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

/// How long a connection is heard that is closed to make room.
const HEARING: Duration = Duration::from_millis(100);

/// One connection.
#[derive(Clone, Default)]
pub(crate) struct Connection(Arc<Facts>);

#[derive(Default)]
struct Facts {
    /// Whether a request on it was let in.
    is_authenticated: AtomicBool,
    /// Woken when it is to be closed.
    close: Notify,
}

impl Connection {
    /// A request on it was let in: it may stay.
    pub(crate) fn authenticated(&self) {
        self.0.is_authenticated.store(true, Ordering::Relaxed);
    }

    fn is_authenticated(&self) -> bool {
        self.0.is_authenticated.load(Ordering::Relaxed)
    }

    /// Returns when it is to be closed for want of a credential.
    pub(super) async fn expired(&self, lifetime: Duration) {
        let asked = tokio::time::timeout(lifetime, self.0.close.notified()).await.is_ok();
        if asked {
            // Many that come at once are not yet heard when the next ones need their places: the credential may be on
            // its way from the socket.
            tokio::time::sleep(HEARING).await;
        }
        if self.is_authenticated() {
            std::future::pending::<()>().await;
        }
    }
}

/// All connections without a credential, the oldest first.
pub(super) struct Unauthenticated {
    most: usize,
    open: Mutex<VecDeque<Connection>>,
}

impl Unauthenticated {
    pub(super) fn new(most: usize) -> Self {
        Self { most, open: Mutex::default() }
    }

    /// Takes in a new connection. The oldest one is closed if there are too many.
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

    /// A connection is closed.
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

/// The router, for the requests of one connection: each carries the connection with it.
#[derive(Clone)]
pub(super) struct OnConnection {
    pub(super) router: TowerToHyperService<axum::Router>,
    pub(super) connection: Connection,
}

impl Service<Request<Incoming>> for OnConnection {
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
    fn the_oldest_connection_without_a_credential_goes_first() {
        let all = Unauthenticated::new(2);
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
