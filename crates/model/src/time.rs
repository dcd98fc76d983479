//! Timestamps in whole milliseconds since the Unix epoch.
//!
//! People and file formats commonly exchange milliseconds, and a whole number has one canonical encoding,
//! unlike a fraction. Text (RFC 3339) exists only at the boundary, through `Display` and `FromStr`.

use std::fmt;
use std::str::FromStr;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// A point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Timestamp(#[n(0)] i64);

/// The text is not a valid timestamp.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time such as 2026-11-15T20:49:00Z")]
pub struct InvalidTimeError(String);

impl Timestamp {
    /// The time this many milliseconds after the start of 1970 (UTC).
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the start of 1970 (UTC).
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Whether the time has a text form; every parsed time has one.
    pub fn has_text_form(self) -> bool {
        jiff::Timestamp::from_millisecond(self.0).is_ok()
    }

    /// Whether a clock can plausibly show this time: from 1970 on, and with a text form.
    pub fn is_plausible_clock_time(self) -> bool {
        self.0 >= 0 && self.has_text_form()
    }

    /// Clamps a clock reading to the range that may be stored, so that a wrong clock cannot cause records
    /// that later look damaged.
    #[must_use]
    pub fn from_clock(millis: i64) -> Self {
        // Whole seconds, because not every millisecond of the last one has a text form.
        Self(millis.clamp(0, jiff::Timestamp::MAX.as_second() * 1000))
    }

    /// Milliseconds from `earlier` to this time; negative if the clock went backwards.
    pub const fn millis_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => write!(formatter, "{moment:.3}"),
            Err(_) => write!(formatter, "{}ms", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimeError;

    fn from_str(text: &str) -> Result<Self, InvalidTimeError> {
        text.parse::<jiff::Timestamp>()
            .map(|moment| Self(moment.as_millisecond()))
            .map_err(|_| InvalidTimeError(text.chars().take(40).collect()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trip() {
        for millis in [0, 1, 1_763_239_740_123, -62_000_000_000_000] {
            let moment = Timestamp::from_millis(millis);
            assert_eq!(moment.to_string().parse(), Ok(moment), "{moment}");
        }
    }

    #[test]
    fn every_clock_reading_becomes_a_plausible_time() {
        for millis in [i64::MIN, -1, 0, 1, 253_402_207_200_999, 253_402_207_201_000, i64::MAX] {
            assert!(Timestamp::from_clock(millis).is_plausible_clock_time(), "{millis}");
        }
        assert_eq!(Timestamp::from_clock(1_763_239_740_123).millis(), 1_763_239_740_123);
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in ["", "yesterday", "2026-13-01T00:00:00Z", "\u{1b}[31m"] {
            assert!(text.parse::<Timestamp>().is_err(), "{text:?}");
        }
    }
}
