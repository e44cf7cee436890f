//! Installs Chromium and its driver from one apt source, so that their versions match.
//!
//! It does not know the pages that are looked at.

use anyhow::Result;

use super::{apt, ready};
use crate::process::{self, command};
use crate::workspace;

/// Makes sure of `chromium` and `chromedriver`.
pub(super) fn ensure() -> Result<()> {
    if workspace::find("chromium").is_none() || workspace::find("chromedriver").is_none() {
        apt::install(&["chromium", "chromium-driver"])?;
    }
    ready(
        "chromium",
        &process::capture(command("chromium").arg("--version"))?,
    );
    ready(
        "chromium",
        &process::capture(command("chromedriver").arg("--version"))?,
    );
    Ok(())
}
