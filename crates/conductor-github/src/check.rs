//! Publishes Conductor's own check run and reads the failed ones of others.
//!
//! It does not know what the checks check.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_domain::spec::RepoRef;
use conductor_port::forge::{FailedCheck, NewCheck};
use reqwest::Method;
use serde_json::json;

use crate::client::{Call, Client};
use crate::conversation::Pages;
use crate::credential::{Grant, Place};
use crate::model;

/// The name that people see next to the commit, and that branch protection can ask for.
const NAME: &str = "Conductor";
/// Stands among the checks that have not ended where a list is not read to its end.
const UNREAD: &str = "more checks than are read";
/// Stands among them where none is known yet: GitHub makes the checks of a push some seconds after it.
const TO_COME: &str = "checks may not have begun yet";
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

    /// The other Apps' checks that failed on a commit, and the names of those that have not ended; nothing may rest on
    /// a list that was read in part, so what is unread has not ended. Nor may it rest on a list that is empty because it
    /// was read too early: until our own check there is old enough, others may be to come.
    pub(crate) async fn foreign_checks(
        &self,
        place: &Place,
        head: &CommitId,
    ) -> Result<(Vec<FailedCheck>, Vec<String>), Fault> {
        let attempt = format!("read the checks of {head} in {place}");
        let pages = self
            .check_runs(
                &attempt,
                place,
                Grant::ReadPullRequests,
                head,
                &[("filter", "latest")],
            )
            .await?;
        let (mut failed, mut pending) = (BTreeMap::new(), BTreeSet::new());
        if !pages.is_whole {
            pending.insert(UNREAD.to_owned());
        }
        let runs = pages.read.into_iter().flat_map(|page| page.check_runs);
        let (ours, foreign): (Vec<_>, Vec<_>) =
            runs.partition(|run| run.app.as_ref().is_some_and(|app| app.id == self.app_id));
        if foreign.is_empty() && are_to_come(&ours, pages.at, self.checks_begin_within) {
            pending.insert(TO_COME.to_owned());
        }
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
        let app_id = self.app_id.to_string();
        let query = [("filter", "all"), ("app_id", app_id.as_str())];
        let pages = self
            .check_runs(&attempt, place, Grant::WriteChecks, &check.head, &query)
            .await?;
        // The filter is checked again: GitHub ignores one that it does not understand.
        let mut runs = pages.read.into_iter().flat_map(|page| page.check_runs);
        let ours = runs.find(|run| {
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
        query: &[(&str, &str)],
    ) -> Result<Pages<model::CheckRuns>, Fault> {
        let query = [query, &[("per_page", "100")]].concat();
        let path = ["commits", head.as_str(), "check-runs"];
        let call = self.call(attempt, Method::GET, place, &path, &query);
        self.read_pages(place, grant, call).await
    }
}

/// Tells whether others' checks may still be to come, by the age of ours when the list was answered. Both times are
/// GitHub's, because its clock and ours need not agree; where one is missing, nothing says that the time has passed.
fn are_to_come(ours: &[model::CheckRun], answered: Option<i64>, within: Duration) -> bool {
    if within.is_zero() {
        return false;
    }
    let began = ours
        .iter()
        .filter_map(|run| run.started_at.as_deref().or(run.completed_at.as_deref()));
    let first = began
        .filter_map(|text| text.parse::<jiff::Timestamp>().ok())
        .map(jiff::Timestamp::as_second)
        .min();
    let age = first.zip(answered).map(|(first, now)| now.saturating_sub(first));
    age.and_then(|age| u64::try_from(age).ok())
        .is_none_or(|age| Duration::from_secs(age) < within)
}

/// What a check says of itself, its title first.
fn words(output: Option<model::CheckOutput>) -> String {
    let parts = output.into_iter().flat_map(|it| [it.title, it.summary]);
    parts.flatten().collect::<Vec<_>>().join("\n\n")
}
