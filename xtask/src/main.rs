//! Runs the project's own chores: `cargo xtask <command>`.
//!
//! Each command is one file and one row of `COMMANDS`; `cargo xtask help` prints the table. It does not know any
//! crate of the workspace by its code, so that it builds in seconds and still works while the workspace does not.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a terminal program: stdout is data, stderr is talk"
)]

mod workspace;
mod process;
mod stage;
mod tally;
mod protections;
mod engine;
mod gate;
mod demo;
mod bench;
mod long;
mod scratch;
mod screenshots;
mod setup;
mod layers;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;

struct Command {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<ExitCode>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "demo",
        about: "build conductor and play one issue to a merged pull request: demo [-- ARGS]",
        run: demo::run,
    },
    Command {
        name: "test",
        about: "the whole gate with time per stage; the last line is the count of tests",
        run: gate::run,
    },
    Command {
        name: "ci",
        about: "the same as test, under the name that CI uses",
        run: gate::run,
    },
    Command {
        name: "setup",
        about: "install and start what tests need: setup git|python3|bubblewrap|node22|docker|skills-ref|postgres|chromium|axe|all",
        run: setup::run,
    },
    Command {
        name: "layers",
        about: "check that crates depend only on what the design lets them know",
        run: layers::run,
    },
    Command {
        name: "tidy",
        about: "check the house rules with file:line; --update rewrites the lists in docs/",
        run: tidy::run,
    },
    Command {
        name: "bench",
        about: "release build, ratios against a baseline of the same run: bench [NAME]",
        run: bench::run,
    },
    Command {
        name: "screenshots",
        about: "pictures of every page, light and dark, desktop and phone, in target/screenshots",
        run: screenshots::run,
    },
    Command {
        name: "long",
        about: "what takes too long for every commit: long [mutants-domain|mutants-policy|teams|fuzz] [K/N of the mutants]",
        run: long::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", help());
        return ExitCode::SUCCESS;
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("error: there is no command `{name}`\n\n{}", help());
        return ExitCode::from(2);
    };
    // `cargo xtask demo -- --yes` and `cargo xtask demo --yes` mean the same.
    let rest = rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest);
    (command.run)(rest).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn help() -> String {
    let commands = COMMANDS
        .iter()
        .map(|Command { name, about, .. }| format!("  {name:<11} {about}\n"));
    format!("usage: cargo xtask <command>\n\n{}", commands.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_one_line_for_every_command() {
        let help = help();
        for command in COMMANDS {
            let lines = help
                .lines()
                .filter(|line| line.trim_start().starts_with(command.name))
                .count();
            assert_eq!(lines, 1, "{} in:\n{help}", command.name);
        }
    }
}
