//! The stories that the binary carries: a small repository, an issue about it, and the scenario that answers it.
//!
//! They are the plain files of `stories/`, embedded, so that the demo works from any directory.
//! This module does not know how a story is played.

use serde::Deserialize;

/// Agents that lie, dig and try to get out, on the repository of the `rust` story.
pub const HOSTILE_SCENARIO: &str = include_str!("../../../stories/hostile/scenario.toml");

/// A file of a story's repository: its path and its content.
pub type File = (&'static str, &'static str);

/// A repository, an issue, and what agents do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// Its name, as a person types it.
    pub name: &'static str,
    /// What stands in its `story.toml`.
    pub settings: Settings,
    /// The issue's title.
    pub issue_title: String,
    /// The issue's text.
    pub issue_body: String,
    /// The scenario file.
    pub scenario: &'static str,
    /// The repository's files.
    pub files: &'static [File],
}

/// What a story needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What it is about, for people.
    pub title: String,
    /// The language of its repository.
    pub language: String,
    /// The branch that the repository starts with.
    pub base_branch: String,
    /// The argv that decides whether the work is right.
    pub test_command: Vec<String>,
    /// The programs that must be there.
    pub programs: Vec<String>,
}

struct Embedded {
    name: &'static str,
    settings: &'static str,
    issue: &'static str,
    scenario: &'static str,
    files: &'static [File],
}

macro_rules! embedded {
    ($name:literal: $($path:literal),+ $(,)?) => {
        Embedded {
            name: $name,
            settings: include_str!(concat!("../../../stories/", $name, "/story.toml")),
            issue: include_str!(concat!("../../../stories/", $name, "/issue.md")),
            scenario: include_str!(concat!("../../../stories/", $name, "/scenario.toml")),
            files: &[$(($path, include_str!(concat!("../../../stories/", $name, "/repo/", $path)))),+],
        }
    };
}

static EMBEDDED: [Embedded; 3] = [
    embedded!("rust": ".gitignore", "Cargo.lock", "Cargo.toml", "README.md", "src/lib.rs", "tests/spoken.rs"),
    embedded!(
        "python": ".gitignore", "README.md", "slugs/__init__.py", "tests/__init__.py", "tests/test_slugify.py"
    ),
    embedded!("node": ".gitignore", "README.md", "package.json", "src/index.js", "test/parse-line.test.js"),
];

/// Lists all stories; the first is the demo's.
pub fn all() -> Vec<Story> {
    EMBEDDED.iter().map(read).collect()
}

/// Finds a story by its name.
pub fn find(name: &str) -> Option<Story> {
    EMBEDDED.iter().find(|embedded| embedded.name == name).map(read)
}

fn read(embedded: &Embedded) -> Story {
    let (title, body) = embedded.issue.split_once('\n').unwrap_or((embedded.issue, ""));
    Story {
        name: embedded.name,
        settings: toml::from_str(embedded.settings).expect("a test reads every embedded story"),
        issue_title: title.trim_start_matches("# ").to_owned(),
        issue_body: body.trim_start().to_owned(),
        scenario: embedded.scenario,
        files: embedded.files,
    }
}
