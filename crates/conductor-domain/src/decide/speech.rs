//! The words that Conductor says at the forge at each turn of a run.
//!
//! Foreign words are quoted through [`harmless`] or kept as artifacts. This module does not know the throttle.

use crate::artifact::Artifact;
use crate::forge::PullRequest;
use crate::gate::{Gate, GateKind};
use crate::hold::Hold;
use crate::id::{CommitId, OperatorName};
use crate::invocation::CallWish;
use crate::message::{Body, CommentPlace, CommentRequest, Message, MessageKind, code, harmless, visible};
use crate::phase::{ApprovedPlan, Phase, Proposing};
use crate::plan::{Plan, Review, TestReport};
use crate::role::{Role, Speaker};
use crate::run::Run;
use crate::testing::TestRun;

fn own(kind: MessageKind, headline: impl Into<String>) -> Message {
    Message {
        speaker: Speaker::Orchestrator,
        kind,
        headline: headline.into(),
        body: Body::Empty,
        details: vec![],
    }
}

fn with_text(message: Message, text: impl Into<String>) -> Message {
    Message {
        body: Body::Own { text: text.into() },
        ..message
    }
}

fn with_kept(message: Message, artifact: &Artifact) -> Message {
    Message {
        body: Body::Kept {
            artifact: artifact.clone(),
            preface: None,
        },
        ..message
    }
}

fn with_detail(mut message: Message, key: &str, value: impl Into<String>) -> Message {
    message.details.push((key.to_owned(), value.into()));
    message
}

pub(super) fn run_started(run: &Run, base: &CommitId) -> Message {
    let message = own(
        MessageKind::Transition,
        format!("Run started by {}; planning", run.spec.started_by),
    );
    let message = with_detail(message, "branch", run.spec.branch());
    with_detail(message, "base", base.as_str())
}

pub(super) fn plan_proposed(plan: &Plan, gate: &Gate) -> Message {
    let message = own(MessageKind::Gate, "A plan waits for approval");
    let message = gate.findings.iter().fold(message, |message, finding| {
        with_detail(message, "mind", finding.to_string())
    });
    with_detail(
        with_kept(message, &plan.artifact),
        "approval covers",
        gate.subject.as_str(),
    )
}

pub(super) fn plan_asks_again() -> Message {
    own(
        MessageKind::Gate,
        "The issue changed; the plan waits for a new approval",
    )
}

pub(super) fn issue_changed_since_planning() -> Message {
    own(
        MessageKind::Gate,
        "The issue changed while the plan was being written; it is shown beside the plan as it stands now",
    )
}

pub(super) fn diff_asks(gate: &Gate) -> Message {
    let mut text = String::from("The change needs a second look before it leaves:\n\n");
    for finding in &gate.findings {
        text.push_str(&format!("- {}: {}", code(&finding.place()), finding.kind));
        if !finding.evidence.is_empty() {
            text.push_str(&format!(", {}", code(&finding.evidence)));
        }
        text.push('\n');
    }
    let message = with_text(own(MessageKind::Gate, "A change waits for approval"), text);
    with_detail(message, "approval covers", gate.subject.as_str())
}

pub(super) fn call_asks(gate: &Gate, wish: &CallWish) -> Message {
    let headline = format!("A call of {} waits for approval: {}", wish.tool, wish.reason);
    let message = with_kept(own(MessageKind::Gate, headline), &wish.text);
    with_detail(message, "approval covers", gate.subject.as_str())
}

/// Says that Conductor itself merges, and by which policy.
pub(super) fn merging(head: &CommitId, reason: &str) -> Message {
    let message = own(
        MessageKind::Transition,
        "A policy lets Conductor merge the pull request",
    );
    with_detail(with_detail(message, "commit", head.as_str()), "policy", reason)
}

pub(super) fn merge_refused(why: &str) -> Message {
    let headline = "The pull request could not be merged; it waits for a person";
    with_detail(own(MessageKind::Failure, headline), "why", why)
}

pub(super) fn first_failure(why: &str) -> Message {
    own(
        MessageKind::Failure,
        format!("A first attempt failed and is being repeated: {why}"),
    )
}

/// What is said when a run stands still; an operator's own pause is mirrored by its action.
pub(super) fn held(hold: &Hold) -> Option<Message> {
    match hold {
        Hold::Question { text, .. } => Some(own(
            MessageKind::Question,
            format!("An agent asks, and the run waits for the answer: {text}"),
        )),
        Hold::ProviderLimit { .. } => Some(own(
            MessageKind::Transition,
            "The model provider refuses more work for now; the run resumes by itself",
        )),
        Hold::Failure { reason } => Some(own(MessageKind::Failure, format!("Paused for a human: {reason}"))),
        Hold::Policy { reason } => Some(own(MessageKind::Failure, format!("Paused by policy: {reason}"))),
        Hold::Operator { .. } | Hold::KillSwitch => None,
    }
}

pub(super) fn reminder(run: &Run) -> Option<Message> {
    let question = run.holds.iter().find_map(|hold| match hold {
        Hold::Question { text, .. } => Some(text.clone()),
        Hold::Operator { .. }
        | Hold::ProviderLimit { .. }
        | Hold::Failure { .. }
        | Hold::Policy { .. }
        | Hold::KillSwitch => None,
    });
    match (question, run.gate()) {
        (Some(text), _) => Some(own(
            MessageKind::Gate,
            format!("Still waiting for an answer: {text}"),
        )),
        (None, Some(gate)) => Some(own(
            MessageKind::Gate,
            format!("The {} still waits for approval", gate.kind),
        )),
        (None, None) => None,
    }
}

pub(super) fn operator_did(by: &OperatorName, what: &str, comment: Option<&str>) -> Message {
    let mut text = actor(by);
    if let Some(comment) = comment {
        text.push_str(&format!("\n\n{}", harmless(comment)));
    }
    with_text(own(MessageKind::OperatorAction, format!("{by} {what}")), text)
}

pub(super) fn operator_revised(by: &OperatorName, kind: GateKind, feedback: &Artifact) -> Message {
    operator_wrote(by, &format!("sent the {kind} back"), feedback)
}

pub(super) fn operator_answered(by: &OperatorName, answer: &Artifact) -> Message {
    operator_wrote(by, "answered", answer)
}

/// What an operator did with words that are kept.
fn operator_wrote(by: &OperatorName, what: &str, words: &Artifact) -> Message {
    Message {
        body: Body::Kept {
            artifact: words.clone(),
            preface: Some(actor(by)),
        },
        ..own(MessageKind::OperatorAction, format!("{by} {what}"))
    }
}

/// Names who acted (RUN-7). In code: a name of ours need not be the forge's, and must not call a stranger there.
fn actor(by: &OperatorName) -> String {
    format!("Actor: `@{by}`")
}

pub(super) fn tested(tests: &TestRun, report: Option<&TestReport>) -> Message {
    let message = Message {
        speaker: Speaker::Agent(Role::Tester),
        kind: MessageKind::TestReport,
        headline: tests.describe(),
        body: Body::Empty,
        details: vec![],
    };
    let message = match report {
        Some(report) => with_kept(message, &report.artifact),
        None => with_text(message, "The Tester gave no interpretation."),
    };
    let message = with_detail(message, "tree", tests.tree.as_str());
    if report.is_some_and(|report| report.contradicts(tests)) {
        return with_detail(message, "mind", "the Tester says otherwise; the exit code counts");
    }
    message
}

pub(super) fn reviewed(review: &Review) -> Message {
    let message = Message {
        speaker: Speaker::Agent(Role::Reviewer),
        kind: MessageKind::Review,
        headline: "The implementation was reviewed and approved".to_owned(),
        body: Body::Empty,
        details: vec![],
    };
    with_kept(message, &review.artifact)
}

pub(super) fn remark(comment: &CommentRequest) -> Message {
    let message = Message {
        speaker: Speaker::Agent(comment.role),
        kind: MessageKind::Remark,
        headline: "left a remark".to_owned(),
        body: Body::Empty,
        details: vec![],
    };
    with_kept(message, &comment.text)
}

/// A remark on the pull request; about a line of the commit that was proposed last, if it names one.
pub(super) fn pull_request_remark(comment: &CommentRequest, pull_request: &PullRequest) -> Message {
    let message = Message {
        kind: MessageKind::PullRequestRemark,
        headline: match &comment.place {
            CommentPlace::Line { path, line } => format!("left a remark on {}, line {line}", code(path)),
            CommentPlace::Issue | CommentPlace::PullRequest | CommentPlace::Check => {
                "left a remark on the pull request".to_owned()
            }
        },
        ..remark(comment)
    };
    with_detail(message, "commit", pull_request.head.as_str())
}

pub(super) fn changes_requested(by: &str) -> Message {
    own(
        MessageKind::Transition,
        format!("Changes were requested by {by}; working on them"),
    )
}

pub(super) fn review_set_aside(by: &str, commit: Option<&CommitId>, proposed: &CommitId) -> Message {
    let seen = commit.map_or("no commit that is known", CommitId::as_str);
    own(
        MessageKind::Failure,
        format!(
            "{by} asked for changes on {seen}, but {proposed} is what is proposed; please review that one"
        ),
    )
}

pub(super) fn pull_request_opened(pull_request: &PullRequest) -> Message {
    own(
        MessageKind::Transition,
        format!(
            "Pull request #{} is open and waits for a human",
            pull_request.number.0
        ),
    )
}

pub(super) fn ended(run: &Run) -> Message {
    match &run.phase {
        Phase::Completed => match &run.heard.merged_other {
            None => own(
                MessageKind::Transition,
                "The pull request was merged; the run is complete",
            ),
            Some(head) => own(
                MessageKind::Failure,
                format!(
                    "The pull request was merged at {head}, which Conductor did not push: no test or review of this \
                     run covers it; the run is over"
                ),
            ),
        },
        Phase::Cancelled { reason } => own(
            MessageKind::Transition,
            format!("The run was cancelled: {reason}"),
        ),
        Phase::Failed { reason } => own(MessageKind::Failure, format!("The run failed: {reason}")),
        Phase::Pending(_)
        | Phase::Planning(_)
        | Phase::AwaitingPlanApproval(_)
        | Phase::Executing(_)
        | Phase::Proposing(_)
        | Phase::AwaitingMerge(_) => own(MessageKind::Transition, "The run goes on"),
    }
}

/// Makes one message of several; one alone stays as it is.
pub(super) fn coalesced(mut messages: Vec<Message>) -> Option<Message> {
    if messages.len() < 2 {
        return messages.pop();
    }
    let last = messages.last()?;
    let kind = if last.kind.passes_throttle() {
        last.kind
    } else {
        MessageKind::Digest
    };
    Some(Message {
        speaker: Speaker::Orchestrator,
        kind,
        headline: last.headline.clone(),
        body: Body::Several { parts: messages },
        details: vec![],
    })
}

pub(super) fn commit_message(run: &Run, approved: &ApprovedPlan) -> String {
    format!(
        "{}\n\nIssue: {}#{}\nConductor-Run: {}\n",
        plain_line(&approved.plan.summary),
        run.spec.repo,
        run.spec.issue.0,
        run.spec.run
    )
}

pub(super) fn pull_request_title(approved: &ApprovedPlan) -> String {
    let title: String = plain_line(&approved.plan.summary).chars().take(120).collect();
    format!("{title} ({})", approved.issue.number)
}

pub(super) fn pull_request(run: &Run, proposing: &Proposing) -> Message {
    let approved = &proposing.approved;
    let mut text = format!(
        "Closes {}.\n\n**Plan**, approved by {}:\n\n",
        run.spec.issue,
        code(approved.by.as_str())
    );
    text.push_str(&format!(
        "> {}\n\n",
        harmless(&plain_line(&approved.plan.summary))
    ));
    for file in &approved.plan.files {
        text.push_str(&format!("- {}\n", code(file)));
    }
    text.push_str(&format!("\n**Tests**: {}\n", proposing.tests.describe()));
    let message = with_text(own(MessageKind::Transition, "Proposed change"), text);
    with_detail(message, "plan", approved.plan.artifact.digest.as_str())
}

pub(super) fn check_summary(run: &Run, proposing: &Proposing) -> String {
    format!(
        "- plan approved by {}\n- {}\n- reviewed by the Reviewer agent\n\n[run {}]({})\n",
        code(proposing.approved.by.as_str()),
        proposing.tests.describe(),
        run.spec.run,
        run.spec.page
    )
}

/// One line that shows all it holds.
fn plain_line(text: &str) -> String {
    // Titles and commits are read by machines: no reference closes a foreign issue, no mention calls anybody, and no word in
    // brackets or stars, such as `[skip ci]` and `***NO_CI***`, keeps the project's checks from running (SEC-2).
    let defused = text
        .replace('#', "no. ")
        .replace('@', "(at)")
        .replace('[', "(")
        .replace(']', ")")
        .replace("***", "* * *");
    visible(&defused).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Finding, FindingKind, Severity};
    use crate::digest::Digest;
    use crate::time::Timestamp;

    /// GH-4: what waited is told as one message, unless it is one already.
    #[test]
    fn only_several_messages_are_made_one() {
        let said = |headline: &str| own(MessageKind::Transition, headline);
        assert_eq!(coalesced(vec![]), None);
        assert_eq!(coalesced(vec![said("a")]), Some(said("a")));
        let parts = vec![said("a"), said("b")];
        let one = Message {
            kind: MessageKind::Digest,
            body: Body::Several { parts: parts.clone() },
            ..said("b")
        };
        assert_eq!(coalesced(parts), Some(one));
    }

    /// SEC-4: each finding is told with its place, and with what was seen there if that is known.
    #[test]
    fn a_finding_is_told_with_its_evidence_where_there_is_some() {
        let finding = Finding::of_path(FindingKind::Secret, "a", Severity::NeedsApproval);
        let with_evidence = Finding {
            evidence: "ghp_…".to_owned(),
            ..finding.clone()
        };
        let gate = Gate {
            kind: GateKind::Diff,
            subject: Digest::of(b""),
            opened_at: Timestamp(0),
            findings: vec![finding, with_evidence],
        };
        let Body::Own { text } = diff_asks(&gate).body else {
            panic!("Conductor's own words");
        };
        let told: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(told, ["- `a`: secret", "- `a`: secret, `ghp_…`"]);
    }
}
