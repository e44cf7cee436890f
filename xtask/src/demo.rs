//! Plays the demo: makes sure of git, builds `conductor`, runs `conductor demo` with the given arguments.
//!
//! The exit code is the demo's own. It does not know what the demo shows.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::process::{self, cargo};
use crate::{setup, workspace};

/// Runs `conductor demo <arguments>` on this terminal.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    setup::for_demo()?;
    process::run(&mut cargo("build --package conductor --locked")).context("could not build conductor")?;
    let conductor = workspace::target().join("debug/conductor");
    let status = process::status(process::command(conductor).arg("demo").args(arguments))?;
    // A signal has no code; 1 says "failed" like every other failure of conductor.
    let code = status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1);
    Ok(ExitCode::from(code))
}
