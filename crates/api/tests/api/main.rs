//! Tests of the API through a real server on a real port, with a separate store and folder.
//!
//! ```text
//!   world   a store, a project, servers, other processes    process  a server in a separate process
//!   http    a client that sends arbitrary requests and parses strictly
//!   routes  the routes of the served document               scene    data for each of them
//! ```

mod http;
mod process;
mod routes;
mod scene;
mod world;

mod browser;
mod compare_versions;
mod compared_takes;
mod concurrent_turns;
mod context_size;
mod drafts;
mod entries;
mod events;
mod folders;
mod going_back;
mod hooks;
mod http_protocol;
mod keys;
mod limits;
mod lists;
mod logs;
mod matrix;
mod named_takes;
mod races;
mod recovery;
mod reported_defects;
mod search;
mod shared;
mod slow_readers;
mod smoke;
mod stopping;
mod transfer;
mod turns;
mod versions;
mod while_running;
mod workspace;
