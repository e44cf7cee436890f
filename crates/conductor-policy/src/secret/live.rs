//! Finds the secrets of this instance word for word, also as base64, hex, or escaped for URLs and JSON.
//!
//! Base64 is found at each of its three alignments, so that a secret inside a longer encoded text is found, too, and in
//! pieces, so that one is found that lines wrap. A secret of several lines is known by each of its long lines. This module
//! does not know where secrets come from.

use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
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

/// The shapes twice, because the library is fast at finding the first of few short ones and thorough at finding all.
#[derive(Clone)]
struct Automata {
    /// Finds how a shape begins: many begin alike, and short ones fit into a small table.
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
                .filter(|line| line.len() >= SHORTEST_LINE && !is_armour(line));
            if secret.contains('\n') {
                lines.for_each(|line| shapes_of(line, &mut shapes));
            }
            shapes_of(secret, &mut shapes);
        }
        // A shape with a line break would have to be held back across lines; its lines are known already.
        shapes.retain(|shape: &Vec<u8>| shape.len() >= SHORTEST && !shape.contains(&b'\n'));
        let longest = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let automata = (!shapes.is_empty()).then(|| Automata::new(&shapes));
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
    fn new(shapes: &BTreeSet<Vec<u8>>) -> Self {
        let begins: BTreeSet<&[u8]> = shapes.iter().map(|shape| &shape[..SHORTEST]).collect();
        let first = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .kind(Some(AhoCorasickKind::DFA))
            .build(begins)
            .expect("an instance has few secrets");
        let all = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(shapes)
            .expect("an instance has few secrets");
        Self { first, all }
    }

    /// Finds everything on each line where something may begin; no shape reaches over the end of a line.
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

/// Tells the head and the foot of a key from its lines: everybody may say those.
fn is_armour(line: &str) -> bool {
    line.ends_with("-----") && (line.starts_with("-----BEGIN ") || line.starts_with("-----END "))
}

/// What the ways to escape a URL leave bare beside letters and digits: as the standard says, as Python's `quote`, as
/// `encodeURIComponent`, and as `encodeURI`.
const BARE: [&[u8]; 4] = [b"-._~", b"-._~/", b"-._~!*'()", b"-._~!*'();,/?:@&=+$#"];
/// What writers of JSON spell by its number though they need not: nothing, as for HTML, as for attributes, as .NET does.
const NUMBERED: [&str; 4] = ["", "<>&", "<>&'", "<>&'\"+`"];
/// How long the pieces are that base64 is known by where lines wrap it, and how far apart they begin. They overlap, so
/// that those of one line are one find.
const PIECE: usize = 16;
const STRIDE: usize = 8;

fn shapes_of(secret: &str, shapes: &mut BTreeSet<Vec<u8>>) {
    let bytes = secret.as_bytes();
    shapes.insert(bytes.to_vec());
    for is_upper in [false, true] {
        for bare in BARE {
            shapes.insert(escaped(bytes, is_upper, bare, b"%20"));
            shapes.insert(escaped(bytes, is_upper, bare, b"+"));
        }
        for marks in NUMBERED {
            let some = json(secret, is_upper, &|letter| marks.contains(letter));
            let all = json(secret, is_upper, &|letter| {
                marks.contains(letter) || !letter.is_ascii()
            });
            for text in [some, all] {
                shapes.insert(text.replace('/', "\\/").into_bytes());
                shapes.insert(text.into_bytes());
            }
        }
        shapes.insert(hex(bytes, is_upper));
    }
    for before in 0..3 {
        for shape in [
            aligned(&STANDARD_NO_PAD, bytes, before),
            aligned(&URL_SAFE_NO_PAD, bytes, before),
        ] {
            // Of a secret of several lines, its lines have their own pieces.
            if !secret.contains('\n') {
                shapes.extend(shape.windows(PIECE).step_by(STRIDE).map(<[u8]>::to_vec));
                shapes.extend(shape.windows(PIECE).next_back().map(<[u8]>::to_vec));
            }
            shapes.insert(shape);
        }
    }
}

/// Writes a secret as it stands between the quotes of JSON, some of its letters by their numbers.
fn json(secret: &str, is_upper: bool, is_numbered: &dyn Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(secret.len());
    for letter in secret.chars() {
        if is_numbered(letter) {
            for unit in &*letter.encode_utf16(&mut [0; 2]) {
                out.push_str(&if is_upper {
                    format!("\\u{unit:04X}")
                } else {
                    format!("\\u{unit:04x}")
                });
            }
        } else {
            let quoted = serde_json::Value::from(letter.to_string()).to_string();
            out.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
        }
    }
    out
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

fn escaped(bytes: &[u8], is_upper: bool, bare: &[u8], blank: &[u8]) -> Vec<u8> {
    bytes
        .iter()
        .flat_map(|byte| match byte {
            b' ' => blank.to_vec(),
            byte if byte.is_ascii_alphanumeric() || bare.contains(byte) => vec![*byte],
            byte => [b"%".to_vec(), hex(&[*byte], is_upper)].concat(),
        })
        .collect()
}

fn hex(bytes: &[u8], is_upper: bool) -> Vec<u8> {
    let digits: &[u8; 16] = if is_upper {
        b"0123456789ABCDEF"
    } else {
        b"0123456789abcdef"
    };
    bytes
        .iter()
        .flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]])
        .collect()
}
