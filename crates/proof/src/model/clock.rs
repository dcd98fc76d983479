//! A clock that stands still until it is told to go on, so that the naive model knows every moment exactly.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use retake_model::time::Timestamp;
use retake_timeline::Clock;

use crate::dice::mix;

/// A clock that only moves when it is moved, and dice that never fall the same way twice.
#[derive(Debug)]
pub struct StandingClock {
    now: AtomicI64,
    rolled: AtomicU64,
}

impl StandingClock {
    /// A clock with that seed.
    pub fn new(seed: u64) -> Self {
        Self { now: AtomicI64::new(1_700_000_000_000), rolled: AtomicU64::new(mix(seed)) }
    }

    /// Goes on by that many milliseconds; a negative number sets it back.
    pub fn advance(&self, millis: i64) {
        self.now.fetch_add(millis, Ordering::SeqCst);
    }

    /// The moment it shows, in milliseconds.
    pub fn shows(&self) -> i64 {
        self.now.load(Ordering::SeqCst)
    }
}

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.shows())
    }

    fn random(&self) -> [u8; 10] {
        let number = self.rolled.fetch_add(1, Ordering::SeqCst);
        let mut bytes = [0; 10];
        // The first eight differ for any two numbers.
        bytes[..8].copy_from_slice(&mix(number).to_be_bytes());
        bytes[8..].copy_from_slice(&mix(!number).to_be_bytes()[..2]);
        bytes
    }
}
