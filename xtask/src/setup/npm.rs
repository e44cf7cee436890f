//! Installs packages for Node into a directory of this repository, each exactly as asked for, without their scripts.
//!
//! It does not know what the packages are for.

use anyhow::{Result, ensure};

use super::{node22, ready};
use crate::process::{self, command};
use crate::workspace;

/// Makes sure of the packages, below `target/tools/<name>`, and of the Node that they need.
pub(super) fn install(name: &str, packages: &[&str]) -> Result<()> {
    node22::ensure()?;
    let home = workspace::tool(name);
    let mark = home.join("installed");
    let wanted = packages.join(" ");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        ready(name, &wanted);
        return Ok(());
    }
    ensure!(
        workspace::find("npm").is_some(),
        "npm is not there, though node22 was installed with it"
    );
    std::fs::create_dir_all(&home)?;
    process::run(
        command("npm")
            .args([
                "install",
                "--loglevel=error",
                "--no-audit",
                "--no-fund",
                "--no-save",
            ])
            .args(["--ignore-scripts", "--prefix"])
            .arg(&home)
            .args(packages),
    )?;
    std::fs::write(&mark, &wanted)?;
    ready(name, &wanted);
    Ok(())
}
