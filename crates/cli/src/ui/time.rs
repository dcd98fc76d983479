//! Formats times for people.
//!
//! Recent times are shown as distances, older ones as dates. Pure functions of now, the time and the zone: the caller
//! reads the clock once, so that all lines of an output agree.

use jiff::Zoned;
use jiff::tz::TimeZone;
use retake_model::time::Timestamp;

/// The time relative to now: "5 min ago", "yesterday 14:02", "12 Mar 2025".
pub(crate) fn relative(now: Timestamp, moment: Timestamp, zone: &TimeZone) -> String {
    let (Some(local_now), Some(local)) = (local(now, zone), local(moment, zone)) else {
        // Out of the calendar's range: shows the raw value.
        return moment.to_string();
    };
    let millis = now.millis_since(moment);
    // Clocks differ between machines, so a time can be in the future.
    let suffixed = |distance: String| {
        if millis < 0 { format!("in {distance}") } else { format!("{distance} ago") }
    };
    let minutes = millis.unsigned_abs() / 60_000;
    let days = days_between(&local, &local_now);
    match (minutes, days) {
        (0, _) => "just now".to_owned(),
        (1..60, _) => suffixed(format!("{minutes} min")),
        // Less than six hours ago is shown in hours, even across midnight.
        (60..360, _) | (_, 0) => suffixed(format!("{} h", minutes / 60)),
        (_, 1) => local.strftime("yesterday %H:%M").to_string(),
        (_, -1) => local.strftime("tomorrow %H:%M").to_string(),
        _ if local.year() == local_now.year() => local.strftime("%-d %b").to_string(),
        _ => local.strftime("%-d %b %Y").to_string(),
    }
}

/// Local time to the second: "2026-11-15 20:49:03".
pub(crate) fn exact(moment: Timestamp, zone: &TimeZone) -> String {
    local(moment, zone)
        .map_or_else(|| moment.to_string(), |local| local.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

fn local(moment: Timestamp, zone: &TimeZone) -> Option<Zoned> {
    let moment = jiff::Timestamp::from_millisecond(moment.millis()).ok()?;
    Some(moment.to_zoned(zone.clone()))
}

/// Calendar days between two dates.
fn days_between(from: &Zoned, to: &Zoned) -> i32 {
    // A span of two dates always fits; the default unit of `until` for dates is days.
    from.date().until(to.date()).map_or(i32::MAX, |span| span.get_days())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time in a test")
    }

    #[test]
    fn times_are_shown_as_distances() {
        // Written out, since a minimal machine may have no time zone data.
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("the rules of Warsaw");
        // 15:30 in Warsaw.
        let now = at("2026-06-17T13:30:00Z");
        for (moment, wanted) in [
            ("2026-06-17T13:30:00Z", "just now"),
            ("2026-06-17T13:29:00.001Z", "just now"),
            ("2026-06-17T13:29:00Z", "1 min ago"),
            ("2026-06-17T12:31:00Z", "59 min ago"),
            ("2026-06-17T12:30:00Z", "1 h ago"),
            ("2026-06-16T22:00:00Z", "15 h ago"),
            ("2026-06-16T21:59:00Z", "yesterday 23:59"),
            ("2026-06-15T22:00:00Z", "yesterday 00:00"),
            ("2026-06-15T21:59:00Z", "15 Jun"),
            ("2026-03-12T12:00:00Z", "12 Mar"),
            ("2025-12-31T23:00:00Z", "1 Jan"),
            ("2025-12-31T22:59:00Z", "31 Dec 2025"),
            ("2026-06-17T13:30:59Z", "just now"),
            ("2026-06-17T13:35:00Z", "in 5 min"),
            ("2026-06-17T16:30:00Z", "in 3 h"),
            ("2026-06-18T13:30:00Z", "tomorrow 15:30"),
            ("2027-03-12T12:00:00Z", "12 Mar 2027"),
        ] {
            assert_eq!(relative(now, at(moment), &zone), wanted, "{moment}");
        }
    }

    #[test]
    fn recent_times_across_midnight_name_the_day() {
        let now = at("2026-06-17T01:00:00Z");
        assert_eq!(relative(now, at("2026-06-16T22:00:00Z"), &TimeZone::UTC), "3 h ago");
        assert_eq!(relative(now, at("2026-06-16T18:59:00Z"), &TimeZone::UTC), "yesterday 18:59");
    }

    #[test]
    fn times_beyond_the_calendar_are_shown() {
        for millis in [i64::MIN, i64::MAX] {
            let moment = Timestamp::from_millis(millis);
            assert_eq!(relative(at("2026-06-17T01:00:00Z"), moment, &TimeZone::UTC), moment.to_string());
            assert_eq!(exact(moment, &TimeZone::UTC), moment.to_string());
        }
    }

    #[test]
    fn exact_times_have_seconds() {
        assert_eq!(exact(at("2026-11-15T20:49:03.999Z"), &TimeZone::UTC), "2026-11-15 20:49:03");
    }
}
