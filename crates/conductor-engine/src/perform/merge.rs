//! Merges the run's pull request at exactly one commit, on exactly one base (RUN-14).
//!
//! This module does not know why it may: that was decided.

use conductor_domain::fault::Fault;
use conductor_domain::forge::PullRequestState;
use conductor_domain::id::{CommitId, PullRequestNumber};
use conductor_domain::input::Report;
use conductor_port::forge::PullRequestReading;

use super::Performance;

/// Merges the pull request. If repeated: one that was merged at this commit is the answer, so that none is merged twice.
pub(super) async fn merge(
    performance: &Performance<'_>,
    number: PullRequestNumber,
    head: &CommitId,
    base: &CommitId,
) -> Result<Report, Fault> {
    let ports = performance.ports();
    // What was read when it was decided may be hours old: a hold may have lain between.
    let reading = ports.forge.pull_request(performance.repo(), number).await?;
    if matches!(reading.state, PullRequestState::Merged { .. }) && reading.head == *head {
        return Ok(Report::PullRequestMerged);
    }
    if let Some(why) = obstacle(&reading, head, base) {
        return Ok(Report::MergeRefused { why });
    }
    if is_called_off(performance).await? {
        return Ok(Report::Stopped);
    }
    Ok(
        match ports.merges.merge(performance.repo(), number, head).await? {
            Ok(()) => Report::PullRequestMerged,
            Err(why) => Report::MergeRefused { why },
        },
    )
}

/// Tells whether the merge was told to stop since it was leased: a merge never begins after a stop (ADR 0022). The reading
/// takes seconds, and a stop that another process accepted is heard of here only when the lease is renewed, so the run is
/// asked.
async fn is_called_off(performance: &Performance<'_>) -> Result<bool, Fault> {
    if performance.stop.is_cancelled() {
        return Ok(true);
    }
    let run = performance.state().await?;
    let asked = run.in_flight.get(performance.effect());
    Ok(asked.is_none_or(|merge| merge.stopping))
}

/// Says what stands in the way of a merge.
fn obstacle(reading: &PullRequestReading, head: &CommitId, base: &CommitId) -> Option<String> {
    let why = match &reading.state {
        PullRequestState::Merged { .. } => "it was merged at another commit".to_owned(),
        PullRequestState::Closed => "it was closed".to_owned(),
        PullRequestState::Open if reading.head != *head => format!("its head is {} now", reading.head),
        PullRequestState::Open if reading.base_head.as_ref() != Some(base) => {
            "its base went ahead of what was tested".to_owned()
        }
        PullRequestState::Open => {
            let review = reading.changes_requested.last();
            let asked = review.map(|review| format!("{} asked for changes", review.by));
            let failed = reading.failed_checks.iter().map(|check| &check.name);
            let checks: Vec<&str> = failed
                .chain(&reading.pending_checks)
                .map(String::as_str)
                .collect();
            let checks = (!checks.is_empty()).then(|| format!("not green: {}", checks.join(", ")));
            return asked.or(checks);
        }
    };
    Some(why)
}
