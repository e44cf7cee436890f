//! Says how long something took, for people.

/// Formats a number of seconds.
pub fn spoken(seconds: u64) -> String {
    if seconds < 60 {
        return format!("{seconds} s");
    }
    format!("{} min {} s", seconds / 60, seconds % 60)
}
