//! What is put before people: the plan, a change that needs a second look, the pull request (RUN-6, RUN-7, RUN-9).
//!
//! Every question is bound to the digest of what it shows. This module does not know who answers.

use crate::decide::draft::Draft;
use crate::decide::{merge, speech};
use crate::diff::{Finding, FindingKind, Inspection, Severity, bounded};
use crate::digest::Digest;
use crate::event::Event;
use crate::forge::{IssueSnapshot, PullRequest};
use crate::gate::{Gate, GateKind};
use crate::hold::Hold;
use crate::id::{CommitId, PullRequestNumber};
use crate::phase::{Phase, Proposing, ProposingStep};
use crate::plan::{Plan, Review, plan_subject};
use crate::refusal::Refusal;
use crate::run::Run;

pub(super) fn plan_gate(draft: &Draft<'_>, plan: &Plan, review: &Review, issue: &IssueSnapshot) -> Gate {
    Gate {
        kind: GateKind::Plan,
        subject: plan_subject(
            &plan.artifact,
            &review.artifact,
            &issue.artifact,
            &draft.run().spec.policy,
            draft.now(),
        ),
        opened_at: draft.now(),
        findings: distrust(issue),
    }
}

/// Tells whoever judges the plan that it answers somebody whose words do not count as trusted (BEY-10).
fn distrust(issue: &IssueSnapshot) -> Vec<Finding> {
    let finding = |why: &String| Finding {
        evidence: why.clone(),
        ..Finding::of_path(
            FindingKind::UntrustedIssue,
            format!("issue {}", issue.number),
            Severity::NeedsApproval,
        )
    };
    issue.untrusted.iter().map(finding).collect()
}

pub(super) fn propose_plan(draft: &mut Draft<'_>, plan: &Plan, review: &Review) {
    let Some(issue) = draft.run().issue.clone() else {
        return;
    };
    let gate = plan_gate(draft, plan, review, &issue);
    let message = speech::plan_proposed(plan, &gate);
    draft.record(Event::PlanProposed {
        gate,
        plan: plan.clone(),
        review: review.clone(),
        issue,
    });
    draft.say(message);
}

/// Lets the change pass, asks a human about it, or stops the run (SEC-4, S-11, S-51).
pub(super) fn inspected(draft: &mut Draft<'_>, inspection: &Inspection) {
    let Phase::Proposing(Proposing {
        approved,
        step: ProposingStep::Inspecting,
        ..
    }) = &draft.run().phase
    else {
        draft.note("an inspection of an earlier step ended");
        return;
    };
    let mut inspection = inspection.clone();
    let outside = inspection
        .files
        .iter()
        .filter(|file| !approved.plan.files.contains(file))
        .map(|file| Finding::of_path(FindingKind::OutsidePlan, file.clone(), Severity::NeedsApproval));
    let findings = inspection.findings.iter().cloned().chain(outside);
    inspection.findings = bounded(findings.collect());
    if !inspection.findings.is_empty() {
        // Now somebody would have to approve it, and nobody approves what is not shown (S-49).
        let unshown = inspection.objections_to_an_approval();
        inspection.findings.extend(unshown);
    }
    draft.record(Event::DiffInspected {
        inspection: inspection.clone(),
    });
    let found = inspection.findings.iter();
    let violations = places(found.filter(|finding| finding.severity == Severity::Violation));
    if !violations.is_empty() {
        draft.hold(Hold::Policy {
            reason: format!("the change may not leave: {violations}"),
        });
    } else if inspection.findings.is_empty() {
        draft.record(Event::DiffCleared);
    } else {
        let gate = Gate {
            kind: GateKind::Diff,
            subject: diff_subject(draft.run(), &inspection),
            opened_at: draft.now(),
            findings: inspection.findings.clone(),
        };
        draft.say(speech::diff_asks(&gate));
        draft.record(Event::DiffGateOpened { gate, inspection });
    }
}

/// Where what was found is, and of what kind.
pub(super) fn places<'a>(findings: impl Iterator<Item = &'a Finding>) -> String {
    let places = findings.map(|finding| format!("{} ({})", finding.place(), finding.kind));
    places.collect::<Vec<_>>().join(", ")
}

/// What an approval of a change is bound to: the exact change, what was found in it, what it does to the dependencies,
/// and the policy.
fn diff_subject(run: &Run, inspection: &Inspection) -> Digest {
    let findings = serde_json::to_string(&inspection.findings).expect("findings are plain data");
    let dependencies = inspection.dependencies.as_ref();
    let dependencies =
        dependencies.map_or_else(String::new, |list| format!("dependencies {}\n", list.digest));
    Digest::of(
        format!(
            "diff {}\nfindings {findings}\n{dependencies}policy {}\n",
            inspection.digest, run.spec.policy.0
        )
        .as_bytes(),
    )
}

pub(super) fn pushed(draft: &mut Draft<'_>, commit: &CommitId) -> Result<(), Refusal> {
    if draft.run().workspace.as_ref().map(|workspace| &workspace.head) != Some(commit) {
        return Err(Refusal::ReportDoesNotFit { effect: "push" });
    }
    draft.record(Event::Pushed {
        commit: commit.clone(),
    });
    Ok(())
}

pub(super) fn opened(draft: &mut Draft<'_>, number: PullRequestNumber, url: &str) {
    let Some(head) = draft
        .run()
        .workspace
        .as_ref()
        .map(|workspace| workspace.head.clone())
    else {
        return;
    };
    let pull_request = PullRequest {
        number,
        url: url.to_owned(),
        head,
    };
    draft.say(speech::pull_request_opened(&pull_request));
    draft.record(Event::PullRequestOpened { pull_request });
}

pub(super) fn check_published(draft: &mut Draft<'_>) {
    let base_announced = draft.run().heard.base_announced;
    draft.record(Event::MergeAwaited);
    // What a merge rests on is read first, as always; and what was announced before it could be.
    if draft.may_merge().is_some() || base_announced {
        merge::look_at(draft, None);
    }
}
