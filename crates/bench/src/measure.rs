//! Durations: measured, collected and formatted.

use std::time::{Duration, Instant};

use crate::Outcome;

/// Runs an action and returns its duration.
pub(crate) fn timed<T>(action: impl FnOnce() -> Outcome<T>) -> Outcome<(T, Duration)> {
    let start = Instant::now();
    let value = action()?;
    Ok((value, start.elapsed()))
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    pub(crate) fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// The median, which ignores occasional disturbances.
    pub(crate) fn median(&self) -> Duration {
        self.quantile(50)
    }

    /// The 10th percentile.
    pub(crate) fn fast(&self) -> Duration {
        self.quantile(10)
    }

    /// The 95th percentile.
    pub(crate) fn slow(&self) -> Duration {
        self.quantile(95)
    }

    /// The 99th percentile.
    pub(crate) fn slowest(&self) -> Duration {
        self.quantile(99)
    }

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

pub(crate) fn ratio(ours: Duration, other: Duration) -> f64 {
    ours.as_secs_f64() / other.as_secs_f64().max(f64::EPSILON)
}

pub(crate) fn format_duration(duration: Duration) -> String {
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
    fn durations_have_readable_units() {
        assert_eq!(format_duration(Duration::from_micros(12)), "12 µs");
        assert_eq!(format_duration(Duration::from_micros(1500)), "1.50 ms");
        assert_eq!(format_duration(Duration::from_millis(2500)), "2.50 s");
    }
}
