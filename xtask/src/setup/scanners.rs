//! Installs the two secret scanners that ours is measured against, for this repository only, below `target/tools`.
//!
//! It does not know what they find.

use anyhow::{Context, Result};

use super::{apt, interpreter, ready};
use crate::process::{self, cargo, command};
use crate::workspace;

const DETECT_SECRETS: &str = "1.5.0";
const RIPSECRETS: &str = "0.1.11";

/// Makes sure of `detect-secrets`, a Python package, and `ripsecrets`, a Rust program.
pub(super) fn ensure() -> Result<()> {
    interpreter::python3()?;
    let packages = workspace::tool("detect-secrets");
    if !packages.join("detect_secrets").is_dir() {
        install_python(&packages)?;
    }
    ready("scanners", &format!("detect-secrets {DETECT_SECRETS}"));
    let home = workspace::tool("ripsecrets");
    if !home.join("bin/ripsecrets").is_file() {
        // It is judged by what it finds, not by its speed; a debug build costs half.
        process::run(
            cargo("install ripsecrets --locked --debug --quiet --version")
                .arg(RIPSECRETS)
                .arg("--root")
                .arg(&home),
        )?;
    }
    ready("scanners", &format!("ripsecrets {RIPSECRETS}"));
    Ok(())
}

fn install_python(packages: &std::path::Path) -> Result<()> {
    if !process::succeeds(command("python3").args(["-m", "pip", "--version"])) {
        apt::install(&["python3-pip"])?;
    }
    process::run(
        command("python3")
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--target",
            ])
            .arg(packages)
            .arg(format!("detect-secrets=={DETECT_SECRETS}")),
    )
    .context("could not install detect-secrets")
}
