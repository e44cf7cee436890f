//! Issues as the client reads them, the awkward ones included.

use conductor_domain::effect::CommentTarget;
use conductor_domain::forge::{IssueProblem, Standing};
use conductor_domain::id::IssueNumber;
use conductor_port::forge::{Forge as _, Issue, IssueComment, NewPullRequest};

use crate::site::{BRANCH, REPO, Site};

#[tokio::test]
async fn an_issue_is_read_as_it_stands() {
    let site = Site::start().await;
    let number = site
        .alice
        .open_issue(REPO, "Widgets squeak", "All of them.")
        .unwrap();
    let mut expected = Issue {
        title: "Widgets squeak".into(),
        body: "All of them.".into(),
        open: true,
        author: "alice".into(),
        standing: Standing::Collaborator,
        comments: vec![],
    };
    assert_eq!(
        site.client.issue(&site.repo, IssueNumber(number)).await,
        Ok(Ok(expected.clone()))
    );
    site.alice
        .edit_issue(REPO, number, "Widgets squeak loudly", "Most of them.")
        .unwrap();
    site.alice.close(REPO, number).unwrap();
    site.alice.comment(REPO, number, "Only on Mondays.").unwrap();
    let marker = "<!-- conductor:write r.1.0 -->";
    site.client
        .comment(
            &site.repo,
            CommentTarget::Issue(IssueNumber(number)),
            marker,
            marker,
            false,
        )
        .await
        .unwrap();
    // S-50: what people say belongs to the issue, what we say does not.
    expected.comments = vec![IssueComment {
        by: "alice".into(),
        standing: Standing::Collaborator,
        text: "Only on Mondays.".into(),
    }];
    expected.title = "Widgets squeak loudly".into();
    expected.body = "Most of them.".into();
    expected.open = false;
    assert_eq!(
        site.client.issue(&site.repo, IssueNumber(number)).await,
        Ok(Ok(expected))
    );
}

/// BEY-10: what somebody is to the repository comes with what they wrote; a stranger is nothing, whatever they say.
#[tokio::test]
async fn who_wrote_what_comes_with_their_standing() {
    let site = Site::start().await;
    let mallory = site.forge.create_user("mallory").unwrap();
    site.forge
        .grant(REPO, "mallory", conductor_forge::state::Role::Read)
        .unwrap();
    let number = mallory
        .open_issue(REPO, "I am the owner", "author_association: OWNER")
        .unwrap();
    site.alice.comment(REPO, number, "Are you?").unwrap();
    mallory.comment(REPO, number, "Yes.").unwrap();
    site.forge.revoke(REPO, "mallory").unwrap();
    let issue = site.client.issue(&site.repo, IssueNumber(number)).await;
    let issue = issue.unwrap().unwrap();
    let said: Vec<(&str, Standing)> = issue
        .comments
        .iter()
        .map(|comment| (comment.by.as_str(), comment.standing))
        .collect();
    assert_eq!(issue.standing, Standing::None);
    assert_eq!(
        said,
        [("alice", Standing::Collaborator), ("mallory", Standing::None)]
    );
}

/// RUN-1: a run on an issue that is gone can never succeed, so each way of being gone has its name.
#[tokio::test]
async fn deleted_unknown_and_transferred_issues_and_pull_requests_are_told_apart() {
    let site = Site::start().await;
    let deleted = site.alice.open_issue(REPO, "A", "").unwrap();
    site.alice.delete_issue(REPO, deleted).unwrap();
    let moved = site.alice.open_issue(REPO, "B", "").unwrap();
    let other = site.path("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("x"), "x").unwrap();
    site.forge
        .import_repository("acme", "gadgets", &other)
        .await
        .unwrap();
    site.forge
        .grant("acme/gadgets", "alice", conductor_forge::state::Role::Write)
        .unwrap();
    site.alice.transfer_issue(REPO, moved, "acme/gadgets").unwrap();
    site.push_change("# Widgets!\n").await;
    let new = NewPullRequest {
        branch: BRANCH.into(),
        title: "C".into(),
        body: "C".into(),
    };
    let (pull, _) = site.client.open_pull_request(&site.repo, &new).await.unwrap();
    let problem = async |number| {
        site.client
            .issue(&site.repo, IssueNumber(number))
            .await
            .unwrap()
            .unwrap_err()
    };
    assert_eq!(problem(deleted).await, IssueProblem::Deleted);
    assert_eq!(problem(moved).await, IssueProblem::Moved);
    assert_eq!(problem(pull.0).await, IssueProblem::IsPullRequest);
    assert_eq!(problem(999).await, IssueProblem::NotFound);
}
