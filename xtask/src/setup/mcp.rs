//! Installs public clients of the Model Context Protocol, for this repository only: its conformance suite, its inspector,
//! and a server to measure against.
//!
//! It does not know what they are asked to do.

use anyhow::{Result, ensure};

use super::{node22, ready};
use crate::process::{self, command};
use crate::workspace;

/// What the tests were written against.
const PACKAGES: [&str; 3] = [
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
];

/// Makes sure of the packages, below `target/tools/mcp`, and of the Node that they need.
pub(super) fn ensure() -> Result<()> {
    node22::ensure()?;
    let home = workspace::tool("mcp");
    let mark = home.join("installed");
    let wanted = PACKAGES.join(" ");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        ready("mcp", &wanted);
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
            .args(PACKAGES),
    )?;
    std::fs::write(&mark, &wanted)?;
    ready("mcp", &wanted);
    Ok(())
}
