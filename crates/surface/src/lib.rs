//! The layer that the command line, the HTTP API and the studio share.
//!
//! ```text
//!   store, workspace, timeline, agent ──► Failure { code, message, details } ──► cli: text or JSON, exit status
//!                                            │                               └─► api: problem (RFC 9457), HTTP status
//!                                            └─ Code: name, exit status, HTTP status, title, action
//! ```

mod choice;
mod code;
mod errors;
mod failure;
pub mod page;
mod remotes;
#[cfg(any(test, feature = "samples"))]
pub mod samples;

pub use choice::{Approve, Choice, ExportFormat};
pub use code::Code;
pub use errors::named_folder;
pub use failure::Failure;
pub use remotes::{forget_credentials, log_in, needs_login, open_remote, store_credentials};
