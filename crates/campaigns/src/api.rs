//! Sends hostile requests to the API, and kills its server while it works.
//!
//! ```text
//!   fuzz   OpenAPI document ──► valid, invalid, hostile requests ──► the routes, without a socket ──► check
//!   kill   the real server ◄── several clients write ──► kill -9 ──► restart ──► acknowledged changes exist
//! ```
//!
//! `fuzz` generates its requests from the `OpenAPI` document, so that new routes are covered automatically,
//! and uses ids from earlier answers. No answer may be a 5xx, no thread may panic, no request may take a
//! second, every refusal must be a valid problem document, and each store must verify at the end.

mod fuzz;
mod kill;
mod operations;
mod requests;
mod values;
mod wire;

pub use fuzz::{FuzzFault, FuzzPlan, FuzzSummary, fuzz, fuzz_controls};
pub use kill::{ApiKillPlan, ApiKillSummary, UnansweredRequest, api_kill};
