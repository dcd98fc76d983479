//! The HTTP protocol: routes, limits and streams. It has no rule of its own.

mod call;
mod dispatch;
mod limits;
mod metrics;
mod routes;
mod serve;
mod wakers;

pub use routes::{Requires, RouteInfo, all as routes};
pub use serve::{ServeError, ServeOptions, serve};
