//! Tells an event in one sentence, for people who watch; most events are nobody's business but the log's.
//!
//! This module does not know where events come from.

use crate::api::EventView;
use crate::visible;
use conductor_domain::event::Event;
use conductor_domain::plan::Verdict;

use crate::words::instance;
use crate::words::text::count;

/// Tells a record, where it is worth telling.
pub fn of(record: &EventView) -> Option<String> {
    if record.class != "decision" {
        return None;
    }
    let sentence = match serde_json::from_value(record.payload.clone()) {
        Ok(event) => tell(&event),
        // What no run knows may be an event of the instance.
        Err(_) => instance::tell(&serde_json::from_value(record.payload.clone()).ok()?),
    };
    sentence.map(|sentence| visible::line(&sentence))
}

fn tell(event: &Event) -> Option<String> {
    let verdict = |verdict: Verdict| match verdict {
        Verdict::Approve => "agrees with",
        Verdict::Reject => "rejects",
    };
    let sentence = if let Event::IssueSnapshotted { issue } = event {
        format!("read issue {}: {}", issue.number, issue.title)
    } else if let Event::WorkspacePrepared { base } = event {
        format!("working directory ready at {}", short(base.as_str()))
    } else if let Event::PlanDrafted { plan } = event {
        format!("Planner: {} ({})", plan.summary, count(plan.files.len(), "file"))
    } else if let Event::PlanReviewed { review } = event {
        format!("Reviewer {} the plan", verdict(review.verdict))
    } else if let Event::GateApproved {
        kind, subject, by, ..
    } = event
    {
        format!("{by} approved the {kind} {}", subject.short())
    } else if let Event::GateRevised { kind, by, .. } = event {
        format!("{by} sent the {kind} back")
    } else if let Event::GateRejected { kind, by, .. } = event {
        format!("{by} rejected the {kind}")
    } else if let Event::WorkCommitted { commit, .. } = event {
        format!("committed {}", short(commit.as_str()))
    } else if let Event::WorkRebased { base, .. } = event {
        format!("moved the work onto {}", short(base.as_str()))
    } else if let Event::TestsRan { tests, .. } = event {
        format!(
            "{} {}",
            if tests.has_passed() { "✔" } else { "✘" },
            tests.describe()
        )
    } else if let Event::TestsInterpreted {
        contradicts: true, ..
    } = event
    {
        "Tester's words contradict what was seen; what was seen counts".to_owned()
    } else if let Event::ImplementationReviewed { review } = event {
        format!("Reviewer {} the change", verdict(review.verdict))
    } else if let Event::AttemptFailed { retries, .. } = event {
        format!("attempt {retries} failed")
    } else if let Event::DiffInspected { inspection } = event {
        format!(
            "inspected the change: {}, {}",
            count(inspection.files.len(), "file"),
            count(inspection.findings.len(), "finding")
        )
    } else if let Event::CallGateOpened { wish, .. } = event {
        format!("a call of {} waits for approval: {}", wish.tool, wish.reason)
    } else if let Event::Pushed { commit } = event {
        format!("pushed {}", short(commit.as_str()))
    } else if let Event::PullRequestOpened { pull_request } = event {
        format!("opened pull request {} {}", pull_request.number, pull_request.url)
    } else if let Event::MergeBegan { head, reason } = event {
        format!("merging {}: {reason}", short(head.as_str()))
    } else if let Event::MergeEnded {
        refused: Some(why), ..
    } = event
    {
        format!("✘ not merged: {why}")
    } else if let Event::PullRequestMerged { by, other_head } = event {
        let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        match other_head {
            None => format!("pull request merged{by}"),
            Some(head) => format!(
                "pull request merged{by} at {}, which Conductor did not push",
                short(head.as_str())
            ),
        }
    } else if let Event::ReviewSetAside { review } = event {
        format!("{} asked for changes on another commit; set aside", review.by)
    } else if let Event::CleanUpFailed { reason } = event {
        format!("clean-up given up until `retry`: {reason}")
    } else if let Event::PullRequestClosed = event {
        "pull request closed without a merge".to_owned()
    } else if let Event::ChangesRequested { review } = event {
        format!("{} asked for changes", review.by)
    } else if let Event::HoldPlaced { hold } = event {
        format!("‖ {hold}")
    } else if let Event::AgentFailed { reason, failures, .. } = event {
        format!("agent failed ({failures}): {reason}")
    } else if let Event::Interrupted { effect, .. } = event {
        format!("Conductor died during {effect}; it is taken up again")
    } else if let Event::EffectRetryScheduled { reason, attempt, .. } = event {
        format!("try {attempt} did not work: {reason}")
    } else if let Event::ReliefGranted { relief } = event {
        format!(
            "{} granted override {}: {} ({})",
            relief.by, relief.number, relief.scope, relief.justification
        )
    } else if let Event::ReliefRevoked { number, by } = event {
        format!("{by} took override {number} back")
    } else if let Event::EgressDenied { denial, .. } = event {
        format!("⛔ a sandbox asked for {denial}")
    } else if let Event::RunCancelled { reason } = event {
        format!("called off: {reason}")
    } else if let Event::RunFailed { reason } = event {
        format!("given up: {reason}")
    } else if let Event::CleanedUp { .. } = event {
        "everything given back".to_owned()
    } else {
        return None;
    };
    Some(sentence)
}

fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use conductor_domain::id::OperatorName;
    use conductor_domain::phase::EndReason;

    use super::*;

    /// RUN-12: whoever watches hears why it is over.
    #[test]
    fn an_early_end_is_told_with_its_reason() {
        let by = OperatorName::parse("ann").expect("a name");
        let cancelled = Event::RunCancelled {
            reason: EndReason::PlanRejected { by },
        };
        assert_eq!(
            tell(&cancelled).as_deref(),
            Some("called off: ann rejected the plan")
        );
        let failed = Event::RunFailed {
            reason: EndReason::SetUpImpossible {
                why: "the issue was deleted".into(),
            },
        };
        assert_eq!(tell(&failed).as_deref(), Some("given up: the issue was deleted"));
    }
}
