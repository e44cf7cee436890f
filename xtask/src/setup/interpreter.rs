//! Makes sure of git, Python and Node, which stories start by name.
//!
//! Versions are the oldest that have what we call. It does not know the scripts that they will run.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::{apt, node22, ready};
use crate::process::{self, command};
use crate::workspace;

/// `merge-tree --write-tree --merge-base` came with 2.40.
const OLDEST_GIT: (u32, u32) = (2, 40);
/// The built-in test runner left its experimental state in 20.
const OLDEST_NODE: (u32, u32) = (20, 0);

/// Makes sure of git and of its HTTP back end, which the embedded forge starts.
pub(super) fn git() -> Result<()> {
    if workspace::find("git").is_none() {
        apt::install(&["git", "ca-certificates"])?;
    }
    let shown = process::capture(command("git").arg("--version"))?;
    let found = version(&shown).with_context(|| format!("could not read a version from {shown:?}"))?;
    ensure!(
        found >= OLDEST_GIT,
        "git {}.{} or newer is needed, found {}\n\
         hint: Debian 12 has a newer one in bookworm-backports: apt-get install -t bookworm-backports git",
        OLDEST_GIT.0,
        OLDEST_GIT.1,
        shown.trim()
    );
    let programs = process::capture(command("git").arg("--exec-path"))?;
    let backend = Path::new(programs.trim()).join("git-http-backend");
    ensure!(
        backend.is_file(),
        "git lacks {}; install the whole of git",
        backend.display()
    );
    ready("git", &shown);
    Ok(())
}

/// Makes sure of Python 3.
pub(super) fn python3() -> Result<()> {
    if workspace::find("python3").is_none() {
        apt::install(&["python3"])?;
    }
    ready("python3", &process::capture(command("python3").arg("--version"))?);
    Ok(())
}

/// Makes sure of curl, which plays a sandbox's client of the egress proxy.
pub(super) fn curl() -> Result<()> {
    if workspace::find("curl").is_none() {
        apt::install(&["curl"])?;
    }
    let shown = process::capture(command("curl").arg("--version"))?;
    ready("curl", shown.lines().next().unwrap_or_default());
    Ok(())
}

/// Makes sure of bubblewrap, which starts sandboxes.
pub(super) fn bubblewrap() -> Result<()> {
    if workspace::find("bwrap").is_none() {
        apt::install(&["bubblewrap"])?;
    }
    ready(
        "bubblewrap",
        &process::capture(command("bwrap").arg("--version"))?,
    );
    Ok(())
}

/// Makes sure of ripgrep, which the search for secrets is measured against.
pub(super) fn ripgrep() -> Result<()> {
    if workspace::find("rg").is_none() {
        apt::install(&["ripgrep"])?;
    }
    let shown = process::capture(command("rg").arg("--version"))?;
    ready("ripgrep", shown.lines().next().unwrap_or_default());
    Ok(())
}

/// Makes sure of a compiler for C++, in which libFuzzer is written.
pub(super) fn cpp() -> Result<()> {
    if workspace::find("c++").is_none() {
        apt::install(&["g++"])?;
    }
    let shown = process::capture(command("c++").arg("--version"))?;
    ready("c++", shown.lines().next().unwrap_or_default());
    Ok(())
}

/// Makes sure of any Node with the built-in test runner: the one on `PATH` when it is new enough, else our own.
pub(super) fn node() -> Result<()> {
    let shown = process::capture(command("node").arg("--version")).unwrap_or_default();
    if version(&shown).is_some_and(|found| found >= OLDEST_NODE) {
        ready("node", &shown);
        return Ok(());
    }
    match node22::ensure() {
        Ok(()) => Ok(()),
        Err(error) => bail!("no node {} or newer on PATH, and {error:#}", OLDEST_NODE.0),
    }
}

/// Reads the first `major.minor` of a version line such as `git version 2.47.3` or `v22.1.0`.
fn version(line: &str) -> Option<(u32, u32)> {
    let start = line.find(|character: char| character.is_ascii_digit())?;
    let mut parts = line[start..].split(|character: char| !character.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_lines_that_programs_print() {
        assert_eq!(version("git version 2.47.3\n"), Some((2, 47)));
        assert_eq!(version("git version 2.39.2 (Apple Git-143)"), Some((2, 39)));
        assert_eq!(version("v22.21.1\n"), Some((22, 21)));
        assert_eq!(version("command not found"), None);
    }
}
