//! Installs Python packages, each in an environment of its own below `target/tools`, for this repository only.
//!
//! It does not know what they do.

use anyhow::{Context, Result};

use super::{interpreter, ready};
use crate::process::{self, command};
use crate::workspace;

/// Makes sure of an environment named after its package, in which a module can be imported.
pub(super) fn environment(package: &str, module: &str, version: &str) -> Result<()> {
    let home = workspace::tool(package);
    let python = home.join("bin/python3");
    if !process::succeeds(command(&python).args(["-c", &format!("import {module}")])) {
        interpreter::python3()?;
        process::run(command("python3").args(["-m", "venv"]).arg(&home))
            .context("python3 cannot make an environment\nhint: apt-get install python3-venv")?;
        process::run(
            command(&python)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .arg(format!("{package}=={version}")),
        )?;
    }
    ready(package, version);
    Ok(())
}
