//! Measures: builds for release and prints each figure as a ratio against a baseline of the same run.
//!
//! Every figure is a program of its own, beside what it measures. It does not know what a good figure is: the
//! programs say so.

use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::process::{self, cargo};

/// A figure: its name, and how its program is run.
struct Figure {
    name: &'static str,
    program: &'static str,
}

const FIGURES: [Figure; 4] = [
    Figure {
        name: "store",
        program: "run --release --locked --package conductor-store --example store_bench",
    },
    Figure {
        name: "workdir",
        program: "run --release --locked --package conductor-git --example bench_workdir",
    },
    Figure {
        name: "overhead",
        program: "run --release --locked --package conductor-it --bin conductor-bench -- overhead",
    },
    Figure {
        name: "runs",
        program: "run --release --locked --package conductor-it --bin conductor-bench -- runs",
    },
];

/// Runs the named figures, or all when no name is given.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    for name in arguments {
        ensure!(
            FIGURES.iter().any(|figure| figure.name == name),
            "there is no figure `{name}`; there are {}",
            FIGURES.map(|figure| figure.name).join(", ")
        );
    }
    // The stories' program must be there before the bench program looks for it.
    process::run(&mut cargo(
        "build --release --locked --package conductor-it --bins",
    ))?;
    for figure in FIGURES {
        if arguments.is_empty() || arguments.iter().any(|name| name == figure.name) {
            println!("== {}", figure.name);
            process::run(&mut cargo(figure.program))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
