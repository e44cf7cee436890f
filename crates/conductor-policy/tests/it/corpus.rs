//! Reads the corpus and draws what its templates leave open, the same on every machine and in every run.
//!
//! It does not know any rule.

use std::collections::BTreeSet;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

const PLANTED: &str = include_str!("../../corpus/planted.txt");
const DECOYS: &str = include_str!("../../corpus/decoys.txt");
/// Written by somebody who had seen neither the rules nor the rest of the corpus, and committed before any rule met them.
const UNSEEN_PLANTED: &str = include_str!("../../corpus/unseen-planted.txt");
const UNSEEN_DECOYS: &str = include_str!("../../corpus/unseen-decoys.txt");

/// One file of the corpus.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) kind: &'static str,
    /// Where it lies in the tree; no two lie in one place.
    pub(crate) path: String,
    pub(crate) text: String,
    /// Where the secret stands in the text; absent in a decoy.
    pub(crate) secret: Option<Range<usize>>,
}

impl Item {
    pub(crate) fn secret_text(&self) -> Option<&str> {
        self.text.get(self.secret.clone()?)
    }

    /// Tells whether a line, counted from 1, holds part of the secret.
    pub(crate) fn is_secret_line(&self, line: usize) -> bool {
        let Some(secret) = &self.secret else { return false };
        let line_of = |at: usize| 1 + self.text[..at].matches('\n').count();
        (line_of(secret.start)..=line_of(secret.end)).contains(&line)
    }
}

pub(crate) fn planted() -> Vec<Item> {
    let mut items = read("planted", PLANTED);
    items.extend(read("unseen-planted", UNSEEN_PLANTED));
    items
}

pub(crate) fn decoys() -> Vec<Item> {
    let mut items = read("decoys", DECOYS);
    items.extend(read("unseen-decoys", UNSEEN_DECOYS));
    items
}

fn read(name: &str, source: &'static str) -> Vec<Item> {
    let mut kind = "";
    let mut items = Vec::new();
    for line in source.lines() {
        if let Some(opened) = line.strip_prefix("== ") {
            kind = opened;
        } else if !kind.is_empty() && !line.is_empty() {
            let (path, template) = line
                .split_once(" | ")
                .unwrap_or_else(|| panic!("no ` | ` in {line}"));
            let place = format!("{name}/{:03}/{path}", items.len());
            items.push(draw(kind, place, template));
        }
    }
    items
}

fn draw(kind: &'static str, path: String, template: &str) -> Item {
    let mut chance = Chance::from(path.as_str());
    let mut text = String::new();
    let (mut begin, mut end) = (None, None);
    let mut rest = template;
    while let Some(mark) = rest.chars().next() {
        let after = &rest[mark.len_utf8()..];
        rest = after;
        match mark {
            '⏎' => text.push('\n'),
            '⟦' => begin = Some(text.len()),
            '⟧' => end = Some(text.len()),
            '‹' => {
                let (order, tail) = after
                    .split_once('›')
                    .unwrap_or_else(|| panic!("no › in {template}"));
                rest = tail;
                chance.obey(order, &mut text);
            }
            plain => text.push(plain),
        }
    }
    text.push('\n');
    let secret = begin.zip(end).map(|(begin, end)| begin..end);
    Item {
        kind,
        path,
        text,
        secret,
    }
}

/// A small generator of even numbers' odds (splitmix64); no secret depends on its quality.
struct Chance(u64);

impl From<&str> for Chance {
    fn from(seed: &str) -> Self {
        Self(seed.bytes().fold(0xcbf2_9ce4_8422_2325, |state, byte| {
            (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }
}

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn letters(&mut self, alphabet: &str, count: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..count)
            .map(|_| letters[usize::try_from(self.next() % letters.len() as u64).expect("an index")])
            .collect()
    }

    /// Draws what the order asks for.
    fn obey(&mut self, order: &str, text: &mut String) {
        let digits = order.find(|c: char| c.is_ascii_digit()).unwrap_or(order.len());
        let (name, count) = order.split_at(digits);
        let count: usize = count.parse().unwrap_or(0);
        let alphabet = match name {
            "a" => [LOWER, UPPER, DIGITS].concat(),
            "l" => [LOWER, DIGITS].concat(),
            "u" => [UPPER, DIGITS].concat(),
            "c" => [LOWER, UPPER].concat(),
            "h" => "0123456789abcdef".into(),
            "H" => "0123456789ABCDEF".into(),
            "d" => DIGITS.into(),
            "b" => [LOWER, UPPER, DIGITS, "+/"].concat(),
            "s" => [LOWER, UPPER, DIGITS, "_-"].concat(),
            "t" => [UPPER, "234567"].concat(),
            "x" => "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L".into(),
            "uuid" => {
                let hex = self.letters("0123456789abcdef", 30);
                text.push_str(&format!(
                    "{}-{}-4{}-a{}-{}",
                    &hex[..8],
                    &hex[8..12],
                    &hex[12..15],
                    &hex[15..18],
                    &hex[18..]
                ));
                return;
            }
            "pem" => {
                let alphabet = [LOWER, UPPER, DIGITS, "+/"].concat();
                let lines: Vec<String> = (0..count).map(|_| self.letters(&alphabet, 64)).collect();
                text.push_str(&lines.join("\n"));
                return;
            }
            "basic" => {
                let password = self.letters(&[LOWER, UPPER, DIGITS].concat(), 18);
                text.push_str(&STANDARD.encode(format!("deploy:{password}")));
                return;
            }
            "claims" => {
                let subject = self.letters(DIGITS, 12);
                text.push_str(
                    &URL_SAFE_NO_PAD
                        .encode(format!(r#"{{"sub":"{subject}","name":"Ada","iat":1760000000}}"#)),
                );
                return;
            }
            unknown => panic!("the corpus asks for ‹{unknown}›, which nobody can draw"),
        };
        text.push_str(&self.letters(&alphabet, count));
    }
}

#[test]
fn the_corpus_is_as_large_as_the_bar_asks_and_every_item_is_whole() {
    let (planted, decoys) = (planted(), decoys());
    let kinds: BTreeSet<&str> = planted.iter().map(|item| item.kind).collect();
    assert!(planted.len() >= 200, "{} planted", planted.len());
    assert!(kinds.len() >= 40, "{} kinds", kinds.len());
    assert!(decoys.len() >= 200, "{} decoys", decoys.len());
    assert!(
        planted
            .iter()
            .all(|item| item.secret_text().is_some_and(|secret| secret.len() >= 8))
    );
    assert!(decoys.iter().all(|item| item.secret.is_none()));
    let left: Vec<&Item> = planted
        .iter()
        .chain(&decoys)
        .filter(|item| item.text.contains(['‹', '›', '⟦', '⟧', '⏎']))
        .collect();
    assert_eq!(left, [] as [&Item; 0]);
    println!(
        "{} secrets of {} kinds, {} decoys",
        planted.len(),
        kinds.len(),
        decoys.len()
    );
}

#[test]
fn the_same_corpus_is_drawn_again() {
    assert_eq!(planted(), planted());
    let secrets: BTreeSet<String> = planted()
        .iter()
        .filter_map(|item| item.secret_text().map(str::to_owned))
        .collect();
    assert_eq!(secrets.len(), planted().len(), "every secret is drawn once");
}
