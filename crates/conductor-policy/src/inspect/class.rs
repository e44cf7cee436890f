//! Tells what kind of change it is from the paths that it touches, and from nothing else (RUN-14).
//!
//! A class is what the most telling path says. What is not plainly words, tests or dependencies is code: a file that steers
//! a tool or an agent is, whatever its ending. This module does not know what a file says.

use conductor_domain::diff::ChangeClass;

use crate::supply;

/// Words whose files are read by agents and tools as instructions.
const STEERING: [&str; 6] = ["agents", "claude", "gemini", "copilot", "skill", "codeowners"];

/// Manifests that name commands to run, or where everything comes from, beside dependencies.
const RUNS: [&str; 13] = [
    "package.json",
    "composer.json",
    "gemfile",
    "podfile",
    "pom.xml",
    "setup.cfg",
    "deno.json",
    "deno.jsonc",
    "pnpm-workspace.yaml",
    "go.work",
    "uv.toml",
    "nuget.config",
    "gradle-wrapper.properties",
];
/// Endings of manifests that are programs.
const PROGRAMS: [&str; 13] = [
    "py", "rb", "gradle", "kts", "sbt", "exs", "swift", "nix", "gemspec", "csproj", "fsproj", "props",
    "targets",
];

/// Tells the class of a change; one of nothing is code.
pub fn class_of<'a>(paths: impl IntoIterator<Item = &'a str>) -> ChangeClass {
    paths.into_iter().map(of_path).max().unwrap_or_default()
}

fn of_path(path: &str) -> ChangeClass {
    let is_manifest = supply::is_manifest(path);
    let path = path.to_lowercase();
    let parts: Vec<&str> = path.split('/').collect();
    let Some((name, folders)) = parts.split_last() else {
        return ChangeClass::Code;
    };
    // Whatever is hidden steers something.
    if parts.iter().any(|part| part.starts_with('.')) {
        return ChangeClass::Code;
    }
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    if STEERING.iter().any(|word| stem.contains(word)) {
        return ChangeClass::Code;
    }
    if is_manifest {
        let is_program = PROGRAMS.contains(&ending) || RUNS.contains(name);
        return if is_program {
            ChangeClass::Code
        } else {
            ChangeClass::Dependencies
        };
    }
    let is_picture = matches!(ending, "png" | "jpg" | "jpeg" | "gif") && folders.contains(&"docs");
    if matches!(ending, "md" | "rst" | "adoc") || is_picture {
        return ChangeClass::Documentation;
    }
    let in_tests = folders
        .iter()
        .any(|folder| matches!(*folder, "tests" | "test" | "__tests__" | "spec"));
    let last_word = stem.rsplit_once('.').map_or("", |(_, word)| word);
    let named_so =
        stem.ends_with("_test") || stem.starts_with("test_") || matches!(last_word, "test" | "spec");
    // Who decides what "the tests passed" means is no test.
    let is_harness = matches!(*name, "conftest.py" | "build.rs" | "makefile") || ending.is_empty();
    if (in_tests || named_so) && !is_harness {
        return ChangeClass::Tests;
    }
    ChangeClass::Code
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RUN-14: a change is of the class of its most telling path, and a doubt is code.
    #[test]
    fn a_change_is_what_its_paths_say() {
        use ChangeClass::{Code, Dependencies, Documentation, Tests};
        for (paths, expected) in [
            (&["README.md", "docs/a.rst", "docs/img/b.png"][..], Documentation),
            (&["README.md", "tests/it/a.rs"], Tests),
            (&["src/a_test.go", "web/a.spec.ts", "test_x.py"], Tests),
            (&["README.md", "Cargo.toml", "tests/a.rs"], Dependencies),
            (&["requirements.txt"], Dependencies),
            (&["README.md", "src/lib.rs"], Code),
            (&["package.json"], Code),
            (&["setup.py"], Code),
            (&["test-requirements.txt", "constraints.txt"], Dependencies),
            // What names dependencies and also chooses what is run, or where all of them come from.
            (&["gems.rb"], Code),
            (&["deno.jsonc"], Code),
            (&["go.work"], Code),
            (&["uv.toml"], Code),
            (&["pnpm-workspace.yaml"], Code),
            (&["NuGet.config"], Code),
            (&["Directory.Build.props"], Code),
            (&["gradle/wrapper/gradle-wrapper.properties"], Code),
            (&["x.csproj"], Code),
            (&["mix.exs"], Code),
            (&["Package.swift"], Code),
            (&[], Code),
            // What looks like words and is more.
            (&["AGENTS.md"], Code),
            (&["docs/CLAUDE.local.md"], Code),
            (&["skills/x/SKILL.md"], Code),
            (&[".github/PULL_REQUEST_TEMPLATE.md"], Code),
            (&["docs/.vuepress/config.md"], Code),
            (&["docs/conf.py"], Code),
            (&["docs/index.mdx"], Code),
            (&["docs/CODEOWNERS"], Code),
            (&["logo.png"], Code),
            (&["tests/conftest.py"], Code),
            (&["tests/run"], Code),
            (&["notes.txt"], Code),
        ] {
            assert_eq!(class_of(paths.iter().copied()), expected, "{paths:?}");
        }
    }
}
