//! Rules about words that must not stay in code: left-overs, unproven `unwrap`s, marks without an issue.
//!
//! Literals never count, so a sample in a test is no finding. It does not know where a word would be right.

use super::Finding;
use super::source::Source;

/// Nothing unfinished or switched off, in tests neither: an ignored test is one that nobody runs.
pub(super) fn left_overs(sources: &[Source]) -> Vec<Finding> {
    const WORDS: &[&str] = &["todo!(", "unimplemented!(", "dbg!(", "#[ignore"];
    in_code(
        sources,
        |_, _| true,
        WORDS,
        |word| format!("`{word}` must not stay"),
    )
}

/// A value that is surely there is proven by `expect("why this holds")`.
pub(super) fn unwrap(sources: &[Source]) -> Vec<Finding> {
    let outside_tests = |source: &Source, line| !source.is_test_line(line);
    in_code(sources, outside_tests, &[".unwrap()"], |_| {
        "use `expect(\"why this holds\")` or return the error, not `unwrap()`".to_owned()
    })
}

/// A mark in a comment names the issue that will remove it.
pub(super) fn unnumbered_marks(sources: &[Source]) -> Vec<Finding> {
    const MARKS: &[&str] = &["TODO", "FIXME", "XXX"];
    let mut findings = Vec::new();
    for source in sources {
        for (line, comment) in source.comments() {
            for mark in MARKS {
                if has_word(comment, mark) && !has_number(comment) {
                    findings.push(Finding::new(
                        source,
                        line,
                        format!("{mark} without an issue number (`#12`)"),
                    ));
                }
            }
        }
    }
    findings
}

fn in_code(
    sources: &[Source],
    counts: impl Fn(&Source, usize) -> bool,
    words: &[&str],
    message: impl Fn(&str) -> String,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        for (line, code) in source.code().filter(|(line, _)| counts(source, *line)) {
            for word in words.iter().filter(|word| code.contains(**word)) {
                findings.push(Finding::new(source, line, message(word)));
            }
        }
    }
    findings
}

/// Finds a whole word that is not being talked about in back-ticks.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let joins = |character: char| character.is_alphanumeric() || matches!(character, '_' | '`');
        !text[..at].ends_with(joins) && !text[at + word.len()..].starts_with(joins)
    })
}

fn has_number(text: &str) -> bool {
    text.match_indices('#')
        .any(|(at, _)| text[at + 1..].starts_with(|next: char| next.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn left_overs_are_found_in_tests_too() {
        let text = "//! A.\nfn a() { todo!() }\n#[cfg(test)]\nmod tests {\n    #[ignore = \"slow\"]\n    fn b() { dbg!(1); }\n}\n";
        check(
            left_overs,
            "a.rs",
            text,
            &[
                (2, "`todo!(` must not stay"),
                (5, "`#[ignore` must not stay"),
                (6, "`dbg!(` must not stay"),
            ],
        );
        check(
            left_overs,
            "a.rs",
            "// todo!()\nconst A: &str = \"dbg!(\";\n",
            &[],
        );
    }

    #[test]
    fn unwrap_is_found_outside_tests_only() {
        let text = "fn a() { b().unwrap() }\n#[cfg(test)]\nmod tests {\n    fn b() { a().unwrap() }\n}\n";
        check(
            unwrap,
            "a.rs",
            text,
            &[(
                1,
                "use `expect(\"why this holds\")` or return the error, not `unwrap()`",
            )],
        );
        check(unwrap, "a.rs", "fn a() { b().unwrap_or_default() }\n", &[]);
    }

    #[test]
    fn a_mark_without_an_issue_is_found() {
        check(
            unnumbered_marks,
            "a.rs",
            "// TODO: later\n",
            &[(1, "TODO without an issue number (`#12`)")],
        );
        check(
            unnumbered_marks,
            "a.rs",
            "/* FIXME # 3 */\n",
            &[(1, "FIXME without an issue number (`#12`)")],
        );
        check(
            unnumbered_marks,
            "a.rs",
            "// TODO(#12): later\n// no `TODO` here\nlet TODOS = \"TODO\";\n",
            &[],
        );
    }
}
