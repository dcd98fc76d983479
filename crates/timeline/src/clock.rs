//! Sources of time and randomness: the system, or a test.

use std::sync::PoisonError;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use retake_model::id::IdSource;
use retake_model::time::Timestamp;

/// A source of time and randomness for several threads.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
    /// Ten random bytes.
    fn random(&self) -> [u8; 10];
    /// Id of the current boot, if known.
    fn boot(&self) -> Option<String> {
        None
    }
}

/// The system's clock and random numbers.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        };
        Timestamp::from_clock(millis)
    }

    fn random(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        getrandom::fill(&mut bytes).expect("the system's random numbers never run out");
        bytes
    }

    fn boot(&self) -> Option<String> {
        retake_workspace::boot::boot_id()
    }
}

/// A deterministic clock and random generator for repeatable tests. The clock advances with each call.
#[derive(Debug)]
pub struct SeededClock {
    inside: Mutex<(u64, i64)>,
}

impl SeededClock {
    /// Creates a clock with that seed.
    pub fn new(seed: u64) -> Self {
        Self { inside: Mutex::new((seed, 1_700_000_000_000)) }
    }
}

impl Clock for SeededClock {
    fn now(&self) -> Timestamp {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.1 += 1;
        Timestamp::from_millis(inside.1)
    }

    fn random(&self) -> [u8; 10] {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.0 = inside.0.wrapping_add(1);
        let hash = blake3::hash(&inside.0.to_le_bytes());
        let mut bytes = [0; 10];
        bytes.copy_from_slice(&hash.as_bytes()[..10]);
        bytes
    }
}

/// Limits any clock to the range of times that can be stored.
pub(crate) struct BoundedClock(pub(crate) Arc<dyn Clock>);

impl Clock for BoundedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_clock(self.0.now().millis())
    }

    fn random(&self) -> [u8; 10] {
        self.0.random()
    }

    fn boot(&self) -> Option<String> {
        self.0.boot()
    }
}

/// Adapts a shared clock for the model. Ids created at the same time share its timestamp.
pub(crate) struct ClockIds<'clock>(pub(crate) &'clock dyn Clock);

impl IdSource for ClockIds<'_> {
    fn now(&mut self) -> Timestamp {
        self.0.now()
    }

    fn random(&mut self) -> [u8; 10] {
        self.0.random()
    }
}
