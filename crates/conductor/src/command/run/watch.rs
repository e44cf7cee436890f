//! `conductor run watch`: follows a run live until it ends or needs a person.
//!
//! A connection that breaks is taken up where it stopped, so nothing is missed and nothing told twice. It does not know
//! what a run does.

use std::time::Duration;

use conductor_domain::id::RunId;
use conductor_domain::phase::PhaseName;
use conductor_web::api::StateChange;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;

use crate::client::Message;
use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::show::progress::Progress;

/// How often a lost server is looked for, and how long to wait in between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// Follows a run until it ends or needs a person
#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// The run's id, as in `conductor run list`
    run: RunId,
    /// When to stop watching
    #[arg(long, value_enum, default_value_t = Until::Human)]
    until: Until,
}

/// When to stop watching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Until {
    /// When the run needs a person, or ends
    Human,
    /// When the run has ended
    Ended,
}

/// Runs the command; the exit code says how the run ended, or that a person must act.
pub(crate) async fn watch(session: &Session, args: WatchArgs) -> Result<Exit, Failure> {
    let mut progress = Progress::new(session.out);
    let last = follow(session, &args.run, args.until, &mut progress).await;
    progress.finish();
    let last = last?;
    session.out.data(&last, |last| {
        format!("{}  {}\n", last.run.id, crate::show::state::outcome(&last.run))
    })?;
    if last.run.ended {
        return Ok(if last.run.phase == "completed" {
            Exit::Ok
        } else {
            Exit::Failed
        });
    }
    session
        .out
        .talk(&crate::show::state::waits(&last.run, &last.waits_for));
    session.out.talk(&format!(
        "hint: `conductor run show {}` shows what to do",
        last.run.id
    ));
    Ok(Exit::NeedsHuman)
}

async fn follow(
    session: &Session,
    run: &RunId,
    until: Until,
    progress: &mut Progress,
) -> Result<StateChange, Failure> {
    let (mut seen, mut tries) = (0, 0);
    loop {
        let mut messages = match connect(session, run, seen).await {
            Ok(messages) => messages,
            Err(failure)
                if matches!(failure.exit, Exit::NoServer | Exit::NoAnswer) && tries < TRIES && seen > 0 =>
            {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        while let Some(message) = messages.next().await {
            tries = 0;
            match message {
                Message::Record(record) => {
                    seen = record.seq;
                    progress.record(&record);
                }
                Message::State(state) => {
                    progress.state(&state);
                    let has_ended = state.run.ended && state.cleaned_up;
                    if has_ended || (until == Until::Human && is_for_a_person(&state)) {
                        return Ok(*state);
                    }
                }
                Message::Talk(talk) => progress.talk(&talk),
                Message::Problem(problem) => return Err(problem.into()),
            }
        }
        // The server stopped or the connection broke; `TRIES` counts only what follows without a word.
        tries += 1;
        if tries > TRIES {
            let what = format!("the stream of run {run} ended, and no server takes it up again");
            return Err(Failure::coded("CDR0401", what, "start `conductor serve`").exiting(Exit::NoServer));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Looks for the server anew each time: one that was restarted has another token, and perhaps another address.
async fn connect(session: &Session, run: &RunId, seen: u64) -> Result<BoxStream<'static, Message>, Failure> {
    session.client().await?.follow(run.as_str(), seen).await
}

/// Tells whether nothing more happens before a person acts, here or at the forge.
pub(crate) fn is_for_a_person(now: &StateChange) -> bool {
    let waits_for_merge = now.run.phase == PhaseName::AwaitingMerge.as_str() && !now.run.held;
    !now.run.ended && (now.run.needs_human || waits_for_merge)
}
