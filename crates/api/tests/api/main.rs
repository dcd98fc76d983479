//! The API as its clients meet it: a real server on a real port, over a store and a folder of its own.
//!
//! ```text
//!   world   a store, a project, servers, other programs at the store
//!   http    a client that sends exactly what it is told to, and reads strictly
//! ```

mod http;
mod world;

mod smoke;
