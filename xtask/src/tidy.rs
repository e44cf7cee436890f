//! Checks the house rules that neither the compiler nor clippy knows, in one pass, with `file:line` for each finding.
//!
//! A rule is a function from the sources to findings; each has a test that shows it finding a bad sample. It does not
//! judge taste: a rule here can be decided from the text alone.

mod mask;
mod source;
mod shape;
mod words;
mod places;
mod walls;
mod pages;
mod requirements;

use std::fmt;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};

use source::Source;

/// One thing to change, and where.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl Finding {
    fn new(source: &Source, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: source.path.clone(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Looks at the whole tree, because some rules compare files.
type Rule = fn(&[Source]) -> Vec<Finding>;

const RULES: &[Rule] = &[
    shape::no_mod_rs,
    shape::module_docs,
    shape::length,
    words::left_overs,
    words::unwrap,
    words::unnumbered_marks,
    places::git_calls,
    places::registry_hosts,
    places::machine_paths,
    walls::domain_has_all_walls,
    walls::domain_has_no_doors,
    pages::error_codes,
    pages::error_list_is_fresh,
    pages::decisions_are_listed,
    pages::codemap_is_whole_and_short,
    requirements::list_is_fresh,
];

/// Checks the tree, or with `--update` first rewrites what is generated.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    match arguments {
        [] => {}
        [update] if update == "--update" => {
            requirements::update()?;
            pages::update(&source::all()?)?;
        }
        _ => bail!("tidy takes no argument but --update"),
    }
    check()?;
    Ok(ExitCode::SUCCESS)
}

/// Fails with every finding; prints which requirements no test names, as information.
pub(crate) fn check() -> Result<()> {
    let sources = source::all()?;
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&sources)).collect();
    findings.sort();
    for finding in &findings {
        eprintln!("{finding}");
    }
    eprintln!("{}", requirements::coverage(&sources));
    ensure!(findings.is_empty(), "{} findings", findings.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs one rule on one file and compares `line: message` pairs.
    pub(super) fn check(rule: Rule, path: &str, text: &str, expected: &[(usize, &str)]) {
        let sources = source::from_texts(&[(path, text)]);
        let found = rule(&sources);
        let found: Vec<(usize, &str)> = found.iter().map(|f| (f.line, f.message.as_str())).collect();
        assert_eq!(found, expected, "{path}:\n{text}");
    }

    #[test]
    fn a_finding_reads_as_a_place_to_jump_to() {
        let sources = source::from_texts(&[("crates/a/src/b.rs", "")]);
        assert_eq!(
            Finding::new(&sources[0], 3, "no").to_string(),
            "crates/a/src/b.rs:3: no"
        );
    }
}
