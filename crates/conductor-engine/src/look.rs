//! Looks at the forge for runs that wait for something there, in case nobody tells of it (GH-2).
//!
//! A look writes nothing. Where it brings news it becomes a hint, as if the forge itself had told, and the run reads for
//! itself: a run that waits for weeks does not grow. What was looked at when is forgotten at shutdown, so that a start
//! looks at everything at once. This module does not know what is news, nor what news leads to.

use std::collections::BTreeMap;

use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::decide::look::{Sight, is_news, worth_a_look};
use conductor_domain::fault::Fault;
use conductor_domain::forge::{Notice, NoticeSubject};
use conductor_domain::id::RunId;
use conductor_domain::input::{Input, PolicyVerdict};
use conductor_domain::time::{Millis, Timestamp};
use conductor_domain::{Context, Run};
use conductor_port::inbox::Seen;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::dispatch::duration;
use crate::engine::Engine;
use crate::intake::{self, Arrival, NotTaken, Pages, Which};
use crate::perform::pull_request::Feedback;
use crate::perform::{issue, pull_request, review};
use crate::trouble::Part;
use crate::{rules, telemetry};

/// How often runs are asked whether they want a look; how often each gets one is its own limit.
const ROUND: Millis = Millis::seconds(1);

/// Looks until shutdown.
pub(crate) async fn run(engine: &Engine, shutdown: &CancellationToken) {
    let mut looked = BTreeMap::new();
    loop {
        let round = async {
            tokio::time::sleep(duration(ROUND)).await;
            let done = Box::pin(look_around(engine, &mut looked)).await;
            engine.troubles.note(Part::Look, done);
        };
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            () = round.instrument(tracing::debug_span!(telemetry::LOOK)) => {}
        }
    }
}

async fn look_around(engine: &Engine, looked: &mut BTreeMap<RunId, Timestamp>) -> Result<(), Fault> {
    // Of runs that are not open any more nothing is remembered.
    let mut open = BTreeMap::new();
    let mut pages = Pages::of(Which::Open);
    while let Some(page) = pages.next(engine.ports.views.as_ref()).await? {
        for row in page {
            let now = engine.ports.clock.now();
            if let Some(next) = looked.get(&row.run).filter(|next| **next > now) {
                open.insert(row.run, *next);
                continue;
            }
            let run = match row.parse() {
                Ok(run) => run,
                Err(fault) => {
                    engine.troubles.pass_over(&row.run, fault)?;
                    continue;
                }
            };
            let Some(subject) = worth_a_look(&run) else {
                continue;
            };
            open.insert(row.run, now.after(run.spec.limits.poll));
            match look_at(engine, &run, subject).await {
                Ok(()) => {}
                Err(fault) => {
                    tracing::debug!(run = %run.id(), %fault, "a look failed; the next one is not far");
                }
            }
        }
    }
    *looked = open;
    Ok(())
}

async fn look_at(engine: &Engine, run: &Run, subject: NoticeSubject) -> Result<(), Fault> {
    let Some(sight) = sight(engine, run, &subject).await? else {
        return Ok(());
    };
    let standing = intake::standing(engine.ports.views.as_ref(), run.id()).await?;
    let Some(run) = standing.run else {
        return Ok(());
    };
    let at = Context {
        now: engine.ports.clock.now(),
        seq: standing.seq + 1,
        policy: PolicyVerdict::Allow,
        merge: intake::may_merge(engine, &run).await,
    };
    if !is_news(&run, &sight, &at) {
        return Ok(());
    }
    let notice = Notice {
        delivery: "a look".to_owned(),
        event: "news".to_owned(),
        subject,
    };
    let arrival = Arrival {
        run: run.id().clone(),
        input: Input::ForgeNoticed { notice },
        dedupe: None,
        cause: String::new(),
        settles: None,
        seen: Seen::Anything,
    };
    match intake::take_in(engine, arrival).await {
        Ok(_taken) => Ok(()),
        Err(NotTaken::Refused(refusal)) => {
            tracing::debug!(run = %run.id(), %refusal, "the run has moved on");
            Ok(())
        }
        Err(NotTaken::LeaseLost | NotTaken::Stale { .. } | NotTaken::IssueHasRun { .. }) => Ok(()),
        Err(NotTaken::Fault(fault)) => Err(fault),
    }
}

/// Reads what the run waits for as its own reading would, without keeping any of it.
async fn sight(engine: &Engine, run: &Run, subject: &NoticeSubject) -> Result<Option<Sight>, Fault> {
    let forge = &engine.ports.forge;
    let authority = rules::of_run(engine, &run.spec).await?;
    let unkept =
        |kind: ArtifactKind, text: &str| Artifact::of(kind, engine.options.redactor.redact(text).as_bytes());
    match subject {
        NoticeSubject::Issue { number } => Ok(Some(match forge.issue(&run.spec.repo, *number).await? {
            Ok(read) => {
                let words = issue::words(&read, &authority);
                let artifact = unkept(ArtifactKind::Issue, &words.text);
                Sight::Issue(issue::snapshot(*number, read, artifact, words.untrusted))
            }
            Err(problem) => Sight::NoIssue(problem),
        })),
        NoticeSubject::PullRequest { number } => {
            let reading = forge.pull_request(&run.spec.repo, *number).await?;
            let said = |words: String| unkept(ArtifactKind::Feedback, &words);
            let asked = review::asked(&reading.changes_requested, run);
            let feedback = Feedback {
                review: asked.map(|asked| asked.heard_as(said(asked.words(&authority)))),
                checks: pull_request::complaints(&reading).map(said),
            };
            Ok(Some(Sight::PullRequest(pull_request::snapshot(
                *number, reading, feedback,
            ))))
        }
        NoticeSubject::Base => Ok(None),
    }
}
