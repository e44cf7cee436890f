//! Checks a wish for a new run against what is registered and what the forge shows, and completes it to a `RunSpec`.
//!
//! What is checked here is checked again by the run itself; this only says no early and by name. Only reads. This module
//! does not know what becomes of the run.

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::id::IssueNumber;
use conductor_domain::input::Input;
use conductor_domain::instance::{InstanceRefusal, Registration};
use conductor_domain::spec::{AgentBackend, AgentSpec, Mode, Priority, RunSpec};
use conductor_domain::staff::Rank;
use conductor_port::inbox::{Seen, Submission};
use conductor_port::views::RunFilter;

use crate::actor::Actor;
use crate::api::{PolicyPlace, StartRun, Started};
use crate::door::Door;
use crate::error::{Error, StartRefusal};
use crate::rules::PolicyLock;

/// Starts a run.
pub(crate) async fn start(door: &Door, actor: &Actor, wish: StartRun) -> Result<Started, Error> {
    // Policies of its own lift what others forbid, all of it and for the whole run; who may do that writes policies.
    if wish.policy.is_some() {
        actor.must_be(Rank::Admin)?;
    }
    let registration = door
        .reader
        .registration(&wish.repo)
        .await?
        .filter(|registration| actor.reaches(&registration.project))
        .ok_or_else(|| StartRefusal::RepoNotRegistered(wish.repo.clone()))?;
    let priority = match wish.priority {
        None => Priority::NORMAL,
        Some(value) => Priority::try_from(value).map_err(|what| Error::Invalid { what })?,
    };
    let issue = IssueNumber(wish.issue);
    check_issue(door, &registration, issue).await?;
    let agents = agents(door, wish.scenario.as_deref()).await?;
    let lock = policies(door, &registration, wish.policy.as_deref()).await?;

    let run = (door.settings.mint)();
    let defaults = &door.settings.run;
    let page = format!("{}/runs/{run}", defaults.public_url.trim_end_matches('/'));
    let spec = RunSpec {
        run: run.clone(),
        project: registration.project,
        repo: registration.repo,
        issue,
        started_by: actor.name(),
        starter_rank: actor.rank,
        priority,
        test_command: registration.test_command,
        agents,
        executor: defaults.executor,
        limits: defaults.limits.clone(),
        policy: lock.version,
        page: page.clone(),
        skills: door.backstage.skills().await?,
        policies: lock.policies,
        board: registration.board,
    };
    let input = Input::StartRun { spec: Box::new(spec) };
    let submission = Submission {
        run: run.clone(),
        input,
        dedupe: None,
        cause: actor.cause(),
        seen: Seen::Anything,
    };
    door.inbox.submit(submission).await?;
    Ok(Started { run, page })
}

/// Locks the policies that count now, with the run's own over them.
async fn policies(door: &Door, registration: &Registration, own: Option<&str>) -> Result<PolicyLock, Error> {
    let place = PolicyPlace {
        repo: Some(registration.repo.to_string()),
        ..PolicyPlace::default()
    };
    let stored = door.reader.policies_counting(&place).await?;
    let locked = door.rules.lock(stored, own).await?;
    Ok(locked.map_err(|flaws| InstanceRefusal::PolicyInvalid { flaws })?)
}

async fn check_issue(door: &Door, registration: &Registration, number: IssueNumber) -> Result<(), Error> {
    let filter = RunFilter {
        repo: Some(registration.repo.id),
        issue: Some(number.0),
        open: true,
        limit: 1,
        ..RunFilter::default()
    };
    if let Some(row) = door.reader.rows(&filter).await?.into_iter().next() {
        return Err(StartRefusal::IssueHasRun { number, run: row.run }.into());
    }
    match door.forge.issue(&registration.repo, number).await? {
        Err(problem) => Err(StartRefusal::IssueUnavailable { number, problem }.into()),
        Ok(issue) if !issue.open => Err(StartRefusal::IssueClosed(number).into()),
        Ok(_) => Ok(()),
    }
}

async fn agents(door: &Door, scenario: Option<&str>) -> Result<AgentSpec, Error> {
    match scenario {
        None => Ok(door.settings.run.agents.clone().ok_or(StartRefusal::NoAgents)?),
        Some(text) => {
            let kept = door.blobs.put(ArtifactKind::Scenario, text.as_bytes()).await?;
            Ok(AgentSpec {
                backend: AgentBackend::Scripted {
                    scenario: kept.digest,
                },
                mode: Mode::Mock,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use conductor_domain::forge::IssueProblem;

    use super::*;
    use crate::fake::{Fake, request, row};

    async fn check(fake: &Fake, body: &str, expected: (u16, &str)) {
        let (status, answer) = fake.ask(request("POST", "/api/v1/runs", body.to_owned())).await;
        let code = answer["code"].as_str().unwrap_or_default();
        assert_eq!((status.as_u16(), code), expected, "{body}: {answer}");
    }

    /// RUN-5, GH-6: what can never work is refused at once and by name; no run begins.
    #[tokio::test]
    async fn a_start_that_cannot_work_is_refused_by_name() {
        let fake = Fake::with_repo();
        {
            let mut world = fake.world();
            let mut closed = world.issues[&1].clone().expect("an issue");
            closed.open = false;
            world.issues.insert(2, Ok(closed));
            world.issues.insert(3, Err(IssueProblem::Deleted));
            world.issues.insert(4, Err(IssueProblem::Moved));
            world.issues.insert(5, Err(IssueProblem::IsPullRequest));
            world.rows.push(row("r-1", 6, None));
        }
        check(&fake, r#"{"repo":"o/x","issue":1}"#, (404, "CDR0305")).await;
        check(&fake, r#"{"repo":"o/r","issue":2}"#, (409, "CDR0307")).await;
        check(&fake, r#"{"repo":"o/r","issue":3}"#, (409, "CDR0308")).await;
        check(&fake, r#"{"repo":"o/r","issue":9}"#, (404, "CDR0309")).await;
        check(&fake, r#"{"repo":"o/r","issue":4}"#, (409, "CDR0310")).await;
        check(&fake, r#"{"repo":"o/r","issue":5}"#, (409, "CDR0311")).await;
        check(&fake, r#"{"repo":"o/r","issue":6}"#, (409, "CDR0312")).await;
        check(
            &fake,
            r#"{"repo":"o/r","issue":1,"priority":11}"#,
            (422, "CDR0304"),
        )
        .await;
        check(
            &fake,
            r#"{"repo":"o/r","issue":1,"colour":"red"}"#,
            (422, "CDR0304"),
        )
        .await;
        assert_eq!(fake.world().submitted, []);
    }

    #[tokio::test]
    async fn a_start_is_submitted_with_what_is_registered() {
        let fake = Fake::with_repo();
        check(&fake, r#"{"repo":"O/R","issue":1,"priority":9}"#, (201, "")).await;
        let submitted = fake.world().submitted.clone();
        let [
            Submission {
                run,
                input: Input::StartRun { spec },
                ..
            },
        ] = submitted.as_slice()
        else {
            panic!("one start was expected: {submitted:?}")
        };
        assert_eq!(
            (
                run.as_str(),
                spec.repo.id.0,
                spec.issue.0,
                spec.priority.value(),
                spec.page.as_str()
            ),
            ("r-new", 7, 1, 9, "http://127.0.0.1:4180/runs/r-new")
        );
        assert_eq!(spec.test_command, ["make"]);
    }
}
