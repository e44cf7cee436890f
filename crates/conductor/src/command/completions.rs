//! `conductor completions`: a script that lets a shell complete what is typed.
//!
//! It does not know where the shell keeps it.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::{Exit, Failure};
use crate::out::Out;

/// Prints a completion script for a shell
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command.
pub(crate) fn completions(args: CompletionsArgs) -> Result<Exit, Failure> {
    Out::text(&script(args.shell))?;
    Ok(Exit::Ok)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "conductor", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_shell_can_complete_every_command() {
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for word in ["kill-switch", "reprioritize", "completions"] {
                assert!(script.contains(word), "{shell} does not know {word}");
            }
        }
    }
}
