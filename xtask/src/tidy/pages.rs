//! Rules about pages: every error code has one, every page has a code, both lists of pages are complete, and the codemap
//! names every crate and stays short.
//!
//! It does not know what a page says beyond its first line.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

use super::Finding;
use super::source::Source;
use crate::workspace;

const ERRORS: &str = "docs/error/";
const ERROR_LIST: &str = "docs/error/README.md";
const DECISIONS: &str = "docs/adr/";
const DECISION_LIST: &str = "docs/adr/README.md";
const CODEMAP: &str = "ARCHITECTURE.md";
const CODEMAP_LINES: usize = 250;
/// What stands below this line of the error list is made, not written.
const MARK: &str = "<!-- list: made by `cargo xtask tidy --update` -->\n";

/// What a person can act on has a code, and each code a page.
pub(super) fn error_codes(sources: &[Source]) -> Vec<Finding> {
    let mut used: BTreeMap<&str, (&Source, usize)> = BTreeMap::new();
    for source in sources
        .iter()
        .filter(|source| source.rust.is_some() && !source.path.starts_with("xtask/"))
    {
        for (line, text) in source.lines().filter(|(line, _)| !source.is_test_line(*line)) {
            for code in codes(text) {
                used.entry(code).or_insert((source, line));
            }
        }
    }
    let pages: BTreeMap<&str, &Source> = error_pages(sources).collect();
    let without_page =
        used.iter()
            .filter(|(code, _)| !pages.contains_key(*code))
            .map(|(code, (source, line))| {
                Finding::new(source, *line, format!("{code} has no page {ERRORS}{code}.md"))
            });
    let without_code = pages
        .iter()
        .filter(|(code, _)| !used.contains_key(*code))
        .map(|(code, source)| Finding::new(source, 1, format!("no source names {code}")));
    without_page.chain(without_code).collect()
}

/// The list of error pages is what the pages' first lines give.
pub(super) fn error_list_is_fresh(sources: &[Source]) -> Vec<Finding> {
    let list = sources.iter().find(|source| source.path == ERROR_LIST);
    list.filter(|list| list.text != with_list(&list.text, sources))
        .map(|list| Finding::new(list, 1, "is stale; run `cargo xtask tidy --update`"))
        .into_iter()
        .collect()
}

/// A record that the list does not link is one that nobody finds; its order is a person's choice.
pub(super) fn decisions_are_listed(sources: &[Source]) -> Vec<Finding> {
    let list = sources
        .iter()
        .find(|source| source.path == DECISION_LIST)
        .map_or("", |list| list.text.as_str());
    sources
        .iter()
        .filter(|source| source.path != DECISION_LIST)
        .filter_map(|source| Some((source, source.path.strip_prefix(DECISIONS)?)))
        .filter(|(_, name)| !list.contains(&format!("({name})")))
        .map(|(source, name)| Finding::new(source, 1, format!("{DECISION_LIST} does not link ({name})")))
        .collect()
}

/// A crate that the codemap does not name is one that a newcomer stumbles over; a long map is one that nobody reads.
pub(super) fn codemap_is_whole_and_short(sources: &[Source]) -> Vec<Finding> {
    let Some(map) = sources.iter().find(|source| source.path == CODEMAP) else {
        return vec![];
    };
    let nameless = sources
        .iter()
        .filter_map(|source| {
            let name = source.path.strip_prefix("crates/")?.strip_suffix("/src/lib.rs")?;
            Some((source, name))
        })
        .filter(|(_, name)| !name.contains('/') && !map.text.contains(&format!("**`{name}`**")))
        .map(|(source, name)| {
            Finding::new(
                source,
                1,
                format!("the codemap in {CODEMAP} does not name `{name}`"),
            )
        });
    let lines = map.text.lines().count();
    let long = (lines > CODEMAP_LINES)
        .then(|| Finding::new(map, lines, format!("is longer than {CODEMAP_LINES} lines")));
    nameless.chain(long).collect()
}

/// Rewrites the list of error pages.
pub(super) fn update(sources: &[Source]) -> Result<()> {
    let Some(list) = sources.iter().find(|source| source.path == ERROR_LIST) else {
        return Ok(());
    };
    fs::write(workspace::root().join(ERROR_LIST), with_list(&list.text, sources))
        .with_context(|| format!("could not write {ERROR_LIST}"))
}

fn with_list(text: &str, sources: &[Source]) -> String {
    let written = text.split_once(MARK).map_or(text, |(written, _)| written);
    let lines = error_pages(sources).map(|(code, page)| {
        let title = page
            .text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("# ");
        let title = title
            .strip_prefix(code)
            .unwrap_or(title)
            .trim_start_matches([':', ' ']);
        format!("- [{code}]({code}.md): {title}\n")
    });
    format!("{written}{MARK}\n{}", lines.collect::<String>())
}

fn error_pages(sources: &[Source]) -> impl Iterator<Item = (&str, &Source)> {
    sources
        .iter()
        .filter(|source| source.path != ERROR_LIST)
        .filter_map(|source| Some((source.path.strip_prefix(ERRORS)?.strip_suffix(".md")?, source)))
}

/// Finds every `CDRnnnn` in a line.
fn codes(line: &str) -> impl Iterator<Item = &str> {
    const LETTERS: &str = "CDR";
    const LENGTH: usize = LETTERS.len() + 4;
    line.match_indices(LETTERS).filter_map(|(at, _)| {
        let code = line.get(at..at + LENGTH)?;
        let ends = !line[at + LENGTH..].starts_with(|next: char| next.is_ascii_digit());
        (ends && code[LETTERS.len()..].bytes().all(|byte| byte.is_ascii_digit())).then_some(code)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Rule;
    use super::super::source::from_texts;
    use super::*;

    fn shown(rule: Rule, texts: &[(&str, &str)]) -> Vec<String> {
        rule(&from_texts(texts)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_code_without_a_page_and_a_page_without_a_code_are_found() {
        let texts = [
            (
                "crates/a/src/lib.rs",
                "//! A.\nconst A: &str = \"CDR0001\";\nconst B: &str = \"CDR0002\";\n",
            ),
            ("docs/error/CDR0002.md", ""),
            ("docs/error/CDR0003.md", ""),
            ("docs/error/README.md", ""),
        ];
        assert_eq!(
            shown(error_codes, &texts),
            [
                "crates/a/src/lib.rs:2: CDR0001 has no page docs/error/CDR0001.md",
                "docs/error/CDR0003.md:1: no source names CDR0003",
            ]
        );
    }

    #[test]
    fn a_code_in_a_test_and_a_longer_number_are_no_codes() {
        let texts = [
            ("crates/a/tests/b.rs", "\"CDR0001\"\n"),
            ("crates/a/src/c.rs", "CDR00012 CDRnnnn CDR\n"),
        ];
        assert_eq!(shown(error_codes, &texts), [""; 0]);
    }

    #[test]
    fn the_error_list_is_made_from_the_pages_and_found_when_stale() {
        let page = ("docs/error/CDR0001.md", "# CDR0001: no such run\n\nMore.\n");
        let stale = format!("# Codes\n\n{MARK}\n- old\n");
        let fresh = format!("# Codes\n\n{MARK}\n- [CDR0001](CDR0001.md): no such run\n");
        let found = ["docs/error/README.md:1: is stale; run `cargo xtask tidy --update`"];
        assert_eq!(shown(error_list_is_fresh, &[page, (ERROR_LIST, &stale)]), found);
        assert_eq!(shown(error_list_is_fresh, &[page, (ERROR_LIST, &fresh)]), [""; 0]);
        assert_eq!(
            with_list(&stale, &from_texts(&[page, (ERROR_LIST, &stale)])),
            fresh
        );
    }

    #[test]
    fn a_decision_that_the_list_does_not_link_is_found() {
        let texts = [
            ("docs/adr/README.md", "- [One](0001-one.md)\n"),
            ("docs/adr/0001-one.md", ""),
            ("docs/adr/0002-two.md", ""),
        ];
        let found = ["docs/adr/0002-two.md:1: docs/adr/README.md does not link (0002-two.md)"];
        assert_eq!(shown(decisions_are_listed, &texts), found);
    }

    #[test]
    fn a_crate_that_the_codemap_does_not_name_and_a_long_codemap_are_found() {
        let long = format!("**`a`** does it.{}", "\n".repeat(250));
        let texts = [
            ("ARCHITECTURE.md", long.as_str()),
            ("crates/a/src/lib.rs", ""),
            ("crates/a-b/src/lib.rs", ""),
            ("crates/a/src/c/lib.rs", ""),
        ];
        assert_eq!(
            shown(codemap_is_whole_and_short, &texts),
            ["crates/a-b/src/lib.rs:1: the codemap in ARCHITECTURE.md does not name `a-b`",]
        );
        let longer = format!("{long}end");
        assert_eq!(
            shown(codemap_is_whole_and_short, &[("ARCHITECTURE.md", &longer)]),
            ["ARCHITECTURE.md:251: is longer than 250 lines",]
        );
    }
}
