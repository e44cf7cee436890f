//! Finds secrets in text: providers' tokens by their published form, keys, passwords in addresses, assigned values.
//!
//! One sieve looks for the words that a secret can begin with or be called; what it points at is then confirmed by
//! matching that is anchored there and bounded, so that no input takes more than linear time. A sighting depends on
//! its own line and on a bounded part of it only ([`REACH`]), private keys excepted; streams rely on that.
//!
//! This module does not know what follows from a sighting, nor the secrets of this instance: see [`live`].

pub mod live;
mod address;
pub(crate) mod armour;
mod flag;
mod form;
mod name;
mod named;
mod sieve;
mod value;

use std::ops::Range;
use std::sync::LazyLock;

use sieve::{Case, Sieve};

/// How far after its first byte a secret can reach, private keys excepted.
pub const REACH: usize = 8 * 1024;
/// How far before its first byte the reason for a sighting can stand.
pub const CONTEXT: usize = 256;

/// A secret, or what is taken for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// What it is.
    pub kind: Kind,
    /// Where it stands, in bytes.
    pub range: Range<usize>,
    /// How sure that is.
    pub certainty: Certainty,
}

/// What kind of secret it is, as a stable word: `github-token`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub(crate) &'static str);

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// How sure a sighting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Named like a secret or shaped a little like one; enough to redact it, not to accuse anybody.
    Hinted,
    /// Named like a secret, and random like one.
    Likely,
    /// The form that a provider publishes.
    Certain,
}

/// Finds what is at least [`Certainty::Likely`], for judging a change.
pub fn scan(text: &[u8]) -> Vec<Sighting> {
    sight(text)
        .into_iter()
        .filter(|sighting| sighting.certainty >= Certainty::Likely)
        .collect()
}

/// What a word of the sieve leads to.
enum Lead {
    Form(usize),
    Name,
    Address,
    Source,
    Armour,
    Scheme,
    Flag,
}

struct Leads {
    words: Sieve,
    leads: Vec<(Lead, usize)>,
}

static LEADS: LazyLock<Leads> = LazyLock::new(|| {
    let mut words = Vec::new();
    let mut leads = Vec::new();
    let mut lead = |word: &'static str, case: Case, lead: Lead| {
        words.push((word, case));
        leads.push((lead, word.len()));
    };
    for (word, index) in form::words() {
        lead(word, Case::Exact, Lead::Form(index));
    }
    for word in named::WORDS {
        lead(word, Case::Any, Lead::Name);
    }
    for word in address::SCHEMES {
        lead(word, Case::Any, Lead::Scheme);
    }
    for word in flag::WORDS {
        lead(word, Case::Any, Lead::Flag);
    }
    for word in address::SOURCES {
        lead(word, Case::Exact, Lead::Source);
    }
    lead("://", Case::Exact, Lead::Address);
    lead(armour::WORD, Case::Any, Lead::Armour);
    Leads {
        words: Sieve::new(words),
        leads,
    }
});

/// Finds everything, sorted, none overlapping another.
pub(crate) fn sight(text: &[u8]) -> Vec<Sighting> {
    sight_by(text, Keys::Whole)
}

/// Finds what stands in text as if nothing in it were a private key.
pub(crate) fn sight_in_keys(text: &[u8]) -> Vec<Sighting> {
    sight_by(text, Keys::Text)
}

/// What a private key is to whoever looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// One secret, whatever stands in it.
    Whole,
    /// Text like any other.
    Text,
}

fn sight_by(text: &[u8], keys: Keys) -> Vec<Sighting> {
    let leads = &*LEADS;
    let mut found = Vec::new();
    // Behind a key everything begins anew: a stream has forgotten the key by then.
    let mut key_until = 0;
    let mut named_until = 0;
    leads.words.find(text, |word, at| {
        let (lead, length) = &leads.leads[word];
        // What stands in a key is part of it. Looking for armour again would make many keys take quadratic time.
        let Some(start) = at.checked_sub(key_until) else {
            return;
        };
        let text = &text[key_until..];
        let end = start + length;
        let sighting = match lead {
            Lead::Form(index) => form::at(*index, text, start),
            // A name may hold several of the words; it is judged once.
            Lead::Name if key_until + end <= named_until => None,
            Lead::Name => {
                let (sighting, until) = named::at(text, end);
                named_until = key_until + until;
                sighting
            }
            Lead::Address => address::password(text, start),
            Lead::Source => address::password_of_source(text, start),
            Lead::Scheme => address::authorization(text, start, end),
            Lead::Flag => flag::at(text, start, end),
            Lead::Armour if keys == Keys::Text => None,
            Lead::Armour => armour::at(text, start),
        };
        if let Some(mut sighting) = sighting {
            sighting.range = key_until + sighting.range.start..key_until + sighting.range.end;
            if sighting.kind == armour::KIND {
                key_until = sighting.range.end;
            }
            found.push(sighting);
        }
    });
    merge(found)
}

/// Joins what overlaps; the surer kind names the whole. A private key stays by itself, because a stream can know its
/// beginning long before its end.
pub(crate) fn merge(mut found: Vec<Sighting>) -> Vec<Sighting> {
    found.sort_by_key(|sighting| (sighting.range.start, std::cmp::Reverse(sighting.range.end)));
    let mut merged: Vec<Sighting> = Vec::with_capacity(found.len());
    for next in found {
        match merged.last_mut() {
            Some(last) if next.range.start < last.range.end && next.kind == armour::KIND => {
                if last.kind != armour::KIND {
                    last.range.end = next.range.start;
                    if last.range.is_empty() {
                        merged.pop();
                    }
                    merged.push(next);
                }
            }
            Some(last) if next.range.start < last.range.end && last.kind == armour::KIND => {}
            Some(last) if next.range.start < last.range.end => {
                last.range.end = last.range.end.max(next.range.end);
                if next.certainty > last.certainty {
                    last.kind = next.kind;
                    last.certainty = next.certainty;
                }
            }
            Some(_) | None => merged.push(next),
        }
    }
    merged
}

/// Returns where the line that `at` stands in ends, or where its bounded part does.
fn line_end(text: &[u8], at: usize) -> usize {
    let limit = text.len().min(at + REACH);
    text.get(at..limit)
        .and_then(|rest| memchr::memchr2(b'\n', b'\r', rest))
        .map_or(limit, |length| at + length)
}

/// Returns where the line that `at` stands in begins, or where its bounded part does.
fn line_start(text: &[u8], at: usize) -> usize {
    let limit = at.saturating_sub(CONTEXT);
    text.get(limit..at)
        .and_then(|before| memchr::memrchr2(b'\n', b'\r', before))
        .map_or(limit, |length| limit + length + 1)
}
