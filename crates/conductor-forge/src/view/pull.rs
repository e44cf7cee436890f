//! Shows pull requests, reviews and review comments.
//!
//! Whether a pull request can be merged is found out by git and handed in.

use serde_json::{Value, json};

use super::{View, node_id};
use crate::state::{Issue, Pull, Repo, Review, ReviewComment, Standing};

/// What is known about merging a pull request right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mergeable {
    Computing,
    Clean,
    Conflicting,
}

impl View<'_> {
    /// The short form, as in lists.
    pub(crate) fn pull(&self, repo: &Repo, issue: &Issue, pull: &Pull) -> Value {
        let (web, api, number) = self.issue_places(repo, issue.number);
        let (page, url) = (format!("{web}/pull/{number}"), format!("{api}/pulls/{number}"));
        let issue_url = format!("{api}/issues/{number}");
        let statuses_url = format!("{api}/statuses/{}", pull.head_sha);
        let links = json!({
            "self": { "href": url },
            "html": { "href": page },
            "issue": { "href": issue_url },
            "comments": { "href": format!("{issue_url}/comments") },
            "review_comments": { "href": format!("{url}/comments") },
            "review_comment": { "href": format!("{api}/pulls/comments{{/number}}") },
            "commits": { "href": format!("{url}/commits") },
            "statuses": { "href": statuses_url },
        });
        json!({
            "id": pull.id,
            "node_id": node_id("PullRequest", pull.id),
            "number": number,
            "url": url,
            "html_url": page,
            "diff_url": format!("{page}.diff"),
            "patch_url": format!("{page}.patch"),
            "issue_url": issue_url,
            "commits_url": format!("{url}/commits"),
            "review_comments_url": format!("{url}/comments"),
            "review_comment_url": format!("{api}/pulls/comments{{/number}}"),
            "comments_url": format!("{issue_url}/comments"),
            "statuses_url": statuses_url,
            "state": issue.standing,
            "locked": false,
            "active_lock_reason": null,
            "title": issue.title,
            "body": issue.body,
            "user": self.user(&issue.author),
            "draft": pull.draft,
            "labels": Self::labels(&api, &issue.labels),
            "milestone": null,
            "assignee": null,
            "assignees": [],
            "requested_reviewers": [],
            "requested_teams": [],
            "created_at": issue.created_at,
            "updated_at": issue.updated_at,
            "closed_at": issue.closed_at,
            "merged_at": pull.merge.as_ref().map(|merge| merge.at),
            "merge_commit_sha": pull.merge.as_ref().map(|merge| &merge.commit_sha),
            "head": self.side(repo, &pull.head_branch, &pull.head_sha),
            "base": self.side(repo, &pull.base_branch, &pull.base_sha),
            "author_association": Self::association(repo, &issue.author),
            "auto_merge": null,
            "_links": links,
        })
    }

    pub(crate) fn full_pull(&self, repo: &Repo, issue: &Issue, pull: &Pull, mergeable: Mergeable) -> Value {
        let mut shown = self.pull(repo, issue, pull);
        let comments = repo
            .comments
            .values()
            .filter(|comment| comment.issue == issue.number)
            .count();
        let review_comments = repo
            .review_comments
            .values()
            .filter(|it| it.pull == pull.number)
            .count();
        let (can_merge, state) = match (issue.standing, mergeable) {
            (Standing::Closed, _) | (Standing::Open, Mergeable::Computing) => (Value::Null, "unknown"),
            (Standing::Open, Mergeable::Clean) => (json!(true), "clean"),
            (Standing::Open, Mergeable::Conflicting) => (json!(false), "dirty"),
        };
        shown["merged"] = json!(pull.merge.is_some());
        shown["mergeable"] = can_merge;
        shown["mergeable_state"] = json!(state);
        shown["rebaseable"] = Value::Null;
        shown["merged_by"] = self.user_or_null(pull.merge.as_ref().map(|merge| merge.by.as_str()));
        shown["comments"] = json!(comments);
        shown["review_comments"] = json!(review_comments);
        shown["maintainer_can_modify"] = json!(false);
        shown["commits"] = json!(pull.size.commits);
        shown["additions"] = json!(pull.size.additions);
        shown["deletions"] = json!(pull.size.deletions);
        shown["changed_files"] = json!(pull.size.changed_files);
        shown
    }

    pub(crate) fn review(&self, repo: &Repo, review: &Review) -> Value {
        let (web, api, number) = self.issue_places(repo, review.pull);
        let page = format!("{web}/pull/{number}#pullrequestreview-{}", review.id);
        json!({
            "id": review.id,
            "node_id": node_id("PullRequestReview", review.id),
            "user": self.user(&review.author),
            "body": review.body,
            "state": review.verdict,
            "html_url": page,
            "pull_request_url": format!("{api}/pulls/{number}"),
            "_links": {
                "html": { "href": page },
                "pull_request": { "href": format!("{api}/pulls/{number}") },
            },
            "submitted_at": review.submitted_at,
            "commit_id": review.commit_sha,
            "author_association": Self::association(repo, &review.author),
        })
    }

    pub(crate) fn review_comment(&self, repo: &Repo, comment: &ReviewComment) -> Value {
        let (web, api, number) = self.issue_places(repo, comment.pull);
        let url = format!("{api}/pulls/comments/{}", comment.id);
        let page = format!("{web}/pull/{number}#discussion_r{}", comment.id);
        let mut shown = json!({
            "id": comment.id,
            "node_id": node_id("PullRequestReviewComment", comment.id),
            "url": url,
            "html_url": page,
            "pull_request_url": format!("{api}/pulls/{number}"),
            "pull_request_review_id": comment.review,
            "diff_hunk": "",
            "path": comment.path,
            "position": comment.line,
            "original_position": comment.line,
            "line": comment.line,
            "original_line": comment.line,
            "side": "RIGHT",
            "commit_id": comment.commit_sha,
            "original_commit_id": comment.commit_sha,
            "user": self.user(&comment.author),
            "body": comment.body,
            "created_at": comment.created_at,
            "updated_at": comment.created_at,
            "author_association": Self::association(repo, &comment.author),
            "_links": {
                "self": { "href": url },
                "html": { "href": page },
                "pull_request": { "href": format!("{api}/pulls/{number}") },
            },
        });
        if let Some(parent) = comment.in_reply_to {
            shown["in_reply_to_id"] = json!(parent);
        }
        shown
    }

    fn side(&self, repo: &Repo, branch: &str, sha: &str) -> Value {
        json!({
            "label": format!("{}:{branch}", repo.owner),
            "ref": branch,
            "sha": sha,
            "user": self.user(&repo.owner),
            "repo": self.repo(repo),
        })
    }
}
