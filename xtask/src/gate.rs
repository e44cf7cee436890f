//! The gate: every check that a commit must pass, as timed stages, then the count of tests.
//!
//! `test` and `ci` are both this. None sets `RUSTFLAGS` or another profile, so that nothing
//! is built twice. It does not know what a check looks at.

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};

use crate::engine::{Engine, WITHOUT_DOCKER};
use crate::process::{self, cargo};
use crate::protections::{self, Passed};
use crate::scratch::Scratch;
use crate::stage::Stages;
use crate::tally::Tally;
use crate::{layers, setup, tidy, workspace};

/// Runs all stages; ends with `N passed, N failed` alone on the last line.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    ensure!(
        arguments.is_empty(),
        "the gate takes no arguments; `cargo nextest run` does"
    );
    let engine = Engine::told(
        workspace::variable(WITHOUT_DOCKER).as_deref(),
        workspace::variable("CI").as_deref(),
    )?;
    let mut stages = Stages::default();
    let mut tally = Tally::default();
    let mut passed = Passed::default();

    // Nothing that is compiled needs what tests start, and installing that mostly waits for others.
    stages.beside(
        "setup",
        || match engine {
            Engine::Needed => setup::for_tests(),
            Engine::Missing => setup::for_tests_without_docker(),
        },
        compiled,
    );
    let scratch = Scratch::prepare();
    stages.run("tests", || tests(engine, &scratch, &mut tally, &mut passed));
    stages.run("protections", || {
        protections::check(&passed, |test| {
            engine == Engine::Missing && test.contains("docker")
        })
    });
    stages.run("example", || example(&scratch, &mut tally, &mut passed));
    drop(scratch);
    stages.run("doctests", || {
        count(
            &mut cargo("test --workspace --doc --locked --no-fail-fast"),
            Tally::from_harness,
            &mut tally,
            &mut Passed::default(),
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
    if engine == Engine::Missing {
        println!(
            "NOT RUN: what needs a Docker engine ({WITHOUT_DOCKER} is set); it stands among the skipped, and the gate is not whole"
        );
    }
    for test in passed.unsteady() {
        println!("UNSTEADY: {test} failed first and passed when tried again; find out why");
    }
    println!("{tally}");
    Ok(if stages.all_passed() && tally.is_green() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Everything that needs no more than the sources and their compiler; cheap stages come first.
fn compiled(stages: &mut Stages) {
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
}

fn tests(engine: Engine, scratch: &Scratch, tally: &mut Tally, passed: &mut Passed) -> Result<()> {
    ensure!(
        engine == Engine::Needed || has_nextest(),
        "only cargo-nextest can leave tests out and count them\nhint: cargo install cargo-nextest --locked"
    );
    suite(
        "--workspace",
        &["--profile", "gate", "--test-threads", &at_once().to_string()],
        &engine.arguments(),
        scratch,
        tally,
        passed,
    )?;
    ensure!(tally.is_green(), "no test passed");
    Ok(())
}

/// How many tests run at once: half as many again as there are processors, because a story mostly waits for what it started.
fn at_once() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    processors + processors.div_ceil(2)
}

/// Runs the contract on the executor that stands outside the workspace, as its author would: with no profile of ours, so
/// nothing is tried again. Third-party crates and the guest are found built already.
fn example(scratch: &Scratch, tally: &mut Tally, passed: &mut Passed) -> Result<()> {
    suite(
        "--manifest-path examples/logged-executor/Cargo.toml",
        &[],
        &[
            "--target-dir".to_owned(),
            workspace::target().display().to_string(),
        ],
        scratch,
        tally,
        passed,
    )
}

/// Runs the tests of some packages with nextest, or with the built-in harness where that is missing, which knows no profiles.
fn suite(
    packages: &str,
    profile: &[&str],
    more: &[String],
    scratch: &Scratch,
    tally: &mut Tally,
    passed: &mut Passed,
) -> Result<()> {
    let (mut command, read): (_, fn(&str) -> Option<Tally>) = if has_nextest() {
        let mut command = cargo(&format!("nextest run --locked --no-fail-fast {packages}"));
        command.args(profile);
        (command, Tally::from_nextest)
    } else {
        eprintln!("note: cargo-nextest is not installed, `cargo test` stands in for it");
        eprintln!("hint: cargo install cargo-nextest --locked");
        let command = cargo(&format!(
            "test --lib --bins --tests --locked --no-fail-fast {packages}"
        ));
        (command, Tally::from_harness)
    };
    scratch.lend(&mut command);
    count(with_tools(command.args(more)), read, tally, passed)
}

fn has_nextest() -> bool {
    process::succeeds(&mut cargo("nextest --version"))
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
    passed: &mut Passed,
) -> Result<()> {
    let mut here = Tally::default();
    let status = process::follow(command, |line| {
        passed.hear(line);
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
