//! Durations: taken, gathered, and shown.

use std::time::{Duration, Instant};

use crate::Outcome;

/// Does something and says how long that took.
pub(crate) fn timed<T>(action: impl FnOnce() -> Outcome<T>) -> Outcome<(T, Duration)> {
    let start = Instant::now();
    let value = action()?;
    Ok((value, start.elapsed()))
}

/// Several measurements of the same thing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    pub(crate) fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// The one in the middle: what else the machine did now and then does not show.
    pub(crate) fn median(&self) -> Duration {
        self.quantile(50)
    }

    /// The one that a tenth stays below.
    pub(crate) fn fast(&self) -> Duration {
        self.quantile(10)
    }

    /// The one that only a twentieth exceeds.
    pub(crate) fn slow(&self) -> Duration {
        self.quantile(95)
    }

    /// The one that only a hundredth exceeds.
    pub(crate) fn slowest(&self) -> Duration {
        self.quantile(99)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    fn quantile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(index).copied().unwrap_or_default()
    }
}

/// How many times longer one took than the other.
pub(crate) fn ratio(ours: Duration, other: Duration) -> f64 {
    ours.as_secs_f64() / other.as_secs_f64().max(f64::EPSILON)
}

/// A duration as people read it.
pub(crate) fn shown(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    if micros < 1_000.0 {
        format!("{micros:.0} µs")
    } else if micros < 1_000_000.0 {
        format!("{:.2} ms", micros / 1e3)
    } else {
        format!("{:.2} s", micros / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_outliers() {
        let mut samples = Samples::default();
        assert_eq!(samples.median(), Duration::ZERO);
        for millis in [3, 1, 900, 2, 4] {
            samples.push(Duration::from_millis(millis));
        }
        assert_eq!(samples.median(), Duration::from_millis(3));
        assert_eq!(samples.slow(), Duration::from_millis(900));
    }

    #[test]
    fn durations_are_shown_in_fitting_units() {
        assert_eq!(shown(Duration::from_micros(12)), "12 µs");
        assert_eq!(shown(Duration::from_micros(1500)), "1.50 ms");
        assert_eq!(shown(Duration::from_millis(2500)), "2.50 s");
    }
}
