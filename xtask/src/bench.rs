//! Measures: builds for release and prints each figure as a ratio against a baseline of the same run.
//!
//! Every figure is a program of its own, beside what it measures. Before each, this machine is measured at that minute,
//! because machines differ and are busy. It does not know what a good figure is: the programs say so.

use std::io::{Read as _, Write as _};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::process::{self, cargo};
use crate::{setup, workspace};

/// A figure: its name, and its program below `target/release` with arguments. Two programs may stand behind one name.
struct Figure {
    name: &'static str,
    program: &'static str,
}

/// One build of everything: built one by one, each program would want its third-party crates with other features.
const BUILD: &str = "build --release --locked --workspace --bins --examples";

const FIGURES: [Figure; 9] = [
    Figure {
        name: "store",
        program: "conductor-bench store",
    },
    Figure {
        name: "store",
        program: "conductor-bench teams",
    },
    Figure {
        name: "workdir",
        program: "examples/bench_workdir",
    },
    Figure {
        name: "executor",
        program: "examples/bench_executor",
    },
    Figure {
        name: "skills",
        program: "examples/bench_skills",
    },
    Figure {
        name: "tools",
        program: "conductor-bench tools",
    },
    Figure {
        name: "web",
        program: "conductor-bench web",
    },
    Figure {
        name: "overhead",
        program: "conductor-bench overhead",
    },
    Figure {
        name: "runs",
        program: "conductor-bench runs",
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
    let is_chosen = |name: &str| arguments.is_empty() || arguments.iter().any(|wanted| wanted == name);
    let chosen = FIGURES.iter().filter(|figure| is_chosen(figure.name));
    setup::for_tests()?;
    if is_chosen("skills") {
        setup::for_figures_of_skills()?;
    }
    if is_chosen("tools") {
        setup::for_figures_of_tools()?;
    }
    process::run(&mut cargo(BUILD))?;
    let release = workspace::target().join("release");
    let mut missed = Vec::new();
    for figure in chosen {
        println!("== {}", figure.name);
        println!("{}", calibration()?);
        // A bar that is missed does not keep the other figures from being seen.
        let mut words = figure.program.split(' ');
        let mut program = process::command(release.join(words.next().unwrap_or_default()));
        if let Err(error) = process::run(program.args(words)) {
            eprintln!("{error}");
            missed.push(figure.name);
        }
    }
    if missed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("missed: {}", missed.join(", "));
    Ok(ExitCode::FAILURE)
}

/// What this machine does at this minute: starts a program, answers over a pipe, copies memory. Medians.
#[allow(clippy::disallowed_methods, reason = "measures with the clock")]
fn calibration() -> Result<String> {
    let timed = |rounds: u32, act: &mut dyn FnMut() -> Result<()>| -> Result<Duration> {
        let mut times = vec![];
        for _ in 0..rounds {
            let begun = Instant::now();
            act()?;
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        Ok(times[times.len() / 2])
    };
    let start = timed(100, &mut || {
        process::command("/bin/true")
            .status()
            .context("starting /bin/true")?;
        Ok(())
    })?;

    let mut cat = process::command("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting cat")?;
    let (mut there, mut back) = (
        cat.stdin.take().context("a pipe to cat")?,
        cat.stdout.take().context("a pipe from cat")?,
    );
    let mut byte = [0_u8];
    let round_trip = timed(1000, &mut || {
        there.write_all(&byte)?;
        back.read_exact(&mut byte)?;
        Ok(())
    })?;
    drop(there);
    cat.wait().context("waiting for cat")?;

    let from = vec![1_u8; 64 << 20];
    let mut to = vec![0_u8; 64 << 20];
    let copy = timed(9, &mut || {
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        Ok(())
    })?;
    Ok(format!(
        "calibration: start of a program {:.2} ms, round trip over a pipe {:.1} µs, copying memory {:.1} GiB/s",
        start.as_secs_f64() * 1e3,
        round_trip.as_secs_f64() * 1e6,
        0.0625 / copy.as_secs_f64()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_has_three_figures() {
        let said = calibration().expect("cat and true are there");
        let figures = said
            .split_whitespace()
            .filter_map(|word| word.parse::<f64>().ok())
            .filter(|figure| *figure > 0.0);
        assert_eq!(figures.count(), 3, "{said}");
    }
}
