//! Installs and starts what tests and the demo need, each thing once: `setup git|python3|curl|bubblewrap|node22|docker|skills-ref|schemathesis|postgres|chromium|axe|scanners|mcp|all`.
//!
//! Every thing is a file with one function that returns at once when the thing is there. Root on Debian installs by
//! apt; anybody else is told exactly what to run. It does not know which test uses what.

mod apt;
mod npm;
mod docker;
mod image;
mod postgres;
mod chromium;
mod axe;
mod node22;
mod interpreter;
mod python;
mod skills_ref;
mod schemathesis;
mod scanners;
mod mcp;
mod skill_peers;

use std::process::ExitCode;

use anyhow::{Context, Result};

struct Thing {
    name: &'static str,
    ensure: fn() -> Result<()>,
}

const THINGS: &[Thing] = &[
    Thing {
        name: "git",
        ensure: interpreter::git,
    },
    Thing {
        name: "python3",
        ensure: interpreter::python3,
    },
    Thing {
        name: "curl",
        ensure: interpreter::curl,
    },
    Thing {
        name: "bubblewrap",
        ensure: interpreter::bubblewrap,
    },
    Thing {
        name: "node22",
        ensure: node22::ensure,
    },
    Thing {
        name: "docker",
        ensure: docker::ensure,
    },
    Thing {
        name: "skills-ref",
        ensure: skills_ref::ensure,
    },
    Thing {
        name: "schemathesis",
        ensure: schemathesis::ensure,
    },
    Thing {
        name: "postgres",
        ensure: postgres::ensure,
    },
    Thing {
        name: "chromium",
        ensure: chromium::ensure,
    },
    Thing {
        name: "axe",
        ensure: axe::ensure,
    },
    Thing {
        name: "scanners",
        ensure: scanners::ensure,
    },
    Thing {
        name: "mcp",
        ensure: mcp::ensure,
    },
];

/// Sets up the named things, or all of them.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let chosen: Option<Vec<&Thing>> = match arguments {
        [all] if all == "all" => Some(THINGS.iter().collect()),
        [] => None,
        names => names
            .iter()
            .map(|name| THINGS.iter().find(|thing| thing.name == name))
            .collect(),
    };
    let Some(chosen) = chosen else {
        let names: Vec<&str> = THINGS.iter().map(|thing| thing.name).collect();
        eprintln!("usage: cargo xtask setup {}|all", names.join("|"));
        return Ok(ExitCode::from(2));
    };
    for thing in chosen {
        (thing.ensure)().with_context(|| format!("could not set up {}", thing.name))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes sure of what the workspace's tests start: git, the sandbox's launcher, two secret scanners, public clients of the tools' protocol and of the API, a browser and its judge, and an interpreter for each language that stories are told in.
pub(crate) fn for_tests() -> Result<()> {
    docker::ensure()?;
    for_tests_without_docker()
}

/// The same for somebody who has no engine, and is told which tests were not run.
pub(crate) fn for_tests_without_docker() -> Result<()> {
    interpreter::git()?;
    interpreter::python3()?;
    interpreter::curl()?;
    interpreter::bubblewrap()?;
    skills_ref::ensure()?;
    schemathesis::ensure()?;
    postgres::ensure()?;
    scanners::ensure()?;
    mcp::ensure()?;
    chromium::ensure()?;
    axe::ensure()?;
    interpreter::node()
}

/// Makes sure of the programs that installing skills is measured against; only its figures start them.
pub(crate) fn for_figures_of_skills() -> Result<()> {
    skill_peers::ensure()
}

/// Makes sure of what the figures about tools are measured against and tests do not start: ripgrep.
pub(crate) fn for_figures_of_tools() -> Result<()> {
    interpreter::ripgrep()
}

/// Makes sure of what the fuzzer is built with.
pub(crate) fn for_fuzz() -> Result<()> {
    interpreter::cpp()
}

/// Makes sure of what the demo starts.
pub(crate) fn for_demo(story: Option<&str>) -> Result<()> {
    interpreter::git()?;
    interpreter::bubblewrap()?;
    match story {
        Some("python") => interpreter::python3(),
        Some("node") => interpreter::node(),
        // `conductor demo` says what it thinks of any other.
        Some(_) | None => Ok(()),
    }
}

/// Makes sure of what looks at pages.
pub(crate) fn for_pages() -> Result<()> {
    interpreter::git()?;
    interpreter::bubblewrap()?;
    chromium::ensure()?;
    axe::ensure()
}

/// Tells the person that a thing is ready, and which one.
fn ready(name: &str, detail: &str) {
    eprintln!("{name}: {}", detail.trim());
}
