//! A project board at the forge, and the fields on it that are Conductor's own (TOOL-3).
//!
//! A field is Conductor's if it is called so; everything else on a board belongs to people. This module does not know how
//! a board is reached.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::message::visible;

/// The most fields of one wish.
pub const MOST_FIELDS: usize = 10;
/// The longest name, in characters.
const MAX_NAME: usize = 64;
/// The longest value, in characters, once everything hidden in it is shown.
const MAX_VALUE: usize = 1024;

/// The number of a board among those of the repository's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BoardNumber(pub u32);

/// Values for fields that are Conductor's own; one line of text each, with nothing hidden in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct OwnFields(BTreeMap<String, String>);

/// Why fields are not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFields {
    /// There are none, or too many.
    #[error("name 1 to {MOST_FIELDS} fields")]
    Count,
    /// The field belongs to people, or cannot be a field's name.
    #[error(
        "`{0}` is not a field of Conductor's: those are called `Conductor …`, in at most {MAX_NAME} characters"
    )]
    NotOwn(String),
    /// The value is too long.
    #[error("the value of `{0}` is one line of at most {MAX_VALUE} characters")]
    Value(String),
}

impl OwnFields {
    /// Takes fields that are Conductor's own; what is hidden in their values is shown.
    pub fn new(wanted: BTreeMap<String, String>) -> Result<Self, InvalidFields> {
        if !(1..=MOST_FIELDS).contains(&wanted.len()) {
            return Err(InvalidFields::Count);
        }
        wanted
            .into_iter()
            .map(|(name, value)| {
                if !is_own(&name) {
                    return Err(InvalidFields::NotOwn(
                        visible(&name).chars().take(MAX_NAME).collect(),
                    ));
                }
                let value = visible(&value);
                if value.contains(['\n', '\t']) || value.chars().count() > MAX_VALUE {
                    return Err(InvalidFields::Value(name));
                }
                Ok((name, value))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The values by the names of their fields.
    pub fn values(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// Tells whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes newer values over older ones; older fields go where there would be too many.
    pub(crate) fn renew(&mut self, newer: &Self) {
        let older = std::mem::replace(&mut self.0, newer.0.clone());
        for (name, value) in older {
            if self.0.len() < MOST_FIELDS {
                self.0.entry(name).or_insert(value);
            }
        }
    }
}

impl TryFrom<BTreeMap<String, String>> for OwnFields {
    type Error = InvalidFields;

    fn try_from(kept: BTreeMap<String, String>) -> Result<Self, InvalidFields> {
        if kept.is_empty() {
            return Ok(Self::default());
        }
        Self::new(kept)
    }
}

impl From<OwnFields> for BTreeMap<String, String> {
    fn from(fields: OwnFields) -> Self {
        fields.0
    }
}

/// Tells whether a field of this name is Conductor's.
pub fn is_own(name: &str) -> bool {
    let follows = name.strip_prefix("Conductor");
    follows.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        && name.chars().count() <= MAX_NAME
        && visible(name) == name
        && !name.contains(['\n', '\t'])
}
