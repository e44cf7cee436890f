//! Posts a comment.
//!
//! This module does not know whether the comment was worth posting: throttle and rules were applied before.

use conductor_domain::effect::CommentTarget;
use conductor_domain::fault::Fault;
use conductor_domain::input::Report;
use conductor_domain::message::{Message, marker};

use super::Performance;

/// Posts a comment. If repeated: the hidden marker of this effect is looked for first, and what is found is the answer;
/// where two stand, the older stays.
pub(super) async fn post(
    performance: &Performance<'_>,
    target: CommentTarget,
    message: &Message,
) -> Result<Report, Fault> {
    let body = performance.render(message).await?;
    let marker = marker(performance.effect());
    let repeated = performance.job.is_repeated();
    let (forge, repo) = (performance.ports().forge.as_ref(), performance.repo());
    let mut url = forge.comment(repo, target, &body, &marker, repeated).await?;
    if repeated {
        // Who held the effect before may have posted between our look and our post.
        let removed = forge.remove_repeats(repo, target, &marker).await?;
        performance.engine.count_repeats(performance.effect(), removed);
        if removed > 0 {
            url = forge.comment(repo, target, &body, &marker, repeated).await?;
        }
    }
    Ok(Report::CommentPosted { url })
}
