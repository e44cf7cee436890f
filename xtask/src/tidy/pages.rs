//! Rules about pages: every error code has one, every page has a code, every index lists its directory.
//!
//! It does not know what a page says.

use std::collections::BTreeMap;

use super::Finding;
use super::source::Source;

const ERRORS: &str = "docs/error/";
const INDEXED: &[&str] = &[ERRORS, "docs/adr/"];
const INDEX: &str = "README.md";

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
    let pages: BTreeMap<&str, &Source> = sources
        .iter()
        .filter_map(|source| Some((page_code(&source.path)?, source)))
        .collect();
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

/// A page that its directory's index does not link is a page that nobody finds.
pub(super) fn indexes(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for dir in INDEXED {
        let index = format!("{dir}{INDEX}");
        let text = sources
            .iter()
            .find(|source| source.path == index)
            .map_or("", |source| source.text.as_str());
        for source in sources {
            let Some(name) = source.path.strip_prefix(dir).filter(|name| *name != INDEX) else {
                continue;
            };
            if !text.contains(&format!("({name})")) {
                findings.push(Finding::new(source, 1, format!("{index} does not link ({name})")));
            }
        }
    }
    findings
}

fn page_code(path: &str) -> Option<&str> {
    path.strip_prefix(ERRORS)?
        .strip_suffix(".md")
        .filter(|name| *name != "README")
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
    fn a_page_that_its_index_does_not_link_is_found() {
        let texts = [
            ("docs/adr/README.md", "- [One](0001-one.md)\n"),
            ("docs/adr/0001-one.md", ""),
            ("docs/adr/0002-two.md", ""),
            ("docs/error/CDR0001.md", ""),
        ];
        assert_eq!(
            shown(indexes, &texts),
            [
                "docs/error/CDR0001.md:1: docs/error/README.md does not link (CDR0001.md)",
                "docs/adr/0002-two.md:1: docs/adr/README.md does not link (0002-two.md)",
            ]
        );
    }
}
