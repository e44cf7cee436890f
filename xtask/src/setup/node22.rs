//! Installs Node 22 for this repository only, as the npm package `node`, below `target/tools`.
//!
//! The machine's own Node is never touched. It does not know who will run it.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Context, Result, ensure};

use super::{apt, ready};
use crate::process::{self, command};
use crate::workspace;

/// Makes sure of `target/tools/node22/bin/node`.
pub(super) fn ensure() -> Result<()> {
    let home = workspace::tool("node22");
    let node = home.join("bin/node");
    if !process::succeeds(command(&node).arg("--version")) {
        install(&home)?;
    }
    let shown = process::capture(command(&node).arg("--version"))?;
    ensure!(
        shown.starts_with("v22."),
        "{} is {shown}, not version 22",
        node.display()
    );
    ready("node22", &format!("{} at {}", shown.trim(), node.display()));
    Ok(())
}

fn install(home: &std::path::Path) -> Result<()> {
    if workspace::find("npm").is_none() {
        apt::install(&["npm"])?;
    }
    fs::create_dir_all(home.join("bin")).with_context(|| format!("could not make {}", home.display()))?;
    process::run(
        command("npm")
            .args([
                "install",
                "--loglevel=error",
                "--no-audit",
                "--no-fund",
                "--no-save",
                "--prefix",
            ])
            .arg(home)
            .arg("node@22"),
    )?;
    let link = home.join("bin/node");
    let _absent_is_fine = fs::remove_file(&link);
    symlink("../node_modules/node/bin/node", &link)
        .with_context(|| format!("could not link {}", link.display()))
}
