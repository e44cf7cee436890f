//! Reads the run's issue and keeps it as it stood.
//!
//! This module does not know whether the issue can be worked on: that is decided on what it says.

use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::fault::Fault;
use conductor_domain::forge::IssueSnapshot;
use conductor_domain::id::IssueNumber;
use conductor_domain::input::Report;
use conductor_port::forge::Issue;

use super::Performance;

/// The most bytes of comments that go with an issue; older ones are only counted.
const MOST_SAID: usize = 512 * 1024;

/// Reads an issue. If repeated: it is read again, as it stands then.
pub(super) async fn read(performance: &Performance<'_>, number: IssueNumber) -> Result<Report, Fault> {
    let issue = match performance
        .ports()
        .forge
        .issue(performance.repo(), number)
        .await?
    {
        Ok(issue) => issue,
        Err(problem) => return Ok(Report::IssueUnavailable { problem }),
    };
    let text = words(&issue);
    let artifact = performance.keep(ArtifactKind::Issue, &text).await?;
    Ok(Report::IssueRead {
        issue: snapshot(number, issue, artifact),
    })
}

pub(crate) fn snapshot(number: IssueNumber, issue: Issue, artifact: Artifact) -> IssueSnapshot {
    IssueSnapshot {
        number,
        title: issue.title,
        artifact,
        open: issue.open,
        author: issue.author,
    }
}

/// Everything of an issue that is shown and handed on; a change of any of it is another issue (S-50).
pub(crate) fn words(issue: &Issue) -> String {
    let mut text = format!("# {}\n\n{}\n", issue.title, issue.body);
    let mut room = MOST_SAID;
    let newest: Vec<_> = issue
        .comments
        .iter()
        .rev()
        .take_while(|comment| {
            room = room.saturating_sub(comment.text.len() + comment.by.len());
            room > 0
        })
        .collect();
    let earlier = issue.comments.len() - newest.len();
    if earlier > 0 {
        text.push_str(&format!("\n_({earlier} earlier comments are not shown)_\n"));
    }
    for comment in newest.into_iter().rev() {
        text.push_str(&format!(
            "\n## Comment by {}\n\n{}\n",
            comment.by,
            comment.text.trim_end()
        ));
    }
    text
}
