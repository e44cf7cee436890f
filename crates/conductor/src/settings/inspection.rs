//! What a change may be at most, and an operator's patterns for added lines (SEC-4), as settings.
//!
//! A pattern that could take long, or that matches every line, is refused with its place in the file. This module does not
//! know what an inspection does with them.

use conductor_domain::diff::Severity;
use conductor_policy::inspect::pattern::Pattern;
use conductor_policy::inspect::{Inspector, Limits};
use conductor_policy::secret::live::LiveSecrets;
use serde::Deserialize;
use serde::de::Error as _;

/// What an inspection objects to, where it differs from the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ToldInspection {
    /// Bytes of a text file.
    file_bytes: Option<u64>,
    /// Bytes of a binary file.
    binary_bytes: Option<u64>,
    /// Changed files.
    files: Option<usize>,
    /// Bytes of one line.
    line_bytes: Option<usize>,
    #[serde(default)]
    pattern: Vec<ToldPattern>,
}

/// One pattern for added lines.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ToldPattern {
    name: String,
    #[serde(deserialize_with = "usable")]
    expression: String,
    /// The directory below which it counts; everywhere where absent.
    #[serde(default)]
    below: String,
    #[serde(default)]
    then: Then,
}

/// What follows where a pattern matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Then {
    /// A person is asked.
    #[default]
    Ask,
    /// The run stops.
    Stop,
}

impl ToldInspection {
    /// Makes the inspector that was written down; `secrets` are found word for word.
    pub(crate) fn inspector(&self, secrets: &[String]) -> Inspector {
        let usual = Limits::default();
        let limits = Limits {
            file: self.file_bytes.unwrap_or(usual.file),
            binary: self.binary_bytes.unwrap_or(usual.binary),
            files: self.files.unwrap_or(usual.files),
            line: self.line_bytes.unwrap_or(usual.line),
        };
        let patterns = self.pattern.iter().filter_map(|told| {
            let severity = match told.then {
                Then::Ask => Severity::NeedsApproval,
                Then::Stop => Severity::Violation,
            };
            // Each was compiled when the file was read.
            Pattern::new(&told.name, &told.expression, severity, &told.below).ok()
        });
        let live = LiveSecrets::new(secrets.iter().map(String::as_str));
        Inspector::new(limits, patterns.collect(), live)
    }
}

/// Reads an expression that runs in linear time and little memory.
fn usable<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let expression = String::deserialize(deserializer)?;
    Pattern::new("", &expression, Severity::NeedsApproval, "")
        .map(|_| expression)
        .map_err(|invalid| D::Error::custom(format!("{invalid}; write one that matches less")))
}

#[cfg(test)]
mod tests {
    use conductor_policy::inspect::{Change, Side, Subject};

    use super::*;

    fn read(text: &str) -> Result<ToldInspection, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// SEC-4: an operator's pattern finds added lines below its directory, and says what follows.
    #[test]
    fn a_pattern_of_the_settings_objects_to_an_added_line() {
        let told = read(
            "files = 1\n[[pattern]]\nname = \"no-print\"\nexpression = 'print\\('\nbelow = \"src/\"\nthen = \"stop\"\n",
        )
        .expect("valid");
        let inspector = told.inspector(&[]);
        let of = |path: &'static str| {
            let change = Change {
                path,
                before: Side::Absent,
                after: Side::File(b"print(1)\n"),
                marks: &[],
            };
            inspector.inspect(&[change], &[path.to_owned()])
        };
        let found = of("src/a.py");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].subject, Subject::Pattern("no-print".to_owned()));
        assert_eq!(found[0].severity, Severity::Violation);
        assert_eq!(of("docs/a.py"), []);
    }

    /// SEC-4: an expression that would explode, or match everything, is refused where it stands.
    #[test]
    fn a_pattern_that_explodes_or_matches_everything_is_refused_with_its_line() {
        let long = "x".repeat(501);
        for expression in [
            "(",
            "a*",
            "",
            "((a{1,1000}){1,1000}){1,1000}",
            &long,
            "(?<=a)b",
            "(a)\\1",
        ] {
            let text = format!("[[pattern]]\nname = \"x\"\nexpression = '{expression}'\n");
            let error = read(&text).expect_err(expression);
            assert!(error.contains("line 3"), "{error}");
        }
        read("[[pattern]]\nname = \"x\"\n").expect_err("no expression");
        read("[[pattern]]\nname = \"x\"\nexpression = 'a'\nthen = \"shrug\"\n")
            .expect_err("no such consequence");
    }
}
