//! Publishes Conductor's own check run and reads the failed ones of others.
//!
//! It does not know what the checks check.

use std::collections::{BTreeMap, BTreeSet};

use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_domain::spec::RepoRef;
use conductor_port::forge::{FailedCheck, NewCheck};
use reqwest::Method;
use serde_json::json;

use crate::client::{Call, Client};
use crate::credential::{Grant, Place};
use crate::model;

/// The name that people see next to the commit, and that branch protection can ask for.
const NAME: &str = "Conductor";
const FAILURES: [&str; 4] = ["failure", "timed_out", "action_required", "startup_failure"];

impl Client {
    /// Writes a completed, successful check run. If repeated: the one with the same external id is updated.
    pub(crate) async fn publish(&self, repo: &RepoRef, check: &NewCheck) -> Result<(), Fault> {
        let place = Place::of(repo)?;
        let attempt = format!("publish a check on {} in {place}", check.head);
        let mut body = json!({
            "name": NAME,
            "external_id": check.external_id,
            "details_url": check.details_url,
            "status": "completed",
            "conclusion": "success",
            "output": { "title": check.title, "summary": check.summary },
        });
        let known = self.find_check(&place, check).await?.map(|id| id.to_string());
        let (method, path) = if let Some(id) = &known {
            (Method::PATCH, vec!["check-runs", id.as_str()])
        } else {
            body["head_sha"] = json!(check.head.as_str());
            (Method::POST, vec!["check-runs"])
        };
        let call = self.call(&attempt, method, &place, &path, &[]);
        let _: model::CheckRun = self
            .read(
                &place,
                Grant::WriteChecks,
                Call {
                    body: Some(body),
                    ..call
                },
            )
            .await?;
        Ok(())
    }

    /// The other Apps' checks that failed on a commit, and the names of those that have not ended.
    pub(crate) async fn foreign_checks(
        &self,
        place: &Place,
        head: &CommitId,
    ) -> Result<(Vec<FailedCheck>, Vec<String>), Fault> {
        let attempt = format!("read the checks of {head} in {place}");
        let runs = self
            .check_runs(&attempt, place, Grant::ReadPullRequests, head, "latest")
            .await?;
        let (mut failed, mut pending) = (BTreeMap::new(), BTreeSet::new());
        let foreign = runs
            .into_iter()
            .filter(|run| run.app.as_ref().is_none_or(|app| app.id != self.app_id));
        for run in foreign {
            match run.conclusion.as_deref() {
                Some(conclusion) if FAILURES.contains(&conclusion) => {
                    failed.insert(run.name, words(run.output));
                }
                Some(_) => {}
                None if run.status.as_deref() == Some("completed") => {}
                None => {
                    pending.insert(run.name);
                }
            }
        }
        let failed = failed
            .into_iter()
            .map(|(name, words)| FailedCheck { name, words });
        Ok((failed.collect(), pending.into_iter().collect()))
    }

    async fn find_check(&self, place: &Place, check: &NewCheck) -> Result<Option<u64>, Fault> {
        let attempt = format!("look for a check on {} in {place}", check.head);
        let runs = self
            .check_runs(&attempt, place, Grant::WriteChecks, &check.head, "all")
            .await?;
        let ours = runs.into_iter().find(|run| {
            run.app.as_ref().is_some_and(|app| app.id == self.app_id)
                && run.external_id.as_deref() == Some(check.external_id.as_str())
        });
        Ok(ours.map(|run| run.id))
    }

    async fn check_runs(
        &self,
        attempt: &str,
        place: &Place,
        grant: Grant,
        head: &CommitId,
        filter: &str,
    ) -> Result<Vec<model::CheckRun>, Fault> {
        let query = [("filter", filter), ("per_page", "100")];
        let path = ["commits", head.as_str(), "check-runs"];
        let call = self.call(attempt, Method::GET, place, &path, &query);
        let pages: model::CheckRuns = self.read(place, grant, call).await?;
        Ok(pages.check_runs)
    }
}

/// What a check says of itself, its title first.
fn words(output: Option<model::CheckOutput>) -> String {
    let parts = output.into_iter().flat_map(|it| [it.title, it.summary]);
    parts.flatten().collect::<Vec<_>>().join("\n\n")
}
