//! Opens, reads and closes the run's pull request.
//!
//! This module does not know what a review or a merge leads to.

use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::fault::Fault;
use conductor_domain::forge::{HumanReview, PullRequestSnapshot};
use conductor_domain::id::PullRequestNumber;
use conductor_domain::input::Report;
use conductor_domain::message::Message;
use conductor_policy::authority::{Authority, Target};
use conductor_port::forge::{NewPullRequest, PullRequestReading, ReviewReading};

use super::Performance;
use crate::{rules, trust};

/// Opens the pull request. If repeated: the one of the same branch is found.
pub(super) async fn open(
    performance: &Performance<'_>,
    branch: &str,
    title: &str,
    message: &Message,
) -> Result<Report, Fault> {
    let new = NewPullRequest {
        branch: branch.to_owned(),
        title: performance.redact(title),
        body: performance.render(message).await?,
    };
    let (number, url) = performance
        .ports()
        .forge
        .open_pull_request(performance.repo(), &new)
        .await?;
    Ok(Report::PullRequestOpened { number, url })
}

/// Reads the pull request. If repeated: it is read again, as it stands then.
pub(super) async fn read(performance: &Performance<'_>, number: PullRequestNumber) -> Result<Report, Fault> {
    let reading = performance
        .ports()
        .forge
        .pull_request(performance.repo(), number)
        .await?;
    let kept = match &reading.changes_requested {
        Some(review) => {
            let authority = rules::of_run(performance.engine, &performance.spec().await?).await?;
            let words = words(review, &authority);
            Some(performance.keep(ArtifactKind::Feedback, &words).await?)
        }
        None => None,
    };
    Ok(Report::PullRequestRead {
        pull_request: snapshot(number, reading, kept),
    })
}

/// What a review that asks for changes says, as it is handed on: fenced where its author is not trusted (BEY-10).
pub(crate) fn words(review: &ReviewReading, authority: &Authority) -> String {
    let about = Target::PullRequest { is_own: true };
    match trust::objection(authority, &review.by, review.standing, about) {
        None => review.text.clone(),
        Some(why) => trust::fenced(&review.text, &why),
    }
}

/// Puts a reading into the run's words; `feedback` is what a review that asks for changes says.
pub(crate) fn snapshot(
    number: PullRequestNumber,
    reading: PullRequestReading,
    feedback: Option<Artifact>,
) -> PullRequestSnapshot {
    let review = reading
        .changes_requested
        .zip(feedback)
        .map(|(review, feedback)| HumanReview {
            id: review.id,
            by: review.by,
            feedback,
            commit: review.commit,
        });
    PullRequestSnapshot {
        number,
        state: reading.state,
        head: reading.head,
        head_repo: reading.head_repo,
        base_head: reading.base_head,
        review,
        failed_checks: reading.failed_checks,
        pending_checks: reading.pending_checks,
    }
}

/// Closes the pull request. If repeated: it is closed already.
pub(super) async fn close(performance: &Performance<'_>, number: PullRequestNumber) -> Result<Report, Fault> {
    performance
        .ports()
        .forge
        .close_pull_request(performance.repo(), number)
        .await?;
    Ok(Report::PullRequestClosed)
}
