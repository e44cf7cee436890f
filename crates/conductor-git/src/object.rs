//! The id of a tree or a blob, checked before it is used for anything (S-8).
//!
//! Commits have their own type in the domain. This module does not know whether the object exists.

use std::fmt;

use conductor_domain::id::CommitId;

use crate::error::Error;

const SHOWN: usize = 80;

/// The id of a git object: 40 or 64 lowercase hex digits, never empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(String);

impl ObjectId {
    /// Parses an id; anything that is not exactly one is refused.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let is_id = matches!(text.len(), 40 | 64)
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if is_id {
            Ok(Self(text.to_owned()))
        } else {
            Err(invalid(text))
        }
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether this is git's id of "nothing there".
    pub fn is_null(&self) -> bool {
        self.0.bytes().all(|b| b == b'0')
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parses the id of a commit out of git's output.
pub(crate) fn commit_id(text: &str) -> Result<CommitId, Error> {
    CommitId::parse(text).map_err(|_| invalid(text))
}

fn invalid(text: &str) -> Error {
    Error::InvalidObjectId {
        given: text.chars().take(SHOWN).flat_map(char::escape_default).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-8.
    #[test]
    fn what_is_no_object_id_is_refused() {
        let long = "a".repeat(41);
        let upper = "A".repeat(40);
        let newline = format!("{}\n", "a".repeat(39));
        for bad in ["", "HEAD", "-c", "a", &long, &upper, &newline] {
            assert!(
                matches!(ObjectId::parse(bad), Err(Error::InvalidObjectId { .. })),
                "{bad:?}"
            );
        }
        for good in ["a".repeat(40), "0".repeat(64)] {
            assert_eq!(ObjectId::parse(&good).map(|id| id.to_string()).ok(), Some(good));
        }
    }
}
