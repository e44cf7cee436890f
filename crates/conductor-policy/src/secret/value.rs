//! Judges a value by itself: left open, a sample, words, or random like a secret.
//!
//! This module does not know what the value is called or where it stands.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// Longer values are data.
pub(super) const LONGEST: usize = 1024;
/// What so much of a value is, all of it is.
pub(super) const JUDGED: usize = 512;

/// What content addresses and references begin with; they name a thing, and may stand where a secret is named.
const REFERENCES: [&[u8]; 16] = [
    b"sha1:",
    b"sha1-",
    b"sha256:",
    b"sha256-",
    b"sha384-",
    b"sha512:",
    b"sha512-",
    b"md5:",
    b"blake3:",
    b"arn:",
    b"urn:",
    b"vault:",
    b"op:",
    b"http:",
    b"https:",
    b"projects/",
];

/// Words that say that a real value belongs here.
static SAMPLE: LazyLock<AhoCorasick> = LazyLock::new(|| {
    words(&[
        "changeme",
        "change-me",
        "change_me",
        "placeholder",
        "redacted",
        "your-",
        "your_",
        "insert",
        "dummy",
        "fake",
        "sample",
        "not-a-",
        "replace",
        "-here",
        "_here",
    ])
});
static EXAMPLE: LazyLock<AhoCorasick> = LazyLock::new(|| words(&["example"]));

fn words(words: &[&str]) -> AhoCorasick {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(words)
        .expect("a few short words make a small automaton")
}

/// Passwords that everybody has.
const COMMON: [&[u8]; 24] = [
    b"password",
    b"passwd",
    b"pass",
    b"pwd",
    b"pw",
    b"secret",
    b"token",
    b"root",
    b"admin",
    b"guest",
    b"user",
    b"username",
    b"postgres",
    b"mysql",
    b"test",
    b"testing",
    b"foo",
    b"bar",
    b"foobar",
    b"default",
    b"123456",
    b"12345678",
    b"letmein",
    b"qwerty",
];

/// Tells whether a token holds nothing: `xxxxxxxx`, `00000000`, or the word "example".
pub(super) fn is_blank(token: &[u8]) -> bool {
    const RUN: usize = 6;
    let is_run = token.windows(RUN).any(|run| {
        matches!(
            run.first(),
            Some(b'x' | b'X' | b'*' | b'.' | b'0' | b'_' | b'-' | b'#')
        ) && run.iter().all(|byte| Some(byte) == run.first())
    });
    is_run || EXAMPLE.is_match(token)
}

/// Tells whether a token counts up: `abcdefgh`, `1234567890`. Somebody typed it; it may still be what they use.
pub(super) fn is_counted(token: &[u8]) -> bool {
    const ASCENT: usize = 8;
    token.windows(ASCENT).any(|run| {
        run.windows(2).all(|pair| match pair {
            [b'9', b'0'] => true,
            [before, byte] => byte.is_ascii_alphanumeric() && byte.checked_sub(1) == Some(*before),
            _ => false,
        })
    })
}

/// What stands where something else is to be put in.
const OPEN: [&[u8]; 6] = [b"${", b"{{", b"$(", b"%s", b"%v", b"..."];

/// Tells whether a value is left open for somebody or something else to fill in.
pub(super) fn is_open(value: &[u8]) -> bool {
    let first = value.first().copied().unwrap_or(b' ');
    matches!(
        first,
        b'$' | b'%' | b'<' | b'{' | b'[' | b'*' | b'=' | b'(' | b'#'
    ) || OPEN
        .iter()
        .any(|open| memchr::memmem::find(value, open).is_some())
}

/// Leaves out the sign at the beginning that a variable has, and a password may have, unless it surely opens a place.
pub(super) fn without_sign(value: &[u8]) -> &[u8] {
    match value {
        [b'$' | b'%' | b'[' | b'*' | b'(' | b'#', rest @ ..]
            if !OPEN.iter().any(|open| value.starts_with(open)) =>
        {
            rest
        }
        _ => value,
    }
}

/// Tells whether a value is a UUID; those name things.
pub(super) fn is_uuid(value: &[u8]) -> bool {
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let mut bytes = value.iter().enumerate();
    value.len() == 36
        && bytes.all(|(at, byte)| {
            if is_dash(at) {
                *byte == b'-'
            } else {
                byte.is_ascii_hexdigit()
            }
        })
}

/// Tells whether a value has the form of a digest.
pub(super) fn is_hex(value: &[u8]) -> bool {
    value.iter().all(u8::is_ascii_hexdigit)
}

/// Tells whether a password is one of those that samples are written with.
pub(super) fn is_sample_password(value: &[u8]) -> bool {
    COMMON.iter().any(|common| value.eq_ignore_ascii_case(common)) || is_sample(value) || is_open(value)
}

/// Tells whether the value says itself that it is none.
pub(super) fn is_sample(value: &[u8]) -> bool {
    is_blank(value) || is_counted(value) || SAMPLE.is_match(value)
}

/// Tells whether the value names a thing instead of being one: an address, a digest, a place in a vault.
pub(super) fn is_reference(value: &[u8]) -> bool {
    REFERENCES.iter().any(|begin| {
        value
            .get(..begin.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(begin))
    }) || memchr::memmem::find(value, b"::").is_some()
}

/// Tells whether the value is random like a secret: no words, no reference, not open, letters and digits mixed.
pub(super) fn is_random(value: &[u8]) -> bool {
    (8..=LONGEST).contains(&value.len())
        && value.iter().all(u8::is_ascii_graphic)
        && !is_open(value)
        && !is_sample(value)
        && !is_reference(value)
        && !is_words(value)
        && is_varied(value)
}

/// Words of passwords that stand in tests and manuals.
static TYPICAL: LazyLock<AhoCorasick> =
    LazyLock::new(|| words(&["passw", "secret", "test", "demo", "token", "admin"]));

/// Tells whether somebody chose this for a password: words, but with small and large letters, digits and signs in one piece,
/// and nothing that code or an address would be written with.
pub(super) fn is_chosen(value: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| value.iter().any(is);
    (10..=64).contains(&value.len())
        && value
            .iter()
            .all(|byte| byte.is_ascii_graphic() && !b"/\\(){}[]<>\"'`;,$=".contains(byte))
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_punctuation)
        && !is_sample(value)
        && !is_reference(value)
        && !TYPICAL.is_match(value)
}

/// Tells whether the value is made of words, numbers and what stands between them.
pub(super) fn is_words(value: &[u8]) -> bool {
    value.split(|byte| !byte.is_ascii_alphanumeric()).all(is_word)
}

fn is_word(part: &[u8]) -> bool {
    let letters = part.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let digits = part.len() - letters;
    let (word, number) = part.split_at(letters);
    if !number.iter().all(u8::is_ascii_digit) {
        return false;
    }
    match (letters, digits) {
        (_, 0) => !is_erratic(word),
        (0, digits) => digits <= 12,
        (1 | 2, digits) => digits <= 3 && word.iter().all(u8::is_ascii_lowercase),
        (_, digits) => digits <= 4 && !is_erratic(word),
    }
}

/// Tells whether the case changes too often for words, however they are joined.
fn is_erratic(word: &[u8]) -> bool {
    let changes = word
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()))
        .count();
    word.len() >= 4 && changes * 5 > word.len()
}

fn is_varied(value: &[u8]) -> bool {
    let mut seen = [false; 128];
    for byte in value {
        if let Some(place) = seen.get_mut(usize::from(*byte)) {
            *place = true;
        }
    }
    let distinct = seen.iter().filter(|is_seen| **is_seen).count();
    let least = match value.len() {
        0..16 => value.len() / 2 + 1,
        16..32 => 8,
        _ => 10,
    };
    let has = |is: fn(&u8) -> bool| value.iter().any(is);
    distinct >= least && has(u8::is_ascii_alphabetic) && (has(u8::is_ascii_digit) || value.len() >= 16)
}
