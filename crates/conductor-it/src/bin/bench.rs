//! Figures, as ratios within one run: `cargo xtask bench [overhead|runs|store|tools|web]`, which prints a calibration of the same minute
//! before each; `conductor-bench overhead 3`, `runs 10`, `store 64` and `teams 4` are smaller.
//!
//! Everything is real but the agents' minds: the server is a process, git is git, the forge speaks HTTP.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark starts programs, looks at the clock and prints"
)]

#[path = "bench/store.rs"]
mod store;
#[path = "bench/tools.rs"]
mod tools;
#[path = "bench/web.rs"]
mod web;
#[path = "../../../conductor-store/tests/it/postgres.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "the store's tests use all of it")]
mod postgres;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use conductor_forge::MergeMethod;
use conductor_it::Stage;
use conductor_it::stage::{Executor, Play, REPO};

/// Agents that think for no time at all: one plan, one patch.
const ZERO_THINK: &str = include_str!("../../testdata/scenarios/zero_think.toml");
/// Runs at once.
const RUNS: usize = 100;
/// Appends and claims in a round of the store's figures; replay reads a hundred times as many events.
const STORE: usize = 960;
/// Runs at once of each team.
const TEAM: usize = 24;
/// Calls of each tool.
const CALLS: usize = 500;
/// Runs that pages are shown with.
const CROWD: usize = 10_000;
/// Rounds of the overhead figure.
const ROUNDS: usize = 7;
/// A run takes at most so many times as long as the same by hand; it was seen to take 4.0 to 4.2 times.
const MOST_OVERHEAD: f64 = 6.0;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next();
    let size: Option<usize> = arguments.next().map(|size| size.parse()).transpose()?;
    match wanted.as_deref() {
        Some("overhead") => overhead(size.unwrap_or(ROUNDS)).await,
        Some("runs") => runs(size.unwrap_or(RUNS)).await,
        Some("store") => store::figures(size.unwrap_or(STORE).try_into()?).await,
        Some("tools") => tools::figures(size.unwrap_or(CALLS)),
        Some("teams") => store::teams(size.unwrap_or(TEAM)).await,
        Some("web") => web::figures(size.unwrap_or(CROWD)).await,
        Some(_) | None => {
            bail!(
                "which figure? there are: overhead [ROUNDS], runs [RUNS], store [SIZE], teams [RUNS], tools [CALLS], \
                 web [RUNS]"
            )
        }
    }
}

fn program() -> Result<String> {
    let sibling = std::env::current_exe()?.with_file_name("conductor-under-test");
    ensure!(sibling.exists(), "{} is not built", sibling.display());
    Ok(sibling.display().to_string())
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn median(mut values: Vec<Duration>) -> Duration {
    values.sort_unstable();
    values[values.len() / 2]
}

/// One run from start to open pull request, against the git commands and the test runs that any such run needs.
async fn overhead(rounds: usize) -> Result<()> {
    let play = Play {
        executor: Executor::UnsafePlain,
        ..Play::shell(ZERO_THINK)
    };
    let stage = Stage::set(&program()?, &play).await?;
    let scratch = tempfile::tempdir()?;
    let (mut ours, mut raw) = (vec![], vec![]);
    let mut last = String::new();
    for round in 0..rounds {
        let (repo, issue) = stage.add_repo(&play, &format!("overhead-{round}")).await?;
        let begun = Instant::now();
        let said = stage
            .program
            .say(&["run", "start", &repo, &issue.to_string()])?
            .done()?;
        let run = said.data["run"].as_str().context("a run")?.to_owned();
        stage.wait_for_phase(&run, "awaiting_plan_approval")?;
        stage.approve(&run)?;
        stage.wait_for_phase(&run, "awaiting_merge")?;
        ours.push(begun.elapsed());

        let url = stage.url_of_person(&repo)?;
        let begun = Instant::now();
        by_hand(&scratch.path().join(round.to_string()), &url)?;
        raw.push(begun.elapsed());
        stage.program.say(&["run", "cancel", &run])?.done()?;
        last = run;
    }
    let (ours, raw) = (median(ours), median(raw));
    let ratio = ours.as_secs_f64() / raw.as_secs_f64();
    println!(
        "overhead: a run with agents that think for no time takes {:.0} ms to its pull request; the same clone, worktree, \
         commit, checkout, test and push by hand takes {:.0} ms; ratio {ratio:.2}",
        millis(ours),
        millis(raw)
    );
    where_the_time_went(&stage, &last)?;
    ensure!(
        ratio <= MOST_OVERHEAD,
        "a bar that was missed: at most {MOST_OVERHEAD} times as long as by hand"
    );
    Ok(())
}

/// Tells what the effects of a run took, from being asked for to being reported, by kind.
fn where_the_time_went(stage: &Stage, run: &str) -> Result<()> {
    let said = stage.program.say(&["run", "show", run, "--events"])?.done()?;
    let mut asked = BTreeMap::new();
    let mut took: BTreeMap<String, (u32, u64)> = BTreeMap::new();
    for event in said.data["events"].as_array().context("events")? {
        let at = event["at"].as_u64().context("a time")?;
        let payload = &event["payload"];
        match event["kind"].as_str() {
            Some("effect_requested") => {
                asked.insert(payload["effect"].to_string(), (payload["kind"].clone(), at));
            }
            Some("performed") => {
                if let Some((kind, since)) = asked.remove(&payload["input"]["effect"].to_string()) {
                    let sum = took
                        .entry(kind.as_str().unwrap_or_default().to_owned())
                        .or_default();
                    *sum = (sum.0 + 1, sum.1 + at.saturating_sub(since));
                }
            }
            Some(_) | None => {}
        }
        if event["kind"] == "pull_request_opened" {
            break;
        }
    }
    let words: Vec<String> = took
        .iter()
        .map(|(kind, (times, micros))| format!("{kind} ×{times} {} ms", micros / 1000))
        .collect();
    println!("overhead: its effects to that pull request: {}", words.join(", "));
    Ok(())
}

/// What a person would type to do the same.
fn by_hand(dir: &Path, url: &str) -> Result<()> {
    let script = "set -e; git clone -q --bare \"$1\" \"$0/base\"; git -C \"$0/base\" worktree add -q \"$0/work\" -b by-hand main; \
                  cd \"$0/work\"; echo 'hello, world' > greeting.txt; git add -A; \
                  git -c user.name=a -c user.email=a@b commit -qm greet; git worktree add -q \"$0/test\" --detach by-hand; \
                  (cd \"$0/test\"; sh test.sh); git push -q \"$1\" by-hand";
    std::fs::create_dir_all(dir)?;
    let status = Command::new("bash")
        .arg("-c")
        .arg(script)
        .arg(dir)
        .arg(url)
        .status()?;
    ensure!(status.success(), "doing it by hand failed");
    Ok(())
}

/// A hundred runs at once, each to a merged pull request; then the whole log read, decoded, verified and replayed.
async fn runs(count: usize) -> Result<()> {
    let play = Play {
        executor: Executor::UnsafePlain,
        ..Play::shell(ZERO_THINK)
    };
    let stage = Stage::set(&program()?, &play).await?;
    let (took, repos) = carry_all(&stage, &play, count).await?;
    println!(
        "runs: {count} at once, each to a merged pull request, in {:.1} s, no error ({REPO} idle)",
        took.as_secs_f64()
    );
    rates(&stage, repos.keys().next().context("a run")?)
}

/// Carries so many runs to merged pull requests, all at once, each in a repository of its own; tells how long it took, and
/// the repository of each run.
async fn carry_all(stage: &Stage, play: &Play, count: usize) -> Result<(Duration, BTreeMap<String, String>)> {
    let mut issues = vec![];
    for n in 0..count {
        issues.push(stage.add_repo(play, &format!("runs-{n}")).await?);
    }
    let begun = Instant::now();
    let mut repos = BTreeMap::new();
    for (repo, issue) in &issues {
        let said = stage
            .program
            .say(&["run", "start", repo, &issue.to_string()])?
            .done()?;
        repos.insert(
            said.data["run"].as_str().context("a run")?.to_owned(),
            repo.clone(),
        );
    }
    let mut merged = BTreeMap::new();
    loop {
        let list = stage
            .program
            .say(&["run", "list", "--limit", "200"])?
            .done()?
            .data;
        let all = list["runs"].as_array().context("runs")?.clone();
        let mut ended = 0;
        for run in &all {
            let id = run["id"].as_str().context("an id")?;
            match run["phase"].as_str() {
                Some("awaiting_plan_approval") if run["needs_human"] == true => stage.approve(id)?,
                Some("awaiting_merge") if !merged.contains_key(id) => {
                    let number = run["pull_request"].as_u64().context("a pull request")?;
                    stage.person.merge(&repos[id], number, MergeMethod::Merge).await?;
                    merged.insert(id.to_owned(), number);
                }
                Some("completed") => ended += 1,
                _on_its_way => ensure!(run["held"] == false, "{id} is held: {}", run["status"]),
            }
        }
        if ended == count {
            break;
        }
        ensure!(
            begun.elapsed() < Duration::from_mins(30),
            "only {ended} of {count} runs ended"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let took = begun.elapsed();
    for id in repos.keys() {
        stage.wait_for_clean_up(id)?;
    }
    Ok((took, repos))
}

/// Rates over the whole log, less what any call costs; medians of interleaved rounds.
fn rates(stage: &Stage, run: &str) -> Result<()> {
    let (mut idle, mut audit, mut replay) = (vec![], vec![], vec![]);
    let (mut records, mut decisions) = (0, 0);
    for _ in 0..ROUNDS {
        let timed = |arguments: &[&str]| -> Result<_> {
            let begun = Instant::now();
            let said = stage.program.say(arguments)?.done()?;
            Ok((begun.elapsed(), said.data))
        };
        idle.push(timed(&["run", "list", "--limit", "1"])?.0);
        let (took, said) = timed(&["audit", "verify"])?;
        audit.push(took);
        records = said["records"].as_u64().context("records")?;
        let (took, said) = timed(&["run", "replay", run])?;
        replay.push(took);
        decisions = said["decisions"].as_u64().context("decisions")?;
    }
    let call = median(idle);
    let rate = |count: u64, took: Duration| {
        f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / took.as_secs_f64().max(1e-6)
    };
    let audit = median(audit).saturating_sub(call);
    println!(
        "audit: {records} records read from SQLite, decoded and hash-verified in {:.0} ms: {:.0} records/s",
        millis(audit),
        rate(records, audit)
    );
    let replay = median(replay).saturating_sub(call);
    println!(
        "replay: one run's {decisions} decisions recomputed in {:.1} ms: {:.0} decisions/s",
        millis(replay),
        rate(decisions, replay)
    );
    Ok(())
}
