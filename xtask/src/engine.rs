//! Says whether a Docker engine is to be had, and which tests need one.
//!
//! It does not know how tests are run, nor what they look at.

use std::ffi::OsStr;

use anyhow::{Result, ensure};

/// Set to anything by somebody who has no Docker engine: what needs one is then not run, and counted so.
pub(crate) const WITHOUT_DOCKER: &str = "CONDUCTOR_WITHOUT_DOCKER";

/// Tests that need an engine: a package, a test program of it, and how their names begin.
struct Tests {
    package: &'static str,
    program: &'static str,
    names: &'static str,
}

const fn named(package: &'static str, program: &'static str, names: &'static str) -> Tests {
    Tests {
        package,
        program,
        names,
    }
}

/// All tests that need an engine; what is not named here is run without one.
const NEED_DOCKER: [Tests; 8] = [
    named("conductor-executor", "it", "docker::"),
    named("conductor-it", "it", "containers::"),
    named("conductor-skill", "it", "real_docker::"),
    named("conductor", "skills", "defects::"),
    named(
        "conductor",
        "skills",
        "places::places_are_added_and_taken_one_environment_at_a_time",
    ),
    named(
        "conductor",
        "skills",
        "places::a_stopped_container_is_told_once_and_keeps_nobody_from_another_place",
    ),
    named(
        "conductor",
        "skills",
        "places::a_container_that_is_gone_for_good_is_forgotten_on_request",
    ),
    named("conductor", "exec", "docker::"),
];

/// Whether a Docker engine is to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Needed,
    Missing,
}

impl Engine {
    /// Reads what the developer says; a machine that judges for others needs an engine whatever it says.
    pub(crate) fn told(without: Option<&OsStr>, ci: Option<&OsStr>) -> Result<Self> {
        let is_set = |told: Option<&OsStr>| told.is_some_and(|told| !told.is_empty());
        ensure!(
            !(is_set(without) && is_set(ci)),
            "{WITHOUT_DOCKER} is for a developer's own machine; with CI set, every test runs"
        );
        Ok(if is_set(without) {
            Self::Missing
        } else {
            Self::Needed
        })
    }

    /// What nextest is told.
    pub(crate) fn arguments(self) -> Vec<String> {
        match self {
            Self::Needed => vec![],
            Self::Missing => vec!["-E".to_owned(), format!("not ({})", need_docker())],
        }
    }
}

fn need_docker() -> String {
    NEED_DOCKER
        .iter()
        .map(|tests| {
            format!(
                "(package({}) and binary({}) and test(/^{}/))",
                tests.package, tests.program, tests.names
            )
        })
        .collect::<Vec<_>>()
        .join(" or ")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::workspace;

    /// EXEC-2: whoever has no engine says so, by name; nobody is spared a test by accident, and a judge never.
    #[test]
    fn what_needs_docker_is_left_out_only_when_asked_and_never_by_a_judge() {
        let told = |without: &str, ci: &str| Engine::told(Some(OsStr::new(without)), Some(OsStr::new(ci)));
        assert_eq!(Engine::told(None, None).ok(), Some(Engine::Needed));
        assert_eq!(told("", "true").ok(), Some(Engine::Needed));
        assert_eq!(told("1", "").ok(), Some(Engine::Missing));
        assert!(told("1", "true").is_err());
        assert_eq!(Engine::Needed.arguments(), Vec::<String>::new());
        assert!(Engine::Missing.arguments()[1].starts_with("not ("));
    }

    /// How a container is started in a test. Files without tests are where these are defined.
    const STARTS: [&str; 6] = [
        "Container::start(",
        "Command::new(\"docker\")",
        "docker(&[",
        "Docker::new(",
        "Executor::Docker",
        // Without an address of its own, the engine of this machine.
        "exec_in_container(dir.path(), None",
    ];

    /// What starts a container: a package, a test program, and the path of the function.
    #[derive(Debug)]
    struct Starter {
        package: String,
        program: String,
        path: String,
    }

    impl Tests {
        fn have(&self, starter: &Starter) -> bool {
            self.package == starter.package
                && self.program == starter.program
                && starter.path.starts_with(self.names)
        }
    }

    /// Every test that starts containers is named, whatever its module; and whoever is named starts some.
    #[test]
    fn whatever_starts_containers_is_named_and_nothing_else_is() {
        let starters = all();
        for starter in &starters {
            assert!(
                NEED_DOCKER.iter().any(|tests| tests.have(starter)),
                "{starter:?} needs an engine and is not named"
            );
        }
        for tests in &NEED_DOCKER {
            assert!(
                starters.iter().any(|starter| tests.have(starter)),
                "{} {} {} starts no container",
                tests.package,
                tests.program,
                tests.names
            );
        }
    }

    #[test]
    fn a_function_that_starts_a_container_is_found_with_its_modules() {
        let text = "fn one() {\n    Container::start();\n}\n\nmod inner {\n    #[test]\n    fn two() {\n        \
                    docker(&[\"rm\"]);\n    }\n}\n\nfn three() {}\n";
        assert_eq!(starters(text, "outer"), ["outer::one", "outer::inner::two"]);
        assert_eq!(
            starters(&text.replace("#[test]", ""), "outer"),
            Vec::<String>::new(),
            "a file of tools"
        );
    }

    /// Everything in tests that starts a container.
    fn all() -> Vec<Starter> {
        let mut found = Vec::new();
        for package in entries(&workspace::root().join("crates")) {
            let tests = package.join("tests");
            for path in files(&tests) {
                let inside = path.strip_prefix(&tests).expect("it lies there");
                let inside = inside.with_extension("");
                let mut parts = inside
                    .iter()
                    .map(|part| part.to_string_lossy().into_owned())
                    .filter(|part| part != "main");
                let program = parts.next().expect("a file has a name");
                let module = parts.collect::<Vec<_>>().join("::");
                let text = fs::read_to_string(&path).expect("it is text");
                found.extend(starters(&text, &module).into_iter().map(|path| {
                    Starter {
                        package: package
                            .file_name()
                            .expect("it has a name")
                            .to_string_lossy()
                            .into_owned(),
                        program: program.clone(),
                        path,
                    }
                }));
            }
        }
        found
    }

    /// The functions of a file of tests that start containers, by their paths.
    fn starters(text: &str, module: &str) -> Vec<String> {
        let has_tests = ["#[test]", "#[tokio::test", "on_both_databases!("]
            .iter()
            .any(|mark| text.contains(mark));
        if !has_tests {
            return vec![];
        }
        let (mut inner, mut function) = ("", "");
        let mut found = Vec::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
                inner = name;
            } else if line == "}" {
                inner = "";
            }
            if let Some((_, rest)) = line.split_once("fn ")
                && let Some((name, _)) = rest.split_once(['(', '<'])
            {
                function = name;
            }
            if STARTS.iter().any(|start| line.contains(start)) && !line.trim_start().starts_with("//") {
                let parts = [module, inner, function];
                let path: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                found.push(path.join("::"));
            }
        }
        found
    }

    fn files(directory: &Path) -> Vec<PathBuf> {
        entries(directory)
            .into_iter()
            .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
            .filter(|path| path.extension().is_some_and(|end| end == "rs"))
            .collect()
    }

    fn entries(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten();
        entries.map(|entry| entry.expect("readable").path()).collect()
    }
}
