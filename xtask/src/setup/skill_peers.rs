//! Installs two other installers of skills that ours is measured against, for this repository only, below `target/tools`.
//!
//! No test needs them. It does not know what they are asked to install.

use anyhow::Result;

use super::{npm, ready};
use crate::process::{self, cargo};
use crate::workspace;

const SKILLS: &str = "skills@1.7.4";
const EDEN_SKILLS: &str = "0.2.3";

/// Makes sure of npm's `skills`, with the Node that it needs, and of `eden-skills`, a Rust program in its release build.
pub(super) fn ensure() -> Result<()> {
    npm::install("skills-npm", &[SKILLS])?;
    let home = workspace::tool("eden-skills");
    if !home.join("bin/eden-skills").is_file() {
        process::run(
            cargo("install eden-skills --locked --quiet --version")
                .arg(EDEN_SKILLS)
                .arg("--root")
                .arg(&home),
        )?;
    }
    ready("eden-skills", EDEN_SKILLS);
    Ok(())
}
