//! The HTTP API of Retake.
//!
//! A thin adapter without rules of its own: a route parses a request, calls the timeline or the agent, and serializes
//! the result.
//!
//! ```text
//!   server        connections and graceful shutdown     dispatch   steps common to all requests
//!   auth          token, browser sessions, hosts        endpoint   the description of a route
//!   routes        the routes                            document   OpenAPI
//!   events        the event stream                      turns      turns that run in this server
//!   folders       watches over folders                  problem    errors
//!   idempotency   requests with a key run once
//!   client        the API without a socket, for tests
//! ```

mod auth;
#[doc(hidden)]
pub mod client;
mod dispatch;
mod document;
mod download;
mod endpoint;
mod events;
mod folders;
mod idempotency;
mod limits;
mod metrics;
mod page;
mod problem;
mod router;
mod routes;
mod server;
mod service;
mod turns;
mod upload;

pub use auth::{LoginLinkError, Token, TokenError, TokenFile, new_login_link, reachable};
pub use limits::Limits;
pub use server::{ServeError, serve};
pub use service::{Options, Pages};
