//! Reads the run's issue and keeps it as it stood.
//!
//! This module does not know whether the issue can be worked on: that is decided on what it says.

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::fault::Fault;
use conductor_domain::forge::IssueSnapshot;
use conductor_domain::id::IssueNumber;
use conductor_domain::input::Report;

use super::Performance;

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
    let text = format!("# {}\n\n{}\n", issue.title, issue.body);
    let artifact = performance.keep(ArtifactKind::Issue, &text).await?;
    let snapshot = IssueSnapshot {
        number,
        title: issue.title,
        artifact,
        open: issue.open,
        author: issue.author,
    };
    Ok(Report::IssueRead { issue: snapshot })
}
