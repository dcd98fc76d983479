//! Rate limits: a token bucket for each account or address, in a table of fixed size.
//!
//! A request finds its bucket in one of four slots. If all belong to others, it replaces the one that is fullest, which has
//! nothing to remember. So the memory is bounded whoever asks, and a busy bucket stays.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const SLOTS: usize = 1 << 14;
const WAYS: usize = 4;

/// How much of something is allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// At once.
    pub(super) burst: f64,
    /// In each second after that.
    pub(super) per_second: f64,
}

/// The table.
pub(super) struct Buckets {
    slots: Mutex<Vec<Slot>>,
    hasher: RandomState,
}

#[derive(Clone, Copy)]
struct Slot {
    key: u64,
    used: f64,
    per_second: f64,
    at: Instant,
}

impl Slot {
    /// What is still used at a time.
    fn used(&self, now: Instant) -> f64 {
        (self.used - now.saturating_duration_since(self.at).as_secs_f64() * self.per_second).max(0.0)
    }
}

impl Buckets {
    pub(super) fn new(now: Instant) -> Self {
        let empty = Slot { key: 0, used: 0.0, per_second: 1.0, at: now };
        Self { slots: Mutex::new(vec![empty; SLOTS]), hasher: RandomState::new() }
    }

    /// Takes an amount, or says how long to wait.
    pub(super) fn take(
        &self,
        subject: (&str, &[u8]),
        rate: Rate,
        amount: f64,
        now: Instant,
    ) -> Result<(), Duration> {
        let key = self.hasher.hash_one(subject);
        let start = key as usize % (SLOTS / WAYS) * WAYS;
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let set = &mut slots[start..start + WAYS];
        let at = set.iter().position(|slot| slot.key == key).unwrap_or_else(|| {
            // By time, because buckets count different things.
            let left = |at: usize| set[at].used(now) / set[at].per_second;
            let emptiest = (0..WAYS).min_by(|a, b| left(*a).total_cmp(&left(*b))).unwrap_or(0);
            set[emptiest] = Slot { key, used: 0.0, per_second: rate.per_second, at: now };
            emptiest
        });
        let used = set[at].used(now);
        // One request may be larger than the burst, if nothing was used before.
        if used > 0.0 && used + amount > rate.burst {
            let wait = (used + amount.min(rate.burst) - rate.burst) / rate.per_second;
            return Err(Duration::from_secs_f64(wait.clamp(0.1, 3600.0)));
        }
        set[at] = Slot { key, used: used + amount, per_second: rate.per_second, at: now };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { burst: 3.0, per_second: 1.0 };

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let start = Instant::now();
        let buckets = Buckets::new(start);
        let take = |at: u64| buckets.take(("test", b"one"), RATE, 1.0, start + Duration::from_secs(at));
        for _ in 0..3 {
            assert!(take(0).is_ok());
        }
        assert_eq!(take(0), Err(Duration::from_secs(1)));
        assert!(take(1).is_ok());
        assert!(take(1).is_err());
        assert!(buckets.take(("test", b"two"), RATE, 1.0, start).is_ok());
    }

    #[test]
    fn a_flood_of_others_does_not_reset_a_busy_bucket() {
        let start = Instant::now();
        let buckets = Buckets::new(start);
        for _ in 0..3 {
            assert!(buckets.take(("test", b"busy"), RATE, 1.0, start).is_ok());
        }
        for other in 0..1_000_000_u32 {
            let _ = buckets.take(("test", &other.to_le_bytes()), RATE, 1.0, start);
        }
        assert!(buckets.take(("test", b"busy"), RATE, 1.0, start).is_err());
    }
}
