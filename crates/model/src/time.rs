//! Moments, as whole milliseconds since the Unix epoch.
//!
//! Milliseconds are what people and file formats of this field exchange; a whole number has one canonical
//! encoding, where a fraction has many. Text (RFC 3339) exists only at the edge, through `Display` and
//! `FromStr`.

use std::fmt;
use std::str::FromStr;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// A moment in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Timestamp(#[n(0)] i64);

/// The text is not a moment that Retake can name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time such as 2026-11-15T20:49:00Z")]
pub struct NotATime(String);

impl Timestamp {
    /// The moment that many milliseconds after the start of 1970 (UTC).
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the start of 1970 (UTC).
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Whether the moment has a text form: nothing that came in as text lacks one.
    pub fn has_text(self) -> bool {
        jiff::Timestamp::from_millisecond(self.0).is_ok()
    }

    /// Whether a clock may have said so: from 1970 on, and with a text form.
    pub fn may_be_clock_time(self) -> bool {
        self.0 >= 0 && self.has_text()
    }

    /// What a clock says, held to what may be stored: a clock that was never set, or was set to the end of time, shows
    /// the first or the last moment that it may. Nothing that is written by it can be taken for damage later.
    #[must_use]
    pub fn of_clock(millis: i64) -> Self {
        // A whole second: not every millisecond of the very last one has a text form.
        Self(millis.clamp(0, jiff::Timestamp::MAX.as_second() * 1000))
    }

    /// Milliseconds from `earlier` to this moment; negative if the clock went backwards.
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
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        text.parse::<jiff::Timestamp>()
            .map(|moment| Self(moment.as_millisecond()))
            .map_err(|_| NotATime(text.chars().take(40).collect()))
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
    fn text_and_back() {
        for millis in [0, 1, 1_763_239_740_123, -62_000_000_000_000] {
            let moment = Timestamp::from_millis(millis);
            assert_eq!(moment.to_string().parse(), Ok(moment), "{moment}");
        }
    }

    #[test]
    fn whatever_a_clock_says_is_a_time_that_a_clock_may_say() {
        for millis in [i64::MIN, -1, 0, 1, 253_402_207_200_999, 253_402_207_201_000, i64::MAX] {
            assert!(Timestamp::of_clock(millis).may_be_clock_time(), "{millis}");
        }
        assert_eq!(Timestamp::of_clock(1_763_239_740_123).millis(), 1_763_239_740_123);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "yesterday", "2026-13-01T00:00:00Z", "\u{1b}[31m"] {
            assert!(text.parse::<Timestamp>().is_err(), "{text:?}");
        }
    }
}
