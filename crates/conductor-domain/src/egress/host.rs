//! Decides what is a host name, before anything is asked about it (S-35).
//!
//! Letters, digits and hyphens only; whatever a resolver could take for an address is none, in any of the forms of
//! `inet_aton`. This module does not know which names are granted.

use std::fmt;

const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A host name of at least two labels, in lower case, without a final dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

/// Why a text is not a host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadHostName {
    /// It has no text, or too much.
    #[error("a host name has 1 to {MAX_NAME} characters")]
    Length,
    /// A label is empty, too long, or has other characters than letters, digits and inner hyphens.
    #[error("a host name consists of labels of letters, digits and inner hyphens")]
    Label,
    /// It has only one label, which a resolver would complete by its own lights.
    #[error("a host name has at least two labels")]
    OneLabel,
    /// It would be read as an address.
    #[error("an address is not a host name")]
    Address,
}

impl HostName {
    /// Reads a host name.
    pub fn parse(text: &str) -> Result<Self, BadHostName> {
        if text.is_empty() || text.len() > MAX_NAME {
            return Err(BadHostName::Length);
        }
        if !text.split('.').all(is_label) {
            return Err(BadHostName::Label);
        }
        // Only the last label decides: no top-level domain is a number, and every form of an address ends in one.
        let last = text.rsplit('.').next().unwrap_or(text);
        if is_number(last) {
            return Err(BadHostName::Address);
        }
        if !text.contains('.') {
            return Err(BadHostName::OneLabel);
        }
        Ok(Self(text.to_ascii_lowercase()))
    }

    /// Takes any text for a name, so that a test can show what the grammar is for; a release build cannot.
    #[doc(hidden)]
    #[cfg(debug_assertions)]
    pub fn unchecked(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The name in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_label(label: &str) -> bool {
    (1..=MAX_LABEL).contains(&label.len())
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// What `inet_aton` could read as a part of an address; `0x` alone counts, because some readers take it for zero.
fn is_number(label: &str) -> bool {
    let digits = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match digits {
        Some(hex) => hex.bytes().all(|b| b.is_ascii_hexdigit()),
        None => label.bytes().all(|b| b.is_ascii_digit()),
    }
}
