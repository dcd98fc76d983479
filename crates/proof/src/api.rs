//! The API, asked by many who mean no good, and killed while it works.
//!
//! ```text
//!   fuzz   the document ──► requests: right, mistaken, hostile ──► the routes, without a socket ──► judge
//!   kill   the real server ◄── several clients write ──► kill -9 ──► start again ──► what was told is there
//! ```
//!
//! `fuzz` makes its requests from the document that the server itself gives out, so that a new route is asked by being
//! there, and names in them what it saw in answers, so that threads, takes and turns become what nobody thought of. No
//! answer is a 5xx, no thread panics, nothing takes a second, every refusal says what and why, and each store verifies
//! in the end.

mod fuzz;
mod kill;
mod operations;
mod requests;
mod values;
mod wire;

pub use fuzz::{FuzzMistake, FuzzPlan, Fuzzed, fuzz, fuzz_controls};
pub use kill::{ApiKillPlan, ApiKills, CutOff, api_kill};
