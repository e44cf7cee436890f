//! Private keys between their armour lines, whole or cut off, with real or escaped line breaks.
//!
//! This module does not know what a key is for.

use memchr::memmem;

use super::{Certainty, Kind, Sighting, line_end};

/// What every armour begins with.
pub(crate) const WORD: &str = "-----BEGIN ";
const HEAD: &[u8] = b"PRIVATE KEY";
const FOOT: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";

/// The most that a key takes; where its foot is missing, so much is taken to be the key, and the rest of that line: what
/// begins there must not be shown from its middle on.
pub(crate) const LONGEST: usize = 32 * 1024;
/// A body with fewer characters of base64 in one run is a sample.
const SHORTEST_RUN: usize = 40;

/// The most that a foot takes.
pub(crate) const LONGEST_FOOT: usize = 96;
/// What a key is called.
pub(crate) const KIND: Kind = Kind("private-key");

/// Confirms a key whose armour begins at `at`.
pub(super) fn at(text: &[u8], at: usize) -> Option<Sighting> {
    let body = body_of(text, at)?;
    let limit = text.len().min(at + LONGEST);
    let end = match foot(text.get(body..limit)?) {
        Some(length) => body + length,
        None => memchr::memchr(b'\n', &text[limit..]).map_or(text.len(), |length| limit + length),
    };
    let is_real = longest_run(text.get(body..end)?) >= SHORTEST_RUN;
    Some(Sighting {
        kind: KIND,
        range: at..end,
        certainty: if is_real {
            Certainty::Certain
        } else {
            Certainty::Hinted
        },
    })
}

/// Returns where the body of the key begins whose armour begins at `at`.
pub(crate) fn body_of(text: &[u8], at: usize) -> Option<usize> {
    let label = at + WORD.len();
    let line = text.get(label..line_end(text, label).min(label + 64))?;
    let length = memmem::find(line, DASHES)?;
    memmem::find(line.get(..length)?, HEAD)?;
    Some(label + length + DASHES.len())
}

/// Returns where the first foot in a body ends.
pub(crate) fn foot(body: &[u8]) -> Option<usize> {
    memmem::find_iter(body, FOOT).find_map(|begin| {
        let label = begin + FOOT.len();
        let rest = body.get(label..body.len().min(begin + LONGEST_FOOT))?;
        memmem::find(rest, DASHES).map(|length| label + length + DASHES.len())
    })
}

fn longest_run(body: &[u8]) -> usize {
    body.split(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')))
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0)
}
