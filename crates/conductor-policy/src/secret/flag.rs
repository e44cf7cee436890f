//! Passwords on command lines (`-u user:password`, `-p password`) and in password files (`host:5432:db:user:password`).
//!
//! Long options are names: see `named`. This module does not know any program's other options.

use super::{Certainty, Kind, Sighting, line_end, line_start, value};

/// What such a password stands after.
pub(super) const WORDS: &[&str] = &[
    " -u ",
    " --user ",
    " -p ",
    " -w ",
    " pass:",
    ":5432:",
    ":3306:",
    "identified by ",
];

/// What a sighting rests on stands near it.
const LONGEST_USER: usize = 128;

/// Programs whose `-p` or `-w` is a password; elsewhere it is a port or a path.
const PROGRAMS: &[&[u8]] = &[
    b"sshpass",
    b"docker login",
    b"podman login",
    b"az login",
    b"twine",
    b"ldap",
    b"mysql",
    b"unzip",
    b"zip ",
    b"helm",
];

/// Finds the password after the word at `start..end`.
pub(super) fn at(text: &[u8], start: usize, end: usize) -> Option<Sighting> {
    let line = text.get(end..line_end(text, end))?;
    let quote = line.first().copied().filter(|byte| matches!(byte, b'"' | b'\''));
    let open = usize::from(quote.is_some());
    let argument = line.get(open..)?;
    let length = argument
        .iter()
        .position(|byte| quote.map_or(byte.is_ascii_whitespace(), |quote| *byte == quote))
        .unwrap_or(argument.len());
    let argument = argument.get(..length)?;
    let word = text.get(start..end)?;
    let before = text.get(line_start(text, start)..start)?;
    let skipped = match word {
        b" -u " | b" --user " => colons(argument).next()? + 1,
        [b':', ..] => colons(argument).nth(1)? + 1,
        [b' ', b'-', ..] => {
            let is_known = PROGRAMS
                .iter()
                .any(|program| memchr::memmem::find(before, program).is_some());
            is_known.then_some(0)?
        }
        _ => 0,
    };
    let password = argument.get(skipped..)?;
    (value::is_random(password) && !value::is_open(password)).then(|| Sighting {
        kind: Kind("password-on-command-line"),
        range: end + open + skipped..end + open + length,
        certainty: Certainty::Likely,
    })
}

fn colons(argument: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memchr_iter(b':', argument.get(..LONGEST_USER).unwrap_or(argument))
}
