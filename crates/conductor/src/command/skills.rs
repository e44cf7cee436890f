//! `conductor skills`: which skills there are, where they come from, and where they are put.
//!
//! Works without a server: everything stands in `skills.toml` and `skills.lock`. It does not know how a skill gets into
//! a place; that is `conductor-skill`.

use std::path::PathBuf;

use crate::exit::{Exit, Failure};
use crate::session::Session;

mod desk;
mod show;
mod choose;
mod change;
mod look;
mod keep;

pub(crate) use desk::clones;

/// Puts skills where agents find them
#[derive(Debug, clap::Args)]
pub(crate) struct SkillsArgs {
    /// The file that says which skills are wanted where [default: skills/skills.toml in the data directory]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: SkillsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SkillsCommand {
    /// Makes an empty skills.toml and its lock
    Init {
        /// Replaces what is there
        #[arg(long)]
        force: bool,
    },
    /// Adds skills of a source to skills.toml, and installs nothing
    Add(choose::Choice),
    /// Adds skills of a source and installs them at once
    Install {
        #[command(flatten)]
        choice: choose::Choice,
        #[command(flatten)]
        how: How,
    },
    /// Says what would have to be done
    Plan {
        #[command(flatten)]
        scope: Scope,
        /// Ends with 3 when something is in the way
        #[arg(long)]
        strict: bool,
    },
    /// Does what would have to be done
    Apply {
        #[command(flatten)]
        scope: Scope,
        #[command(flatten)]
        how: How,
    },
    /// Checks that everything is in place to the last byte
    Verify {
        #[command(flatten)]
        scope: Scope,
        /// Ends with 3, not 1, when something differs
        #[arg(long)]
        strict: bool,
    },
    /// Looks for what could be wrong with skills and places
    Doctor {
        #[command(flatten)]
        scope: Scope,
        /// Ends with 3 when anything at all was found
        #[arg(long)]
        strict: bool,
    },
    /// Asks the sources and registries for what is newest
    Update {
        #[command(flatten)]
        scope: Scope,
        /// Installs it too
        #[arg(long)]
        apply: bool,
        #[command(flatten)]
        how: How,
    },
    /// Takes skills away, out of their places and out of skills.toml
    Remove {
        /// The skills
        #[arg(required = true)]
        skills: Vec<String>,
        /// Only out of these environments: local, docker:<container>
        #[arg(long = "target", short = 't', value_name = "ENVIRONMENT")]
        targets: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Lists the skills and where they are
    List {
        #[command(flatten)]
        scope: Scope,
    },
    /// Removes what no skill needs any more from the store
    Clean {
        /// Says what would be removed, and writes nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Prints skills.toml
    Export,
    /// Takes over a skills.toml
    Import {
        /// The file
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
        /// Replaces what is there
        #[arg(long)]
        force: bool,
        /// Checks the file, and writes nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Prints the listing of skills for an agent's prompt
    Prompt {
        /// Directories of skills [default: every skill in a place of this machine]
        directories: Vec<PathBuf>,
    },
}

/// Which part of the file is meant.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Scope {
    /// Only these skills
    pub(crate) skills: Vec<String>,
    /// Only these environments: local, docker:<container>
    #[arg(long = "target", short = 't', value_name = "ENVIRONMENT")]
    pub(crate) targets: Vec<String>,
}

/// How something is done.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct How {
    /// Replaces skills that were changed by hand; what Conductor did not put there stays in any case
    #[arg(long)]
    pub(crate) force: bool,
    /// Says what would be done, and writes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Ends with 3 when something is in the way
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Runs the command.
pub(crate) async fn skills(session: &Session, args: SkillsArgs) -> Result<Exit, Failure> {
    let desk = desk::Desk::new(session, args.config)?;
    match args.command {
        SkillsCommand::Init { force } => keep::init(&desk, force),
        SkillsCommand::Add(choice) => change::add(&desk, choice).await,
        SkillsCommand::Install { choice, how } => change::install(&desk, choice, &how).await,
        SkillsCommand::Plan { scope, strict } => look::plan(&desk, &scope, strict).await,
        SkillsCommand::Apply { scope, how } => change::apply(&desk, &scope, &how).await,
        SkillsCommand::Verify { scope, strict } => look::verify(&desk, &scope, strict).await,
        SkillsCommand::Doctor { scope, strict } => look::doctor(&desk, &scope, strict).await,
        SkillsCommand::Update { scope, apply, how } => change::update(&desk, &scope, apply, &how).await,
        SkillsCommand::Remove { skills, targets, how } => {
            change::remove(&desk, &Scope { skills, targets }, &how).await
        }
        SkillsCommand::List { scope } => look::list(&desk, &scope),
        SkillsCommand::Clean { dry_run } => keep::clean(&desk, dry_run),
        SkillsCommand::Export => keep::export(&desk),
        SkillsCommand::Import { from, force, dry_run } => keep::import(&desk, &from, force, dry_run),
        SkillsCommand::Prompt { directories } => look::prompt(&desk, directories),
    }
}
