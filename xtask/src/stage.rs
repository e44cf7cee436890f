//! Times the stages of a long command and prints the account at its end.
//!
//! A failed stage does not stop the next one, so that one run shows everything that is wrong. It does not know what a
//! stage does.
#![allow(
    clippy::disallowed_methods,
    reason = "measuring the wall clock is what this module is for"
)]

use std::time::{Duration, Instant};
use std::{fmt, panic, thread};

use anyhow::Result;

/// What has been run so far, in the order in which it ended.
pub(crate) struct Stages {
    begun: Instant,
    done: Vec<Done>,
}

impl Default for Stages {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            done: Vec::new(),
        }
    }
}

struct Done {
    name: &'static str,
    took: Duration,
    error: Option<anyhow::Error>,
}

impl Stages {
    /// Runs one stage and keeps its time and its error, if any.
    pub(crate) fn run(&mut self, name: &'static str, stage: impl FnOnce() -> Result<()>) {
        self.done.push(Done::of(name, stage));
    }

    /// Runs one stage beside others that do not need it; when this returns, all of them have ended.
    pub(crate) fn beside(
        &mut self,
        name: &'static str,
        stage: impl FnOnce() -> Result<()> + Send,
        others: impl FnOnce(&mut Self),
    ) {
        let done = thread::scope(|scope| {
            let aside = scope.spawn(|| Done::of(name, stage));
            others(self);
            aside.join()
        });
        self.done
            .push(done.unwrap_or_else(|cause| panic::resume_unwind(cause)));
    }

    /// Says whether every stage so far went well.
    pub(crate) fn all_passed(&self) -> bool {
        self.done.iter().all(|done| done.error.is_none())
    }
}

impl Done {
    fn of(name: &'static str, stage: impl FnOnce() -> Result<()>) -> Self {
        eprintln!("\n== {name}");
        let start = Instant::now();
        let error = stage().err();
        if let Some(error) = &error {
            eprintln!("{name} failed: {error:#}");
        }
        Self {
            name,
            took: start.elapsed(),
            error,
        }
    }
}

/// The account: a line per stage, then what all of it took, which is less than the sum where stages ran side by side.
impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        writeln!(
            f,
            "  {:<10} {:>7.1} s",
            "total",
            self.begun.elapsed().as_secs_f64()
        )
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

    #[test]
    fn a_stage_beside_others_has_ended_before_what_comes_next() {
        let (tell, told) = std::sync::mpsc::channel();
        let mut stages = Stages::default();
        stages.beside(
            "aside",
            // It can only end while the other one runs.
            move || Ok(told.recv_timeout(Duration::from_mins(1))?),
            |stages| stages.run("other", || Ok(tell.send(())?)),
        );
        assert!(stages.all_passed(), "{stages}");
        let names: Vec<&str> = stages.done.iter().map(|done| done.name).collect();
        assert!(names.contains(&"aside") && names.contains(&"other"), "{names:?}");

        stages.beside("aside", || anyhow::bail!("no such luck"), |_| {});
        assert!(!stages.all_passed(), "{stages}");
    }
}
