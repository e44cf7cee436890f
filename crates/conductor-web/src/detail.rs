//! Puts what a person needs to judge a run into words: what it waits for, what is allowed, which command comes next.
//!
//! Asks the domain's own `decide` what it would accept, so that no rule is written twice. This module does not know
//! where the run is kept, and submits nothing.

use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::egress::{EgressDenial, EgressWay, Grant, HostName, grant};
use conductor_domain::gate::{Gate, GateKind};
use conductor_domain::hold::{Hold, HoldKind};
use conductor_domain::id::{EffectId, OperatorName, ProjectId};
use conductor_domain::input::{Action, Input, PolicyVerdict};
use conductor_domain::phase::{ExecutingStep, Phase, PlanningStep, ProposingStep, SetUp};
use conductor_domain::relief::{Relief, ReliefScope};
use conductor_domain::run::Run;
use conductor_domain::skill::SkillLock;
use conductor_domain::spec::Priority;
use conductor_domain::time::Timestamp;
use conductor_domain::{Context, decide};
use conductor_port::ledger::RunRow;

use crate::api::{
    DamageView, DenialView, GrantRequest, HoldView, NextStep, OverrideView, Problem, RunView, SkillView,
};
use crate::visible;

/// Makes a run's line.
pub(crate) fn run_view(row: &RunRow, run: &Run) -> RunView {
    RunView {
        id: row.run.clone(),
        project: row.project.clone(),
        repo: row.repo_name.clone(),
        repo_id: row.repo,
        issue: row.issue,
        title: row.title.clone(),
        phase: row.phase.clone(),
        status: run.status(),
        held: row.held,
        needs_human: row.needs_human,
        ended: row.terminal,
        ended_because: ended_because(&run.phase),
        priority: row.priority,
        pull_request: row.pull_request,
        events: row.seq,
        created_at: row.created_at,
        updated_at: row.updated_at,
        damaged: None,
    }
}

/// Makes the line of a run that cannot be read, of what its row still says.
pub(crate) fn damaged_view(row: &RunRow, damage: &Problem) -> RunView {
    RunView {
        id: row.run.clone(),
        project: row.project.clone(),
        repo: row.repo_name.clone(),
        repo_id: row.repo,
        issue: row.issue,
        title: row.title.clone(),
        phase: row.phase.clone(),
        status: format!("damaged ({})", damage.code),
        held: row.held,
        needs_human: row.needs_human,
        ended: row.terminal,
        ended_because: None,
        priority: row.priority,
        pull_request: row.pull_request,
        events: row.seq,
        created_at: row.created_at,
        updated_at: row.updated_at,
        damaged: Some(DamageView {
            code: damage.code.clone(),
            what: damage.detail.clone(),
            hint: damage.hint.clone(),
        }),
    }
}

/// Says why a run was called off or given up (RUN-12).
fn ended_because(phase: &Phase) -> Option<String> {
    match phase {
        Phase::Cancelled { reason } | Phase::Failed { reason } => Some(reason.to_string()),
        Phase::Pending(_)
        | Phase::Planning(_)
        | Phase::AwaitingPlanApproval(_)
        | Phase::Executing(_)
        | Phase::Proposing(_)
        | Phase::AwaitingMerge(_)
        | Phase::Completed => None,
    }
}

/// Shows a skill as the run locked it.
pub(crate) fn skill_view(lock: &SkillLock) -> SkillView {
    SkillView {
        name: lock.name.to_string(),
        roles: lock.roles.clone(),
        source: lock.source.clone(),
        commit: lock.commit.clone(),
        content: lock.content.clone(),
    }
}

/// Shows what was not let out, and the exact command that lets it out next time (BEY-6).
pub(crate) fn denial_view(
    at: Timestamp,
    effect: &EffectId,
    denial: &EgressDenial,
    project: &ProjectId,
    granted: &[Grant],
) -> DenialView {
    let request = denial.wanted().and_then(|wanted| {
        let written = wanted.written().into_iter().next()?;
        let host = HostName::parse(&denial.host).ok()?;
        Some(GrantRequest {
            command: format!("conductor egress allow {written} --project {project}"),
            granted: grant::check(granted, denial.way, &host, denial.port).is_ok(),
            grant: written,
            risk: EgressWay::RISK.to_owned(),
        })
    });
    DenialView {
        at,
        effect: effect.clone(),
        target: format!("{}:{}", denial.host, denial.port),
        reason: denial.reason.to_string(),
        command: denial.command.clone(),
        request,
    }
}

/// Shows an override.
pub(crate) fn override_view(relief: &Relief) -> OverrideView {
    let ReliefScope {
        policy,
        role,
        tool,
        target,
    } = relief.scope.clone();
    OverrideView {
        number: relief.number,
        policy,
        role,
        tool,
        target,
        justification: relief.justification.clone(),
        by: relief.by.clone(),
        until: relief.until,
        revoked_by: relief.revoked_by.clone(),
    }
}

/// Lists why the run stands still.
pub(crate) fn holds(run: &Run) -> Vec<HoldView> {
    run.holds
        .iter()
        .map(|hold| HoldView {
            kind: kind_name(hold.kind()).to_owned(),
            text: hold.to_string(),
            needs_human: hold.needs_human(),
            question: question(hold).cloned(),
        })
        .collect()
}

fn kind_name(kind: HoldKind) -> &'static str {
    match kind {
        HoldKind::Operator => "operator",
        HoldKind::Question => "question",
        HoldKind::ProviderLimit => "provider_limit",
        HoldKind::Failure => "failure",
        HoldKind::Policy => "policy",
        HoldKind::KillSwitch => "kill_switch",
    }
}

fn question(hold: &Hold) -> Option<&EffectId> {
    match hold {
        Hold::Question { id, .. } => Some(id),
        Hold::Operator { .. }
        | Hold::ProviderLimit { .. }
        | Hold::Failure { .. }
        | Hold::Policy { .. }
        | Hold::KillSwitch => None,
    }
}

/// The open question, which an answer must name.
fn open_question(run: &Run) -> Option<&EffectId> {
    run.holds.iter().find_map(question)
}

/// Says that the run is paused, why, and whether a person must act (RUN-1a).
fn paused(run: &Run) -> String {
    let holds: Vec<&Hold> = run.holds.iter().collect();
    if let [Hold::Operator { by }] = holds.as_slice() {
        return format!("paused by {by}");
    }
    let why: Vec<String> = holds
        .iter()
        .map(|hold| match hold {
            Hold::Operator { by } => format!("by {by}"),
            // What failed says so itself.
            Hold::Failure { reason } => visible::line(reason),
            Hold::Question { .. } | Hold::ProviderLimit { .. } | Hold::Policy { .. } | Hold::KillSwitch => {
                visible::line(&hold.to_string())
            }
        })
        .collect();
    let acts = if holds.iter().any(|hold| hold.needs_human()) {
        "; a person must act"
    } else {
        ""
    };
    format!("paused: {}{acts}", why.join("; "))
}

/// Says what the run waits for.
pub(crate) fn waits_for(run: &Run) -> String {
    if run.phase.is_terminal() {
        return if run.cleaned_up {
            "nothing: it is over".to_owned()
        } else if let Some(why) = &run.clean_up_failed {
            format!("a person: its clean-up failed ({why}); `retry` asks for it again")
        } else {
            "its clean-up".to_owned()
        };
    }
    if run.is_held() {
        return paused(run);
    }
    match &run.phase {
        Phase::Pending(SetUp::ReadingIssue) => "the forge: the issue is being read",
        Phase::Pending(SetUp::PreparingWorkspace) => "its working directory",
        Phase::Planning(planning) => match planning.step {
            PlanningStep::Drafting => "the Planner",
            PlanningStep::Reviewing { .. } => "the Reviewer of the plan",
            PlanningStep::Confirming { .. } => "the forge: the issue is read again before the plan is shown",
        },
        Phase::AwaitingPlanApproval(_) => "a person: approve, revise or reject the plan",
        Phase::Executing(executing) => match executing.step {
            ExecutingStep::Implementing => "the Implementer",
            ExecutingStep::Committing => "the commit",
            ExecutingStep::Rebasing => "the rebase onto a base that moved",
            ExecutingStep::Testing { .. } => "the test command",
            ExecutingStep::CheckingRedFirst { .. } => "the new tests on the base",
            ExecutingStep::Interpreting { .. } => "the Tester",
            ExecutingStep::Reviewing { .. } => "the Reviewer of the change",
        },
        Phase::Proposing(proposing) => match proposing.step {
            ProposingStep::Inspecting => "the inspection of the change",
            ProposingStep::AwaitingApproval { .. } => "a person: approve, revise or reject the change",
            ProposingStep::Pushing => "the push",
            ProposingStep::OpeningPullRequest => "the pull request",
            ProposingStep::PublishingCheck => "the check run",
        },
        Phase::AwaitingMerge(waiting) if waiting.merging.is_some() => "the merge, which a policy allows",
        Phase::AwaitingMerge(_) => "a person: merge or close the pull request at the forge",
        Phase::Completed | Phase::Cancelled { .. } | Phase::Failed { .. } => "nothing",
    }
    .to_owned()
}

/// Lists the actions that the run machine would accept now.
pub(crate) fn allowed(run: &Run, row: &RunRow, by: &OperatorName) -> Vec<&'static str> {
    let at = Context {
        now: row.updated_at,
        seq: row.seq + 1,
        policy: PolicyVerdict::Allow,
        merge: None,
    };
    candidates(run)
        .into_iter()
        .filter(|(_, action)| {
            decide(
                Some(run),
                &Input::Operate {
                    by: by.clone(),
                    action: action.clone(),
                },
                &at,
            )
            .is_ok()
        })
        .map(|(name, _)| name)
        .collect()
}

fn candidates(run: &Run) -> Vec<(&'static str, Action)> {
    let words = Artifact::of(ArtifactKind::Feedback, b"words");
    let mut candidates = Vec::new();
    if let Some(Gate { kind, subject, .. }) = run.gate() {
        let (gate, subject) = (*kind, subject.clone());
        candidates.push((
            "approve",
            Action::Approve {
                gate,
                subject: subject.clone(),
                comment: None,
            },
        ));
        candidates.push((
            "revise",
            Action::Revise {
                gate,
                subject: subject.clone(),
                feedback: words.clone(),
            },
        ));
        candidates.push((
            "reject",
            Action::Reject {
                gate,
                subject,
                comment: None,
            },
        ));
    }
    if let Some(question) = open_question(run) {
        candidates.push((
            "answer",
            Action::Answer {
                question: question.clone(),
                answer: words,
            },
        ));
    }
    candidates.extend([
        ("pause", Action::Pause),
        ("resume", Action::Resume),
        ("retry", Action::Retry),
        ("cancel", Action::Cancel { comment: None }),
        ("fail", Action::Fail { comment: None }),
        (
            "reprioritize",
            Action::Reprioritize {
                priority: Priority::NORMAL,
            },
        ),
    ]);
    candidates
}

/// Names the commands that bring the run on.
pub(crate) fn next_steps(run: &Run, allowed: &[&'static str]) -> Vec<NextStep> {
    let id = run.id();
    let mut steps = Vec::new();
    if let (Phase::AwaitingMerge(_), Some(pull_request)) = (&run.phase, &run.pull_request) {
        // Not a command: people merge where they review.
        steps.push(NextStep {
            what: "merge the pull request at the forge, or close it".to_owned(),
            command: pull_request.url.clone(),
        });
    }
    let mut step = |what: &str, command: String| {
        steps.push(NextStep {
            what: what.to_owned(),
            command: format!("conductor run {command}"),
        });
    };
    let may = |action: &str| allowed.contains(&action);
    if let Some(Gate { kind, subject, .. }) = run.gate() {
        let what = match kind {
            GateKind::Plan => [
                "carry this plan out",
                "send it back to the Planner",
                "call the run off",
            ],
            GateKind::Diff => [
                "let this change leave",
                "send it back to the Implementer",
                "call the run off",
            ],
            GateKind::Call => [
                "let exactly this call through, once in each attempt at this step",
                "say no, and why; the agent goes on without it",
                "call the run off",
            ],
        };
        if may("approve") {
            step(what[0], format!("approve {id} --subject {subject}"));
        }
        if may("revise") {
            step(what[1], format!("revise {id} --subject {subject} --comment '…'"));
        }
        if may("reject") {
            step(what[2], format!("reject {id} --subject {subject}"));
        }
    }
    if may("answer")
        && let Some(Hold::Question { id: question, .. }) = run.holds.get(HoldKind::Question)
    {
        step(
            "answer the question",
            format!("answer {id} --question {question} '…'"),
        );
    }
    if may("resume") {
        step("let it go on", format!("resume {id}"));
    }
    if run.is_held() && may("retry") {
        step("start the phase over", format!("retry {id}"));
    }
    if run.clean_up_failed.is_some() && may("retry") {
        step("clean up again", format!("retry {id}"));
    }
    if run.is_held() && may("fail") {
        step("give it up", format!("fail {id}"));
    }
    steps
}
