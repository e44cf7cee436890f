//! Keeps the list of requirement ids and says which of them no test names.
//!
//! The list is `docs/requirements.txt`, made from the specification where that lies beside the repository. It does not
//! know what a requirement asks, nor whether the test that names it proves it.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, ensure};

use super::Finding;
use super::source::Source;
use crate::workspace;

const LIST: &str = "docs/requirements.txt";
const HEAD: &str = "# Requirement ids, made by `cargo xtask tidy --update` from the specification.\n";
const SPECIFICATION: &[&str] = &["../shared/SPEC.md", "../shared/SECURITY.md"];

/// Rewrites the list from the specification; without one, the list stays as it is.
pub(super) fn update() -> Result<()> {
    match expected() {
        Ok(list) => {
            fs::write(workspace::root().join(LIST), list).with_context(|| format!("could not write {LIST}"))
        }
        Err(error) => {
            eprintln!("note: {LIST} stays as it is: {error:#}");
            Ok(())
        }
    }
}

/// Fails when the specification is there and the list is not what it gives.
pub(super) fn list_is_fresh(sources: &[Source]) -> Vec<Finding> {
    expected().map_or_else(|_| Vec::new(), |expected| stale(sources, &expected))
}

fn stale(sources: &[Source], expected: &str) -> Vec<Finding> {
    let list = sources.iter().find(|source| source.path == LIST);
    if list.is_some_and(|list| list.text == expected) {
        return Vec::new();
    }
    let message = "differs from the specification; run `cargo xtask tidy --update`".to_owned();
    vec![Finding {
        path: LIST.to_owned(),
        line: 1,
        message,
    }]
}

fn expected() -> Result<String> {
    let mut list = HEAD.to_owned();
    for path in SPECIFICATION {
        let text = fs::read_to_string(workspace::root().join(path))
            .with_context(|| format!("could not read {path}"))?;
        let defined = defined(&text);
        ensure!(!defined.is_empty(), "{path} defines no requirement");
        list.extend(defined.iter().map(|id| format!("{id}\n")));
    }
    Ok(list)
}

/// Finds the ids that a specification defines: each opens a list item.
fn defined(specification: &str) -> Vec<&str> {
    specification
        .lines()
        .filter_map(|line| {
            let first = line.strip_prefix("- ")?.split_whitespace().next()?;
            (ids(first).next() == Some(first)).then_some(first)
        })
        .collect()
}

/// Tells how many requirements tests name, and which they do not.
pub(super) fn coverage(sources: &[Source]) -> String {
    let list = sources
        .iter()
        .find(|source| source.path == LIST)
        .map_or("", |source| source.text.as_str());
    let listed: Vec<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
    let named: BTreeSet<&str> = sources.iter().flat_map(evidence).flat_map(ids).collect();
    let unnamed: Vec<&str> = listed
        .iter()
        .filter(|id| !named.contains(**id))
        .copied()
        .collect();
    let head = format!(
        "requirements: tests name {} of {}",
        listed.len() - unnamed.len(),
        listed.len()
    );
    if unnamed.is_empty() {
        head
    } else {
        format!("{head}; no test names {}", unnamed.join(" "))
    }
}

/// Lists the lines in which naming an id means something: comments of test code, and scenarios that a test plays.
/// Literals do not count, or the samples of a test about ids would.
fn evidence(source: &Source) -> Vec<&str> {
    if source.path.contains("/scenarios/") {
        return source.text.lines().collect();
    }
    source
        .comments()
        .filter(|(line, _)| source.is_test_line(*line))
        .map(|(_, comment)| comment)
        .collect()
}

/// Finds every id (`RUN-12a`, `S-9`) in a text.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_ascii_alphanumeric() || matches!(character, '-' | '_')))
        .filter(|word| {
            let Some((letters, rest)) = word.split_once('-') else {
                return false;
            };
            let digits = rest.trim_end_matches(|last: char| last.is_ascii_lowercase());
            !letters.is_empty()
                && letters.bytes().all(|byte| byte.is_ascii_uppercase())
                && rest.len() - digits.len() <= 1
                && !digits.is_empty()
                && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::super::source::from_texts;
    use super::*;

    #[test]
    fn a_specification_defines_what_opens_its_list_items() {
        let text = "- RUN-1 States: see RUN-2.\n- RUN-1a Pause\n  RUN-9 no item\n- S-4 No host git\n- S- nothing\n- see S-5\n";
        assert_eq!(defined(text), ["RUN-1", "RUN-1a", "S-4"]);
    }

    #[test]
    fn a_stale_or_missing_list_is_found() {
        let list = "# head\nRUN-1\n";
        assert_eq!(stale(&from_texts(&[(LIST, list)]), list), []);
        for sources in [from_texts(&[(LIST, "# head\n")]), from_texts(&[])] {
            let found: Vec<String> = stale(&sources, list).iter().map(ToString::to_string).collect();
            assert_eq!(
                found,
                ["docs/requirements.txt:1: differs from the specification; run `cargo xtask tidy --update`"]
            );
        }
    }

    #[test]
    fn only_tests_and_scenarios_name_a_requirement() {
        let sources = from_texts(&[
            (LIST, "# head\nRUN-1\nRUN-1a\nRUN-12\nS-9\n"),
            (
                "crates/a/src/lib.rs",
                "//! RUN-12.\n#[cfg(test)]\nmod tests {\n    /// RUN-1a, (S-9).\n    fn a() { \"RUN-12\" }\n}\n",
            ),
            ("crates/a/scenarios/b.txt", "# RUN-1: starts\n"),
        ]);
        assert_eq!(
            coverage(&sources),
            "requirements: tests name 3 of 4; no test names RUN-12"
        );
    }
}
