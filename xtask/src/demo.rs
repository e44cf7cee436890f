//! Plays the demo: makes sure of git, builds `conductor`, runs `conductor demo` with the given arguments.
//!
//! The exit code is the demo's own. It does not know what the demo shows.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::process::{self, cargo};
use crate::{setup, workspace};

/// Runs `conductor demo <arguments>` on this terminal.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    setup::for_demo(story(arguments))?;
    process::run(&mut cargo("build --package conductor --locked")).context("could not build conductor")?;
    let conductor = workspace::target().join("debug/conductor");
    let mut demo = process::command(conductor);
    // A Node that `setup` installed for this repository is found by its story, too.
    demo.env(
        "PATH",
        workspace::path_with(&workspace::tool("node22").join("bin")),
    );
    let status = process::status(demo.arg("demo").args(arguments))?;
    // A signal has no code; 1 says "failed" like every other failure of conductor.
    let code = status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1);
    Ok(ExitCode::from(code))
}

/// The story that was asked for, as `--story node` or `--story=node`.
fn story(arguments: &[String]) -> Option<&str> {
    let mut arguments = arguments.iter().map(String::as_str);
    arguments
        .find_map(|argument| match argument.strip_prefix("--story")? {
            "" => Some(None),
            rest => rest.strip_prefix('=').map(Some),
        })?
        .or_else(|| arguments.next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_story_is_found_however_it_is_written() {
        for (told, expected) in [
            (&["--yes"][..], None),
            (&["--yes", "--story", "node"], Some("node")),
            (&["--story=python", "--json"], Some("python")),
            (&["--story"], None),
            (&["--storyteller", "x"], None),
        ] {
            let told: Vec<String> = told.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(story(&told), expected, "{told:?}");
        }
    }
}
