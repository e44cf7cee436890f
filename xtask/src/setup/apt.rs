//! Installs Debian packages where that is possible, else says what to run.
//!
//! The package lists are refreshed only when an install fails without it. It does not know what the packages are for.

use anyhow::{Result, bail};

use crate::process::{self, command};
use crate::workspace;

/// Installs packages without their recommendations.
pub(super) fn install(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    if !is_root() || workspace::find("apt-get").is_none() {
        bail!(
            "{list} must be installed by root\n\
             hint: sudo apt-get update && sudo apt-get install -y --no-install-recommends {list}\n\
             hint: on another system, install what carries these names there"
        );
    }
    if process::run(&mut apt_get("install", packages)).is_ok() {
        return Ok(());
    }
    process::run(&mut apt_get("update", &[]))?;
    process::run(&mut apt_get("install", packages))
}

/// Says whether this process may install packages and start daemons.
pub(super) fn is_root() -> bool {
    process::capture(command("id").arg("-u")).is_ok_and(|uid| uid.trim() == "0")
}

fn apt_get(verb: &str, packages: &[&str]) -> std::process::Command {
    let mut apt = command("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive").args(["-qq", verb]);
    if verb == "install" {
        apt.args(["-y", "--no-install-recommends"]).args(packages);
    }
    apt
}
