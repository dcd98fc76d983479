//! The API: everything the timeline can do, safely, for any client, over HTTP.
//!
//! A thin adapter with no rule of its own: a route reads a request into types, calls the timeline or the agent, and
//! writes down what they say.
//!
//! ```text
//!   server     accepts, within limits; stops without leaving anything half done
//!   gate       who is let in                        dispatch   the one way from a request to an answer
//!   endpoint   a route, described once              document   all of them, as OpenAPI
//!   routes     what each does                       problem    what goes wrong, as clients see it
//!   events     what happens, as it happens          turns      what runs here
//!   client     the same without a socket, for proofs
//!   once       requests that come twice are carried out once
//! ```

#[doc(hidden)]
pub mod client;
mod dispatch;
mod document;
mod download;
mod endpoint;
mod events;
mod gate;
mod limits;
mod metrics;
mod once;
mod page;
mod problem;
mod router;
mod routes;
mod server;
mod service;
mod turns;
mod upload;

pub use gate::{TicketError, Token, TokenError, TokenFile, new_ticket, reachable};
pub use limits::Limits;
pub use server::{ServeError, serve};
pub use service::{Options, Pages};
