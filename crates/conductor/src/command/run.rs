//! `conductor run`: starts, shows, watches and steers runs.
//!
//! It does not know what a run does.

mod start;
mod list;
mod show;
mod work;
mod watch;
mod decide;
mod answer;
mod act;
mod replay;

pub(crate) use watch::is_for_a_person;

use conductor_domain::id::RunId;

use crate::exit::{Exit, Failure};
use crate::session::Session;

/// Starts, watches and steers runs
#[derive(Debug, clap::Subcommand)]
pub(crate) enum RunCommand {
    /// Starts a run for an issue
    Start(start::StartArgs),
    /// Lists runs, newest first
    List(list::ListArgs),
    /// Shows a run: where it stands, what it waits for, and the next command
    Show(show::ShowArgs),
    /// Lists the calls of tools that its agents made, newest first, with what policy decided
    Calls(work::CallsArgs),
    /// Lists what Conductor wrote at the forge for it, with the decision and what came of it
    Writes(NamedRun),
    /// Shows what its newest commit changes
    Diff(work::DiffArgs),
    /// Follows a run until it ends or needs a person
    Watch(watch::WatchArgs),
    /// Approves what a run asks for: its plan, or a change that needs a second look
    Approve(decide::DecideArgs),
    /// Sends the plan or the change back, with what must be different
    Revise(decide::DecideArgs),
    /// Calls the run off at its plan or change
    Reject(decide::DecideArgs),
    /// Answers a question of an agent
    Answer(answer::AnswerArgs),
    /// Lets the current step finish and starts nothing new
    Pause(NamedRun),
    /// Takes the pause away
    Resume(NamedRun),
    /// Calls the run off and cleans up
    Cancel(act::CommentArgs),
    /// Starts the current phase over
    Retry(NamedRun),
    /// Gives a held run up
    Fail(act::CommentArgs),
    /// Moves a run in the queue
    Reprioritize(act::PriorityArgs),
    /// Recomputes every decision from the stored inputs and compares
    Replay(NamedRun),
}

/// A run by its id.
#[derive(Debug, clap::Args)]
pub(crate) struct NamedRun {
    /// The run's id, as in `conductor run list`
    pub(crate) run: RunId,
}

/// Runs the command.
pub(crate) async fn run(session: &Session, command: RunCommand) -> Result<Exit, Failure> {
    match command {
        RunCommand::Start(args) => start::start(session, args).await,
        RunCommand::List(args) => list::list(session, args).await,
        RunCommand::Show(args) => show::show(session, args).await,
        RunCommand::Calls(args) => work::calls(session, args).await,
        RunCommand::Writes(named) => work::writes(session, &named.run).await,
        RunCommand::Diff(args) => work::diff(session, args).await,
        RunCommand::Watch(args) => watch::watch(session, args).await,
        RunCommand::Approve(args) => decide::decide(session, decide::Answer::Approve, args).await,
        RunCommand::Revise(args) => decide::decide(session, decide::Answer::Revise, args).await,
        RunCommand::Reject(args) => decide::decide(session, decide::Answer::Reject, args).await,
        RunCommand::Answer(args) => answer::answer(session, args).await,
        RunCommand::Pause(named) => act::pause(session, &named.run).await,
        RunCommand::Resume(named) => act::resume(session, &named.run).await,
        RunCommand::Cancel(args) => act::cancel(session, args).await,
        RunCommand::Retry(named) => act::retry(session, &named.run).await,
        RunCommand::Fail(args) => act::fail(session, args).await,
        RunCommand::Reprioritize(args) => act::reprioritize(session, args).await,
        RunCommand::Replay(named) => replay::replay(session, &named.run).await,
    }
}
