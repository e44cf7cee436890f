//! Says how long something took, and how long ago it was.
//!
//! This module does not know what time it is.

use conductor_domain::time::{Millis, Timestamp};

use crate::error::Error;

/// Says how long: `340 ms`, `2.4 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`.
pub fn length(length: Millis) -> String {
    let seconds = length.0 / 1000;
    match seconds {
        0 => format!("{} ms", length.0),
        1..60 => format!("{}.{} s", seconds, length.0 % 1000 / 100),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// Says how long ago: `now`, `12 s ago`, `3 min ago`.
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.since(then).0 / 1000;
    match seconds {
        0..2 => "now".to_owned(),
        2..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// Says exactly when, in UTC: `2026-01-31 09:05:07 UTC`.
pub fn exact(then: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(then.0).map_or_else(
        |_| format!("{} µs after 1970", then.0),
        |then| then.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    )
}

/// Says exactly when, to the microsecond, for programs: `2026-01-31T09:05:07.000001Z`.
pub fn precise(then: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(then.0).map_or_else(
        |_| then.0.to_string(),
        |then| then.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
    )
}

/// Says which day it was, in UTC: `2026-01-31`.
pub fn day(then: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(then.0).map_or_else(
        |_| then.0.to_string(),
        |then| then.strftime("%Y-%m-%d").to_string(),
    )
}

/// Reads a day, of which it is the beginning, or a time; in UTC where nothing else is said.
pub fn parse(said: &str) -> Result<Timestamp, Error> {
    read(said, 0)
}

/// Reads a day, of which it is the end, or a time.
pub fn parse_end(said: &str) -> Result<Timestamp, Error> {
    read(said, MICROS_PER_DAY)
}

const MICROS_PER_DAY: i64 = 86_400_000_000;

fn read(said: &str, after_day: i64) -> Result<Timestamp, Error> {
    let in_utc = |time: jiff::civil::DateTime| time.to_zoned(jiff::tz::TimeZone::UTC).ok();
    let at = if let Ok(at) = said.parse::<jiff::Timestamp>() {
        Some(at.as_microsecond())
    } else if said.len() <= "2026-01-31".len() {
        let day = said.parse::<jiff::civil::Date>().ok();
        let begun = day.and_then(|day| in_utc(day.at(0, 0, 0, 0)));
        begun.and_then(|begun| begun.timestamp().as_microsecond().checked_add(after_day))
    } else {
        let time = said.parse::<jiff::civil::DateTime>().ok();
        time.and_then(in_utc)
            .map(|time| time.timestamp().as_microsecond())
    };
    at.map(Timestamp).ok_or_else(|| Error::Invalid {
        what: format!("`{said}` is neither a day (2026-01-31) nor a time (2026-01-31T09:05)"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_read_and_nothing_is_guessed() {
        const DAY: i64 = 86_400_000_000;
        for (said, begins, ends) in [
            ("1970-01-02", DAY, 2 * DAY),
            ("1970-01-02T00:00", DAY, DAY),
            ("1970-01-02 00:00:01", DAY + 1_000_000, DAY + 1_000_000),
            ("1970-01-02T01:00:00+01:00", DAY, DAY),
            ("1970-01-02T00:00:00.000001Z", DAY + 1, DAY + 1),
        ] {
            assert_eq!(parse(said).expect(said), Timestamp(begins), "{said}");
            assert_eq!(parse_end(said).expect(said), Timestamp(ends), "{said}");
        }
        for hostile in [
            "",
            "today",
            "1970-02-30",
            "9",
            "99999-01-01",
            "1970-01-02T25:00",
            "'; --",
        ] {
            assert!(parse(hostile).is_err(), "{hostile}");
        }
        assert_eq!(precise(Timestamp(DAY + 1)), "1970-01-02T00:00:00.000001Z");
    }

    #[test]
    fn lengths_and_distances_are_rounded_for_people() {
        let lengths = [0, 999, 1_000, 59_949, 61_000, 3_600_000, 90_000_000].map(|ms| length(Millis(ms)));
        assert_eq!(
            lengths,
            [
                "0 ms",
                "999 ms",
                "1.0 s",
                "59.9 s",
                "1 min 1 s",
                "1 h 0 min",
                "1 d 1 h"
            ]
        );
        let at = |seconds: i64| ago(Timestamp(0), Timestamp(seconds * 1_000_000));
        assert_eq!(
            [at(-5), at(1), at(59), at(60), at(7_200), at(172_800)],
            ["now", "now", "59 s ago", "1 min ago", "2 h ago", "2 d ago"]
        );
    }
}
