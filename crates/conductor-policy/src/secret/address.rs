//! Passwords in addresses (`scheme://user:password@host`) and credentials after their scheme (`Bearer …`).
//!
//! This module does not know names: see `named`.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Certainty, Kind, Sighting, line_end, line_start, value};

/// Authorization schemes whose credentials stand right after them.
pub(super) const SCHEMES: &[&str] = &["bearer ", "basic ", "ssws ", "authorization: token ", "\"token "];

/// What stands between the password and the host of a data source, as drivers of Go have it.
pub(super) const SOURCES: &[&str] = &["@tcp(", "@unix("];

/// A longer name of a user is none; what a sighting rests on stands near it.
const LONGEST_USER: usize = 128;
/// What of a data source stands before its host is not longer.
const LONGEST_SOURCE: usize = 256;
/// A longer password with a slash is the path of an address.
const LONGEST_SLASHED: usize = 256;
const KIND: Kind = Kind("password-in-address");

/// Finds the password of an address whose `://` begins at `at`.
pub(super) fn password(text: &[u8], at: usize) -> Option<Sighting> {
    if !text.get(at.checked_sub(1)?)?.is_ascii_alphanumeric() {
        return None;
    }
    let begin = at + 3;
    let line = text.get(begin..line_end(text, begin))?;
    let length = line
        .iter()
        .position(|byte| {
            byte.is_ascii_whitespace() || matches!(byte, b'/' | b'?' | b'"' | b'\'' | b'`' | b'\\')
        })
        .unwrap_or(line.len());
    let authority = line.get(..length)?;
    let Some(host) = memchr::memrchr(b'@', authority) else {
        return password_with_slash(line, length).map(|range| Sighting {
            kind: KIND,
            range: begin + range.start..begin + range.end,
            certainty: Certainty::Likely,
        });
    };
    let colon = memchr::memchr(b':', authority.get(..host.min(LONGEST_USER))?)?;
    let user = authority.get(..colon)?;
    let password = authority.get(colon + 1..host)?;
    if password.is_empty() || value::is_open(password) {
        return None;
    }
    let is_sample = value::is_sample_password(password) || user == password;
    let certainty = if is_sample {
        Certainty::Hinted
    } else {
        Certainty::Likely
    };
    Some(Sighting {
        kind: KIND,
        range: begin + colon + 1..begin + host,
        certainty,
    })
}

/// Finds the password of a data source whose `@tcp(` or the like begins at `at`: `user:password@tcp(host:3306)/name`.
pub(super) fn password_of_source(text: &[u8], at: usize) -> Option<Sighting> {
    let begin = line_start(text, at).max(at.saturating_sub(LONGEST_SOURCE));
    let line = text.get(begin..at)?;
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'=');
    let from = line.iter().rposition(ends).map_or(0, |before| before + 1);
    let colon = from + memchr::memchr(b':', line.get(from..)?)?;
    let password = line.get(colon + 1..)?;
    let is_one = !password.is_empty() && !value::is_open(password) && !value::is_sample_password(password);
    is_one.then_some(Sighting {
        kind: KIND,
        range: begin + colon + 1..at,
        certainty: Certainty::Likely,
    })
}

/// Finds a password that holds a slash which nobody escaped, where `slash` is the first of the line. What stands before the
/// slash is no port then, and the whole is random: the path of an address may hold an `@`, too.
fn password_with_slash(line: &[u8], slash: usize) -> Option<Range<usize>> {
    let begin = memchr::memchr(b':', line.get(..slash.min(LONGEST_USER))?)? + 1;
    let before = line.get(begin..slash)?;
    if line.get(slash) != Some(&b'/') || before.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let rest = line.get(begin..line.len().min(begin + LONGEST_SLASHED))?;
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'\\');
    let length = rest.iter().position(ends).unwrap_or(rest.len());
    let host = memchr::memrchr(b'@', rest.get(..length)?)?;
    value::is_random(rest.get(..host)?).then_some(begin..begin + host)
}

/// Finds the credentials after the scheme that stands at `start..end`.
pub(super) fn authorization(text: &[u8], start: usize, end: usize) -> Option<Sighting> {
    let before = start.checked_sub(1).and_then(|before| text.get(before));
    if before.is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let line = text.get(end..line_end(text, end))?;
    let length = line
        .iter()
        .position(|byte| {
            !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'/' | b'-' | b'='))
        })
        .unwrap_or(line.len());
    let credentials = line.get(..length)?;
    let scheme = text.get(start..end)?;
    let is_likely = if scheme.eq_ignore_ascii_case(b"basic ") {
        is_user_and_password(credentials)
    } else {
        length >= 20 && value::is_random(credentials)
    };
    // Prose speaks of bearers and tokens, too; a header is named on the line, or the value could not be a word.
    let is_hinted = length >= 8 && !value::is_blank(credentials) && {
        let named = text.get(line_start(text, start)..start)?.to_ascii_lowercase();
        memchr::memmem::find(&named, b"authorization").is_some()
    };
    let certainty = match (is_likely, is_hinted) {
        (true, _) => Certainty::Likely,
        (false, true) => Certainty::Hinted,
        (false, false) => return None,
    };
    Some(Sighting {
        kind: Kind("authorization"),
        range: end..end + length,
        certainty,
    })
}

/// Tells whether the text is `user:password` in base64.
pub(super) fn is_user_and_password(text: &[u8]) -> bool {
    let Ok(plain) = STANDARD.decode(text) else {
        return false;
    };
    text.len() >= 12
        && plain.contains(&b':')
        && plain.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ')
}
