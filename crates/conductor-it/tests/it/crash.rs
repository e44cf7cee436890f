//! The server dies, at any moment; what was begun is finished, and nothing is done twice.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use conductor_engine::Engine;
use conductor_forge::MergeMethod;
use conductor_it::Stage;
use conductor_it::program::{BETWEEN_LOOKS, HOPELESS};
use conductor_it::stage::{Executor, Play, REPO};

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    killed_at_every_point_the_run_still_ends_as_it_should,
    a_run_outlives_its_server_and_is_read_without_one,
);

/// The n-th time that each point is reached lies somewhere else in the run.
const TIMES: [u32; 3] = [2, 11, 23];

/// RUN-4, RUN-12a: kill -9 at every crash point that is compiled in, early, in the middle and late in a run; it always
/// ends merged, with one pull request, one of each comment, one commit per attempt, one check, chains that verify, and a
/// replay without a difference.
#[allow(clippy::print_stdout, reason = "tells how often it was killed where")]
async fn killed_at_every_point_the_run_still_ends_as_it_should(kept: Kept) -> Result<()> {
    let mut deaths: BTreeMap<&str, u32> = BTreeMap::new();
    for (index, point) in Engine::crash_points().iter().enumerate() {
        let kept = kept.another().await;
        // One point per run would take many starts; each run of the story dies at one point three times.
        let settings = "[limits]\npoll-seconds = 1\n".to_owned();
        let play = Play {
            settings,
            executor: Executor::UnsafePlain,
            ..kept.shell(GREETING)
        };
        let mut stage = Stage::set_without_server(PROGRAM, &play).await?;
        stage.program.start(None)?;
        stage.register(&play)?;
        stage.program.kill()?;
        let issue = stage
            .person
            .open_issue(REPO, &format!("Greet people, {index}"), "Please.")?;
        let mut run = None;
        let mut left = TIMES.iter().copied();
        let mut next = left.next();
        let begun = Instant::now();
        loop {
            let crash_at = next.map(|times| format!("{point}:{times}"));
            stage.program.spawn(crash_at.as_deref())?;
            let ended = live(&mut stage, issue, &mut run).await?;
            if ended {
                break;
            }
            let how = stage.program.how_it_ended()?;
            ensure!(
                how.and_then(|how| how.signal()) == Some(nix::libc::SIGKILL),
                "{point}: the server was not killed but ended with {how:?}\n{}",
                stage.log()
            );
            *deaths.entry(*point).or_default() += 1;
            next = left.next();
            ensure!(begun.elapsed() < HOPELESS * 3, "{point}: the run never ends");
        }
        let run = run.expect("a run that ended was started");
        // A server that may still die at the point would take the last words with it.
        if next.is_some() {
            stage.program.kill()?;
        }
        if stage.program.has_ended()? {
            stage.program.start(None)?;
        }
        ended_as_it_should(&stage, &run, issue).with_context(|| (*point).to_owned())?;
        stage.verify(&run)?;
        stage.verify_forge(&run, issue)?;
        stage.program.stop()?;
    }
    let per_point: Vec<String> = deaths
        .iter()
        .map(|(point, times)| format!("{point} {times}"))
        .collect();
    println!(
        "{} crash points, {} deaths, per point: {}",
        Engine::crash_points().len(),
        deaths.values().sum::<u32>(),
        per_point.join(", ")
    );
    for point in Engine::crash_points() {
        ensure!(
            deaths.contains_key(point),
            "the server never died at {point}: nobody gets there"
        );
    }
    Ok(())
}

/// Insists that the run is complete, and that the forge has all that it leaves and nothing twice.
fn ended_as_it_should(stage: &Stage, run: &str, issue: u64) -> Result<()> {
    // What it says last is no part of its clean-up.
    let seen = stage.wait(run, "its last word", |run| {
        run["under_way"].as_array().is_some_and(Vec::is_empty)
    })?;
    ensure!(
        seen["run"]["phase"] == "completed" && seen["plans"] == 2 && seen["attempts"] == 2,
        "{seen:#}"
    );
    let pulls = stage.forge.pulls(REPO).context("reading pull requests")?;
    let [pull] = pulls.as_slice() else {
        bail!("{} pull requests", pulls.len());
    };
    let branch = stage.forge.branch(REPO, &format!("conductor/run-{run}"));
    let branch = branch.context("reading the branch")?;
    ensure!(
        branch.as_ref() == Some(&pull.head_sha) && pull.size.commits == 2,
        "one commit per attempt was expected: {branch:?} {pull:?}"
    );
    let checks = stage.forge.check_runs(REPO).context("reading check runs")?;
    ensure!(
        matches!(checks.as_slice(), [check] if check.head_sha == pull.head_sha),
        "{checks:?}"
    );
    let beside = stage
        .forge
        .comments(REPO, pull.number)
        .context("reading comments")?;
    ensure!(
        beside.is_empty(),
        "nothing is said on the pull request: {beside:?}"
    );

    let mut said = said(stage, run, issue)?;
    let starter = said.iter().find_map(|line| {
        line.strip_prefix("Orchestrator: Run started by ")?
            .strip_suffix("; planning")
    });
    let starter = starter
        .with_context(|| format!("nobody started it: {said:#?}"))?
        .to_owned();
    let mut expected = vec![
        format!("Orchestrator: Run started by {starter}; planning"),
        "Orchestrator: A plan waits for approval".to_owned(),
        format!("Orchestrator: {starter} approved the plan"),
        "Orchestrator: A first attempt failed and is being repeated: `sh test.sh` exited 1".to_owned(),
        "Tester: `sh test.sh` exited 0".to_owned(),
        "Reviewer: The implementation was reviewed and approved".to_owned(),
        format!(
            "Orchestrator: Pull request no. {} is open and waits for a human",
            pull.number
        ),
        "Orchestrator: The pull request was merged; the run is complete".to_owned(),
    ];
    said.sort_unstable();
    expected.sort_unstable();
    ensure!(said == expected, "said: {said:#?}\nexpected: {expected:#?}");
    Ok(())
}

/// Everything that was said on the issue: who spoke, and the headline without its run and its tree. What waited for the
/// throttle, which depends on how long the run took, is told as a list in one comment, and counts for each of its parts.
fn said(stage: &Stage, run: &str, issue: u64) -> Result<Vec<String>> {
    const SPEAKERS: [&str; 5] = ["Orchestrator", "Planner", "Reviewer", "Implementer", "Tester"];
    let part = |line: &str| -> Option<String> {
        let told = line.strip_prefix("- ")?;
        let (speaker, _headline) = told.split_once(": ")?;
        SPEAKERS.contains(&speaker).then(|| told.to_owned())
    };
    let mut said = vec![];
    for comment in stage.forge.comments(REPO, issue).context("reading comments")? {
        let body = comment.body.as_str();
        let (head, rest) = body.split_once('\n').unwrap_or((body, ""));
        let (speaker, headline) = head
            .strip_prefix("[Conductor | ")
            .and_then(|head| head.split_once(&format!(" | run:{run}] ")))
            .with_context(|| format!("not a headline of the run: {head}"))?;
        let parts: Vec<String> = rest.lines().filter_map(part).collect();
        if parts.is_empty() {
            said.push(format!("{speaker}: {headline}"));
        } else {
            said.extend(parts);
        }
    }
    for line in &mut said {
        if let Some((before, _tree)) = line.split_once(" on tree ") {
            *line = before.to_owned();
        }
    }
    Ok(said)
}

/// DEP-1, RUN-4: the whole way, with a kill in the middle; and without a server the records are read where they are kept.
async fn a_run_outlives_its_server_and_is_read_without_one(kept: Kept) -> Result<()> {
    let mut stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let run = stage.start_run_for(issue)?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.program.kill()?;
    ensure!(stage.show(&run)?["run"]["phase"] == "awaiting_plan_approval");
    stage.program.start(None)?;

    let seen = stage.carry_through(&run).await.with_context(|| stage.log())?;
    ensure!(seen["run"]["phase"] == "completed", "{seen:#}");
    stage.verify(&run)?;
    stage.verify_forge(&run, issue)?;
    let file = stage.program.data_dir().join("conductor.db");
    ensure!(
        file.exists() == matches!(kept, Kept::File),
        "the records lie elsewhere"
    );
    stage.program.stop()
}

/// Plays the people's part until the run is cleaned up (true) or the server dies (false).
pub(crate) async fn live(stage: &mut Stage, issue: u64, run: &mut Option<String>) -> Result<bool> {
    let begun = Instant::now();
    loop {
        if stage.program.has_ended()? {
            return Ok(false);
        }
        ensure!(
            begun.elapsed() < HOPELESS,
            "nothing moves any more: {:?}\n{}",
            run.as_ref().map(|run| stage.show(run)),
            stage.log()
        );
        // Whatever fails here fails because the server is gone or not yet there; the loop looks again.
        let Some(id) = run.clone().or_else(|| started(stage, issue)) else {
            if stage.program.data_dir().join("server.json").exists() {
                let _answer_may_be_lost = stage.start_run_for(issue);
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
            continue;
        };
        *run = Some(id.clone());
        if let Ok(seen) = stage.show(&id) {
            if seen["cleaned_up"] == true {
                return Ok(true);
            }
            match seen["run"]["phase"].as_str() {
                Some("awaiting_plan_approval") => {
                    let _may_have_died = stage.approve(&id);
                }
                Some("awaiting_merge") => {
                    let number = seen["run"]["pull_request"].as_u64().unwrap_or_default();
                    let _merged_before = stage.person.merge(REPO, number, MergeMethod::Merge).await;
                }
                _on_its_way => {}
            }
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// The run of the issue, if there is one; a start whose answer was lost is found again.
fn started(stage: &Stage, issue: u64) -> Option<String> {
    let said = stage.program.say(&["run", "list"]).ok()?;
    let runs = said.data["runs"].as_array()?.clone();
    let run = runs.iter().find(|run| run["issue"] == issue)?;
    run["id"].as_str().map(str::to_owned)
}
