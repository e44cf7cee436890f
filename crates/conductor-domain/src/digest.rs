//! Content addresses: SHA-256 over the exact bytes, written `sha256:<hex>`.
//!
//! Approvals are bound to these (BEY-1). This module does not know what the bytes mean.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The content address of some bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

/// The reason why a string is not a content address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest (sha256: and 64 lowercase hex digits)")]
pub struct InvalidDigest(String);

impl Digest {
    /// Computes the address of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("sha256:{}", hex::encode(Sha256::digest(bytes))))
    }

    /// Parses a written address.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidDigest> {
        let text = text.into();
        let valid = text.strip_prefix("sha256:").is_some_and(|hex| {
            hex.len() == 64
                && hex
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        });
        if valid {
            Ok(Self(text))
        } else {
            Err(InvalidDigest(text))
        }
    }

    /// Returns the address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first twelve hex digits, for people.
    pub fn short(&self) -> &str {
        self.0.get(7..19).unwrap_or(&self.0)
    }
}

impl TryFrom<String> for Digest {
    type Error = InvalidDigest;
    fn try_from(text: String) -> Result<Self, InvalidDigest> {
        Self::parse(text)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.0
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Digest {
    type Err = InvalidDigest;
    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        Self::parse(text)
    }
}
