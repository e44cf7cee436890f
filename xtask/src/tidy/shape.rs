//! Rules about the shape of Rust files: their names, their first lines, their length.
//!
//! It does not know what the code does.

use super::Finding;
use super::source::Source;

const LONGEST: usize = 500;

/// `foo.rs` + `foo/`, never `foo/mod.rs`: a tab that says `mod.rs` says nothing.
pub(super) fn no_mod_rs(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| source.path.ends_with("/mod.rs"))
        .map(|source| Finding::new(source, 1, "name it foo.rs beside foo/, not foo/mod.rs"))
        .collect()
}

/// Every module starts by saying what it decides or does.
pub(super) fn module_docs(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| source.rust.is_some() && !source.is_test && !source.text.starts_with("//! "))
        .map(|source| Finding::new(source, 1, "the first line must be a module doc (`//! …`)"))
        .collect()
}

/// Past this length two ideas may live in one file; tests do not count.
pub(super) fn length(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| source.rust.is_some() && !source.is_test)
        .filter_map(|source| {
            let lines = source
                .lines()
                .filter(|(line, _)| !source.is_test_line(*line))
                .count();
            let message =
                format!("{lines} lines outside tests, more than {LONGEST}: do two ideas live here?");
            (lines > LONGEST).then(|| Finding::new(source, LONGEST, message))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn mod_rs_is_found() {
        check(
            no_mod_rs,
            "crates/a/src/b/mod.rs",
            "",
            &[(1, "name it foo.rs beside foo/, not foo/mod.rs")],
        );
        check(no_mod_rs, "crates/a/src/b.rs", "", &[]);
    }

    #[test]
    fn a_module_without_its_first_sentence_is_found() {
        let found = &[(1, "the first line must be a module doc (`//! …`)")];
        check(module_docs, "crates/a/src/b.rs", "use std::fs;\n", found);
        check(module_docs, "crates/a/src/b.rs", "", found);
        check(module_docs, "crates/a/src/b.rs", "//! Decides nothing.\n", &[]);
        check(module_docs, "crates/a/tests/b.rs", "use std::fs;\n", &[]);
    }

    #[test]
    fn a_file_past_the_limit_is_found_and_its_tests_do_not_count() {
        let code = "//! Long.\n".to_owned() + &"fn a() {}\n".repeat(500);
        check(
            length,
            "crates/a/src/b.rs",
            &code,
            &[(
                500,
                "501 lines outside tests, more than 500: do two ideas live here?",
            )],
        );
        let tested =
            "//! Short.\n#[cfg(test)]\nmod tests {\n".to_owned() + &"fn a() {}\n".repeat(500) + "}\n";
        check(length, "crates/a/src/b.rs", &tested, &[]);
    }
}
