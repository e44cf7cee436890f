//! Values that are assigned to a name which says that they are secret: `DB_PASSWORD=…`, `"token": "…"`, `<password>…`.
//!
//! The ways of assigning are those of programs, settings, markup and command lines. This module does not know
//! providers: see `form`.

use super::name::{Name, NameEnd, PASSWORD};
use super::{Certainty, Kind, Sighting, address, line_end, line_start, value};

/// Words that a secret's name holds; the sieve leads here by them.
pub(super) const WORDS: &[&str] = &[
    "pass", "pwd", "secret", "token", "key", "auth", "cred", "login", "_pat",
];

/// A shorter value is more likely a word about a secret than one.
const SHORTEST_HINT: usize = 6;
const LONGEST_NAME: usize = 64;
/// A bare value that is longer is cut; a quoted one goes on to its quote.
const LONGEST_BARE: usize = 4 * 1024;
/// A shorter key is more likely the name of a thing.
const SHORTEST_KEY: usize = 20;

/// Judges the name around the word that ends at `end`; returns where the name ends, too.
pub(super) fn at(text: &[u8], end: usize) -> (Option<Sighting>, usize) {
    let rest = text
        .get(end..text.len().min(end + LONGEST_NAME))
        .unwrap_or_default();
    let name_end = end + rest.iter().take_while(|byte| is_name(**byte)).count();
    (judge(text, end, name_end), name_end)
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn judge(text: &[u8], word_end: usize, name_end: usize) -> Option<Sighting> {
    let line = text.get(..line_end(text, name_end))?;
    let from = line_start(text, word_end).max(word_end.saturating_sub(LONGEST_NAME));
    // Most names are no assignment at all: look at what follows before anything else.
    let assigned = assignment(line, name_end)?;
    let before = text.get(from..word_end)?;
    let length = before
        .iter()
        .rev()
        .take_while(|byte| is_name(**byte) || **byte == b'.')
        .count();
    let name_start = word_end - length;
    let name = Name::parse(text.get(name_start..name_end)?)?;
    let is_in_place = match assigned.by {
        By::Sign | By::Pair => true,
        By::Markup => text[..name_start].ends_with(b"<") || assigned.name_is_quoted,
        By::Call => name.is_call,
        By::Space => may_stand_apart(line, from, name_start, name_end, &assigned),
    };
    let found = line.get(assigned.value.clone())?;
    let certainty = is_in_place
        .then(|| certainty(&name, found, &assigned))
        .flatten()?;
    let end = assigned.value.end;
    let more = if assigned.is_quoted {
        0
    } else {
        bare_length(line.get(end..line.len().min(end + LONGEST_BARE))?, assigned.by)
    };
    Some(Sighting {
        kind: Kind(name.kind),
        range: assigned.value.start..end + more,
        certainty,
    })
}

/// How a value follows its name.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum By {
    /// `=`, `:`, `:=`, `=>`.
    Sign,
    /// `"name", "value"`.
    Pair,
    /// `<name>value</name>`.
    Markup,
    /// `name("value")`.
    Call,
    /// `--name value`, `NAME 'value'`.
    Space,
}

struct Assigned {
    by: By,
    value: std::ops::Range<usize>,
    is_quoted: bool,
    /// Whether blanks stand around the sign.
    is_spaced: bool,
    sign: u8,
    name_is_quoted: bool,
}

/// Reads what follows a name that ends at `at`, up to the end of its line.
fn assignment(line: &[u8], at: usize) -> Option<Assigned> {
    let mut here = at;
    let mut name_is_quoted = false;
    for _ in 0..4 {
        match line.get(here) {
            Some(b'"' | b'\'' | b'`') => name_is_quoted = true,
            Some(b'\\' | b']' | b')' | b'?' | b'!') => {}
            Some(_) | None => break,
        }
        here += 1;
    }
    let sign_at = here + blanks(line, here);
    let sign = *line.get(sign_at)?;
    let next = line.get(sign_at + 1).copied().unwrap_or(b' ');
    let spaced = sign_at > here;
    let (by, after) = match (sign, next) {
        (b'=', b'=' | b'~') | (b':', b':') => return None,
        (b'=', b'>') | (b':', b'=') => (By::Sign, sign_at + 2),
        (b'=', _) => (By::Sign, sign_at + 1),
        (b':', _) => (By::Sign, after_type(line, sign_at + 1)),
        (b',', _) if name_is_quoted && !spaced => (By::Pair, sign_at + 1),
        (b'>', _) if !spaced => (By::Markup, sign_at + 1),
        (b'(', b'"' | b'\'') if !spaced => (By::Call, sign_at + 1),
        _ if spaced => (By::Space, sign_at),
        _ => return None,
    };
    let begin = after + blanks(line, after);
    let (value, is_quoted) = value_at(line, begin, by)?;
    (by != By::Pair || is_quoted).then_some(Assigned {
        by,
        is_spaced: spaced || begin > after,
        value,
        is_quoted,
        sign,
        name_is_quoted,
    })
}

/// Skips a type between `:` and ` = `.
fn after_type(line: &[u8], at: usize) -> usize {
    let rest = line.get(at..line.len().min(at + 48)).unwrap_or_default();
    let Some(length) = memchr::memmem::find(rest, b" = ") else {
        return at;
    };
    let is_type = rest[..length]
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b" _&'<>[]?.:|,*".contains(byte));
    if is_type { at + length + 3 } else { at }
}

/// Counts blanks; more of them than a table needs part the value from its name.
fn blanks(line: &[u8], at: usize) -> usize {
    line.get(at..)
        .unwrap_or_default()
        .iter()
        .take(32)
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count()
}

/// Reads a value: to the closing quote, to the next tag, or to what ends a bare word.
fn value_at(line: &[u8], at: usize, by: By) -> Option<(std::ops::Range<usize>, bool)> {
    let mut begin = at;
    let is_quote = |at: usize| matches!(line.get(at), Some(b'"' | b'\'' | b'`'));
    if matches!(line.get(begin), Some(b'b' | b'r' | b'u' | b'f' | b'@' | b'\\')) && is_quote(begin + 1) {
        begin += 1;
    }
    if is_quote(begin) {
        let quote = *line.get(begin)?;
        let is_escaped = begin > at && line.get(at) == Some(&b'\\');
        begin += 1;
        let end = if is_escaped { b'\\' } else { quote };
        if let Some(length) = memchr::memchr(end, line.get(begin..)?) {
            return Some((scheme_skipped(line, begin..begin + length), true));
        }
    }
    // Many names may share one long word: what is no secret costs no more than it takes to see that.
    let rest = line.get(begin..line.len().min(begin + value::JUDGED))?;
    let length = bare_length(rest, by);
    // What goes on like an expression is code, not a value.
    let is_code =
        by != By::Markup && matches!(rest.get(length), Some(b'(' | b'[' | b'{' | b'<')) && length > 0;
    (!is_code).then_some((scheme_skipped(line, begin..begin + length), false))
}

/// Counts the bytes before what ends a bare value.
fn bare_length(text: &[u8], by: By) -> usize {
    let ends = |byte: &u8| {
        if by == By::Markup {
            *byte == b'<'
        } else {
            ends_bare(*byte)
        }
    };
    text.iter().position(ends).unwrap_or(text.len())
}

fn ends_bare(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(
            byte,
            b'"' | b'\''
                | b'`'
                | b'\\'
                | b','
                | b';'
                | b'&'
                | b'('
                | b')'
                | b'['
                | b']'
                | b'{'
                | b'}'
                | b'<'
                | b'>'
        )
}

/// Leaves out `base64:` and the like before a value.
fn scheme_skipped(line: &[u8], range: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let has_scheme = line
        .get(range.clone())
        .is_some_and(|value| value.starts_with(b"base64:"));
    if has_scheme {
        range.start + 7..range.end
    } else {
        range
    }
}

/// Tells whether a value may follow its name after a mere blank: on a command line, in SQL, in a netrc file, in settings with a
/// name and a value on each line.
fn may_stand_apart(
    line: &[u8],
    from: usize,
    name_start: usize,
    name_end: usize,
    assigned: &Assigned,
) -> bool {
    let name = line.get(name_start..name_end).unwrap_or_default();
    let before = line.get(from..name_start).unwrap_or_default();
    let is_option = name.starts_with(b"--");
    let is_sql = assigned.is_quoted && name.eq_ignore_ascii_case(b"password");
    let is_netrc = name == b"password"
        && (before.iter().all(u8::is_ascii_whitespace) || memchr::memmem::find(before, b"login ").is_some());
    let is_header = assigned.is_quoted && name.eq_ignore_ascii_case(b"authorization");
    let is_setting = name.contains(&b'_')
        && before.iter().all(u8::is_ascii_whitespace)
        && assigned.value.len() >= SHORTEST_KEY
        && assigned.value.end == line.len();
    is_option || is_sql || is_netrc || is_header || is_setting
}

fn certainty(name: &Name, found: &[u8], assigned: &Assigned) -> Option<Certainty> {
    let found = found.get(..value::JUDGED).unwrap_or(found);
    // What nobody quotes is a variable if it begins like one; a quoted password may begin so, too.
    let judged = if assigned.is_quoted {
        value::without_sign(found)
    } else {
        found
    };
    if value::is_open(judged) || value::is_reference(found) || found.starts_with(b"-----") {
        return None;
    }
    let is_random = value::is_random(judged);
    let is_likely = match name.end {
        NameEnd::Secret => is_random,
        NameEnd::Key => is_random && opens_something(found),
        NameEnd::BareKey => is_random && opens_something(found) && !value::is_hex(found),
        NameEnd::Auth => address::is_user_and_password(found) || (found.len() >= 20 && is_random),
        NameEnd::Login => found.len() >= 32 && is_random,
    };
    if is_likely || (name.kind == PASSWORD && is_chosen(found, assigned)) {
        return Some(Certainty::Likely);
    }
    let is_assigned = match (assigned.by, assigned.sign) {
        (By::Sign, b'=') => assigned.is_quoted || !assigned.is_spaced,
        (By::Sign, _) => assigned.is_quoted || !assigned.is_spaced || found.iter().any(u8::is_ascii_digit),
        (By::Markup | By::Pair, _) => true,
        (By::Call | By::Space, _) => false,
    };
    let is_hinted = is_assigned
        && name.is_plain
        && !value::is_open(found)
        && String::from_utf8_lossy(found).chars().count() >= SHORTEST_HINT
        && !found.iter().any(u8::is_ascii_whitespace)
        && !value::is_sample(found)
        && !value::is_sample_password(found)
        // A bare word with dots is a place in somebody's code.
        && (assigned.is_quoted || !(found.contains(&b'.') && value::is_words(found)));
    is_hinted.then_some(Certainty::Hinted)
}

/// Tells whether the value of a password is one, though it is made of words. A bare word with dots is a place in somebody's
/// code, unless it stands where code does not.
fn is_chosen(found: &[u8], assigned: &Assigned) -> bool {
    let is_place = !assigned.is_quoted && assigned.by == By::Sign && found.contains(&b'.');
    value::is_chosen(found) && !is_place
}

/// Tells whether the value of a key can be one that opens something: long, no id, and no place in a registry.
fn opens_something(value: &[u8]) -> bool {
    value.len() >= SHORTEST_KEY && !value::is_uuid(value) && !value.contains(&b'\\')
}
