//! Times the stages of a long command and prints the account at its end.
//!
//! A failed stage does not stop the next one, so that one run shows everything that is wrong. It does not know what a
//! stage does.
#![allow(
    clippy::disallowed_methods,
    reason = "measuring the wall clock is what this module is for"
)]

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;

/// What has been run so far, in order.
#[derive(Default)]
pub(crate) struct Stages {
    done: Vec<Done>,
}

struct Done {
    name: &'static str,
    took: Duration,
    error: Option<anyhow::Error>,
}

impl Stages {
    /// Runs one stage and keeps its time and its error, if any.
    pub(crate) fn run(&mut self, name: &'static str, stage: impl FnOnce() -> Result<()>) {
        eprintln!("\n== {name}");
        let start = Instant::now();
        let error = stage().err();
        if let Some(error) = &error {
            eprintln!("{name} failed: {error:#}");
        }
        self.done.push(Done {
            name,
            took: start.elapsed(),
            error,
        });
    }

    /// Says whether every stage so far went well.
    pub(crate) fn all_passed(&self) -> bool {
        self.done.iter().all(|done| done.error.is_none())
    }
}

/// The account: a line per stage, then the total.
impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: Duration = self.done.iter().map(|done| done.took).sum();
        for Done { name, took, error } in &self.done {
            write!(f, "  {name:<10} {:>7.1} s", took.as_secs_f64())?;
            match error {
                None => writeln!(f, "  ok")?,
                Some(error) => writeln!(
                    f,
                    "  FAILED: {}",
                    error.to_string().lines().next().unwrap_or_default()
                )?,
            }
        }
        writeln!(f, "  {:<10} {:>7.1} s", "total", total.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_stage_is_remembered_and_the_next_one_still_runs() {
        let mut stages = Stages::default();
        let mut second_ran = false;
        stages.run("first", || anyhow::bail!("no such luck\nhint: try again"));
        stages.run("second", || {
            second_ran = true;
            Ok(())
        });
        let account = stages.to_string();
        assert!(second_ran && !stages.all_passed());
        assert!(account.contains("FAILED: no such luck\n  second"), "{account}");
        assert!(
            account
                .lines()
                .last()
                .is_some_and(|line| line.trim_start().starts_with("total")),
            "{account}"
        );
    }
}
