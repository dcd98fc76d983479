//! Resource limits.

use std::time::Duration;

/// Resource limits of the server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Concurrent connections; further ones wait to be accepted.
    pub connections: usize,
    /// Concurrent connections without a credential; a further one closes the oldest.
    pub unauthenticated: usize,
    /// Lifetime of a connection without a credential.
    pub unauthenticated_lifetime: Duration,
    /// Concurrent event streams and downloads.
    pub streams: usize,
    /// Concurrent requests; further ones wait.
    pub workers: usize,
    /// Concurrent requests that wait for a model; further ones are refused.
    pub models: usize,
    /// Maximum wait for admission.
    pub queue: Duration,
    /// Maximum size of a JSON body in bytes.
    pub body: usize,
    /// Maximum size of an uploaded file in bytes.
    pub file: u64,
    /// Maximum values and names in a JSON body, and in all large bodies parsed at once: parsed JSON can take hundreds of
    /// times its size in memory.
    pub values: usize,
    /// Maximum size of all bodies in memory together.
    pub bodies: usize,
    /// Timeout for the head of a request.
    pub head: Duration,
    /// Timeout for a JSON body.
    pub arrival: Duration,
    /// Maximum pause between chunks of an uploaded file.
    pub pause: Duration,
    /// Timeout for writes to a client that does not read.
    pub write_timeout: Duration,
    /// Time for running turns to end on shutdown.
    pub shutdown_grace: Duration,
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
            write_timeout: Duration::from_secs(20),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}
