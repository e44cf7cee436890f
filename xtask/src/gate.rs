//! The gate: every check that a commit must pass, as timed stages, then the count of tests.
//!
//! `test` and `ci` are both this. Cheap stages come first; none sets `RUSTFLAGS` or another profile, so that nothing
//! is built twice. It does not know what a check looks at.

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};

use crate::process::{self, cargo};
use crate::stage::Stages;
use crate::tally::Tally;
use crate::{layers, setup, tidy, workspace};

/// Runs all stages; ends with `N passed, N failed` alone on the last line.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    ensure!(
        arguments.is_empty(),
        "the gate takes no arguments; `cargo nextest run` does"
    );
    let mut stages = Stages::default();
    let mut tally = Tally::default();

    stages.run("setup", setup::for_tests);
    // Names of files, not their differences: the remedy is `cargo fmt`, whatever they are.
    stages.run("fmt", || {
        process::run(&mut cargo("fmt --all -- --check --files-with-diff"))
    });
    stages.run("layers", layers::check);
    stages.run("tidy", tidy::check);
    stages.run("clippy", || {
        process::run(&mut cargo(
            "clippy --workspace --all-targets --locked -- -D warnings",
        ))
    });
    // All targets, because whole stories start the real binaries; the tests below find everything built.
    stages.run("build", || {
        process::run(&mut cargo("build --workspace --all-targets --locked"))
    });
    stages.run("tests", || tests(&mut tally));
    stages.run("doctests", || {
        count(
            &mut cargo("test --workspace --doc --locked --no-fail-fast"),
            Tally::from_harness,
            &mut tally,
        )
    });
    if process::succeeds(&mut cargo("deny --version")) {
        // Advisories need a download from outside the package registries: `cargo deny check advisories` by hand.
        stages.run("deny", || {
            process::run(&mut cargo("deny --offline check bans licenses sources"))
        });
    } else {
        eprintln!(
            "\nnote: cargo-deny is not installed; of deny.toml only what `layers` knows has been checked"
        );
        eprintln!("hint: cargo install cargo-deny --locked");
    }

    println!("\n{stages}");
    println!("{tally}");
    Ok(if stages.all_passed() && tally.is_green() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn tests(tally: &mut Tally) -> Result<()> {
    if process::succeeds(&mut cargo("nextest --version")) {
        count(
            with_tools(&mut cargo("nextest run --workspace --locked --no-fail-fast")),
            Tally::from_nextest,
            tally,
        )?;
    } else {
        eprintln!("note: cargo-nextest is not installed, `cargo test` stands in for it");
        eprintln!("hint: cargo install cargo-nextest --locked");
        count(
            with_tools(&mut cargo(
                "test --workspace --lib --bins --tests --locked --no-fail-fast",
            )),
            Tally::from_harness,
            tally,
        )?;
    }
    ensure!(tally.is_green(), "no test passed");
    Ok(())
}

/// Lets stories find the tools that `setup` installed for this repository.
fn with_tools(command: &mut std::process::Command) -> &mut std::process::Command {
    command.env(
        "PATH",
        workspace::path_with(&workspace::tool("node22").join("bin")),
    )
}

/// Runs a test command and adds what its summary lines say.
fn count(
    command: &mut std::process::Command,
    read: fn(&str) -> Option<Tally>,
    tally: &mut Tally,
) -> Result<()> {
    let mut here = Tally::default();
    let status = process::follow(command, |line| {
        if let Some(found) = read(line) {
            here += found;
        }
    })?;
    *tally += here;
    if !status.success() {
        bail!("{here}, and the test command ended with {status}");
    }
    Ok(())
}
