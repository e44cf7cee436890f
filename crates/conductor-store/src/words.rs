//! Decides which words a record is found by, and which a search asks for: one answer for every store.
//!
//! Databases split text each in their own way, so none of them is let near it: they keep and compare the words that are
//! made here, which are letters, digits, `_` and `=` alone. What stands beside the text (run, actor, day, …) is kept as
//! words of a form that no text has, so that one index answers for all of it. This module does not know where words are
//! kept.

use std::collections::BTreeSet;

use conductor_domain::id::RepoId;
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{Record, RunRow, StreamId};
use conductor_port::search::RecordFilter;
use serde_json::Value;

/// The longest word; what is longer is known by its beginning.
const LONGEST: usize = 64;
/// The longest name that is kept beside the text.
const LONGEST_NAME: usize = 200;
/// The most bytes of words that one record is found by; PostgreSQL keeps no more than a megabyte of them.
const MOST: usize = 128 * 1024;
/// The shortest beginning that stands for all words which begin so: shorter ones would be half of the index.
const SHORTEST_BEGINNING: usize = 3;
/// A larger number is a time, by which nobody searches in microseconds; every record would have words of its own.
const LARGEST_NUMBER: u64 = 1_000_000_000_000;
/// The days that are told apart, from 1970 on for 179 years.
const LAST_DAY: i64 = 0xFFFF;
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// What a run's records belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) project: String,
    pub(crate) repo: RepoId,
}

impl Home {
    pub(crate) fn of(row: &RunRow) -> Self {
        Self {
            project: row.project.clone(),
            repo: row.repo,
        }
    }
}

/// A word that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) word: String,
    /// Whether all words that begin like it will do.
    pub(crate) is_beginning: bool,
}

/// What a filter asks of the words of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Nothing: every record fits.
    Everything,
    /// What no record has.
    Nothing,
    /// One term of each group.
    Terms(Vec<Vec<Term>>),
}

/// The words that a record is found by.
pub(crate) fn of(record: &Record, home: Option<&Home>) -> BTreeSet<String> {
    let mut words = BTreeSet::from([
        tag("stream", &record.stream),
        tag("actor", &record.actor),
        tag("type", &record.actor_type),
        tag("kind", &record.kind),
        tag("class", &record.class),
    ]);
    words.extend(days_of(record.at));
    if let Some(home) = home {
        words.insert(tag("project", &home.project));
        words.insert(tag("repo", &home.repo.to_string()));
    }
    let mut left = MOST;
    let run = record.stream.strip_prefix("run/").unwrap_or_default();
    for text in [&record.kind, &record.actor, &record.cause, run] {
        take_in(text, &mut words, &mut left);
    }
    match serde_json::from_str(&record.payload) {
        Ok(payload) => take_in_values(&payload, &mut words, &mut left),
        Err(_) => take_in(&record.payload, &mut words, &mut left),
    }
    words
}

/// What a filter asks of the words of a record.
pub(crate) fn asked(filter: &RecordFilter) -> Asked {
    let mut groups = Vec::new();
    if !filter.words.is_empty() {
        groups = terms(&filter.words);
        if groups.is_empty() {
            return Asked::Nothing;
        }
    }
    let exactly = |name: &str, value: Option<&str>| {
        value.map(|value| {
            vec![Term {
                word: tag(name, value),
                is_beginning: false,
            }]
        })
    };
    let stream = filter.stream.as_ref().map(StreamId::as_key);
    let repo = filter.repo.map(|repo| repo.to_string());
    groups.extend(exactly("stream", stream.as_deref()));
    groups.extend(exactly("project", filter.project.as_deref()));
    groups.extend(exactly("repo", repo.as_deref()));
    groups.extend(exactly("actor", filter.actor.as_deref()));
    groups.extend(exactly("type", filter.actor_type.as_deref()));
    groups.extend(exactly("kind", filter.kind.as_deref()));
    groups.extend(exactly("class", filter.class.as_deref()));
    if filter.from.is_some() || filter.until.is_some() {
        groups.push(days_between(filter.from, filter.until));
    }
    if groups.is_empty() {
        Asked::Everything
    } else {
        Asked::Terms(groups)
    }
}

impl Asked {
    /// Tells whether a record with these words fits.
    pub(crate) fn fits(&self, words: &BTreeSet<String>) -> bool {
        let has = |term: &Term| {
            if term.is_beginning {
                let first = words.range(term.word.clone()..).next();
                first.is_some_and(|word| word.starts_with(&term.word))
            } else {
                words.contains(&term.word)
            }
        };
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Terms(groups) => groups.iter().all(|group| group.iter().any(has)),
        }
    }
}

fn take_in_values(value: &Value, words: &mut BTreeSet<String>, left: &mut usize) {
    match value {
        Value::String(text) => take_in(text, words, left),
        Value::Number(number) if number.as_u64().is_some_and(|number| number < LARGEST_NUMBER) => {
            take_in(&number.to_string(), words, left);
        }
        Value::Array(values) => values.iter().for_each(|value| take_in_values(value, words, left)),
        Value::Object(fields) => fields
            .values()
            .for_each(|value| take_in_values(value, words, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Adds every word of a text, and every two that belong together.
fn take_in(text: &str, words: &mut BTreeSet<String>, left: &mut usize) {
    for group in groups(text) {
        let pairs = pairs(&group);
        for word in group.into_iter().chain(pairs) {
            if word.len() > *left {
                return;
            }
            let size = word.len();
            if words.insert(word) {
                *left -= size;
            }
        }
    }
}

/// Makes one word of every two that belong together.
fn pairs(group: &[String]) -> Vec<String> {
    group.windows(2).map(|pair| pair.join("_")).collect()
}

/// Splits a text into words, those together that belong together.
fn groups(text: &str) -> Vec<Vec<String>> {
    let (mut groups, mut group, mut word) = (Vec::new(), Vec::new(), String::new());
    // How many other characters came since the last word; a space parts like many.
    let mut between = 0_u32;
    for character in text.chars() {
        if character.is_alphanumeric() {
            if word.is_empty() && between > 1 && !group.is_empty() {
                groups.push(std::mem::take(&mut group));
            }
            between = 0;
            word.extend(character.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            group.push(cut(std::mem::take(&mut word)));
        }
        between = between.saturating_add(if character.is_whitespace() { 2 } else { 1 });
    }
    if !word.is_empty() {
        group.push(cut(word));
    }
    groups.push(group);
    groups.retain(|group| !group.is_empty());
    groups
}

fn cut(word: String) -> String {
    match word.char_indices().nth(LONGEST) {
        Some((end, _)) => word[..end].to_owned(),
        None => word,
    }
}

fn terms(words: &str) -> Vec<Vec<Term>> {
    let mut terms = Vec::new();
    for chunk in words.split_whitespace() {
        let mut groups = groups(chunk);
        let last = groups.pop();
        let wants_beginning = chunk.ends_with('*');
        let of_group = |group: &[String]| -> Vec<String> {
            match group {
                [word] => vec![word.clone()],
                several => pairs(several),
            }
        };
        for group in groups {
            terms.extend(of_group(&group).into_iter().map(|word| Term {
                word,
                is_beginning: false,
            }));
        }
        let Some(last) = last else { continue };
        let of_last = of_group(&last);
        let count = of_last.len();
        terms.extend((1..).zip(of_last).map(|(n, word)| Term {
            is_beginning: wants_beginning && n == count && word.chars().count() >= SHORTEST_BEGINNING,
            word,
        }));
    }
    terms.into_iter().map(|term| vec![term]).collect()
}

/// A word that no text has: what stands beside it. Only what a database could take for something else is written anew.
fn tag(name: &str, value: &str) -> String {
    let mut tag = format!("{name}=");
    for character in value.chars().take(LONGEST_NAME) {
        if character.is_ascii_lowercase() || character.is_ascii_digit() {
            tag.push(character);
        } else {
            tag.push_str(&format!("={:x}=", u32::from(character)));
        }
    }
    tag
}

fn day(at: Timestamp) -> i64 {
    at.0.div_euclid(MICROS_PER_DAY).clamp(0, LAST_DAY)
}

/// The day of a time, and the spans of 32 and of 1024 days that it lies in, so that any range is a few words.
fn days_of(at: Timestamp) -> [String; 3] {
    let day = day(at);
    [day_word(day, 0), day_word(day, 5), day_word(day, 10)]
}

fn day_word(day: i64, span: u32) -> String {
    format!("day{span}={}", day >> span)
}

/// The fewest words that cover all days from one time to another. The days themselves are exact, the hours are not.
fn days_between(from: Option<Timestamp>, until: Option<Timestamp>) -> Vec<Term> {
    let (mut next, last) = (from.map_or(0, day), until.map_or(LAST_DAY, day));
    let mut terms = Vec::new();
    while next <= last {
        let fits = |span: &u32| next % (1 << span) == 0 && next + (1 << span) - 1 <= last;
        let span = [10, 5].into_iter().find(fits).unwrap_or(0);
        terms.push(Term {
            word: day_word(next, span),
            is_beginning: false,
        });
        next += 1 << span;
    }
    if terms.is_empty() {
        // A range that ends before it begins has no day.
        terms.push(Term {
            word: tag("day", "none"),
            is_beginning: false,
        });
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &str) -> Vec<String> {
        let (mut words, mut left) = (BTreeSet::new(), MOST);
        take_in(text, &mut words, &mut left);
        words.into_iter().collect()
    }

    #[test]
    fn text_is_split_into_words_and_pairs() {
        for (text, expected) in [
            ("", vec![]),
            ("… — !", vec![]),
            ("Plan approved", vec!["approved", "plan"]),
            ("src/main.rs", vec!["main", "main_rs", "rs", "src", "src_main"]),
            ("a//b a, b", vec!["a", "b"]),
            ("ÉTÉ élève", vec!["élève", "été"]),
            ("192.0.2.7", vec!["0", "0_2", "192", "192_0", "2", "2_7", "7"]),
        ] {
            let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
            expected.sort();
            assert_eq!(words_of(text), expected, "{text}");
        }
    }

    /// Hostile text: whatever it holds, its words hold nothing that a query or a list of words could be broken out of.
    #[test]
    fn no_text_makes_a_word_that_means_something_else() {
        let hostile = "stream=instance\u{0}\"' OR \u{202e}\u{10ffff} kind==set* :* \\ day0=1 ' & ! | (x) ";
        for word in words_of(hostile) {
            assert!(word.chars().all(|c| c.is_alphanumeric() || c == '_'), "{word:?}");
        }
        for value in ["", "A b", "a=b", "é\u{0}'\"", "*"] {
            let tag = tag("actor", value);
            assert!(
                tag.bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'='),
                "{tag}"
            );
        }
        assert_ne!(tag("actor", "a"), tag("actor", "A"));
        assert_ne!(tag("actor", "="), tag("actor", "3d"));
    }

    #[test]
    fn what_one_record_can_add_is_bounded() {
        let endless: Vec<String> = (0..100_000).map(|n| format!("word{n}")).collect();
        let endless = endless.join(" ");
        let bytes: usize = words_of(&endless).iter().map(String::len).sum();
        assert!(bytes <= MOST && bytes > MOST - 2 * LONGEST, "{bytes}");
        assert_eq!(words_of(&"x".repeat(1_000_000)), ["x".repeat(LONGEST)]);
    }

    #[test]
    fn any_range_of_days_is_a_few_words_that_cover_it_and_nothing_else() {
        let at = |day: i64| Timestamp(day * MICROS_PER_DAY + 5);
        for (from, until) in [
            (0, 0),
            (1, 1),
            (31, 64),
            (20_000, 20_090),
            (3, 65_535),
            (1023, 3072),
            (9, 8),
        ] {
            let terms = days_between(Some(at(from)), Some(at(until)));
            assert!(terms.len() <= 190, "{}", terms.len());
            let asked = Asked::Terms(vec![terms]);
            for day in [
                0, 1, 2, 3, 30, 31, 32, 64, 65, 1022, 1023, 1024, 3072, 3073, 20_050, 65_535,
            ] {
                let words = BTreeSet::from(days_of(at(day)));
                let is_within = (from..=until).contains(&day);
                assert_eq!(asked.fits(&words), is_within, "{day} in {from}..={until}");
            }
        }
        let open = days_between(Some(at(20_000)), None);
        assert!(open.len() <= 130, "{}", open.len());
    }
}
