//! When a failed call is tried again: the origin of the fault decides, then the number of attempts.

use super::Origin;

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub origin: Origin,
    /// What a person is told.
    pub message: String,
    /// Whether the same request may well succeed later.
    pub retryable: bool,
    /// How long the provider asks to wait, in milliseconds.
    pub retry_after: Option<u64>,
}

/// How patient the agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How often one call is tried.
    pub most_attempts: u32,
    /// The pause after the first failure, in milliseconds. It doubles with each failure.
    pub first_delay: u64,
    /// The longest pause, in milliseconds. A provider that asks for more is not waited for: a person decides.
    pub longest_delay: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { most_attempts: 5, first_delay: 1_000, longest_delay: 60_000 }
    }
}

impl Origin {
    /// Whether faults from there may be tried again without asking.
    fn may_repeat(self) -> bool {
        match self {
            Self::Model | Self::Network => true,
            Self::Tool | Self::Store | Self::Setup => false,
        }
    }
}

impl Policy {
    /// How long to wait before the next attempt; `None` if there is to be none.
    ///
    /// The dice choose between half of the pause and all of it, so that many who failed together do not come back
    /// together.
    pub(super) fn pause(&self, fault: &Fault, attempts: u32, dice: u64) -> Option<u64> {
        if !fault.retryable || !fault.origin.may_repeat() || attempts >= self.most_attempts {
            return None;
        }
        if fault.retry_after.is_some_and(|asked| asked > self.longest_delay) {
            return None;
        }
        let doublings = attempts.saturating_sub(1).min(63);
        let full = self.first_delay.saturating_mul(1 << doublings).min(self.longest_delay);
        let least = full / 2;
        let pause = least + dice % (full - least + 1);
        Some(pause.max(fault.retry_after.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_heed_the_provider() {
        let policy = Policy { most_attempts: 100, first_delay: 1_000, longest_delay: 8_000 };
        let check =
            |origin, retryable, retry_after, attempts, expected: Option<std::ops::RangeInclusive<u64>>| {
                let fault = Fault { origin, message: String::new(), retryable, retry_after };
                for dice in [0, 1, 500, 12_345, u64::MAX] {
                    let pause = policy.pause(&fault, attempts, dice);
                    match &expected {
                        None => assert_eq!(pause, None),
                        Some(range) => {
                            assert!(pause.is_some_and(|pause| range.contains(&pause)), "{pause:?} {range:?}");
                        }
                    }
                }
            };
        check(Origin::Model, true, None, 1, Some(500..=1_000));
        check(Origin::Network, true, None, 2, Some(1_000..=2_000));
        check(Origin::Network, true, None, 4, Some(4_000..=8_000));
        check(Origin::Network, true, None, 99, Some(4_000..=8_000));
        check(Origin::Network, true, None, 100, None);
        check(Origin::Model, true, Some(7_000), 1, Some(7_000..=7_000));
        check(Origin::Model, true, Some(8_001), 1, None);
        check(Origin::Model, false, None, 1, None);
        for origin in [Origin::Tool, Origin::Store, Origin::Setup] {
            check(origin, true, None, 1, None);
        }
        let none = Policy { most_attempts: 3, first_delay: 0, longest_delay: 0 };
        let fault =
            Fault { origin: Origin::Model, message: String::new(), retryable: true, retry_after: None };
        assert_eq!(none.pause(&fault, 1, 9), Some(0));
    }
}
