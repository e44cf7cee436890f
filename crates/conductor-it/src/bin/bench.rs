//! Figures, as ratios within one run: `cargo xtask bench [overhead|runs]`.
//!
//! Everything is real but the agents' minds: the server is a process, git is git, the forge speaks HTTP. Absolute
//! times are printed beside a calibration of the same minute, because machines differ and are busy.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark starts programs, looks at the clock and prints"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use conductor_forge::MergeMethod;
use conductor_it::Stage;
use conductor_it::stage::{Play, REPO};

/// Agents that think for no time at all: one plan, one patch.
const ZERO_THINK: &str = include_str!("../../testdata/scenarios/zero_think.toml");
/// Runs at once.
const RUNS: usize = 100;
/// Rounds of the overhead figure.
const ROUNDS: usize = 7;

#[tokio::main]
async fn main() -> Result<()> {
    let wanted = std::env::args().nth(1);
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    ensure!(
        wanted
            .as_deref()
            .is_none_or(|name| ["overhead", "runs"].contains(&name)),
        "there is no such figure; there are overhead and runs"
    );
    println!(
        "calibration: fork+exec of /bin/true {:.2} ms (median)",
        millis(fork_exec()?)
    );
    if is_wanted("overhead") {
        overhead().await?;
    }
    if is_wanted("runs") {
        runs().await?;
    }
    Ok(())
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

fn fork_exec() -> Result<Duration> {
    let mut times = vec![];
    for _ in 0..200 {
        let begun = Instant::now();
        Command::new("/bin/true").status()?;
        times.push(begun.elapsed());
    }
    Ok(median(times))
}

/// One run from start to open pull request, against the git commands and the test runs that any such run needs.
async fn overhead() -> Result<()> {
    let play = Play::shell(ZERO_THINK);
    let stage = Stage::set(&program()?, &play).await?;
    let scratch = tempfile::tempdir()?;
    let token = stage.forge.personal_token("dana")?;
    let (mut ours, mut raw) = (vec![], vec![]);
    for round in 0..ROUNDS {
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

        let url = stage
            .forge
            .clone_url(&repo)
            .replacen("http://", &format!("http://dana:{token}@"), 1);
        let begun = Instant::now();
        by_hand(&scratch.path().join(round.to_string()), &url)?;
        raw.push(begun.elapsed());
        stage.program.say(&["run", "cancel", &run])?.done()?;
    }
    let (ours, raw) = (median(ours), median(raw));
    println!(
        "overhead: a run with agents that think for no time takes {:.0} ms to its pull request; the same clone, worktree, \
         commit, checkout, test and push by hand takes {:.0} ms; ratio {:.2}",
        millis(ours),
        millis(raw),
        ours.as_secs_f64() / raw.as_secs_f64()
    );
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
async fn runs() -> Result<()> {
    let play = Play::shell(ZERO_THINK);
    let stage = Stage::set(&program()?, &play).await?;
    let mut issues = vec![];
    for n in 0..RUNS {
        issues.push(stage.add_repo(&play, &format!("runs-{n}")).await?);
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
        if ended == RUNS {
            break;
        }
        ensure!(
            begun.elapsed() < Duration::from_mins(30),
            "only {ended} of {RUNS} runs ended"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let took = begun.elapsed();
    for id in repos.keys() {
        stage.wait_for_clean_up(id)?;
    }
    println!(
        "runs: {RUNS} at once, each to a merged pull request, in {:.1} s, no error ({REPO} idle)",
        took.as_secs_f64()
    );
    rates(&stage, repos.keys().next().context("a run")?)
}

fn rates(stage: &Stage, run: &str) -> Result<()> {
    let idle = Instant::now();
    stage.program.say(&["run", "list", "--limit", "1"])?.done()?;
    let call = idle.elapsed();
    let begun = Instant::now();
    let said = stage.program.say(&["audit", "verify"])?.done()?;
    let took = begun.elapsed().saturating_sub(call);
    let records = said.data["records"].as_u64().context("records")?;
    println!(
        "audit: {records} records read from SQLite, decoded and hash-verified in {:.0} ms: {:.0} records/s",
        millis(took),
        f64::from(u32::try_from(records).unwrap_or(u32::MAX)) / took.as_secs_f64()
    );
    let begun = Instant::now();
    stage.program.say(&["run", "replay", run])?.done()?;
    println!(
        "replay: one run's decisions recomputed in {:.1} ms",
        millis(begun.elapsed().saturating_sub(call))
    );
    Ok(())
}
