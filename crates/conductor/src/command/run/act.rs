//! `conductor run pause|resume|cancel|retry|fail|reprioritize`: what an operator asks of a run at any time.
//!
//! It does not know what a run accepts.

use conductor_domain::id::RunId;
use conductor_web::api::{AcceptedView, ActionRequest};

use crate::exit::{Exit, Failure};
use crate::session::Session;

/// A run, and words to go with the action.
#[derive(Debug, clap::Args)]
pub(crate) struct CommentArgs {
    /// The run's id, as in `conductor run list`
    run: RunId,
    /// Why
    #[arg(long, short = 'm', value_name = "TEXT")]
    comment: Option<String>,
}

/// A run, and its new place in the queue.
#[derive(Debug, clap::Args)]
pub(crate) struct PriorityArgs {
    /// The run's id, as in `conductor run list`
    run: RunId,
    /// Position in the queue, 1 (last) to 10 (first)
    #[arg(value_parser = clap::value_parser!(u8).range(1..=10))]
    priority: u8,
}

/// Pauses a run.
pub(crate) async fn pause(session: &Session, run: &RunId) -> Result<Exit, Failure> {
    act(session, run, &ActionRequest::Pause, "will pause").await
}

/// Resumes a run.
pub(crate) async fn resume(session: &Session, run: &RunId) -> Result<Exit, Failure> {
    act(session, run, &ActionRequest::Resume, "goes on").await
}

/// Calls a run off.
pub(crate) async fn cancel(session: &Session, args: CommentArgs) -> Result<Exit, Failure> {
    act(
        session,
        &args.run,
        &ActionRequest::Cancel {
            comment: args.comment,
        },
        "is called off",
    )
    .await
}

/// Starts the current phase over.
pub(crate) async fn retry(session: &Session, run: &RunId) -> Result<Exit, Failure> {
    act(session, run, &ActionRequest::Retry, "starts its phase over").await
}

/// Gives a run up.
pub(crate) async fn fail(session: &Session, args: CommentArgs) -> Result<Exit, Failure> {
    act(
        session,
        &args.run,
        &ActionRequest::Fail {
            comment: args.comment,
        },
        "is given up",
    )
    .await
}

/// Moves a run in the queue.
pub(crate) async fn reprioritize(session: &Session, args: PriorityArgs) -> Result<Exit, Failure> {
    let action = ActionRequest::Reprioritize {
        priority: args.priority,
    };
    act(
        session,
        &args.run,
        &action,
        &format!("has priority {}", args.priority),
    )
    .await
}

/// Asks it of the run, and tells that it was accepted.
pub(super) async fn act(
    session: &Session,
    run: &RunId,
    action: &ActionRequest,
    what: &str,
) -> Result<Exit, Failure> {
    let client = session.client().await?;
    let accepted: AcceptedView = client.post(&format!("/runs/{run}/actions"), action).await?;
    session.out.talk(&format!("✔ run {run} {what}"));
    session.out.data(&accepted, |_| String::new())?;
    Ok(Exit::Ok)
}
