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
    let exit = exit(&last);
    if exit == Exit::NeedsHuman {
        session
            .out
            .talk(&crate::show::state::waits(&last.run, &last.waits_for));
        let show = session.typed(&format!("conductor run show {}", last.run.id));
        session.out.talk(&format!("hint: `{show}` shows what to do"));
    }
    Ok(exit)
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
                    if is_seen(&state, until) {
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

/// Tells whether what was watched for has come. Who waits for the end waits for the clean-up, too, unless that failed and
/// only a person can have it done.
fn is_seen(now: &StateChange, until: Until) -> bool {
    let is_over = now.run.ended && (now.cleaned_up || is_for_a_person(now));
    match until {
        Until::Human => is_over || is_for_a_person(now),
        Until::Ended => is_over,
    }
}

/// How a run was left; a person who must act is told before how it ended.
fn exit(last: &StateChange) -> Exit {
    if is_for_a_person(last) || !last.run.ended {
        Exit::NeedsHuman
    } else if last.run.phase == PhaseName::Completed.as_str() {
        Exit::Ok
    } else {
        Exit::Failed
    }
}

/// Tells whether nothing more happens before a person acts, here or at the forge; after the end, when the clean-up failed.
pub(crate) fn is_for_a_person(now: &StateChange) -> bool {
    let waits_for_merge = now.run.phase == PhaseName::AwaitingMerge.as_str() && !now.run.held;
    now.run.needs_human || waits_for_merge
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(phase: PhaseName, needs_human: bool, cleaned_up: bool) -> StateChange {
        let ended = phase.is_terminal();
        let change = serde_json::json!({
            "run": {
                "id": "r-1", "project": "p", "repo": "o/r", "repo_id": 7, "issue": 1, "title": "T",
                "phase": phase.as_str(), "status": "", "held": false, "needs_human": needs_human, "ended": ended,
                "ended_because": null, "priority": 5, "pull_request": null, "events": 3, "created_at": 0,
                "updated_at": 0,
            },
            "waits_for": "", "cleaned_up": cleaned_up,
        });
        serde_json::from_value(change).expect("a change")
    }

    /// UI-1: watching ends when nothing more happens by itself, and the exit code says why.
    #[test]
    fn watching_ends_when_nothing_more_happens_by_itself() {
        use PhaseName::{AwaitingMerge, AwaitingPlanApproval, Cancelled, Completed, Planning};
        let (both, human, neither) = ([true, true], [true, false], [false, false]);
        for (now, seen, expected) in [
            (at(Planning, false, false), neither, Exit::NeedsHuman),
            (at(AwaitingPlanApproval, true, false), human, Exit::NeedsHuman),
            (at(AwaitingMerge, false, false), human, Exit::NeedsHuman),
            (at(Completed, false, false), neither, Exit::Ok),
            (at(Completed, false, true), both, Exit::Ok),
            (at(Cancelled, false, true), both, Exit::Failed),
            // Its clean-up failed: it never comes to anything more.
            (at(Completed, true, false), both, Exit::NeedsHuman),
            (at(Cancelled, true, false), both, Exit::NeedsHuman),
        ] {
            let told = [Until::Human, Until::Ended].map(|until| is_seen(&now, until));
            assert_eq!((told, exit(&now)), (seen, expected), "{now:?}");
        }
    }
}
