//! Shows check suites and check runs, the registered App's and those of other Apps.
//!
//! It knows nothing of what the checks check.

use serde_json::{Value, json};

use super::{View, node_id};
use crate::state::{CheckApp, CheckRun, CheckSuite, Repo};

impl View<'_> {
    pub(crate) fn check_run(&self, repo: &Repo, run: &CheckRun) -> Value {
        let api = format!("{}/repos/{}", self.root.api, repo.full_name());
        let page = format!("{}/{}/runs/{}", self.root.web, repo.full_name(), run.id);
        let app = repo
            .check_suites
            .get(&run.suite)
            .map_or(&CheckApp::Registered, |suite| &suite.app);
        json!({
            "id": run.id,
            "node_id": node_id("CheckRun", run.id),
            "name": run.name,
            "head_sha": run.head_sha,
            "external_id": run.external_id,
            "url": format!("{api}/check-runs/{}", run.id),
            "html_url": page,
            "details_url": run.details_url.as_ref().unwrap_or(&page),
            "status": run.status,
            "conclusion": run.conclusion,
            "started_at": run.started_at,
            "completed_at": run.completed_at,
            "output": {
                "title": run.title,
                "summary": run.summary,
                "text": run.text,
                "annotations_count": 0,
                "annotations_url": format!("{api}/check-runs/{}/annotations", run.id),
            },
            "check_suite": { "id": run.suite },
            "app": self.check_app(app),
            "pull_requests": self.pulls_at(repo, &run.head_sha),
        })
    }

    pub(crate) fn check_suite(&self, repo: &Repo, suite: &CheckSuite) -> Value {
        let api = format!("{}/repos/{}", self.root.api, repo.full_name());
        let branch = repo
            .heads
            .iter()
            .find(|(_, sha)| **sha == suite.head_sha)
            .map(|(branch, _)| branch);
        let runs = repo
            .check_runs
            .values()
            .filter(|run| run.suite == suite.id)
            .count();
        json!({
            "id": suite.id,
            "node_id": node_id("CheckSuite", suite.id),
            "head_branch": branch,
            "head_sha": suite.head_sha,
            "status": suite.status,
            "conclusion": suite.conclusion,
            "url": format!("{api}/check-suites/{}", suite.id),
            "before": null,
            "after": suite.head_sha,
            "pull_requests": self.pulls_at(repo, &suite.head_sha),
            "app": self.check_app(&suite.app),
            "repository": self.repo(repo),
            "created_at": suite.created_at,
            "updated_at": suite.updated_at,
            "head_commit": {
                "id": suite.head_sha,
                "tree_id": suite.head_sha,
                "message": "",
                "timestamp": suite.created_at,
                "author": { "name": "", "email": "" },
                "committer": { "name": "", "email": "" },
            },
            "latest_check_runs_count": runs,
            "check_runs_url": format!("{api}/check-suites/{}/check-runs", suite.id),
        })
    }

    fn check_app(&self, app: &CheckApp) -> Value {
        match app {
            CheckApp::Registered => self.app(),
            CheckApp::Other { slug } => {
                let mut shown = self.app();
                // Ids of other Apps only have to differ from ours and stay the same for a slug.
                let id = 1_000_000
                    + slug
                        .bytes()
                        .fold(0_u64, |sum, byte| sum * 31 % 999_983 + u64::from(byte));
                shown["id"] = json!(id);
                shown["node_id"] = json!(node_id("App", id));
                shown["client_id"] = json!(format!("Iv1.{id:016x}"));
                shown["slug"] = json!(slug);
                shown["name"] = json!(slug);
                shown["html_url"] = json!(format!("{}/apps/{slug}", self.root.web));
                shown
            }
        }
    }

    fn pulls_at(&self, repo: &Repo, sha: &str) -> Value {
        let api = format!("{}/repos/{}", self.root.api, repo.full_name());
        let place = json!({ "id": repo.id, "url": api, "name": repo.name });
        repo.pulls
            .values()
            .filter(|pull| pull.head_sha == sha)
            .map(|pull| {
                json!({
                    "id": pull.id,
                    "number": pull.number,
                    "url": format!("{api}/pulls/{}", pull.number),
                    "head": { "ref": pull.head_branch, "sha": pull.head_sha, "repo": place },
                    "base": { "ref": pull.base_branch, "sha": pull.base_sha, "repo": place },
                })
            })
            .collect()
    }
}
