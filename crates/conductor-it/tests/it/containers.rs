//! A whole run in containers: every command of the agent and of the tests, from the issue to the merged pull request.
//!
//! Needs an engine and its test image: `cargo xtask setup docker`.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::program::HOPELESS;
use conductor_it::stage::{Executor, Play, REPO};
use serde_json::Value;

use crate::PROGRAM;
use crate::kept::{Kept, on_both_databases};
use crate::skills::locked_and_used;

on_both_databases!(
    an_issue_becomes_a_merged_pull_request_in_containers,
    a_container_of_a_server_that_died_is_removed_by_the_next_one,
    a_run_in_containers_locks_the_skills_of_its_roles_and_uses_exactly_those,
);

const CONTAINED: &str = include_str!("../../testdata/scenarios/contained.toml");

/// Everything that the engine tells while a story is played.
struct Told {
    listening: Child,
    file: PathBuf,
}

impl Told {
    fn listen(dir: &Path) -> Result<Self> {
        let file = dir.join("events");
        // From a little earlier on, so that nothing is missed until it listens.
        let listening = Command::new("docker")
            .args(["events", "--since", "1s", "--format", "{{json .}}"])
            .stdin(Stdio::null())
            .stdout(File::create(&file).context("making a file")?)
            .spawn()
            .context("listening to the engine")?;
        Ok(Self { listening, file })
    }

    /// What was told so far and concerns one of these containers, or all that carry a label.
    fn so_far(&self) -> Result<Vec<Value>> {
        let text = std::fs::read_to_string(&self.file).context("reading what was told")?;
        // The last line may not be whole yet.
        Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect())
    }

    /// The containers of a server to which this happened.
    fn containers(&self, root: &str, what: &str) -> Result<BTreeSet<String>> {
        let is_ours = |event: &&Value| {
            event["Type"] == "container"
                && event["Action"] == what
                && event["Actor"]["Attributes"]["conductor.root"] == root
        };
        let told = self.so_far()?;
        let ours = told.iter().filter(is_ours);
        Ok(ours
            .filter_map(|event| event["Actor"]["ID"].as_str().map(str::to_owned))
            .collect())
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.listening.kill();
        let _ = self.listening.wait();
    }
}

fn engine(arguments: &[&str]) -> Result<String> {
    let said = Command::new("docker")
        .args(arguments)
        .output()
        .context("asking the engine")?;
    ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

fn play() -> Play {
    Play {
        executor: Executor::Docker,
        test: "sh -c 'test -e /.dockerenv && sh test.sh'".to_owned(),
        ..Play::shell(CONTAINED)
    }
}

/// What a server labels its containers with.
fn root(stage: &Stage) -> Result<String> {
    let data = stage
        .program
        .data_dir()
        .canonicalize()
        .context("the data directory")?;
    Ok(data.join("containers/open").display().to_string())
}

/// EXEC-2, EXEC-3a, RUN-5 to RUN-10, ENV-2, ENV-3: tools and tests each in a container of their own; at the end the pull
/// request is merged and no container, mount, network, volume, record or lease is left.
async fn an_issue_becomes_a_merged_pull_request_in_containers(kept: Kept) -> Result<()> {
    let place = tempfile::tempdir()?;
    let told = Told::listen(place.path())?;
    let stage = Stage::set(PROGRAM, &kept.play(play())).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let run = stage.start_run_for(issue)?;
    let seen = stage.carry_through(&run).await?;
    ensure!(
        seen["run"]["phase"] == "completed" && seen["attempts"] == 2,
        "{seen:#}\n{}",
        stage.log()
    );
    stage.verify(&run)?;
    stage.verify_forge(&run, issue)?;
    let root = root(&stage)?;
    let all = nothing_is_left(&kept, &stage, &told, &root).await?;
    // The planner, its reviewer, the implementer twice, the tests twice, their reader twice and the last reviewer.
    ensure!(all.len() >= 9, "{} containers", all.len());
    Ok(())
}

/// RUN-12a, ENV-2, S-43: a server that is killed while a command runs in a container finds and removes it when it is back, and
/// the run goes on to its end.
async fn a_container_of_a_server_that_died_is_removed_by_the_next_one(kept: Kept) -> Result<()> {
    let place = tempfile::tempdir()?;
    let told = Told::listen(place.path())?;
    let slow = CONTAINED.replacen(
        "[[implement.step]]\nview",
        "[[implement.step]]\nbash = \"sleep 1000\"\n\n[[implement.step]]\nview",
        1,
    );
    ensure!(slow != CONTAINED, "the scenario changed");
    let slow = Play {
        scenario: slow,
        ..play()
    };
    let mut stage = Stage::set(PROGRAM, &kept.play(slow)).await?;
    let run = stage.start_run("Greet people")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    let root = root(&stage)?;
    let filter = format!("label=conductor.root={root}");
    let sleeping = until("a container sleeps", || {
        let names = engine(&["ps", "--filter", &filter, "--format", "{{.Names}}"])?;
        let mut names = names.lines();
        let sleeps = names.find(|name| {
            engine(&["top", name, "-o", "pid,args"]).is_ok_and(|top| top.matches("sleep 1000").count() >= 2)
        });
        Ok(sleeps.map(str::to_owned))
    })?;
    stage.program.kill()?;
    ensure!(
        engine(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"])?.contains(&sleeping),
        "a server that died removes nothing"
    );
    stage.program.start(None)?;
    until("the container is removed", || {
        let left = engine(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"])?;
        Ok((!left.contains(&sleeping)).then_some(()))
    })?;
    stage.program.say(&["run", "cancel", &run])?.done()?;
    stage.wait_for_clean_up(&run)?;
    stage.verify(&run)?;
    nothing_is_left(&kept, &stage, &told, &root).await?;
    Ok(())
}

/// SKILL-5, EXEC-4: skills are locked, used and gone again where every command runs in a container too.
async fn a_run_in_containers_locks_the_skills_of_its_roles_and_uses_exactly_those(kept: Kept) -> Result<()> {
    locked_and_used(kept, Executor::Docker, "containers/open").await
}

/// Waits for something, by looking.
fn until<T>(what: &str, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        ensure!(begun.elapsed() < HOPELESS, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(25));
    }
}

/// Insists that nothing of a run is left, and returns all containers that it had.
async fn nothing_is_left(kept: &Kept, stage: &Stage, told: &Told, root: &str) -> Result<BTreeSet<String>> {
    let filter = format!("label=conductor.root={root}");
    let left = engine(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"])?;
    ensure!(left.is_empty(), "containers are left: {left}");
    let all = until("the engine has told of every end", || {
        let (made, gone) = (
            told.containers(root, "create")?,
            told.containers(root, "destroy")?,
        );
        Ok((made == gone).then_some(made))
    })?;
    for event in told.so_far()? {
        let attributes = &event["Actor"]["Attributes"];
        let concerns_us = attributes["container"]
            .as_str()
            .is_some_and(|id| all.contains(id));
        ensure!(
            !(concerns_us && event["Type"] == "volume"),
            "a volume was used: {event}"
        );
        ensure!(
            !(concerns_us && event["Type"] == "network") || attributes["name"] == "none",
            "a network was used: {event}"
        );
        ensure!(
            !(event["Actor"]["ID"].as_str().is_some_and(|id| all.contains(id))
                && event["Action"]
                    .as_str()
                    .is_some_and(|action| action.starts_with("exec_"))),
            "something was executed in a container: {event}"
        );
    }
    let data = stage.program.data_dir();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").context("reading mounts")?;
    let mounted: Vec<&str> = mounts
        .lines()
        .filter(|line| line.contains(&data.display().to_string()))
        .collect();
    ensure!(mounted.is_empty(), "mounts are left: {mounted:?}");
    for empty in [
        "worktrees",
        "trash",
        "quarantine",
        "containers/open",
        "reader/open",
    ] {
        let entries = std::fs::read_dir(data.join(empty))
            .into_iter()
            .flatten()
            .flatten();
        let left: Vec<_> = entries.map(|entry| entry.path()).collect();
        ensure!(left.is_empty(), "left behind: {left:?}");
    }
    let leases = kept
        .column(data, "SELECT kind || ' ' || name FROM resource_leases")
        .await?;
    ensure!(leases.is_empty(), "leases are left: {leases:?}");
    Ok(all)
}
