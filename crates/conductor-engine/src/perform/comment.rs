//! Posts a comment.
//!
//! This module does not know whether the comment was worth posting: throttle and rules were applied before.

use conductor_domain::effect::CommentTarget;
use conductor_domain::fault::Fault;
use conductor_domain::input::Report;
use conductor_domain::message::{Message, marker};

use super::Performance;

/// Posts a comment. If repeated: the hidden marker of this effect is looked for first, and what is found is the answer.
pub(super) async fn post(
    performance: &Performance<'_>,
    target: CommentTarget,
    message: &Message,
) -> Result<Report, Fault> {
    let body = performance.render(message).await?;
    let marker = marker(performance.effect());
    let repeated = performance.job.is_repeated();
    let url = performance
        .ports()
        .forge
        .comment(performance.repo(), target, &body, &marker, repeated)
        .await?;
    Ok(Report::CommentPosted { url })
}
