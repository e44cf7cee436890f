//! Counts things in words and cuts what is too long for its line.
//!
//! This module does not know what is counted or cut.

use std::fmt::Display;

use crate::visible;

/// How much of a title stands in a list.
const TITLE: usize = 60;

/// Counts: `1 file`, `2 files`.
pub fn count(number: impl Display, one: &str) -> String {
    let number = number.to_string();
    match (number.as_str(), one.strip_suffix('y')) {
        ("1", _) => format!("{number} {one}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {one}s"),
    }
}

/// A title for a list, on one line, hidden characters visible; where it was cut, it ends in `…`.
pub fn title(title: &str) -> String {
    let whole = visible::line(title);
    if whole.chars().count() <= TITLE {
        return whole;
    }
    let kept: String = whole.chars().take(TITLE - 1).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!(
            [count(0, "file"), count(1, "file"), count(2_u64, "file")],
            ["0 files", "1 file", "2 files"]
        );
        assert_eq!(
            [count(1, "repository"), count(3, "repository")],
            ["1 repository", "3 repositories"]
        );
    }

    #[test]
    fn a_long_title_is_cut_and_says_so() {
        let fits = "é".repeat(60);
        assert_eq!(title(&fits), fits);
        let cut = title(&"漢".repeat(61));
        assert_eq!(cut.chars().count(), 60);
        assert!(cut.ends_with('…'), "{cut}");
        assert_eq!(title("two\nlines"), "two lines");
    }
}
