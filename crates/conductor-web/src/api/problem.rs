//! An answer that says no or that something is wrong, as `application/problem+json` (RFC 9457).
//!
//! This module does not know the problems; each has a page in `docs/error/`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What went wrong, for programs and people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// A name that no other problem has.
    #[serde(rename = "type")]
    pub kind: String,
    /// What kind of answer it is.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The stable code, `CDRnnnn`.
    pub code: String,
    /// What was attempted and what is wrong.
    pub detail: String,
    /// What to do next.
    pub hint: String,
}
