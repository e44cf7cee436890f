//! Says how long something took, and how long ago it was.
//!
//! This module does not know what time it is.

use conductor_domain::time::{Millis, Timestamp};

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

#[cfg(test)]
mod tests {
    use super::*;

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
