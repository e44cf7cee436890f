//! Takes an input in: redacts it, asks policy, loads the run, has it decided, and hands the decision to commit.
//!
//! Somebody else may commit to the same run meanwhile; then the input is decided again on what stands there now.
//! Refusals leave no trace. This module does not know how a batch is made or kept.

mod verdict;

use conductor_domain::event::Event;
use conductor_domain::fault::Fault;
use conductor_domain::figures::Figures;
use conductor_domain::hold::HoldKind;
use conductor_domain::id::{IssueNumber, RunId};
use conductor_domain::input::{Input, PolicyVerdict};
use conductor_domain::instance::{Instance, InstanceInput, decide_instance};
use conductor_domain::phase::PhaseName;
use conductor_domain::refusal::Refusal;
use conductor_domain::time::Timestamp;
use conductor_domain::{Context, Run, decide};
use conductor_port::inbox::{Accepted, Seen, Submission, SubmitError};
use conductor_port::known;
use conductor_port::ledger::{AppendError, RunRow, Settlement, StreamId};
use conductor_port::views::{RunFilter, Views};
use tracing::Instrument as _;

use crate::engine::Engine;
use crate::redact::redact_value;
use crate::{chain, commit, report, rules, telemetry};

pub(crate) use verdict::may_merge;

/// How often an input is decided anew because the stream had moved on; more is a livelock.
const TRIES: u32 = 64;

/// How many runs are looked at in one go.
const PAGE: u32 = 200;

/// An input on its way in, with what only the engine's own reports carry.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) run: RunId,
    pub(crate) input: Input,
    pub(crate) dedupe: Option<String>,
    pub(crate) cause: String,
    /// The effect whose report this is.
    pub(crate) settles: Option<Settlement>,
    /// What it was decided on.
    pub(crate) seen: Seen,
}

/// What came of an arrival that was accepted.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) accepted: Accepted,
    /// What was decided; empty for a duplicate.
    pub(crate) events: Vec<Event>,
}

/// Why an arrival was not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotTaken {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the lease of the effect is lost")]
    LeaseLost,
    #[error("the run is {now} now")]
    Stale { seen: Seen, now: PhaseName },
    #[error("issue {number} is being worked on by run {run}")]
    IssueHasRun { number: IssueNumber, run: RunId },
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<NotTaken> for SubmitError {
    fn from(not_taken: NotTaken) -> Self {
        match not_taken {
            NotTaken::Refused(refusal) => Self::Refused(refusal),
            NotTaken::Stale { seen, now } => Self::Stale { seen, now },
            NotTaken::LeaseLost => Self::Fault(Fault::conflict("the lease of the effect is lost")),
            NotTaken::IssueHasRun { number, run } => Self::IssueHasRun { number, run },
            NotTaken::Fault(fault) => Self::Fault(fault),
        }
    }
}

/// Where a run stands when an input arrives.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) run: Option<Run>,
    pub(crate) seq: u64,
    pub(crate) head: String,
    pub(crate) created_at: Option<Timestamp>,
    /// What it took so far; absent where that was not counted from its beginning.
    pub(crate) figures: Option<Figures>,
}

/// Takes an input from a door.
pub(crate) async fn submit(engine: &Engine, submission: Submission) -> Result<Accepted, SubmitError> {
    let Submission {
        run,
        input,
        dedupe,
        cause,
        seen,
    } = submission;
    let taken = take_in(
        engine,
        Arrival {
            run,
            input,
            dedupe,
            cause,
            settles: None,
            seen,
        },
    )
    .await?;
    Ok(taken.accepted)
}

/// Takes an input in, and sees to what the commit itself cannot do.
pub(crate) async fn take_in(engine: &Engine, arrival: Arrival) -> Result<Taken, NotTaken> {
    let run = arrival.run.clone();
    let span = tracing::info_span!(telemetry::INTAKE, %run);
    let debt = Debt::to(engine, StreamId::Run(run.clone()));
    let taken = decide_and_commit(engine, arrival).instrument(span).await;
    if let Ok(taken) = &taken
        && has_a_sequel(&taken.events)
    {
        // What follows may submit inputs itself, which is a recursion of futures, so it is boxed.
        Box::pin(follow_up(engine, StreamId::Run(run))).await;
    }
    debt.settled();
    taken
}

/// Tells whether something follows that the commit itself cannot do.
fn has_a_sequel(events: &[Event]) -> bool {
    events.iter().any(|event| {
        matches!(
            event,
            Event::RunStarted { .. } | Event::EffectStopRequested { .. }
        )
    })
}

/// What may have to follow a commit, owed until it was seen to: whoever asked may go away in between, which drops all that
/// was still to come, and the commit stays.
#[derive(Debug)]
struct Debt<'a> {
    engine: &'a Engine,
    stream: Option<StreamId>,
}

impl<'a> Debt<'a> {
    fn to(engine: &'a Engine, stream: StreamId) -> Self {
        Self {
            engine,
            stream: Some(stream),
        }
    }

    fn settled(mut self) {
        self.stream = None;
    }
}

impl Drop for Debt<'_> {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.engine.owe(stream);
        }
    }
}

async fn decide_and_commit(engine: &Engine, arrival: Arrival) -> Result<Taken, NotTaken> {
    let input = redact_value(engine.options.redactor.as_ref(), &arrival.input)?;
    verdict::refuse_secret(&arrival.input, &input)?;
    let policy = Box::pin(verdict::reach(engine, &arrival.run, &input)).await?;
    for _ in 0..TRIES {
        let standing = standing(engine.ports.views.as_ref(), &arrival.run).await?;
        check_seen(arrival.seen, &standing)?;
        let context = Context {
            now: engine.ports.clock.now(),
            seq: standing.seq + 1,
            policy: policy.clone(),
            merge: Box::pin(verdict::merge_of(engine, standing.run.as_ref(), &input)).await,
        };
        let decision = tracing::debug_span!(telemetry::DECIDE, seq = context.seq)
            .in_scope(|| decide(standing.run.as_ref(), &input, &context))?;
        let events = decision.events.clone();
        let (stream, seen) = (StreamId::Run(arrival.run.clone()), standing.seq);
        let order = commit::RunOrder {
            arrival: &arrival,
            standing,
            input: input.clone(),
            context,
            decision,
        };
        // Boxed, like what else holds a whole run: futures of futures of runs grow.
        match Box::pin(commit::commit_run(engine, order)).await {
            Ok(seq) => {
                return Ok(Taken {
                    accepted: Accepted {
                        seq,
                        duplicate: false,
                    },
                    events,
                });
            }
            Err(AppendError::Moved { actual }) => refuse_loss(&stream, seen, actual)?,
            Err(AppendError::IssueTaken { run }) => return Err(issue_taken(&input, run)),
            Err(AppendError::Duplicate) => {
                let seq = self::standing(engine.ports.views.as_ref(), &arrival.run)
                    .await?
                    .seq;
                return Ok(Taken {
                    accepted: Accepted { seq, duplicate: true },
                    events: vec![],
                });
            }
            Err(AppendError::LeaseLost) => return Err(NotTaken::LeaseLost),
            Err(AppendError::Fault(fault)) => {
                // It may have been kept all the same.
                engine.owe(StreamId::Run(arrival.run));
                return Err(fault.into());
            }
        }
    }
    Err(Fault::conflict(format!(
        "run {} changed {TRIES} times while an input was being decided",
        arrival.run
    ))
    .into())
}

/// Refuses what was decided on a run that is another one by now; checked on the very state that is decided on.
fn check_seen(seen: Seen, standing: &Standing) -> Result<(), NotTaken> {
    // Where there is no run, the machine says so itself.
    let Some(now) = standing.run.as_ref().map(|run| run.phase.name()) else {
        return Ok(());
    };
    let is_current = match seen {
        Seen::Anything => true,
        Seen::Phase(phase) => phase == now,
        Seen::Record(seq) => seq == standing.seq,
    };
    if is_current {
        return Ok(());
    }
    Err(NotTaken::Stale { seen, now })
}

/// A stream grows and never shrinks; one that ends before what its readers saw has lost records.
fn refuse_loss(stream: &StreamId, seen: u64, actual: u64) -> Result<(), Fault> {
    if actual >= seen {
        return Ok(());
    }
    let damaged = match stream {
        StreamId::Instance => known::INSTANCE_DAMAGED,
        StreamId::Run(_) => known::RUN_DAMAGED,
    };
    Err(Fault::permanent(format!(
        "{damaged} ({stream}): {seen} records were kept and {actual} are there"
    )))
}

fn issue_taken(input: &Input, run: RunId) -> NotTaken {
    if let Input::StartRun { spec } = input {
        let number = spec.issue;
        return NotTaken::IssueHasRun { number, run };
    }
    Fault::permanent("the ledger spoke of an issue that nobody claimed").into()
}

/// Reads where a run stands.
pub(crate) async fn standing(views: &dyn Views, run: &RunId) -> Result<Standing, Fault> {
    let Some(row) = views.run(run).await? else {
        let head = chain::genesis(&StreamId::Run(run.clone()));
        return Ok(Standing {
            run: None,
            seq: 0,
            head,
            created_at: None,
            figures: None,
        });
    };
    Ok(Standing {
        run: Some(row.parse()?),
        seq: row.seq,
        head: row.head,
        created_at: Some(row.created_at),
        figures: serde_json::from_str(&row.figures).ok(),
    })
}

/// Sees to what a commit itself cannot do: for a run, that it knows of the kill switch and hears of effects which were
/// told to stop before anyone began them; for the instance, that every run hears of the kill switch.
///
/// The input is in already, so a fault here is owed and made up for at the next tick. It compares what is with what
/// should be, so that doing it once too often, or after a crash, is harmless.
pub(crate) async fn follow_up(engine: &Engine, stream: StreamId) {
    let done = match &stream {
        StreamId::Run(run) => async {
            reconcile_kill_switch_of(engine, run).await?;
            report::settle_what_never_began(engine, run).await
        }
        .await
        .map(|_settled| ()),
        StreamId::Instance => reconcile_kill_switch(engine).await.map(|_told| ()),
    };
    if let Err(fault) = done {
        tracing::warn!(%stream, %fault, "could not see to what follows a commit; trying again");
        engine.owe(stream);
    }
}

/// Takes an input to the instance in.
pub(crate) async fn submit_to_instance(
    engine: &Engine,
    input: InstanceInput,
    cause: &str,
) -> Result<Accepted, SubmitError> {
    let input = redact_value(engine.options.redactor.as_ref(), &input)?;
    if !matches!(input, InstanceInput::TurnKillSwitch { .. }) {
        return decide_and_commit_instance(engine, &input, cause).await;
    }
    let debt = Debt::to(engine, StreamId::Instance);
    let accepted = decide_and_commit_instance(engine, &input, cause).await;
    // Also where it stood like that already: a run that did not hear of it then hears of it now.
    follow_up(engine, StreamId::Instance).await;
    debt.settled();
    accepted
}

async fn decide_and_commit_instance(
    engine: &Engine,
    input: &InstanceInput,
    cause: &str,
) -> Result<Accepted, SubmitError> {
    for _ in 0..TRIES {
        let (instance, head) = engine.ports.views.instance().await?;
        let context = Context {
            now: engine.ports.clock.now(),
            seq: head.seq + 1,
            policy: PolicyVerdict::Allow,
            merge: None,
        };
        // Checked with the very texts that it is decided on: two that do not go together must not both be found good alone.
        if let InstanceInput::SetPolicy { scope, text, .. } = input {
            rules::check(engine, &instance, scope, text).await??;
        }
        let events = decide_instance(&instance, input)?;
        if events.is_empty() {
            return Ok(Accepted {
                seq: head.seq,
                duplicate: true,
            });
        }
        let seen = head.seq;
        let order = commit::InstanceOrder {
            instance,
            head,
            input: input.clone(),
            cause: cause.to_owned(),
            context,
            events,
        };
        match Box::pin(commit::commit_instance(engine, order)).await {
            Ok(seq) => {
                return Ok(Accepted {
                    seq,
                    duplicate: false,
                });
            }
            Err(AppendError::Moved { actual }) => refuse_loss(&StreamId::Instance, seen, actual)?,
            Err(AppendError::Duplicate | AppendError::LeaseLost | AppendError::IssueTaken { .. }) => {
                return Err(
                    Fault::permanent("the ledger spoke of a key or a lease that nobody gave it").into(),
                );
            }
            Err(AppendError::Fault(fault)) => {
                // It may have been kept all the same.
                engine.owe(StreamId::Instance);
                return Err(fault.into());
            }
        }
    }
    Err(Fault::conflict(format!(
        "the instance changed {TRIES} times while an input was being decided"
    ))
    .into())
}

/// Brings the kill switch of the instance to every open run that does not know of it yet.
///
/// Compares instead of remembering, so that a crash in the middle is put right by calling it again.
pub(crate) async fn reconcile_kill_switch(engine: &Engine) -> Result<u32, Fault> {
    let mut told = 0;
    let mut pages = Pages::of(Which::Open);
    while let Some(page) = pages.next(engine.ports.views.as_ref()).await? {
        let (Instance { kill_switch: on, .. }, _head) = engine.ports.views.instance().await?;
        let has_heard = |run: Run| run.holds.get(HoldKind::KillSwitch).is_some() == on;
        for row in page {
            if row.parse().is_ok_and(has_heard) {
                continue;
            }
            match reconcile_kill_switch_of(engine, &row.run).await {
                Ok(is_told) => told += u32::from(is_told),
                Err(fault) => engine.troubles.pass_over(&row.run, fault)?,
            }
        }
    }
    Ok(told)
}

async fn reconcile_kill_switch_of(engine: &Engine, run: &RunId) -> Result<bool, Fault> {
    let (Instance { kill_switch: on, .. }, _head) = engine.ports.views.instance().await?;
    let standing = standing(engine.ports.views.as_ref(), run).await?;
    let Some(state) = standing.run.filter(|state| !state.phase.is_terminal()) else {
        return Ok(false);
    };
    if state.holds.get(HoldKind::KillSwitch).is_some() == on {
        return Ok(false);
    }
    let arrival = Arrival {
        run: run.clone(),
        input: Input::KillSwitchTurned { on },
        dedupe: None,
        cause: StreamId::Instance.as_key(),
        settles: None,
        seen: Seen::Anything,
    };
    match take_in(engine, arrival).await {
        Ok(_taken) => Ok(true),
        // The run ended or was told by someone else in between.
        Err(NotTaken::Refused(refusal)) => {
            tracing::debug!(%run, %refusal, "the kill switch does not concern the run any more");
            Ok(false)
        }
        Err(NotTaken::LeaseLost | NotTaken::Stale { .. } | NotTaken::IssueHasRun { .. }) => Ok(false),
        Err(NotTaken::Fault(fault)) => Err(fault),
    }
}

/// Which runs to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that have not ended.
    Open,
    /// Those that still hold something, ended or not.
    Unfinished,
    /// All there ever were.
    All,
}

/// Lists runs page by page, so that many of them are never in memory at once.
#[derive(Debug)]
pub(crate) struct Pages {
    filter: RunFilter,
    is_over: bool,
}

impl Pages {
    pub(crate) fn of(which: Which) -> Self {
        let filter = RunFilter {
            open: which == Which::Open,
            unfinished: which == Which::Unfinished,
            limit: PAGE,
            ..RunFilter::default()
        };
        Self {
            filter,
            is_over: false,
        }
    }

    /// Reads the next page, as runs stand now; nothing after the last one.
    pub(crate) async fn next(&mut self, views: &dyn Views) -> Result<Option<Vec<RunRow>>, Fault> {
        if self.is_over {
            return Ok(None);
        }
        let page = views.runs(&self.filter).await?;
        self.is_over = page.len() < PAGE as usize;
        self.filter.after = page.last().map(|row| row.run.clone());
        Ok(Some(page))
    }
}
