//! The hub under attack, under load and under kills.
//!
//! ```text
//!   writers ──push──► hub(s) ──► database            every answer is recorded with its time
//!   readers ──log───►   ▲           ▲
//!                       └─ kill -9 ─┘                afterwards: log and feed are compared with the record
//! ```
//!
//! The hubs are the real program, and Postgres and haproxy are real. The controls are targets that make a known mistake.

mod bundles;
mod controls;
mod load;
mod processes;
mod runs;
mod tenants;

pub use controls::{EarlyAnswer, Upsert};
pub use load::{LoadPlan, LoadReport, LoadTarget, run as run_load};
pub use processes::Engine;
pub use runs::{Kill, controls, failover, history, kill};
pub use tenants::{Stranger, TenantReport, tenants};
