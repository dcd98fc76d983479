//! Tests of the hub: every subject on both databases, and the server over HTTP.

mod conformance;
mod equipment;
mod remote;
mod server;
mod sharing;
