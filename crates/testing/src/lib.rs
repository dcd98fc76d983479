//! Equipment of tests and campaigns. No shipped crate contains it: they use it as a dev-dependency.
//!
//! ```text
//!   program, sandbox    the real `retake` program with a store and a folder of its own
//!   interrupted_move    a store in which a move of files was killed
//!   fault_server        a model server that fails on purpose
//!   http                a small HTTP client
//!   postgres            a real Postgres server on a socket of its own
//!   projection          random histories, and the rules that requests made from them keep
//! ```

pub mod fault_server;
mod http;
pub mod interrupted_move;
mod postgres;
mod program;
pub mod projection;
mod sandbox;

pub use http::{HttpAnswer, HttpClient};
pub use postgres::PostgresServer;
pub use program::{ProgramError, find as find_program, program};
pub use sandbox::{Output, Sandbox, free_port};
