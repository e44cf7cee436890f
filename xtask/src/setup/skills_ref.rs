//! Installs the reference validator of skills from the package registry, for this repository only.
//!
//! It does not know what is validated.

use anyhow::{Context, Result};

use super::{interpreter, ready};
use crate::process::{self, command};
use crate::workspace;

/// What the tests were written against.
const VERSION: &str = "0.1.1";

/// Makes sure of a Python environment with the validator in it.
pub(super) fn ensure() -> Result<()> {
    let home = workspace::tool("skills-ref");
    let python = home.join("bin/python3");
    if !process::succeeds(command(&python).args(["-c", "import skills_ref"])) {
        interpreter::python3()?;
        process::run(command("python3").args(["-m", "venv"]).arg(&home))
            .context("python3 cannot make an environment\nhint: apt-get install python3-venv")?;
        process::run(
            command(&python)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .arg(format!("skills-ref=={VERSION}")),
        )?;
    }
    ready("skills-ref", VERSION);
    Ok(())
}
