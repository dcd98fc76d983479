//! The API under hostile requests, and killed while it works.
//!
//! ```text
//!   fuzz   the document ──► requests: right, mistaken, hostile ──► the routes, without a socket ──► judge
//!   kill   the real server ◄── several clients write ──► kill -9 ──► start again ──► what was told is there
//!   kill   the real server ◄── several clients write ──► kill -9 ──► restart ──► every acknowledged change exists
//!
//! `fuzz` generates its requests from the OpenAPI document, so that new routes are covered automatically, and uses ids from
//! earlier answers. No answer may be a 5xx, no thread may panic, no request may take a second, every refusal must be a valid
//! problem document, and each store must verify at the end.

mod fuzz;
mod kill;
mod operations;
mod requests;
mod values;
mod wire;

pub use fuzz::{FuzzFault, FuzzPlan, FuzzSummary, fuzz, fuzz_controls};
pub use kill::{ApiKillPlan, ApiKillSummary, UnansweredRequest, api_kill};
