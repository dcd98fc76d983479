//! The API as its clients meet it: a real server on a real port, over a store and a folder of its own.
//!
//! ```text
//!   world   a store, a project, servers, other programs at the store       process  a server of its own
//!   http    a client that sends arbitrary requests and parses strictly
//!   routes  what the served document says there is          scene   something for each of them to do
//! ```

mod http;
mod process;
mod routes;
mod scene;
mod world;

mod between;
mod browser;
mod contested;
mod drafts;
mod entries;
mod events;
mod hooks;
mod keys;
mod limits;
mod lists;
mod logs;
mod matrix;
mod meanwhile;
mod named_takes;
mod races;
mod recovery;
mod search;
mod seed_d;
mod shared;
mod smoke;
mod speech;
mod stopping;
mod transfer;
mod turns;
mod unread;
mod versions;
mod workspace;
