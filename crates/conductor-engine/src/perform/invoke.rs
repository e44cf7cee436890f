//! Runs one agent in its sandbox, watches it, and makes the outcome from what was seen (ARCHITECTURE invariant 10).
//!
//! Time, tool calls and tokens are limited here and not by trusting the agent (RUN-13). An invocation that an earlier
//! process began is never resumed (RUN-12a). This module does not know what an agent is, nor what its outcome leads to.

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::input::Report;
use conductor_domain::invocation::{
    AgentFailure, Invocation, InvocationLimit, InvocationReport, Outcome, Papers, Remains, ToolLogHead, Usage,
};
use conductor_domain::role::Role;
use conductor_domain::spec::AgentBackend;
use conductor_domain::time::Millis;
use conductor_port::agent::{AgentEnd, Task};
use conductor_port::executor::{Profile, Sandbox};

use super::{Performance, context, papers, sandbox, skills};
use crate::dispatch::duration;
use crate::rules;
use crate::toolhost::{self, Caller, Seen, ToolHost};

/// How long an agent that asked a human may take to end by itself (TOOL-4b).
const AFTER_QUESTION: Millis = Millis::seconds(10);

/// How long the papers of a fault wait for room before they are tried again.
const PAUSE: Millis = Millis(200);

/// Why an agent came to its end.
#[derive(Debug)]
enum Ended {
    /// By itself.
    Itself(AgentEnd),
    /// After it had asked a human.
    AfterQuestion,
    /// It used up its time.
    OutOfTime,
    /// It used up its tool calls.
    Cut,
    /// Conductor told it to stop.
    Stopped,
}

/// What was seen of an invocation.
#[derive(Debug)]
struct Witnessed {
    ended: Ended,
    seen: Seen,
    tools: ToolLogHead,
}

/// Invokes an agent. If repeated: what a dead process left is ended and undone, and nothing is resumed (RUN-12a); after
/// a fault that was reported, the agent starts anew from the same commit.
pub(super) async fn invoke(performance: &Performance<'_>, invocation: &Invocation) -> Result<Report, Fault> {
    if performance.job.interrupted {
        return undo(performance, invocation, Outcome::Interrupted).await;
    }
    let begun = performance.now();
    // At once, so that one durable write keeps both.
    let ((), on_record) = tokio::try_join!(performance.take_worktree(), performance.take_processes())?;
    if performance.job.is_repeated() {
        performance
            .executor(invocation.executor)?
            .reap(performance.effect())
            .await?;
    }
    let mut task = task(performance, invocation).await?;
    task.context = context::gather(performance, invocation).await?;
    let image_digest = performance.ports().agent.image_digest(&task);
    // What is kept is what the agent gets.
    let prompt = performance
        .redact_aside(performance.ports().agent.prompt(&task)?)
        .await?;
    let (kept, (dir, saved_before)) = tokio::try_join!(
        performance.keep(ArtifactKind::Context, &prompt),
        performance
            .ports()
            .workspace
            .reset(performance.run(), &invocation.start),
    )?;
    tracing::info!(context = %kept.digest, pieces = task.context.len(), "context assembled");
    let kept = performance.told.get_or_init(|| kept);
    let given = skills::of_role(performance, invocation.role).await?;
    let sandbox = sandbox::open(
        performance,
        &on_record,
        invocation.executor,
        Profile::Tool,
        dir,
        given,
    )
    .await?;
    let witnessed = watch(performance, invocation, (task, prompt), sandbox.as_ref()).await;
    // Whatever was seen, nothing of it is left running when the report goes out.
    sandbox.close().await?;
    let Witnessed { ended, seen, tools } = witnessed?;
    performance.give_processes_back().await?;

    let usage = Usage {
        tokens: tokens(&ended),
        time: performance.now().since(begun),
    };
    let outcome = outcome(invocation, &ended, &seen, usage);
    if let Some(fault) = environment_fault(&outcome, &seen) {
        return Err(fault);
    }
    let saved_after = save(performance, invocation, &outcome).await?;
    let facts = papers::Facts {
        effect: performance.effect(),
        invocation,
        end: papers::End::Outcome(&outcome),
        context: Some(kept),
        artifact: seen.artifact.as_ref(),
        image_digest: &image_digest,
        usage,
        at: performance.now(),
    };
    let papers = Some(write_papers(performance, &facts).await?);
    let report = InvocationReport {
        outcome,
        tools,
        usage,
        papers,
        saved: saved_after.or(saved_before),
        purpose: Some(invocation.purpose),
    };
    Ok(Report::Invoked { report })
}

/// Ends what may be left of an invocation, saves its work, resets, and reports; nothing is resumed (RUN-12a).
pub(super) async fn undo(
    performance: &Performance<'_>,
    invocation: &Invocation,
    outcome: Outcome,
) -> Result<Report, Fault> {
    performance
        .executor(invocation.executor)?
        .reap(performance.effect())
        .await?;
    performance.give_processes_back().await?;
    let (_dir, saved) = performance
        .ports()
        .workspace
        .reset(performance.run(), &invocation.start)
        .await?;
    let tools = toolhost::head_of(performance.engine, performance.effect()).await?;
    // What was used up died with the process that metered it.
    let usage = Usage::default();
    let task = task(performance, invocation).await?;
    let facts = papers::Facts {
        effect: performance.effect(),
        invocation,
        end: papers::End::Outcome(&outcome),
        context: performance.told.get(),
        artifact: None,
        image_digest: &performance.ports().agent.image_digest(&task),
        usage,
        at: performance.now(),
    };
    let papers = Some(write_papers(performance, &facts).await?);
    let report = InvocationReport {
        outcome,
        tools,
        usage,
        papers,
        saved,
        purpose: Some(invocation.purpose),
    };
    Ok(Report::Invoked { report })
}

/// Gathers what is left of an invocation that met a fault; nothing if not even the tool log can be read.
///
/// A ledger without room is waited for as long as the lease holds: who takes the effect up after that leaves papers.
pub(super) async fn remains(
    performance: &Performance<'_>,
    invocation: &Invocation,
    fault: &Fault,
) -> Option<Remains> {
    loop {
        let found = match toolhost::head_of(performance.engine, performance.effect()).await {
            Ok(tools) => match fault_papers(performance, invocation, fault).await {
                Ok(papers) => Ok((tools, Some(papers))),
                Err(other) if other.kind == FaultKind::Permanent => Ok((tools, None)),
                Err(other) => Err(other),
            },
            Err(other) => Err(other),
        };
        match found {
            Ok((tools, papers)) => {
                return Some(Remains {
                    purpose: invocation.purpose,
                    tools,
                    papers,
                });
            }
            Err(other) if other.kind == FaultKind::Permanent => return None,
            Err(other) => {
                tracing::debug!(%other, "cannot write the papers of a fault; trying again");
                tokio::time::sleep(duration(PAUSE)).await;
            }
        }
    }
}

async fn fault_papers(
    performance: &Performance<'_>,
    invocation: &Invocation,
    fault: &Fault,
) -> Result<Papers, Fault> {
    let task = task(performance, invocation).await?;
    let facts = papers::Facts {
        effect: performance.effect(),
        invocation,
        end: papers::End::Fault(fault),
        context: performance.told.get(),
        artifact: None,
        image_digest: &performance.ports().agent.image_digest(&task),
        // What was used up is not known of one that broke.
        usage: Usage::default(),
        at: performance.now(),
    };
    write_papers(performance, &facts).await
}

/// Every invocation yields its papers, however it ended (INV-1a).
async fn write_papers(performance: &Performance<'_>, facts: &papers::Facts<'_>) -> Result<Papers, Fault> {
    let redactor = performance.engine.options.redactor.as_ref();
    papers::write(performance.ports().blobs.as_ref(), redactor, facts).await
}

/// What names the agent; its context is gathered only where it begins.
async fn task(performance: &Performance<'_>, invocation: &Invocation) -> Result<Task, Fault> {
    let AgentBackend::Scripted { scenario } = &invocation.agents.backend;
    let bytes = performance.ports().blobs.get(scenario).await?;
    let bytes =
        bytes.ok_or_else(|| Fault::permanent(format!("the scenario {scenario} is not kept any more")))?;
    Ok(Task {
        effect: performance.effect().clone(),
        run: performance.run().clone(),
        invocation: invocation.clone(),
        context: vec![],
        scenario: Some(bytes),
    })
}

/// Runs the agent beside the writer of its tool log, until one of them or a limit ends it.
async fn watch(
    performance: &Performance<'_>,
    invocation: &Invocation,
    (task, prompt): (Task, String),
    sandbox: &dyn Sandbox,
) -> Result<Witnessed, Fault> {
    let ports = performance.ports();
    let (keeper, clock) = (ports.tool_log.clone(), ports.clock.clone());
    let lease = Some(performance.job.settlement.clone());
    let (log, writer) =
        toolhost::open_log(keeper, clock, performance.effect(), performance.run(), lease).await?;
    let caller = Caller {
        authority: rules::of_run(performance.engine, &performance.spec().await?).await?,
        effect: performance.effect().clone(),
        run: performance.run().clone(),
        role: invocation.role,
        approved: invocation.approved.clone(),
        calls: invocation.limits.tool_calls,
        time: invocation.limits.time,
    };
    let host = ToolHost::new(performance.engine, caller, sandbox, log);
    let (asked, cut) = (host.asked.clone(), host.cut.clone());
    let mut writing = std::pin::pin!(writer.write());
    let ended = tokio::select! {
        biased;
        () = performance.stop.cancelled() => Ok(Ended::Stopped),
        written = &mut writing => {
            return Err(written.err().unwrap_or_else(|| Fault::transient("the tool log ended before its invocation")));
        }
        () = cut.cancelled() => Ok(Ended::Cut),
        end = performance.ports().agent.invoke(task, prompt, &host) => end.map(Ended::Itself),
        () = async { asked.cancelled().await; tokio::time::sleep(duration(AFTER_QUESTION)).await } => {
            Ok(Ended::AfterQuestion)
        }
        () = tokio::time::sleep(duration(invocation.limits.time)) => Ok(Ended::OutOfTime),
        ended = host.let_words_out::<Result<Ended, Fault>>() => ended,
    };
    // Calls that wait to be kept were made, however it ended.
    let seen = host.into_seen();
    let tools = writing.await;
    Ok(Witnessed {
        ended: ended?,
        seen,
        tools: tools?,
    })
}

fn tokens(ended: &Ended) -> u64 {
    match ended {
        Ended::Itself(AgentEnd::Finished { tokens } | AgentEnd::Crashed { tokens, .. }) => *tokens,
        Ended::Itself(AgentEnd::ProviderLimited { .. })
        | Ended::AfterQuestion
        | Ended::OutOfTime
        | Ended::Cut
        | Ended::Stopped => 0,
    }
}

/// Makes the outcome: a stop first, then too many tokens whatever they bought, then a question, then what was submitted, then how it ended.
fn outcome(invocation: &Invocation, ended: &Ended, seen: &Seen, usage: Usage) -> Outcome {
    let exceeded = |limit| Outcome::Failed {
        failure: AgentFailure::LimitExceeded { limit },
    };
    if matches!(ended, Ended::Stopped) {
        return Outcome::Stopped;
    }
    if usage.tokens > invocation.limits.tokens {
        return exceeded(InvocationLimit::Tokens);
    }
    if let Some(question) = &seen.question {
        return Outcome::Asked {
            question: question.clone(),
        };
    }
    if let Some(wish) = &seen.wish {
        let wish = Box::new(wish.clone());
        return Outcome::NeedsApproval { wish };
    }
    if let Some(submission) = &seen.submission {
        return submission.clone();
    }
    if let Some(limit) = seen.limit {
        return exceeded(limit);
    }
    match ended {
        Ended::OutOfTime => exceeded(InvocationLimit::Time),
        Ended::Cut => exceeded(InvocationLimit::ToolCalls),
        Ended::Itself(AgentEnd::ProviderLimited { account, until }) => Outcome::ProviderLimited {
            account: account.clone(),
            until: *until,
        },
        Ended::Itself(AgentEnd::Crashed { reason, .. }) => Outcome::Failed {
            failure: AgentFailure::Crashed {
                reason: reason.clone(),
            },
        },
        Ended::Itself(AgentEnd::Finished { .. }) if invocation.role == Role::Implementer => {
            Outcome::Implemented
        }
        Ended::Itself(AgentEnd::Finished { .. }) | Ended::AfterQuestion | Ended::Stopped => Outcome::Failed {
            failure: no_result(seen),
        },
    }
}

/// A tool that met a fault explains why an agent came to nothing, and spoils work that went on without it.
fn environment_fault(outcome: &Outcome, seen: &Seen) -> Option<Fault> {
    match outcome {
        Outcome::Implemented | Outcome::Failed { .. } => seen.fault.clone(),
        Outcome::Planned { .. }
        | Outcome::Reviewed { .. }
        | Outcome::Interpreted { .. }
        | Outcome::Asked { .. }
        | Outcome::NeedsApproval { .. }
        | Outcome::Violated { .. }
        | Outcome::ProviderLimited { .. }
        | Outcome::Stopped
        | Outcome::Interrupted => None,
    }
}

fn no_result(seen: &Seen) -> AgentFailure {
    match &seen.invalid {
        Some(reason) => AgentFailure::InvalidResult {
            reason: reason.clone(),
        },
        None => AgentFailure::NoResult,
    }
}

/// Saves what a writing role left, unless it is about to be committed; nothing that was done is ever just lost (BEY-8).
async fn save(
    performance: &Performance<'_>,
    invocation: &Invocation,
    outcome: &Outcome,
) -> Result<Option<String>, Fault> {
    if !invocation.role.may_write() || *outcome == Outcome::Implemented {
        return Ok(None);
    }
    let (_dir, saved) = performance
        .ports()
        .workspace
        .reset(performance.run(), &invocation.start)
        .await?;
    Ok(saved)
}
