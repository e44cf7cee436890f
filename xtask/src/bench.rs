//! Measures: release build of the bench program, then its figures as ratios against a baseline of the same run.
//!
//! It does not know which figures there are; `conductor-bench` lists and judges them.

use std::process::ExitCode;

use anyhow::Result;

use crate::process::{self, cargo};

/// Runs one named bench, or all when no name is given.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    process::run(&mut cargo("build --release --locked --package conductor"))?;
    process::run(
        cargo("run --release --locked --package conductor-it --bin conductor-bench --").args(arguments),
    )?;
    Ok(ExitCode::SUCCESS)
}
