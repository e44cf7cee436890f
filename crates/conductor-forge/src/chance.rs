//! Draws what must not be guessed or repeated: token texts, delivery GUIDs, request ids.
//!
//! It does not know what the draws are for.

/// A random GUID in its usual spelling.
#[expect(
    clippy::disallowed_methods,
    reason = "the one home of randomness in this crate"
)]
pub(crate) fn guid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Random lowercase hex digits, 32 of them.
pub(crate) fn digits() -> String {
    guid().replace('-', "")
}
