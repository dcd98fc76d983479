//! The retry policy: the fault's origin decides first, then the number of attempts.

use super::FaultOrigin;

/// A failure during a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The source of the fault.
    pub origin: FaultOrigin,
    /// The error message for the user.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// The delay that the provider requests, in milliseconds.
    pub retry_after: Option<u64>,
}

/// Limits and delays for retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of attempts per call.
    pub max_attempts: u32,
    /// The delay after the first failure, in milliseconds. It doubles with each failure.
    pub initial_delay: u64,
    /// The maximum delay, in milliseconds. If the provider requests a longer one, the user decides.
    pub max_delay: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 5, initial_delay: 1_000, max_delay: 60_000 }
    }
}

impl FaultOrigin {
    fn is_retryable(self) -> bool {
        match self {
            Self::Model | Self::Network => true,
            Self::Tool | Self::Store | Self::Setup => false,
        }
    }
}

impl RetryPolicy {
    /// Returns the delay before the next attempt, or `None` if there is no further attempt.
    ///
    /// `jitter` picks a value between half and all of the delay, so that clients that failed together do
    /// not retry together.
    pub(super) fn pause(&self, fault: &Fault, attempts: u32, jitter: u64) -> Option<u64> {
        if !fault.retryable || !fault.origin.is_retryable() || attempts >= self.max_attempts {
            return None;
        }
        if fault.retry_after.is_some_and(|asked| asked > self.max_delay) {
            return None;
        }
        let doublings = attempts.saturating_sub(1).min(63);
        let full = self.initial_delay.saturating_mul(1 << doublings).min(self.max_delay);
        let least = full / 2;
        let pause = least + jitter % (full - least + 1);
        Some(pause.max(fault.retry_after.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_limit_and_respect_the_provider() {
        let policy = RetryPolicy { max_attempts: 100, initial_delay: 1_000, max_delay: 8_000 };
        let check =
            |origin, retryable, retry_after, attempts, expected: Option<std::ops::RangeInclusive<u64>>| {
                let fault = Fault { origin, message: String::new(), retryable, retry_after };
                for jitter in [0, 1, 500, 12_345, u64::MAX] {
                    let pause = policy.pause(&fault, attempts, jitter);
                    match &expected {
                        None => assert_eq!(pause, None),
                        Some(range) => {
                            assert!(pause.is_some_and(|pause| range.contains(&pause)), "{pause:?} {range:?}");
                        }
                    }
                }
            };
        check(FaultOrigin::Model, true, None, 1, Some(500..=1_000));
        check(FaultOrigin::Network, true, None, 2, Some(1_000..=2_000));
        check(FaultOrigin::Network, true, None, 4, Some(4_000..=8_000));
        check(FaultOrigin::Network, true, None, 99, Some(4_000..=8_000));
        check(FaultOrigin::Network, true, None, 100, None);
        check(FaultOrigin::Model, true, Some(7_000), 1, Some(7_000..=7_000));
        check(FaultOrigin::Model, true, Some(8_001), 1, None);
        check(FaultOrigin::Model, false, None, 1, None);
        for origin in [FaultOrigin::Tool, FaultOrigin::Store, FaultOrigin::Setup] {
            check(origin, true, None, 1, None);
        }
        let none = RetryPolicy { max_attempts: 3, initial_delay: 0, max_delay: 0 };
        let fault =
            Fault { origin: FaultOrigin::Model, message: String::new(), retryable: true, retry_after: None };
        assert_eq!(none.pause(&fault, 1, 9), Some(0));
    }
}
