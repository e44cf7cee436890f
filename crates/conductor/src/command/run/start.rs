//! `conductor run start`: asks the server for a run per issue.
//!
//! It does not know what the server checks.

use std::path::PathBuf;

use conductor_web::api::{StartRun, Started};

use crate::command::policy::read_text;
use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::settings::read_scenario;

/// Starts a run for an issue
#[derive(Debug, clap::Args)]
pub(crate) struct StartArgs {
    /// The repository, as owner/name
    repo: String,
    /// The issues' numbers; each gets a run of its own
    #[arg(required = true)]
    issues: Vec<u64>,
    /// Position in the queue, 1 (last) to 10 (first)
    #[arg(long, value_name = "N")]
    priority: Option<u8>,
    /// What scripted agents play in this run, instead of the server's scenario
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Policies of this run alone, over those of its repository and project; admins alone bring them along
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

/// Runs the command.
pub(crate) async fn start(session: &Session, args: StartArgs) -> Result<Exit, Failure> {
    let scenario = args.scenario.as_deref().map(read_scenario).transpose()?;
    let policy = args.policy.as_deref().map(read_text).transpose()?;
    let client = session.client().await?;
    for issue in args.issues {
        let wish = StartRun {
            repo: args.repo.clone(),
            issue,
            priority: args.priority,
            scenario: scenario.clone(),
            policy: policy.clone(),
        };
        let started: Started = client.post("/runs", &wish).await?;
        session.out.talk(&format!(
            "✔ run {} started for {}#{issue}",
            started.run, args.repo
        ));
        session
            .out
            .talk(&format!("hint: `conductor run watch {}` follows it", started.run));
        session
            .out
            .data(&started, |started| format!("{}\n", started.run))?;
    }
    Ok(Exit::Ok)
}
