//! Parses times on the command line.
//!
//! ```text
//!   3d   12h   2 weeks      that long ago
//!   today   yesterday       a day here
//!   2026-11-01              a day here; a month or a year likewise: 2026-11, 2026
//!   2026-11-01 14:30        a moment here
//!   2026-11-01T13:30:00Z    a moment anywhere
//! ```
//!
//! A day, month or year means all of it: `--since` uses its start, `--until` its end.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan, Zoned};
use retake_model::time::Timestamp;

/// Which end of a period to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeriodEnd {
    First,
    Last,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time; write 2026-11-01, \"2026-11-01 14:30\", 3d, 12h, today or yesterday")]
pub(crate) struct TimeParseError(String);

/// Parses a time relative to now.
pub(crate) fn parse(
    text: &str,
    now: Timestamp,
    zone: &TimeZone,
    edge: PeriodEnd,
) -> Result<Timestamp, TimeParseError> {
    let typed = text.trim().to_lowercase();
    let here = jiff::Timestamp::from_millisecond(now.millis()).ok().map(|now| now.to_zoned(zone.clone()));
    here.and_then(|here| parse_time(&typed, &here, edge))
        .ok_or_else(|| TimeParseError(text.chars().take(40).collect()))
}

fn parse_time(typed: &str, now: &Zoned, edge: PeriodEnd) -> Option<Timestamp> {
    if let Some(span) = ago(typed) {
        return Some(stamp(&now.checked_sub(span).ok()?));
    }
    let today = now.date();
    if let Some((first, after)) = match typed {
        "now" => return Some(stamp(now)),
        "today" => Some((today, today.tomorrow().ok()?)),
        "yesterday" => Some((today.yesterday().ok()?, today)),
        _ => period(typed),
    } {
        let day = if edge == PeriodEnd::First { first } else { after };
        let start = stamp(&day.to_zoned(now.time_zone().clone()).ok()?);
        return Some(match edge {
            PeriodEnd::First => start,
            PeriodEnd::Last => Timestamp::from_millis(start.millis() - 1),
        });
    }
    if let Ok(exact) = typed.to_uppercase().parse::<jiff::Timestamp>() {
        return Some(Timestamp::from_millis(exact.as_millisecond()));
    }
    let local: DateTime = typed.parse().ok()?;
    Some(stamp(&local.to_zoned(now.time_zone().clone()).ok()?))
}

/// A year, a month or a day: its first day, and the day after its last.
fn period(typed: &str) -> Option<(Date, Date)> {
    let mut parts = typed.split('-');
    let (year, month, day) = (parts.next()?, parts.next(), parts.next());
    if parts.next().is_some() || year.len() != 4 {
        return None;
    }
    let number = |part: Option<&str>| part.map_or(Some(1), |part| part.parse::<i8>().ok());
    let first = Date::new(year.parse().ok()?, number(month)?, number(day)?).ok()?;
    let length = match (month, day) {
        (None, _) => 1.year(),
        (Some(_), None) => 1.month(),
        (Some(_), Some(_)) => 1.day(),
    };
    Some((first, first.checked_add(length).ok()?))
}

/// A number with a unit.
fn ago(typed: &str) -> Option<Span> {
    let typed = typed.strip_suffix("ago").unwrap_or(typed).trim_end();
    let end = typed.find(|character: char| !character.is_ascii_digit())?;
    let number: i64 = typed[..end].parse().ok()?;
    let span = Span::new();
    match typed[end..].trim() {
        "m" | "min" | "minute" | "minutes" => span.try_minutes(number),
        "h" | "hour" | "hours" => span.try_hours(number),
        "d" | "day" | "days" => span.try_days(number),
        "w" | "week" | "weeks" => span.try_weeks(number),
        "month" | "months" => span.try_months(number),
        "y" | "year" | "years" => span.try_years(number),
        _ => return None,
    }
    .ok()
}

fn stamp(moment: &Zoned) -> Timestamp {
    Timestamp::from_millis(moment.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, edge: PeriodEnd) -> Result<String, TimeParseError> {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let now: Timestamp = "2026-11-15T20:49:00Z".parse().expect("a time");
        parse(text, now, &zone, edge).map(|moment| moment.to_string())
    }

    #[test]
    fn common_notations_are_accepted() {
        for (text, first, last) in [
            ("now", "2026-11-15T20:49:00.000Z", "2026-11-15T20:49:00.000Z"),
            ("3d", "2026-11-12T20:49:00.000Z", "2026-11-12T20:49:00.000Z"),
            ("2 weeks ago", "2026-11-01T20:49:00.000Z", "2026-11-01T20:49:00.000Z"),
            ("90m", "2026-11-15T19:19:00.000Z", "2026-11-15T19:19:00.000Z"),
            ("today", "2026-11-14T22:00:00.000Z", "2026-11-15T21:59:59.999Z"),
            ("Yesterday", "2026-11-13T22:00:00.000Z", "2026-11-14T21:59:59.999Z"),
            ("2026-11-01", "2026-10-31T22:00:00.000Z", "2026-11-01T21:59:59.999Z"),
            ("2026-02", "2026-01-31T22:00:00.000Z", "2026-02-28T21:59:59.999Z"),
            ("2025", "2024-12-31T22:00:00.000Z", "2025-12-31T21:59:59.999Z"),
            ("2026-11-01 14:30", "2026-11-01T12:30:00.000Z", "2026-11-01T12:30:00.000Z"),
            ("2026-11-01T13:30:00Z", "2026-11-01T13:30:00.000Z", "2026-11-01T13:30:00.000Z"),
            ("2026-11-01T13:30:00+01:00", "2026-11-01T12:30:00.000Z", "2026-11-01T12:30:00.000Z"),
        ] {
            assert_eq!(parsed(text, PeriodEnd::First).as_deref(), Ok(first), "{text}");
            assert_eq!(parsed(text, PeriodEnd::Last).as_deref(), Ok(last), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ["", "soon", "3", "3 parsecs", "d", "2026-13-01", "2026-02-30", "99999999999y", "-3d", "12-1"]
        {
            assert!(parsed(text, PeriodEnd::First).is_err(), "{text}");
        }
    }
}
