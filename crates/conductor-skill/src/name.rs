//! Names of skills: the public rules, so that a name is always one harmless part of a path.
//!
//! This module does not know whether such a skill exists.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::manifest::{LONGEST_NAME, wrong_with_name};

/// The name of a skill, which is its directory's name too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SkillName(String);

/// Why a text is no name of a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no name of a skill: {why}")]
pub struct InvalidName {
    name: String,
    why: &'static str,
}

impl SkillName {
    /// Checks a name.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let name: String = text.trim().nfkc().collect();
        let why = if name.is_empty() {
            Some("it is empty")
        } else if name.chars().count() > LONGEST_NAME {
            Some("it is longer than 64 characters")
        } else {
            wrong_with_name(&name).first().copied()
        };
        match why {
            None => Ok(Self(name)),
            Some(why) => Err(InvalidName { name, why }),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SkillName {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::parse(&text)
    }
}

impl From<SkillName> for String {
    fn from(name: SkillName) -> Self {
        name.0
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
