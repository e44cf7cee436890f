//! Counts tests from what nextest and the built-in harness print.
//!
//! A run that prints no summary counts as zero tests, never as success. It does not know which tests exist.

use std::fmt;
use std::ops::AddAssign;

/// How many tests passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    /// Reads nextest's summary, e.g. `Summary [ 1.2s] 9 tests run: 7 passed (1 slow), 1 failed, 1 timed out, 0 skipped`.
    pub(crate) fn from_nextest(line: &str) -> Option<Self> {
        let line = without_colour(line);
        if !line.trim_start().starts_with("Summary [") {
            return None;
        }
        let (_, counts) = line.split_once(" run: ")?;
        let mut tally = Self::default();
        for (number, word) in counted_words(&without_parentheses(counts)) {
            match word.as_str() {
                "passed" => tally.passed += number,
                "skipped" => tally.skipped += number,
                // "failed", "timed out", "exec failed", "failed due to signal", …: whatever is neither passed nor
                // skipped has failed, also under a name that a later nextest invents.
                _ => tally.failed += number,
            }
        }
        Some(tally)
    }

    /// Reads the built-in harness's summary, e.g. `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; …`.
    pub(crate) fn from_harness(line: &str) -> Option<Self> {
        let line = without_colour(line);
        let counts = line.trim().strip_prefix("test result: ")?.split_once(". ")?.1;
        let mut tally = Self::default();
        for (number, word) in counted_words(&counts.replace(';', ",")) {
            match word.as_str() {
                "passed" => tally.passed += number,
                "failed" => tally.failed += number,
                "ignored" => tally.skipped += number,
                _ => {}
            }
        }
        Some(tally)
    }

    /// Says whether tests ran and none failed. Zero tests are no success.
    pub(crate) fn is_green(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// Splits `7 passed, 1 timed out` into its numbers and their words.
fn counted_words(text: &str) -> Vec<(u64, String)> {
    text.split(',')
        .filter_map(|part| {
            let (number, word) = part.trim().split_once(' ')?;
            Some((number.parse().ok()?, word.trim().to_owned()))
        })
        .collect()
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0_usize;
    text.chars()
        .filter(|character| match character {
            '(' => {
                depth += 1;
                false
            }
            ')' => {
                depth = depth.saturating_sub(1);
                false
            }
            _ => depth == 0,
        })
        .collect()
}

/// Drops terminal colour sequences (`ESC [ … letter`).
pub(crate) fn without_colour(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nextest(line: &str, passed: u64, failed: u64, skipped: u64) {
        assert_eq!(
            Tally::from_nextest(line),
            Some(Tally {
                passed,
                failed,
                skipped
            }),
            "{line}"
        );
    }

    #[test]
    fn every_way_to_fail_counts_as_failed() {
        nextest(
            "     Summary [   0.005s] 3 tests run: 3 passed, 0 skipped",
            3,
            0,
            0,
        );
        nextest(
            "     Summary [   9.1s] 9 tests run: 5 passed (1 slow, 1 flaky), 2 failed, 1 timed out, 1 exec failed, 4 skipped",
            5,
            4,
            4,
        );
        nextest(
            "     Summary [   9.1s] 2/9 tests run: 1 passed, 1 failed due to signal, 0 skipped",
            1,
            1,
            0,
        );
    }

    #[test]
    fn colour_does_not_hide_the_summary() {
        nextest(
            "\u{1b}[32;1m     Summary\u{1b}[0m [   0.005s] \u{1b}[1m1\u{1b}[0m test run: \u{1b}[1m1\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, 0 skipped",
            1,
            0,
            0,
        );
    }

    #[test]
    fn a_line_that_is_no_summary_counts_nothing() {
        assert_eq!(
            Tally::from_nextest("PASS [ 0.1s] xtask Summary run: 9 passed"),
            None
        );
        assert_eq!(Tally::from_harness("test result_is_printed ... ok"), None);
    }

    #[test]
    fn the_harness_counts_ignored_tests_as_skipped() {
        assert_eq!(
            Tally::from_harness(
                "test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s"
            ),
            Some(Tally {
                passed: 3,
                failed: 1,
                skipped: 2
            })
        );
    }

    #[test]
    fn the_closing_line_is_plain() {
        let mut tally = Tally {
            passed: 12,
            failed: 1,
            skipped: 0,
        };
        assert_eq!(tally.to_string(), "12 passed, 1 failed");
        tally += Tally {
            passed: 1,
            failed: 3,
            skipped: 2,
        };
        assert_eq!(tally.to_string(), "13 passed, 4 failed, 2 skipped");
    }

    #[test]
    fn zero_tests_and_one_failed_test_are_no_success() {
        let tally = |passed, failed| Tally {
            passed,
            failed,
            skipped: 1,
        };
        assert!(!tally(0, 0).is_green());
        assert!(!tally(9, 1).is_green());
        assert!(tally(1, 0).is_green());
    }
}
