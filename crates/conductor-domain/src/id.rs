//! Names every id with its own type, so that one can never be passed for another.
//!
//! Ids are made outside (by doors, from randomness) or derived inside (effects, from run and sequence).
//! This module does not know how random ids are made.

use serde::{Deserialize, Serialize};

/// The reason why a string is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not {expected}")]
pub struct InvalidId {
    given: String,
    expected: &'static str,
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $expected:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Parses the id; the grammar is part of the type.
            pub fn parse(text: impl Into<String>) -> Result<Self, InvalidId> {
                let text = text.into();
                let valid: fn(&str) -> bool = $valid;
                if valid(&text) { Ok(Self(text)) } else { Err(InvalidId { given: text, expected: $expected }) }
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }
    };
}

fn is_slug(text: &str, longest: usize) -> bool {
    !text.is_empty()
        && text.len() <= longest
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

text_id! {
    /// One run; also the last part of its branch name and of its directories.
    RunId, "a run id (lowercase letters, digits and hyphens, at most 40)", |t| is_slug(t, 40)
}
text_id! {
    /// One project: a group of repositories with common rules.
    ProjectId, "a project name (lowercase letters, digits and hyphens, at most 40)", |t| is_slug(t, 40)
}
text_id! {
    /// The name of an operator as it stands in the audit log.
    OperatorName, "an operator name (1 to 64 letters, digits, `-`, `_`, `.` or `@`)",
    |t| !t.is_empty() && t.len() <= 64
        && t.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'@'))
}
text_id! {
    /// The name of a token that a program carries.
    TokenId, "the name of a token (1 to 64 lowercase letters, digits, `-` or `_`)",
    |t| !t.is_empty() && t.len() <= 64
        && t.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'))
}
text_id! {
    /// A git object id: 40 or 64 hex digits, never empty (an empty id would delete a ref, S-8).
    CommitId, "a git object id (40 or 64 lowercase hex digits)",
    |t| matches!(t.len(), 40 | 64) && t.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}
text_id! {
    /// One effect; derived from run, sequence number and ordinal, and handed to the world as idempotency key.
    EffectId, "an effect id (`<run>.<sequence>.<ordinal>`)",
    |t| {
        let mut parts = t.rsplitn(3, '.');
        let number = |part: Option<&str>| part.is_some_and(|p| p.parse::<u64>().is_ok());
        number(parts.next()) && number(parts.next()) && parts.next().is_some_and(|run| is_slug(run, 40))
    }
}

impl EffectId {
    /// Derives the id of the `ordinal`-th effect of the decision that stands at `sequence` of `run`.
    pub fn derive(run: &RunId, sequence: u64, ordinal: usize) -> Self {
        Self(format!("{run}.{sequence}.{ordinal}"))
    }

    /// The run that asked for this effect.
    pub fn run(&self) -> RunId {
        let mut parts = self.0.rsplitn(3, '.');
        let run = parts.nth(2).unwrap_or_default();
        RunId(run.to_owned())
    }
}

/// The numeric id that the forge gave a repository; names change, this does not (S-53).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RepoId(pub u64);

impl std::fmt::Display for RepoId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of an issue in its repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IssueNumber(pub u64);

impl std::fmt::Display for IssueNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// The number of a pull request in its repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PullRequestNumber(pub u64);

impl std::fmt::Display for PullRequestNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-8: an empty id would delete the ref it is written to.
    #[test]
    fn hostile_ids_are_refused() {
        for bad in ["", "-a", "a-", "A", "a/b", "../x", "a b", "a\n", &"x".repeat(41)] {
            assert!(RunId::parse(bad).is_err(), "{bad:?}");
        }
        for bad in [
            "",
            "abc",
            "HEAD",
            "0123456789abcdef0123456789abcdef0123456G",
            "-c",
        ] {
            assert!(CommitId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(serde_json::from_str::<CommitId>("\"\"").is_err());
    }

    #[test]
    fn an_effect_id_names_its_run() {
        let run = RunId::parse("r-1").expect("a slug");
        let id = EffectId::derive(&run, 12, 3);
        assert_eq!((id.as_str(), id.run()), ("r-1.12.3", run));
        assert_eq!(EffectId::parse("r-1.12.3"), Ok(id));
        assert!(EffectId::parse("r-1.12").is_err());
    }
}
