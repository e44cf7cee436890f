//! Shows what happened as a webhook payload.
//!
//! It does not know who listens.

use serde_json::{Value, json};

use super::{Mergeable, View, node_id};
use crate::change::Event;
use crate::state::Repo;

/// Something that the App is told about.
#[derive(Debug, Clone)]
pub(crate) enum Happening {
    Issue {
        action: &'static str,
        number: u64,
    },
    Comment {
        action: &'static str,
        id: u64,
    },
    Pull {
        action: &'static str,
        number: u64,
    },
    Review {
        action: &'static str,
        id: u64,
    },
    CheckRun {
        action: &'static str,
        id: u64,
    },
    CheckSuite {
        action: &'static str,
        id: u64,
    },
    Push {
        branch: String,
        before: Option<String>,
        after: Option<String>,
    },
}

impl View<'_> {
    /// Builds the event; `None` when the records it speaks of are not there.
    pub(crate) fn event(&self, repo: &Repo, sender: &str, happening: &Happening) -> Option<Event> {
        let (name, action, mut payload) = match happening {
            Happening::Issue { action, number } => {
                let issue = self.issue(repo, repo.issues.get(number)?);
                ("issues", Some(*action), json!({ "issue": issue }))
            }
            Happening::Comment { action, id } => {
                let comment = repo.comments.get(id)?;
                let issue = self.issue(repo, repo.issues.get(&comment.issue)?);
                let comment = self.comment(repo, comment);
                (
                    "issue_comment",
                    Some(*action),
                    json!({ "issue": issue, "comment": comment }),
                )
            }
            Happening::Pull { action, number } => {
                let pull = self.pull_payload(repo, *number)?;
                (
                    "pull_request",
                    Some(*action),
                    json!({ "number": number, "pull_request": pull }),
                )
            }
            Happening::Review { action, id } => {
                let review = repo.reviews.get(id)?;
                let pull = self.pull_payload(repo, review.pull)?;
                let mut review = self.review(repo, review);
                // Webhooks spell the state in lower case, REST in upper case.
                review["state"] = json!(review["state"].as_str().map(str::to_lowercase));
                (
                    "pull_request_review",
                    Some(*action),
                    json!({ "review": review, "pull_request": pull }),
                )
            }
            Happening::CheckRun { action, id } => {
                let run = self.check_run(repo, repo.check_runs.get(id)?);
                ("check_run", Some(*action), json!({ "check_run": run }))
            }
            Happening::CheckSuite { action, id } => {
                let suite = self.check_suite(repo, repo.check_suites.get(id)?);
                ("check_suite", Some(*action), json!({ "check_suite": suite }))
            }
            Happening::Push {
                branch,
                before,
                after,
            } => {
                let zero = "0".repeat(40);
                let payload = json!({
                    "ref": format!("refs/heads/{branch}"),
                    "before": before.as_ref().unwrap_or(&zero),
                    "after": after.as_ref().unwrap_or(&zero),
                    "created": before.is_none(),
                    "deleted": after.is_none(),
                    "forced": false,
                    "base_ref": null,
                    "compare": format!("{}/{}/compare", self.root.web, repo.full_name()),
                    "commits": [],
                    "head_commit": null,
                    "pusher": { "name": sender },
                });
                ("push", None, payload)
            }
        };
        if let Some(action) = action {
            payload["action"] = json!(action);
        }
        if action == Some("edited") {
            // GitHub tells the former texts here; the forge does not keep them.
            payload["changes"] = json!({});
        }
        payload["repository"] = self.repo(repo);
        payload["sender"] = self.user(sender);
        if let Some(installation) = self.state.installation_of(&repo.owner) {
            let node = node_id("Integration", installation.id);
            payload["installation"] = json!({ "id": installation.id, "node_id": node });
        }
        Some(Event {
            name,
            action,
            repo: repo.id,
            payload,
        })
    }

    fn pull_payload(&self, repo: &Repo, number: u64) -> Option<Value> {
        let (issue, pull) = (repo.issues.get(&number)?, repo.pulls.get(&number)?);
        Some(self.full_pull(repo, issue, pull, Mergeable::Computing))
    }
}
