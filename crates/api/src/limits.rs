//! How much of everything there may be.

use std::time::Duration;

/// How much of everything there may be.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once; further ones wait to be accepted.
    pub connections: usize,
    /// Of these, connections on which no request was let in yet; the oldest is closed for a further one.
    pub unauthenticated: usize,
    /// How long a connection may stay without a request that is let in.
    pub unauthenticated_lifetime: Duration,
    /// Streams of events at once.
    pub streams: usize,
    /// Requests that are carried out at once; further ones wait.
    pub workers: usize,
    /// Of these, requests that wait for a model, maybe for minutes; further ones are refused, and take nobody's place.
    pub models: usize,
    /// How long a request may wait for its turn.
    pub queue: Duration,
    /// The largest JSON body, in bytes.
    pub body: usize,
    /// The largest file, in bytes.
    pub file: u64,
    /// How many values and names the JSON of a body may have, and that of all large bodies that are read at once: what
    /// takes little on the way can take hundreds of times as much in memory.
    pub values: usize,
    /// All bodies in memory together, in bytes.
    pub bodies: usize,
    /// How long the head of a request may take.
    pub head: Duration,
    /// How long a JSON body may take to arrive.
    pub arrival: Duration,
    /// How long a file may stop arriving.
    pub pause: Duration,
    /// How long a client may leave an answer unread.
    pub unread: Duration,
    /// How long running turns have to end when the server stops.
    pub farewell: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            unauthenticated: 128,
            unauthenticated_lifetime: Duration::from_secs(5),
            streams: 128,
            workers: 64,
            models: 8,
            queue: Duration::from_secs(20),
            body: 16 << 20,
            file: 512 << 20,
            values: 500_000,
            bodies: 96 << 20,
            head: Duration::from_secs(10),
            arrival: Duration::from_secs(20),
            pause: Duration::from_secs(20),
            unread: Duration::from_secs(20),
            farewell: Duration::from_secs(10),
        }
    }
}
