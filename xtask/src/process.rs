//! Starts other programs: shows the command line, then hands over the terminal, captures, or reads line by line.
//!
//! Every program starts in the repository's root. The one place of `xtask` that builds a `Command`; it does not know
//! what the programs are for.
#![allow(clippy::disallowed_methods, reason = "this is xtask's one home for processes")]

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// Prepares a program that will run in the repository's root.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace::root());
    command
}

/// Prepares a call of cargo with space-separated arguments.
pub(crate) fn cargo(arguments: &str) -> Command {
    let mut cargo = command(workspace::cargo());
    for name in workspace::cargo_run_variables() {
        cargo.env_remove(name);
    }
    cargo.args(arguments.split_whitespace());
    cargo
}

/// Runs a program on this terminal and fails unless it exits with 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("`{}` ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs a program on this terminal and returns how it ended.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    eprintln!("$ {}", shown(command));
    command
        .status()
        .with_context(|| format!("could not start `{}`", shown(command)))
}

/// Runs a program silently and says whether it exits with 0; a program that is not there does not.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a program silently and returns its standard output.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("could not start `{}`", shown(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!(
            "`{}` ended with {}: {}",
            shown(command),
            output.status,
            stderr.trim()
        );
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` printed no UTF-8", shown(command)))
}

/// Runs a program, repeats each of its lines as it comes, and shows each to `each` as well.
pub(crate) fn follow(command: &mut Command, mut each: impl FnMut(&str)) -> Result<ExitStatus> {
    eprintln!("$ {}", shown(command));
    let (reader, writer) = io::pipe().context("could not make a pipe")?;
    let second = writer
        .try_clone()
        .context("could not copy the pipe's writing end")?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(second)
        .spawn()
        .with_context(|| format!("could not start `{}`", shown(command)))?;
    // The command keeps copies of the writing end; while they are open the reader never sees the end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.with_context(|| format!("could not read from `{}`", shown(command)))?;
        let line = String::from_utf8_lossy(&line);
        eprintln!("{line}");
        each(&line);
    }
    child
        .wait()
        .with_context(|| format!("could not wait for `{}`", shown(command)))
}

/// Renders a command line as a person would type it.
fn shown(command: &Command) -> String {
    let mut words = vec![
        std::path::Path::new(command.get_program())
            .file_name()
            .unwrap_or(command.get_program())
            .to_string_lossy()
            .into_owned(),
    ];
    words.extend(command.get_args().map(|word| {
        let word = word.to_string_lossy();
        if word.contains(char::is_whitespace) {
            format!("'{word}'")
        } else {
            word.into_owned()
        }
    }));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follow_sees_both_streams_and_the_exit_code() {
        let mut lines = Vec::new();
        let status = follow(
            command("sh").args(["-c", "echo out; echo err >&2; exit 3"]),
            |line| {
                lines.push(line.to_owned());
            },
        )
        .expect("sh is there");
        assert_eq!(
            (lines, status.code()),
            (vec!["out".to_owned(), "err".to_owned()], Some(3))
        );
    }

    #[test]
    fn a_failing_program_is_named_with_its_arguments() {
        let error = run(command("sh").args(["-c", "exit 4"])).expect_err("exit 4 is a failure");
        assert_eq!(error.to_string(), "`sh -c 'exit 4'` ended with exit status: 4");
    }

    #[test]
    fn a_missing_program_does_not_succeed() {
        assert!(!succeeds(&mut command("no-such-program-anywhere")));
    }
}
