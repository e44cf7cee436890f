//! Finds the secrets of this instance word for word, also as base64, hex, or escaped for URLs and JSON.
//!
//! Base64 is found at each of its three alignments, so that a secret inside a longer encoded text is found, too. A
//! secret of several lines is known by each of its long lines. This module does not know where secrets come from.

use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::{Certainty, Kind, Sighting};

/// Shorter secrets would redact ordinary words.
pub const SHORTEST: usize = 8;
/// A line of a longer secret counts by itself from this length on.
const SHORTEST_LINE: usize = 16;

/// The secrets of this instance; prints as their number.
#[derive(Clone)]
pub struct LiveSecrets {
    automata: Option<Automata>,
    count: usize,
    longest: usize,
}

/// The same shapes twice, because the library is fast at finding one and thorough at finding all.
#[derive(Clone)]
struct Automata {
    first: AhoCorasick,
    all: AhoCorasick,
}

impl std::fmt::Debug for LiveSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LiveSecrets({})", self.count)
    }
}

impl LiveSecrets {
    /// Learns secrets; those shorter than [`SHORTEST`] bytes are left out.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut count = 0;
        let mut shapes = BTreeSet::new();
        for secret in secrets
            .into_iter()
            .map(str::trim)
            .filter(|secret| secret.len() >= SHORTEST)
        {
            count += 1;
            let lines = secret
                .lines()
                .map(str::trim)
                .filter(|line| line.len() >= SHORTEST_LINE);
            if secret.contains('\n') {
                lines.for_each(|line| shapes_of(line, &mut shapes));
            }
            shapes_of(secret, &mut shapes);
        }
        // A shape with a line break would have to be held back across lines; its lines are known already.
        shapes.retain(|shape: &Vec<u8>| shape.len() >= SHORTEST && !shape.contains(&b'\n'));
        let longest = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let automaton = |kind| {
            AhoCorasick::builder()
                .match_kind(kind)
                .build(&shapes)
                .expect("an instance has few secrets")
        };
        let automata = (!shapes.is_empty()).then(|| Automata {
            first: automaton(MatchKind::LeftmostFirst),
            all: automaton(MatchKind::Standard),
        });
        Self {
            automata,
            count,
            longest,
        }
    }

    /// Returns the length of the longest shape, which a stream must be able to hold back.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Finds every place where a secret stands, overlapping ones too.
    pub fn sight<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Sighting> + 'a {
        self.automata
            .iter()
            .flat_map(move |automata| automata.hits(text))
            .map(|range| Sighting {
                kind: Kind("live-secret"),
                range,
                certainty: Certainty::Certain,
            })
    }
}

impl Automata {
    /// Finds everything on each line where something is; no shape reaches over the end of a line.
    fn hits<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
        let mut done = 0;
        let lines = std::iter::from_fn(move || {
            let begin = self.first.find(Input::new(text).range(done..))?.start();
            done = memchr::memchr(b'\n', &text[begin..]).map_or(text.len(), |length| begin + length);
            Some(Input::new(text).range(begin..done))
        });
        lines.flat_map(|line| self.all.find_overlapping_iter(line).map(|hit| hit.range()))
    }
}

fn shapes_of(secret: &str, shapes: &mut BTreeSet<Vec<u8>>) {
    let bytes = secret.as_bytes();
    let json = serde_json::Value::from(secret).to_string();
    let json = json
        .trim_start_matches('"')
        .strip_suffix('"')
        .unwrap_or(&json)
        .to_owned();
    shapes.insert(bytes.to_vec());
    shapes.insert(json.replace('/', "\\/").into_bytes());
    shapes.insert(json.into_bytes());
    for upper in [false, true] {
        shapes.insert(escaped(bytes, upper, &|byte| {
            !byte.is_ascii_alphanumeric() && !b"-._~".contains(&byte)
        }));
        shapes.insert(hex(bytes, upper));
    }
    for before in 0..3 {
        shapes.insert(aligned(&STANDARD_NO_PAD, bytes, before));
        shapes.insert(aligned(&URL_SAFE_NO_PAD, bytes, before));
    }
}

/// Encodes as it looks after `before` other bytes, without the characters that those and what follows would change.
fn aligned(engine: &impl base64::Engine, bytes: &[u8], before: usize) -> Vec<u8> {
    let padded: Vec<u8> = std::iter::repeat_n(0, before)
        .chain(bytes.iter().copied())
        .collect();
    let whole = engine.encode(&padded).into_bytes();
    let begin = (before * 8).div_ceil(6);
    let end = padded.len() * 8 / 6;
    whole.get(begin..end).unwrap_or_default().to_vec()
}

fn escaped(bytes: &[u8], upper: bool, needs: &dyn Fn(u8) -> bool) -> Vec<u8> {
    bytes
        .iter()
        .flat_map(|byte| {
            if needs(*byte) {
                let mut out = vec![b'%'];
                out.extend(hex(&[*byte], upper));
                out
            } else {
                vec![*byte]
            }
        })
        .collect()
}

fn hex(bytes: &[u8], upper: bool) -> Vec<u8> {
    let digits: &[u8; 16] = if upper {
        b"0123456789ABCDEF"
    } else {
        b"0123456789abcdef"
    };
    bytes
        .iter()
        .flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]])
        .collect()
}
