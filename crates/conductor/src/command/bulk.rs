//! `conductor bulk`: asks something of several runs, each by itself.
//!
//! It does not know what a run accepts.

use std::fmt::Write as _;

use conductor_domain::digest::Digest;
use conductor_domain::id::RunId;
use conductor_web::api::{ApproveSeveral, BulkView, CancelAll, PlanRisks, Reprioritize, SeenPlan};
use conductor_web::visible;

use crate::exit::{Exit, Failure};
use crate::out::Shown;
use crate::session::Session;

/// Asks something of several runs, each by itself
#[derive(Debug, clap::Subcommand)]
pub(crate) enum BulkCommand {
    /// Lists the plans that wait, and why each is not of low risk
    Plans,
    /// Approves plans of low risk, each by the digest of what was looked at
    Approve(ApproveArgs),
    /// Moves several runs in the queue
    Reprioritize(ReprioritizeArgs),
    /// Cancels every open run of a project
    Cancel(CancelArgs),
}

/// Which plans.
#[derive(Debug, clap::Args)]
pub(crate) struct ApproveArgs {
    /// Plans as `RUN=DIGEST`, as `conductor bulk plans` prints them
    #[arg(required = true, value_name = "RUN=DIGEST", value_parser = seen)]
    plans: Vec<SeenPlan>,
    /// Said with each
    #[arg(long, short = 'm', value_name = "TEXT")]
    comment: Option<String>,
}

/// Which runs, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct ReprioritizeArgs {
    /// Position in the queue, 1 (last) to 10 (first)
    #[arg(value_parser = clap::value_parser!(u8).range(1..=10))]
    priority: u8,
    /// The runs' ids, as in `conductor run list`
    #[arg(required = true)]
    runs: Vec<RunId>,
}

/// Which project.
#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    /// The project
    project: String,
    /// The project's name once more, because this cannot be taken back
    #[arg(long, value_name = "NAME")]
    confirm: String,
    /// Why
    #[arg(long, short = 'm', value_name = "TEXT")]
    comment: Option<String>,
}

fn seen(text: &str) -> Result<SeenPlan, String> {
    let (run, subject) = text
        .split_once('=')
        .ok_or_else(|| "a plan is written as RUN=DIGEST".to_owned())?;
    Ok(SeenPlan {
        run: RunId::parse(run.to_owned()).map_err(|error| error.to_string())?,
        subject: Digest::parse(subject.to_owned()).map_err(|error| error.to_string())?,
    })
}

/// Runs the command.
pub(crate) async fn bulk(session: &Session, command: BulkCommand) -> Result<Exit, Failure> {
    let client = session.client().await?;
    let done: BulkView = match command {
        BulkCommand::Plans => {
            let plans: PlanRisks = client.get("/bulk/plans").await?;
            session.out.data(&plans, listed)?;
            return Ok(Exit::Ok);
        }
        BulkCommand::Approve(args) => {
            let wish = ApproveSeveral {
                plans: args.plans,
                comment: args.comment,
            };
            client.post("/bulk/approve", &wish).await?
        }
        BulkCommand::Reprioritize(args) => {
            let wish = Reprioritize {
                runs: args.runs,
                priority: args.priority,
            };
            client.post("/bulk/reprioritize", &wish).await?
        }
        BulkCommand::Cancel(args) => {
            if args.confirm != args.project {
                let error = conductor_web::Error::Unconfirmed {
                    expected: args.project,
                };
                return Err(error.into());
            }
            let wish = CancelAll {
                project: args.project,
                comment: args.comment,
            };
            client.post("/bulk/cancel", &wish).await?
        }
    };
    session.out.data(&done, told)?;
    let is_all_done = done.results.iter().all(|result| result.accepted);
    Ok(if is_all_done { Exit::Ok } else { Exit::Failed })
}

fn listed(plans: &PlanRisks) -> Shown {
    let mut text = String::new();
    for plan in &plans.plans {
        let summary = visible::line(&plan.summary);
        let _string = writeln!(text, "{}  {}  {summary}", plan.run, plan.repo);
        if plan.because.is_empty() {
            let _string = writeln!(text, "    conductor bulk approve {}={}", plan.run, plan.subject);
        }
        for why in &plan.because {
            let _string = writeln!(text, "  ! {}", visible::line(why));
        }
    }
    Shown::or(text, "no plan waits")
}

fn told(done: &BulkView) -> Shown {
    let mut text = String::new();
    for result in &done.results {
        let why = result.why.as_deref().map(visible::line).unwrap_or_default();
        let _string = match &result.code {
            None => writeln!(text, "✔ {}", result.run),
            Some(code) => writeln!(text, "✘ {}  {why} ({code})", result.run),
        };
    }
    Shown::or(text, "no run was asked")
}
