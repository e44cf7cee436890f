//! Creates and updates check runs, and concludes their suites.
//!
//! One suite per App and commit, as at GitHub. It does not know what is being checked.

use crate::change::Change;
use crate::refusal::Refusal;
use crate::state::{CheckApp, CheckRun, CheckStatus, CheckSuite, Conclusion, Repo};
use crate::view::Happening;

/// GitHub's limit on a check run's summary and text, in characters.
const LONGEST_OUTPUT: usize = 65_535;

/// What a caller says about a check run; what it leaves out stays as it is.
#[derive(Debug, Default, Clone)]
pub(crate) struct CheckEdit {
    pub(crate) name: Option<String>,
    pub(crate) external_id: Option<String>,
    pub(crate) details_url: Option<String>,
    pub(crate) status: Option<CheckStatus>,
    pub(crate) conclusion: Option<Conclusion>,
    pub(crate) title: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) text: Option<String>,
}

pub(crate) fn create(
    change: &mut Change<'_>,
    repo: u64,
    app: &CheckApp,
    sender: &str,
    head_sha: &str,
    edit: CheckEdit,
) -> Result<CheckRun, Refusal> {
    let name = edit
        .name
        .clone()
        .ok_or_else(|| Refusal::missing("CheckRun", "name"))?;
    let suite = suite(change, repo, app, head_sha)?;
    let id = change.state.mint_id();
    let run = CheckRun {
        id,
        suite,
        name,
        head_sha: head_sha.to_owned(),
        external_id: String::new(),
        details_url: None,
        status: CheckStatus::Queued,
        conclusion: None,
        title: None,
        summary: None,
        text: None,
        started_at: None,
        completed_at: None,
    };
    change.repo_mut(repo)?.check_runs.insert(id, run);
    apply(change, repo, id, edit)?;
    change.tell(
        repo,
        sender,
        &Happening::CheckRun {
            action: "created",
            id,
        },
    );
    conclude(change, repo, id, sender)
}

pub(crate) fn update(
    change: &mut Change<'_>,
    repo: u64,
    app: &CheckApp,
    sender: &str,
    id: u64,
    edit: CheckEdit,
) -> Result<CheckRun, Refusal> {
    let record = change.repo(repo)?;
    let run = record.check_runs.get(&id).ok_or_else(Refusal::not_found)?;
    if record
        .check_suites
        .get(&run.suite)
        .is_none_or(|suite| suite.app != *app)
    {
        return Err(Refusal::Forbidden("Invalid app_id for this check run".into()));
    }
    apply(change, repo, id, edit)?;
    conclude(change, repo, id, sender)
}

fn apply(change: &mut Change<'_>, repo: u64, id: u64, edit: CheckEdit) -> Result<(), Refusal> {
    let long = |text: &Option<String>| text.as_ref().is_some_and(|t| t.chars().count() > LONGEST_OUTPUT);
    if long(&edit.summary) || long(&edit.text) {
        return Err(Refusal::invalid("CheckRun", "output", "output is too long"));
    }
    if edit.status == Some(CheckStatus::Completed) && edit.conclusion.is_none() {
        return Err(Refusal::missing("CheckRun", "conclusion"));
    }
    let now = change.now;
    let run = change
        .repo_mut(repo)?
        .check_runs
        .get_mut(&id)
        .ok_or_else(Refusal::not_found)?;
    run.name = edit.name.unwrap_or_else(|| run.name.clone());
    run.external_id = edit.external_id.unwrap_or_else(|| run.external_id.clone());
    run.details_url = edit.details_url.or(run.details_url.take());
    run.title = edit.title.or(run.title.take());
    run.summary = edit.summary.or(run.summary.take());
    run.text = edit.text.or(run.text.take());
    // A conclusion completes the run, whatever status was said with it.
    let status = if edit.conclusion.is_some() {
        Some(CheckStatus::Completed)
    } else {
        edit.status
    };
    if let Some(status) = status {
        run.status = status;
        run.conclusion = edit.conclusion;
        run.completed_at = (status == CheckStatus::Completed).then_some(now);
        if status != CheckStatus::Queued {
            run.started_at = run.started_at.or(Some(now));
        }
    }
    Ok(())
}

fn suite(change: &mut Change<'_>, repo: u64, app: &CheckApp, head_sha: &str) -> Result<u64, Refusal> {
    let found = |record: &Repo| {
        let mut suites = record.check_suites.values();
        suites
            .find(|suite| suite.head_sha == head_sha && suite.app == *app)
            .map(|suite| suite.id)
    };
    if let Some(id) = found(change.repo(repo)?) {
        return Ok(id);
    }
    let (id, now) = (change.state.mint_id(), change.now);
    let suite = CheckSuite {
        id,
        head_sha: head_sha.to_owned(),
        app: app.clone(),
        status: CheckStatus::Queued,
        conclusion: None,
        created_at: now,
        updated_at: now,
    };
    change.repo_mut(repo)?.check_suites.insert(id, suite);
    Ok(id)
}

/// Brings the suite in line with its runs and tells when run and suite are done.
fn conclude(change: &mut Change<'_>, repo: u64, id: u64, sender: &str) -> Result<CheckRun, Refusal> {
    let now = change.now;
    let record = change.repo_mut(repo)?;
    let run = record.check_runs.get(&id).ok_or_else(Refusal::not_found)?.clone();
    let runs: Vec<&CheckRun> = record
        .check_runs
        .values()
        .filter(|it| it.suite == run.suite)
        .collect();
    let done = runs.iter().all(|it| it.status == CheckStatus::Completed);
    let conclusion = done.then(|| worst(runs.iter().filter_map(|it| it.conclusion)));
    let suite = record
        .check_suites
        .get_mut(&run.suite)
        .ok_or_else(Refusal::not_found)?;
    suite.status = if done {
        CheckStatus::Completed
    } else {
        CheckStatus::InProgress
    };
    suite.conclusion = conclusion;
    suite.updated_at = now;
    if run.status == CheckStatus::Completed {
        change.tell(
            repo,
            sender,
            &Happening::CheckRun {
                action: "completed",
                id,
            },
        );
    }
    if done {
        change.tell(
            repo,
            sender,
            &Happening::CheckSuite {
                action: "completed",
                id: run.suite,
            },
        );
    }
    Ok(run)
}

fn worst(conclusions: impl Iterator<Item = Conclusion>) -> Conclusion {
    let weight = |conclusion: Conclusion| match conclusion {
        Conclusion::Failure => 6,
        Conclusion::TimedOut => 5,
        Conclusion::Cancelled => 4,
        Conclusion::ActionRequired => 3,
        Conclusion::Success => 2,
        Conclusion::Neutral => 1,
        Conclusion::Skipped => 0,
    };
    conclusions
        .max_by_key(|conclusion| weight(*conclusion))
        .unwrap_or(Conclusion::Success)
}
