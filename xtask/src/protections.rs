//! Prints `docs/protections.md` at the end of a test run, and fails where it promises what the run did not show.
//!
//! Every row names tests; each of them must have passed in this very run. Every requirement of the executors has a row.
//! Sections that tests generate are checked by those tests. It does not know what a protection does.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, ensure};

use crate::workspace;

const PAGE: &str = "docs/protections.md";

/// The requirements that the executors must keep.
const REQUIREMENTS: &[std::ops::RangeInclusive<u32>] = &[1..=3, 7..=7, 14..=18, 32..=46];

/// The tests that passed, as `binary name`.
#[derive(Default)]
pub(crate) struct Passed {
    tests: BTreeSet<String>,
    /// Those of them that failed first.
    unsteady: BTreeSet<String>,
}

impl Passed {
    /// Takes a line of the runner's; nextest's, or the built-in harness's, which does not name the binary.
    pub(crate) fn hear(&mut self, line: &str) {
        let line = crate::tally::without_colour(line);
        let line = line.trim();
        // `PASS [ 0.1s] …`, or `TRY 2 PASS [ 0.1s] …` of a test that failed before.
        let (attempt, line) = match line.strip_prefix("TRY ").and_then(|rest| rest.split_once(' ')) {
            Some((attempt, rest)) => (Some(attempt), rest),
            None => (None, line),
        };
        if let Some(rest) = line.strip_prefix("PASS [") {
            let words: Vec<&str> = rest.split_whitespace().collect();
            if let [.., binary, name] = words.as_slice() {
                let test = format!("{binary} {name}");
                if attempt.is_some() {
                    self.unsteady.insert(test.clone());
                }
                self.tests.insert(test);
            }
        } else if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix(" ... ok"))
        {
            self.tests.insert(name.to_owned());
        }
    }

    /// The tests that passed at a later attempt only.
    pub(crate) fn unsteady(&self) -> impl Iterator<Item = &str> {
        self.unsteady.iter().map(String::as_str)
    }

    fn has(&self, test: &str) -> bool {
        let name = test.rsplit(' ').next().unwrap_or(test);
        self.tests.contains(test) || self.tests.contains(name)
    }
}

/// Prints the matrix and fails on an empty cell, a test that did not pass, and a requirement without a row. What was left
/// out of this run by name is said, and not counted as shown.
pub(crate) fn check(passed: &Passed, is_left_out: impl Fn(&str) -> bool) -> Result<()> {
    let page =
        fs::read_to_string(workspace::root().join(PAGE)).with_context(|| format!("could not read {PAGE}"))?;
    let rows = rows(&page);
    for row in &rows {
        println!(
            "{:<52} {:<12} {}",
            row.protection,
            row.requirement,
            row.tests.join(", ")
        );
    }
    let wrong = wrong(&rows, passed, &is_left_out);
    for line in &wrong {
        eprintln!("{line}");
    }
    ensure!(wrong.is_empty(), "{} cells of {PAGE} are not shown", wrong.len());
    let left_out = rows
        .iter()
        .flat_map(|row| &row.tests)
        .filter(|test| is_left_out(test));
    eprintln!(
        "{} protections; all tests that they name passed in this run, but {} that were left out of it",
        rows.len(),
        left_out.count()
    );
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    protection: &'a str,
    requirement: &'a str,
    tests: Vec<&'a str>,
}

fn rows(page: &str) -> Vec<Row<'_>> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .filter(|line| !line.starts_with("---") && !line.starts_with("protection |"))
        .map(|line| {
            let mut cells = line.split(" | ");
            let mut cell = || cells.next().unwrap_or_default().trim();
            let (protection, requirement, tests) = (cell(), cell(), cell());
            let tests = tests.split(", ").map(|test| test.trim_matches('`'));
            Row {
                protection,
                requirement,
                tests: tests.filter(|test| !test.is_empty()).collect(),
            }
        })
        .collect()
}

fn wrong(rows: &[Row<'_>], passed: &Passed, is_left_out: &impl Fn(&str) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in rows {
        if row.requirement.is_empty() || row.tests.is_empty() {
            wrong.push(format!("{PAGE}: `{}` has an empty cell", row.protection));
        }
        for test in row
            .tests
            .iter()
            .filter(|test| !passed.has(test) && !is_left_out(test))
        {
            wrong.push(format!(
                "{PAGE}: `{}` names `{test}`, which did not pass",
                row.protection
            ));
        }
    }
    for id in REQUIREMENTS
        .iter()
        .cloned()
        .flatten()
        .map(|number| format!("S-{number}"))
    {
        if !rows.iter().any(|row| row.protection == id) {
            wrong.push(format!("{PAGE}: {id} has no row"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Page\n\n| protection | requirement | red without it |\n| --- | --- | --- |\n\
                        | local: Uid | S-1 | `a::it b::c`, `a::it d` |\n| local: Net |  | `a::it b::c` |\n";

    #[test]
    fn an_empty_cell_a_test_that_did_not_pass_and_a_missing_requirement_are_told() {
        let mut passed = Passed::default();
        passed.hear("        PASS [   0.1s] ( 1/57) a::it b::c");
        passed.hear("        FAIL [   0.1s] ( 2/57) a::it d");
        let rows = rows(TEXT);
        assert_eq!(rows.len(), 2);
        let wrong = wrong(&rows, &passed, &|_| false);
        for expected in [
            "names `a::it d`",
            "`local: Net` has an empty cell",
            "S-46 has no row",
        ] {
            assert!(
                wrong.iter().any(|line| line.contains(expected)),
                "{expected}: {wrong:#?}"
            );
        }
        assert!(
            !wrong.iter().any(|line| line.contains("names `a::it b::c`")),
            "{wrong:#?}"
        );
    }

    #[test]
    fn the_built_in_harness_is_heard_as_well() {
        let mut passed = Passed::default();
        passed.hear("test b::c ... ok");
        passed.hear("test d ... FAILED");
        assert!(passed.has("a::it b::c") && !passed.has("a::it d"));
    }

    #[test]
    fn a_test_that_passes_when_tried_again_passed_and_is_named() {
        let mut passed = Passed::default();
        passed.hear("  TRY 1 FAIL [   0.1s] ( 1/57) a::it b::c");
        assert!(!passed.has("a::it b::c"));
        passed.hear("  TRY 2 PASS [   0.1s] ( 1/57) a::it b::c");
        passed.hear("        PASS [   0.1s] ( 2/57) a::it d");
        assert!(passed.has("a::it b::c") && passed.has("a::it d"));
        assert_eq!(passed.unsteady().collect::<Vec<_>>(), ["a::it b::c"]);
    }
}
