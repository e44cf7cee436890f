//! Shows issues and their comments.
//!
//! It knows of pull requests only that some issues are ones.

use serde_json::{Value, json};

use super::{View, node_id};
use crate::state::{Comment, Issue, Repo, Standing};

impl View<'_> {
    pub(crate) fn issue(&self, repo: &Repo, issue: &Issue) -> Value {
        let (web, api, number) = self.issue_places(repo, issue.number);
        let is_pull = repo.pulls.contains_key(&issue.number);
        let page = if is_pull { "pull" } else { "issues" };
        let comments = repo
            .comments
            .values()
            .filter(|comment| comment.issue == issue.number)
            .count();
        let mut shown = json!({
            "id": issue.id,
            "node_id": node_id("Issue", issue.id),
            "number": number,
            "url": format!("{api}/issues/{number}"),
            "repository_url": api,
            "labels_url": format!("{api}/issues/{number}/labels{{/name}}"),
            "comments_url": format!("{api}/issues/{number}/comments"),
            "events_url": format!("{api}/issues/{number}/events"),
            "timeline_url": format!("{api}/issues/{number}/timeline"),
            "html_url": format!("{web}/{page}/{number}"),
            "title": issue.title,
            "body": issue.body,
            "user": self.user(&issue.author),
            "labels": Self::labels(&api, &issue.labels),
            "state": issue.standing,
            "state_reason": match (issue.standing, is_pull) {
                (Standing::Closed, false) => json!("completed"),
                (Standing::Closed, true) | (Standing::Open, _) => Value::Null,
            },
            "locked": false,
            "active_lock_reason": null,
            "assignee": null,
            "assignees": [],
            "milestone": null,
            "comments": comments,
            "created_at": issue.created_at,
            "updated_at": issue.updated_at,
            "closed_at": issue.closed_at,
            "closed_by": self.user_or_null(issue.closed_by.as_deref()),
            "author_association": Self::association(repo, &issue.author),
            "performed_via_github_app": null,
            "reactions": Self::reactions(&format!("{api}/issues/{number}")),
        });
        if let Some(pull) = repo.pulls.get(&number) {
            shown["draft"] = json!(pull.draft);
            shown["pull_request"] = json!({
                "url": format!("{api}/pulls/{number}"),
                "html_url": format!("{web}/pull/{number}"),
                "diff_url": format!("{web}/pull/{number}.diff"),
                "patch_url": format!("{web}/pull/{number}.patch"),
                "merged_at": pull.merge.as_ref().map(|merge| merge.at),
            });
        }
        shown
    }

    pub(crate) fn comment(&self, repo: &Repo, comment: &Comment) -> Value {
        let (web, api, number) = self.issue_places(repo, comment.issue);
        let page = if repo.pulls.contains_key(&number) {
            "pull"
        } else {
            "issues"
        };
        let url = format!("{api}/issues/comments/{}", comment.id);
        let by_app = comment.author == self.state.app.bot_login();
        json!({
            "id": comment.id,
            "node_id": node_id("IssueComment", comment.id),
            "url": url,
            "html_url": format!("{web}/{page}/{number}#issuecomment-{}", comment.id),
            "issue_url": format!("{api}/issues/{number}"),
            "user": self.user(&comment.author),
            "body": comment.body,
            "created_at": comment.created_at,
            "updated_at": comment.updated_at,
            "author_association": Self::association(repo, &comment.author),
            "performed_via_github_app": if by_app { self.app() } else { Value::Null },
            "reactions": Self::reactions(&url),
        })
    }

    pub(super) fn issue_places(&self, repo: &Repo, number: u64) -> (String, String, u64) {
        let full_name = repo.full_name();
        (
            format!("{}/{full_name}", self.root.web),
            format!("{}/repos/{full_name}", self.root.api),
            number,
        )
    }

    pub(super) fn labels(api: &str, labels: &[String]) -> Value {
        labels
            .iter()
            .zip(1_u64..)
            .map(|(name, id)| {
                json!({
                    "id": id,
                    "node_id": node_id("Label", id),
                    "url": format!("{api}/labels/{name}"),
                    "name": name,
                    "description": null,
                    "color": "ededed",
                    "default": false,
                })
            })
            .collect()
    }

    pub(super) fn association(repo: &Repo, login: &str) -> &'static str {
        if login.eq_ignore_ascii_case(&repo.owner) {
            "OWNER"
        } else if repo.roles.contains_key(login) {
            "COLLABORATOR"
        } else {
            "NONE"
        }
    }

    fn reactions(url: &str) -> Value {
        json!({
            "url": format!("{url}/reactions"),
            "total_count": 0, "+1": 0, "-1": 0, "laugh": 0, "hooray": 0, "confused": 0, "heart": 0,
            "rocket": 0, "eyes": 0,
        })
    }
}
