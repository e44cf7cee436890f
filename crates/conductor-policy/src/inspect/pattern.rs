//! Patterns of an operator: regular expressions that run in linear time, or are refused.
//!
//! This module does not know what a pattern is meant to find.

use conductor_domain::diff::Severity;
use regex_automata::meta::{Config, Regex};

/// The longest pattern.
pub const LONGEST: usize = 500;
/// What a compiled pattern may take.
const MEMORY: usize = 1024 * 1024;

/// A pattern for added lines.
#[derive(Debug, Clone)]
pub struct Pattern {
    name: String,
    regex: Regex,
    severity: Severity,
    below: String,
}

/// Why a pattern is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// Nobody could read it.
    #[error("the pattern is {0} characters long, the limit is {LONGEST}")]
    TooLong(usize),
    /// It does not compile, or only to something huge.
    #[error("the pattern cannot be used: {0}")]
    Unusable(String),
    /// It would object to every line.
    #[error("the pattern matches the empty line, and so every line")]
    MatchesEverything,
}

impl Pattern {
    /// Compiles a pattern that counts in files below a directory; empty for everywhere.
    pub fn new(
        name: impl Into<String>,
        expression: &str,
        severity: Severity,
        below: impl Into<String>,
    ) -> Result<Self, InvalidPattern> {
        let length = expression.chars().count();
        if length > LONGEST {
            return Err(InvalidPattern::TooLong(length));
        }
        let config = Config::new()
            .nfa_size_limit(Some(MEMORY))
            .onepass_size_limit(Some(MEMORY))
            .hybrid_cache_capacity(MEMORY);
        let regex = Regex::builder()
            .configure(config)
            .build(expression)
            .map_err(|error| InvalidPattern::Unusable(chain(&error)))?;
        if regex.is_match("") {
            return Err(InvalidPattern::MatchesEverything);
        }
        Ok(Self {
            name: name.into(),
            regex,
            severity,
            below: below.into(),
        })
    }

    /// Returns what the operator calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn severity(&self) -> Severity {
        self.severity
    }

    pub(super) fn matches(&self, path: &str, line: &[u8]) -> bool {
        path.starts_with(&self.below) && self.regex.is_match(line)
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
