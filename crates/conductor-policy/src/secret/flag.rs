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
    "mysql",
];

/// What a sighting rests on stands near it.
const LONGEST_USER: usize = 128;

/// No argument that is longer holds a password; many may overlap in one long word.
const LONGEST_ARGUMENT: usize = 2 * LONGEST_USER + value::LONGEST;

/// The options that matter stand at the beginning of a call.
const LONGEST_CALL: usize = 192;

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
    let word = text.get(start..end)?;
    if word.eq_ignore_ascii_case(b"mysql") {
        // Its password follows without a blank; with one, it is found by the option itself.
        let option = memchr::memmem::find(line.get(..line.len().min(LONGEST_CALL))?, b" -p")? + 3;
        let follows = line.get(option).is_some_and(|byte| !byte.is_ascii_whitespace());
        return follows
            .then(|| argument(text, end + option, |_| Some(0)))
            .flatten();
    }
    let before = text.get(line_start(text, start)..start)?;
    argument(text, end, |argument| match word {
        b" -u " | b" --user " => Some(colons(argument).next()? + 1),
        [b':', ..] => Some(colons(argument).nth(1)? + 1),
        [b' ', b'-', ..] => PROGRAMS
            .iter()
            .any(|program| memchr::memmem::find(before, program).is_some())
            .then_some(0),
        _ => Some(0),
    })
}

/// Judges the argument at `at`, of which the password is what stands behind the bytes that are to be skipped.
fn argument(text: &[u8], at: usize, skipped: impl FnOnce(&[u8]) -> Option<usize>) -> Option<Sighting> {
    let line = text.get(at..line_end(text, at).min(at + LONGEST_ARGUMENT))?;
    let quote = line.first().copied().filter(|byte| matches!(byte, b'"' | b'\''));
    let open = usize::from(quote.is_some());
    let argument = line.get(open..)?;
    let length = argument
        .iter()
        .position(|byte| quote.map_or(byte.is_ascii_whitespace(), |quote| *byte == quote))
        .unwrap_or(argument.len());
    let argument = argument.get(..length)?;
    let skipped = skipped(argument)?;
    let password = argument.get(skipped..)?;
    (value::is_random(password) || value::is_chosen(password)).then(|| Sighting {
        kind: Kind("password-on-command-line"),
        range: at + open + skipped..at + open + length,
        certainty: Certainty::Likely,
    })
}

fn colons(argument: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memchr_iter(b':', argument.get(..LONGEST_USER).unwrap_or(argument))
}
