//! Says why a plan is not of low risk, so that only those are approved together that nobody has to read twice.
//!
//! Of low risk is a plan that the Reviewer approved, that names few files, none of which decides what is tested, built,
//! run or depended on, each of which the run's own policies let the Implementer write without asking, whose issue is by
//! somebody who is trusted, and that stands before the person whole with nothing hidden in it. All of it is read from
//! validated types and policies; no word of an agent has a say. This module does not know who approves.

use conductor_domain::phase::{Phase, PlanGate};
use conductor_domain::plan::Verdict;
use conductor_domain::run::Run;
use conductor_port::views::RunFilter;

use crate::api::{PlanRisk, PlanRisks};
use crate::door::Door;
use crate::error::Error;
use crate::visible;
use crate::words::text::count;

/// A plan that names more files is read by itself.
const FEW: usize = 5;
/// How many plans are read in one go.
const AT_ONCE: u32 = 500;

/// Lists the plans that wait for a person, oldest first, with what speaks against each.
pub(crate) async fn plans(door: &Door) -> Result<PlanRisks, Error> {
    let mut filter = RunFilter {
        phase: Some("awaiting_plan_approval".to_owned()),
        open: true,
        limit: AT_ONCE,
        ..RunFilter::default()
    };
    let mut rows = Vec::new();
    loop {
        let more = door.reader.next_rows(&mut filter).await?;
        if more.is_empty() {
            break;
        }
        rows.extend(more);
    }
    let mut plans = Vec::new();
    for row in rows.iter().rev() {
        // A run that cannot be read is named in the inbox.
        let Ok(run) = row.parse() else { continue };
        let Phase::AwaitingPlanApproval(waiting) = &run.phase else {
            continue;
        };
        plans.push(PlanRisk {
            run: row.run.clone(),
            title: row.title.clone(),
            repo: row.repo_name.clone(),
            subject: waiting.gate.subject.clone(),
            summary: waiting.plan.summary.clone(),
            files: waiting.plan.files.clone(),
            because: reasons(door, &run, waiting).await?,
        });
    }
    Ok(PlanRisks { plans })
}

/// Says what speaks against approving a plan without reading it by itself.
async fn reasons(door: &Door, run: &Run, waiting: &PlanGate) -> Result<Vec<String>, Error> {
    let mut reasons = Vec::new();
    if run.is_held() {
        reasons.push("the run is paused".to_owned());
    }
    if waiting.review.verdict != Verdict::Approve {
        reasons.push("the Reviewer did not approve it".to_owned());
    }
    let untrusted = run.issue.as_ref().and_then(|issue| issue.untrusted.as_ref());
    if let Some(why) = untrusted {
        reasons.push(format!(
            "its issue is by somebody whose words do not count as trusted: {why}"
        ));
    }
    if !run.shows_all_it_asks() {
        reasons.push("it is longer than can be shown whole".to_owned());
    }
    for artifact in run.asked() {
        let kept = door.reader.artifact(&artifact.digest).await?;
        let hidden = visible::text(&String::from_utf8_lossy(&kept)).told();
        if !hidden.is_empty() {
            let kind = artifact.kind.as_str();
            reasons.push(format!("its {kind} holds {hidden}"));
        }
    }
    let files = &waiting.plan.files;
    if files.len() > FEW {
        reasons.push(format!(
            "it names {}, more than {FEW}",
            count(files.len(), "file")
        ));
    }
    for path in files.iter().take(FEW + 1) {
        if let Some(concern) = door.rules.concern(path) {
            reasons.push(format!("{path}: {concern}"));
        }
        let question = format!("implementer create_file worktree:{path}");
        match door.rules.judge(&run.spec.policies, &question).await? {
            Ok(ruling) if ruling.decision == "allow" => {}
            Ok(ruling) => reasons.push(format!("{path}: {} ({})", ruling.reason, ruling.policy)),
            Err(what) => reasons.push(format!("{path}: policies cannot be asked about it: {what}")),
        }
    }
    Ok(reasons)
}
