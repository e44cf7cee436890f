//! Runs what takes too long for every commit, and judges it against its bar.
//!
//! Each task is one row of `TASKS`; later issues add theirs. It does not know how a task's subject works.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::process::{self, cargo};
use crate::stage::Stages;
use crate::{setup, workspace};

struct Task {
    name: &'static str,
    run: fn(&Part) -> Result<()>,
}

/// How much of a task is done.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Whole,
    /// One of so many equal parts, `K/N` from 0 on; of what can be divided.
    Shard(String),
}

impl Part {
    fn is_whole(&self) -> Result<()> {
        ensure!(*self == Self::Whole, "only mutants can be tried in parts");
        Ok(())
    }
}

const TASKS: &[Task] = &[
    Task {
        name: "mutants-domain",
        run: |part| mutants("conductor-domain", part),
    },
    Task {
        name: "mutants-policy",
        run: |part| mutants("conductor-policy", part),
    },
    Task {
        name: "teams",
        run: teams,
    },
    Task {
        name: "fuzz",
        run: fuzz,
    },
];

/// Mutants of a crate that its tests must notice, in percent.
const BAR: u64 = 90;

/// Runs the named tasks, or all; `K/N` among the names tries only that part of the mutants.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let mut stages = Stages::default();
    let (shards, names): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| argument.contains('/'));
    let part = match shards.as_slice() {
        [] => Part::Whole,
        [shard] => Part::Shard((*shard).clone()),
        _ => bail!("one part at a time"),
    };
    for name in &names {
        ensure!(
            TASKS.iter().any(|task| task.name == *name),
            "there is no long task `{name}`"
        );
    }
    for task in TASKS
        .iter()
        .filter(|task| names.is_empty() || names.iter().any(|name| *name == task.name))
    {
        stages.run(task.name, || (task.run)(&part));
    }
    println!("\n{stages}");
    Ok(if stages.all_passed() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Strikes servers of a team fifty times while they carry a hundred whole runs.
fn teams(part: &Part) -> Result<()> {
    part.is_whole()?;
    setup::for_tests()?;
    process::run(
        // The whole workspace, as in the gate: one package alone has other features, and all below it is built anew.
        cargo("nextest run --locked --profile long --workspace --no-capture")
            .args(["-E", "test(a_hundred_runs_end_though_servers_die_and_freeze)"])
            .env("CONDUCTOR_CHAOS_ROUNDS", "50")
            .env("CONDUCTOR_CHAOS_EVERY", "1"),
    )
}

/// Feeds each target of `fuzz/` for a minute, from its seeds on, with coverage that stable rustc can make.
fn fuzz(part: &Part) -> Result<()> {
    const TARGETS: [&str; 4] = ["redaction", "paths", "json_rpc", "diff"];
    const HOST: &str = "x86_64-unknown-linux-gnu";
    // The passes are LLVM's own; rustc promises nothing about them, but stable takes them.
    const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
         -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
         -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1 -Cdebug-assertions";
    part.is_whole()?;
    setup::for_fuzz()?;
    let home = workspace::root().join("fuzz");
    let out = workspace::target().join("fuzz");
    process::run(
        // With `--target`, so that build scripts are not instrumented.
        cargo("build --release --target")
            .arg(HOST)
            .arg("--manifest-path")
            .arg(home.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&out)
            .env("RUSTFLAGS", FLAGS),
    )?;
    for target in TARGETS {
        // What it finds worth keeping goes on in the next run; a crash is left beside it.
        let found = out.join("found").join(target);
        fs::create_dir_all(&found).with_context(|| format!("could not make {}", found.display()))?;
        process::run(
            process::command(out.join(HOST).join("release").join(target))
                .args(["-max_total_time=60", "-timeout=10", "-rss_limit_mb=4096"])
                .args(["-verbosity=0", "-print_final_stats=1"])
                .arg(format!("-artifact_prefix={}/", out.display()))
                .arg(&found)
                .arg(home.join("seeds").join(target)),
        )
        .with_context(|| format!("the input that {target} fails on lies in {}", out.display()))?;
    }
    Ok(())
}

/// Tests that cost much in every one of hundreds of trees and notice nothing that others do not: other scanners, which a
/// copied tree does not have, an account of false alarms on megabytes of other people's code, and megabytes of hostile
/// text, of which a change that never ends is noticed by its time.
const UNHELPFUL: [&str; 3] = [
    "the_scan_beats_other_scanners_on_the_same_tree",
    "real_code_raises_few_alarms",
    "hostile_text_neither_fills_memory_nor_takes_for_ever",
];

/// What the tests spend their time in; it is built once and run in every tree.
const BUSY: [&str; 9] = [
    "aho-corasick",
    "cedar-policy",
    "cedar-policy-core",
    "lalrpop-util",
    "memchr",
    "proptest",
    "regex-automata",
    "regex-syntax",
    "smol_str",
];

/// Changes a crate in hundreds of small ways and counts which changes its tests notice.
fn mutants(package: &str, part: &Part) -> Result<()> {
    let tool = workspace::tool("mutants");
    let program = tool.join("bin/cargo-mutants");
    if !program.is_file() {
        process::run(cargo("install cargo-mutants --locked --root").arg(&tool))?;
    }
    let out = workspace::target().join("long").join(package);
    fs::create_dir_all(&out).with_context(|| format!("could not make {}", out.display()))?;
    let shard = match part {
        Part::Whole => vec![],
        Part::Shard(shard) => vec!["--sharding", "round-robin", "--shard", shard],
    };
    let status = process::status(
        process::command(&program)
            .args(["mutants"])
            .args(shard)
            .args([
                "--package",
                package,
                "--jobs",
                "2",
                // All of them take a second or two; what takes so much longer has been noticed by its time.
                "--timeout",
                "60",
                "--no-shuffle",
                "--output",
            ])
            .arg(&out)
            .args(BUSY.map(|name| format!("--cargo-arg=--config=profile.dev.package.{name}.opt-level=1")))
            // Nobody looks for the line where one of them failed.
            .arg("--cargo-arg=--config=profile.dev.debug=false")
            // It ends with the first test that notices, and its profile runs the slow ones last.
            .args(["--test-tool", "nextest"])
            .args(["--", "--lib", "--tests", "--profile", "mutants", "-E"])
            .arg(format!(
                "not ({})",
                UNHELPFUL.map(|test| format!("test({test})")).join(" | ")
            ))
            // Few histories notice no more than many, and what fails need not be made small.
            .env("PROPTEST_CASES", "32")
            .env("PROPTEST_MAX_SHRINK_ITERS", "0"),
    )?;
    // 2: some survived, 3: some hung. The bar below judges those; anything else left no account to read.
    ensure!(
        matches!(status.code(), Some(0 | 2 | 3)),
        "cargo-mutants ended with {status}"
    );
    let outcome = read(&out.join("mutants.out/outcomes.json"))?;
    println!("{package}: {outcome}");
    ensure!(outcome.total() > 0, "cargo-mutants tried nothing");
    ensure!(
        outcome.percent() >= BAR,
        "{}% of the mutants of {package} were caught, the bar is {BAR}%",
        outcome.percent()
    );
    Ok(())
}

/// What became of the mutants that compiled.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    caught: u64,
    missed: u64,
}

impl Outcome {
    fn total(&self) -> u64 {
        self.caught + self.missed
    }

    /// Rounds down: 89.9 % is not 90 %.
    fn percent(&self) -> u64 {
        self.caught * 100 / self.total().max(1)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "mutants: {} caught, {} missed, {}%",
            self.caught,
            self.missed,
            self.percent()
        )
    }
}

fn read(path: &Path) -> Result<Outcome> {
    let text = fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
    outcome_in(&text).with_context(|| format!("could not understand {}", path.display()))
}

/// Reads the totals; a mutant that hangs the tests has been noticed, one that does not compile was never tried.
fn outcome_in(text: &str) -> Result<Outcome> {
    let json: Value = serde_json::from_str(text)?;
    let number = |key: &str| json[key].as_u64().with_context(|| format!("no number `{key}`"));
    Ok(Outcome {
        caught: number("caught")? + number("timeout")?,
        missed: number("missed")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_counts_as_caught_and_an_unviable_mutant_not_at_all() {
        let text = r#"{"outcomes": [], "total_mutants": 21, "missed": 2, "caught": 17, "timeout": 1, "unviable": 1}"#;
        let outcome = outcome_in(text).expect("the totals are there");
        assert_eq!(
            outcome,
            Outcome {
                caught: 18,
                missed: 2
            }
        );
        assert_eq!(outcome.percent(), 90);
    }

    #[test]
    fn the_percentage_never_rounds_up_to_the_bar() {
        assert_eq!(
            Outcome {
                caught: 899,
                missed: 101
            }
            .percent(),
            89
        );
        assert_eq!(Outcome { caught: 0, missed: 0 }.percent(), 0);
    }

    #[test]
    fn totals_that_are_missing_are_an_error_not_a_zero() {
        assert!(outcome_in(r#"{"caught": 1}"#).is_err());
    }
}
