//! A clock that only moves when told to, so that the model knows every time exactly.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use retake_model::time::Timestamp;
use retake_timeline::Clock;

use crate::rng::mix;

/// A manual clock, with random numbers that never repeat.
#[derive(Debug)]
pub struct ManualClock {
    now: AtomicI64,
    rolled: AtomicU64,
}

impl ManualClock {
    /// Creates a clock with this seed.
    pub fn new(seed: u64) -> Self {
        Self { now: AtomicI64::new(1_700_000_000_000), rolled: AtomicU64::new(mix(seed)) }
    }

    /// Advances the clock; a negative number sets it back.
    pub fn advance(&self, millis: i64) {
        self.now.fetch_add(millis, Ordering::SeqCst);
    }

    /// The current time in milliseconds.
    pub fn shows(&self) -> i64 {
        self.now.load(Ordering::SeqCst)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.shows())
    }

    fn random(&self) -> [u8; 10] {
        let number = self.rolled.fetch_add(1, Ordering::SeqCst);
        let mut bytes = [0; 10];
        // The first eight bytes differ for any two numbers.
        bytes[..8].copy_from_slice(&mix(number).to_be_bytes());
        bytes[8..].copy_from_slice(&mix(!number).to_be_bytes()[..2]);
        bytes
    }
}
