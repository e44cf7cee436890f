//! Reads the tree once and tells test code from the rest.
//!
//! Test code is what `#[cfg(test)]` stands on, inline or in a file of its own, what lies in a `tests` or `testdata`
//! directory, and the crates that exist for tests. It does not know any rule.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::mask::{Masked, mask};
use crate::process::{self, command};
use crate::workspace;

/// Crates whose every line is for tests.
const TEST_CRATES: &[&str] = &[
    "crates/conductor-testkit/",
    "crates/conductor-it/",
    "crates/conductor-contract/",
];

/// One text file of the repository.
pub(super) struct Source {
    /// Path from the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// Absent when the file is not Rust.
    pub(super) rust: Option<Rust>,
    /// Whether the whole file is for tests.
    pub(super) is_test: bool,
}

/// What is known about a Rust file beyond its text.
pub(super) struct Rust {
    pub(super) masked: Masked,
    /// For each line, whether `#[cfg(test)]` covers it.
    in_test: Vec<bool>,
}

impl Source {
    /// Says whether a line (from 1) is test code.
    pub(super) fn is_test_line(&self, line: usize) -> bool {
        self.is_test
            || self
                .rust
                .as_ref()
                .is_some_and(|rust| rust.in_test.get(line - 1) == Some(&true))
    }

    /// Lists lines of code, literals emptied, with their numbers from 1.
    pub(super) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        numbered(self.rust.as_ref().map_or("", |rust| &rust.masked.code))
    }

    /// Lists lines of comments with their numbers from 1.
    pub(super) fn comments(&self) -> impl Iterator<Item = (usize, &str)> {
        numbered(self.rust.as_ref().map_or("", |rust| &rust.masked.comments))
    }

    /// Lists lines as they stand in the file with their numbers from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        numbered(&self.text)
    }
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// Reads every text file that git tracks or would track. `Cargo.lock` is cargo's, not ours.
pub(super) fn all() -> Result<Vec<Source>> {
    let listed = process::capture(command("git").args(["ls-files", "-z", "-co", "--exclude-standard"]))?;
    let paths: BTreeSet<&str> = listed
        .split('\0')
        .filter(|path| !path.is_empty() && *path != "Cargo.lock")
        .collect();
    let texts: Vec<(&str, String)> = paths
        .into_iter()
        .filter_map(|path| Some((path, fs::read_to_string(workspace::root().join(path)).ok()?)))
        .collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (*path, text.as_str())).collect();
    Ok(from_texts(&texts))
}

/// Builds sources from paths and texts.
pub(super) fn from_texts(texts: &[(&str, &str)]) -> Vec<Source> {
    let mut sources: Vec<Source> = texts.iter().map(|(path, text)| read(path, text)).collect();
    let test_modules: Vec<String> = sources.iter().flat_map(test_modules).collect();
    for source in &mut sources {
        source.is_test |= test_modules.iter().any(|module| {
            source.path == format!("{module}.rs") || source.path.starts_with(&format!("{module}/"))
        });
    }
    sources
}

fn read(path: &str, text: &str) -> Source {
    let is_rust = Path::new(path)
        .extension()
        .is_some_and(|extension| extension == "rs");
    let rust = is_rust.then(|| {
        let masked = mask(text);
        let in_test = test_lines(&masked.code);
        Rust { masked, in_test }
    });
    let is_test = TEST_CRATES.iter().any(|dir| path.starts_with(dir))
        || path
            .split('/')
            .any(|part| matches!(part, "tests" | "testdata" | "tests.rs"))
        || text.contains("\n#![cfg(test)]");
    Source {
        path: path.to_owned(),
        text: text.to_owned(),
        rust,
        is_test,
    }
}

/// Marks the lines that an item under `#[cfg(test)]` covers.
fn test_lines(code: &str) -> Vec<bool> {
    let mut lines = vec![false; code.lines().count()];
    for (start, end) in test_items(code) {
        let first = code[..start].matches('\n').count();
        let last = code[..end].matches('\n').count();
        let last = last.min(lines.len().saturating_sub(1));
        if let Some(covered) = lines.get_mut(first..=last) {
            covered.fill(true);
        }
    }
    lines
}

/// Finds the byte ranges of items under `#[cfg(test)]`, attribute included.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    ["#[cfg(test)]", "#[cfg(all(test,"]
        .iter()
        .flat_map(|attribute| code.match_indices(attribute))
        .map(|(start, _)| (start, start + item_length(&code[start..])))
        .collect()
}

/// Measures an item up to its `;` or its closing brace.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, character) in code.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            ';' if depth == 0 => return at,
            _ => {}
        }
    }
    code.len()
}

/// Finds where the modules lie that a file declares as `#[cfg(test)] mod name;`, without extension.
fn test_modules(source: &Source) -> Vec<String> {
    let Some(rust) = &source.rust else {
        return Vec::new();
    };
    let stem = source.path.trim_end_matches(".rs");
    let (parent, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    let home = if matches!(name, "lib" | "main") {
        parent
    } else {
        stem
    };
    test_items(&rust.masked.code)
        .into_iter()
        .filter_map(|(start, end)| {
            let item = &rust.masked.code[start..end];
            let module = item.rsplit_once("mod ")?.1.trim();
            (!item.contains('{')).then(|| format!("{home}/{module}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_line_numbers(path: &str, text: &str) -> Vec<usize> {
        let sources = from_texts(&[(path, text)]);
        (1..=text.lines().count())
            .filter(|line| sources[0].is_test_line(*line))
            .collect()
    }

    #[test]
    fn an_inline_test_module_ends_at_its_own_brace() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    const BRACE: &str = \"}\";\n}\nfn b() {}\n";
        assert_eq!(test_line_numbers("crates/a/src/lib.rs", text), [2, 3, 4, 5]);
    }

    #[test]
    fn a_test_module_in_its_own_file_is_test_code() {
        let sources = from_texts(&[
            ("crates/a/src/lib.rs", "#[cfg(test)]\nmod story;\nmod plan;\n"),
            ("crates/a/src/story.rs", "fn a() {}\n"),
            ("crates/a/src/story/part.rs", "fn a() {}\n"),
            ("crates/a/src/plan.rs", "#[cfg(test)]\nmod laws;\n"),
            ("crates/a/src/plan/laws.rs", "fn a() {}\n"),
        ]);
        let tests: Vec<&str> = sources
            .iter()
            .filter(|source| source.is_test)
            .map(|s| s.path.as_str())
            .collect();
        assert_eq!(
            tests,
            [
                "crates/a/src/story.rs",
                "crates/a/src/story/part.rs",
                "crates/a/src/plan/laws.rs"
            ]
        );
    }

    #[test]
    fn directories_and_crates_for_tests_are_test_code() {
        assert_eq!(test_line_numbers("crates/a/tests/whole.rs", "fn a() {}\n"), [1]);
        assert_eq!(
            test_line_numbers("crates/conductor-it/src/lib.rs", "fn a() {}\n"),
            [1]
        );
        assert_eq!(
            test_line_numbers("crates/a/src/attests.rs", "fn a() {}\n"),
            [0_usize; 0]
        );
    }
}
