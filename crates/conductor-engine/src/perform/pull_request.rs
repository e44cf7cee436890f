//! Opens, reads and closes the run's pull request.
//!
//! This module does not know what a review or a merge leads to.

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::fault::Fault;
use conductor_domain::forge::{HumanReview, PullRequestSnapshot};
use conductor_domain::id::PullRequestNumber;
use conductor_domain::input::Report;
use conductor_domain::message::Message;
use conductor_port::forge::{NewPullRequest, ReviewReading};

use super::Performance;

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
    let review = match reading.changes_requested {
        Some(review) => Some(keep_review(performance, review).await?),
        None => None,
    };
    Ok(Report::PullRequestRead {
        pull_request: PullRequestSnapshot {
            number,
            state: reading.state,
            head: reading.head,
            head_repo: reading.head_repo,
            base_head: reading.base_head,
            review,
            failed_checks: reading.failed_checks,
        },
    })
}

async fn keep_review(performance: &Performance<'_>, review: ReviewReading) -> Result<HumanReview, Fault> {
    let feedback = performance.keep(ArtifactKind::Feedback, &review.text).await?;
    Ok(HumanReview {
        id: review.id,
        by: review.by,
        feedback,
    })
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
