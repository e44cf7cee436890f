//! The command line: its words, and what they mean to a reader of `--help`.
//!
//! Each command's own arguments stand in its file. This module does not know what a command does.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::command::{
    approvals, audit, bulk, completions, demo, doctor, egress, exec, kill_switch, metrics, open, operator,
    policy, project, projections, repo, run, serve, skills, token, tools,
};

/// Lets AI coding agents do engineering work on your repositories, under your control.
#[derive(Debug, Parser)]
#[command(
    name = "conductor",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 done · 1 failed · 2 wrong usage · 3 no server · 4 refused · 5 a person must act.\n\
                  `conductor demo` shows a whole run without an account or a key."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Where Conductor keeps everything [default: CONDUCTOR_DATA_DIR, else ~/.local/share/conductor]
    #[arg(long, global = true, help_heading = "Global options", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Prints data as JSON on stdout; talk stays on stderr
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Says nothing on stderr but what went wrong
    #[arg(long, short = 'q', global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
}

/// Everything that can be asked.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs the server: everything that works goes through it
    Serve(Box<serve::ServeArgs>),
    /// Groups repositories
    #[command(subcommand)]
    Project(project::ProjectCommand),
    /// Registers repositories
    #[command(subcommand)]
    Repo(repo::RepoCommand),
    /// Controls which hosts sandboxes may reach
    #[command(subcommand)]
    Egress(egress::EgressCommand),
    /// Says who may do what: stored policies, and questions to them
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Starts, watches and steers runs
    #[command(subcommand)]
    Run(run::RunCommand),
    /// Lists what waits for a person
    Approvals,
    /// Asks something of several runs, each by itself
    #[command(subcommand)]
    Bulk(bulk::BulkCommand),
    /// Prints a link that signs one browser in to the pages
    Open(open::OpenArgs),
    /// Manages people who sign in remotely
    #[command(subcommand)]
    Operator(operator::OperatorCommand),
    /// Issues and revokes API tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Proves that nothing was tampered with
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Shows run statistics: counts, durations, attempts
    Metrics(metrics::MetricsArgs),
    /// Looks after what is derived from the log
    #[command(subcommand)]
    Projections(projections::ProjectionsCommand),
    /// Stops all agent execution, or lets it go on
    KillSwitch(kill_switch::KillSwitchArgs),
    /// Puts skills where agents find them: directories of this machine, running containers
    Skills(Box<skills::SkillsArgs>),
    /// Plays a whole run on this machine: no account, no key, no network
    Demo(demo::DemoArgs),
    /// Runs one command or file tool in a sandbox, without a server
    Exec(exec::ExecArgs),
    /// Serves safe tools of one directory to any agent that speaks the Model Context Protocol
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
    /// Looks for what could be wrong on this machine
    Doctor(doctor::DoctorArgs),
    /// Prints a completion script for a shell
    Completions(completions::CompletionsArgs),
}

/// How many threads a command works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    One,
    Several,
}

impl Command {
    /// A server works for many at once. Everything else waits for one thing after another, and is answered sooner when
    /// no other thread must be woken for it.
    pub(crate) fn threads(&self) -> Threads {
        match self {
            Self::Serve(_) | Self::Demo(_) => Threads::Several,
            Self::Project(_)
            | Self::Repo(_)
            | Self::Egress(_)
            | Self::Policy(_)
            | Self::Run(_)
            | Self::Approvals
            | Self::Bulk(_)
            | Self::Open(_)
            | Self::Operator(_)
            | Self::Token(_)
            | Self::Audit(_)
            | Self::Metrics(_)
            | Self::Projections(_)
            | Self::KillSwitch(_)
            | Self::Skills(_)
            | Self::Exec(_)
            | Self::Tools(_)
            | Self::Doctor(_)
            | Self::Completions(_) => Threads::One,
        }
    }
}

/// Runs the command in its session.
pub(crate) async fn dispatch(
    session: &crate::session::Session,
    command: Command,
) -> Result<crate::exit::Exit, crate::exit::Failure> {
    match command {
        Command::Serve(args) => Box::pin(serve::serve(session, *args)).await,
        Command::Project(command) => project::project(session, command).await,
        Command::Repo(command) => repo::repo(session, command).await,
        Command::Egress(command) => egress::egress(session, command).await,
        Command::Policy(command) => policy::policy(session, command).await,
        Command::Run(command) => run::run(session, command).await,
        Command::Approvals => approvals::approvals(session).await,
        Command::Bulk(command) => bulk::bulk(session, command).await,
        Command::Open(args) => open::open(session, args).await,
        Command::Operator(command) => operator::operator(session, command).await,
        Command::Token(command) => token::token(session, command).await,
        Command::Audit(command) => audit::audit(session, command).await,
        Command::Metrics(args) => metrics::metrics(session, args).await,
        Command::Projections(command) => projections::projections(session, command).await,
        Command::KillSwitch(args) => kill_switch::kill_switch(session, args).await,
        Command::Skills(args) => skills::skills(session, *args).await,
        Command::Demo(args) => demo::demo(session, args).await,
        Command::Exec(args) => Box::pin(exec::exec(session, args)).await,
        Command::Tools(command) => Box::pin(tools::tools(session, command)).await,
        Command::Doctor(args) => doctor::doctor(session, args).await,
        Command::Completions(args) => completions::completions(args),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_argument_explains_itself() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            assert!(command.get_about().is_some(), "{path} says nothing about itself");
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                assert!(
                    argument.get_help().is_some(),
                    "{path}: {} says nothing",
                    argument.get_id()
                );
            }
            command.get_subcommands().for_each(|sub| check(sub, &path));
        }
        check(&Cli::command(), "");
    }

    /// UI-4: whatever changes something through the API, a command does, too.
    #[test]
    fn every_operation_that_changes_something_has_its_command() {
        for operation in conductor_web::OPERATIONS {
            assert!(
                operation.method == "GET" || !operation.commands.is_empty(),
                "no command does what {} does",
                operation.name
            );
            for words in operation.commands {
                let mut command = Cli::command();
                for word in words.split(' ') {
                    let found = command.find_subcommand(word);
                    command = found.unwrap_or_else(|| panic!("there is no `{words}`")).clone();
                }
            }
        }
    }

    /// The page is what people read before they type; a command that it does not list is one that nobody finds.
    #[test]
    fn the_page_lists_every_command_and_every_option() {
        const PAGE: &str = include_str!("../../../docs/cli.md");
        fn check(command: &clap::Command, path: &str) {
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                let path = format!("{path} {}", sub.get_name());
                assert!(
                    PAGE.contains(path.trim()),
                    "docs/cli.md does not list `{}`",
                    path.trim()
                );
                for option in sub.get_arguments().filter(|option| !option.is_hide_set()) {
                    let Some(long) = option.get_long() else { continue };
                    let is_listed =
                        PAGE.contains(&format!("--{long}")) || PAGE.contains(&format!("\n{long} ="));
                    assert!(is_listed, "docs/cli.md does not list `{} --{long}`", path.trim());
                }
                check(sub, &path);
            }
        }
        check(&Cli::command(), "");
    }
}
