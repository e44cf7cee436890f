//! Cuts bytes that are too many, with a mark that people see (OWN-4a).
//!
//! This module does not know what the bytes mean; it only avoids cutting through a character.

use std::borrow::Cow;

use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_port::blobs::MAX_BLOB;

/// Describes what is kept of `bytes`, and returns it.
pub(crate) fn cut(kind: ArtifactKind, bytes: &[u8]) -> (Artifact, Cow<'_, [u8]>) {
    if bytes.len() <= MAX_BLOB {
        return (Artifact::of(kind, bytes), Cow::Borrowed(bytes));
    }
    let mark = format!(
        "\n[cut: the first {MAX_BLOB} of {} bytes, this mark included]\n",
        bytes.len()
    );
    let room = MAX_BLOB - mark.len();
    let is_middle_of_char = |at: usize| bytes[at] & 0b1100_0000 == 0b1000_0000;
    let end = (room.saturating_sub(3)..=room)
        .rev()
        .find(|at| !is_middle_of_char(*at))
        .unwrap_or(room);
    let kept = [&bytes[..end], mark.as_bytes()].concat();
    (
        Artifact {
            truncated: true,
            ..Artifact::of(kind, &kept)
        },
        Cow::Owned(kept),
    )
}
