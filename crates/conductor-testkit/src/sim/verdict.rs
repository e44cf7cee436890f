//! Checks what must be true at the end of every story, whatever happened on the way.
//!
//! One pull request and one of each comment per run, chains that verify, decisions that replay, projections that
//! rebuild, and nothing left behind. This module does not know how the story went.

use std::collections::BTreeMap;

use conductor_domain::effect::EffectKind;
use conductor_domain::forge::PullRequestState;
use conductor_domain::invariant::broken_law;
use conductor_domain::message::marker;
use conductor_domain::phase::PhaseName;
use conductor_engine::{audit, rebuild, replay};
use conductor_port::forge::has_marker;
use conductor_port::lease::Leases as _;
use conductor_port::ledger::{EffectStatus, RunRow};
use conductor_port::views::{RunFilter, Views as _};

use super::{ByRun, Stage};

/// How a story ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The last phase of each run.
    pub phases: ByRun<PhaseName>,
    /// How many records were written.
    pub records: u64,
    /// Where Conductor died.
    pub died_at: Vec<&'static str>,
    /// How often each crash point was reached.
    pub reached: BTreeMap<&'static str, u64>,
    /// How many faults the world had.
    pub faults: u64,
    /// How often people had to say "try again".
    pub retries: u32,
}

/// What is said once to the issue of every run that is merged.
const SAID_ONCE: [&str; 4] = [
    "Run started by ada",
    "A plan waits for approval",
    "is open and waits for a human",
    "the run is complete",
];

/// Checks everything.
pub(super) async fn judge(stage: &Stage) -> Result<Ending, String> {
    let rows = rows(stage).await?;
    ensure(rows.len() == stage.specs.len(), || {
        format!("{} of {} runs are there", rows.len(), stage.specs.len())
    })?;
    let mut phases = BTreeMap::new();
    for row in &rows {
        let phase = PhaseName::parse(&row.phase).ok_or_else(|| format!("{} is no phase", row.phase))?;
        judge_run(stage, row, phase)
            .await
            .map_err(|wrong| format!("{}: {wrong}", row.run))?;
        phases.insert(row.run.clone(), phase);
    }
    judge_leftovers(stage).await?;
    let records = judge_log(stage, &rows).await?;
    Ok(Ending {
        phases,
        records,
        died_at: stage.deaths.died_at(),
        reached: stage.deaths.reached(),
        faults: stage.world.faults(),
        retries: stage.remember(|memories| memories.retries),
    })
}

/// Says where a story stands; for one that is stuck.
pub(super) async fn state_of(stage: &Stage) -> String {
    let mut text = String::new();
    for row in rows(stage).await.unwrap_or_default() {
        let effects = stage.memory.effects(&row.run).await.unwrap_or_default();
        let open: Vec<String> = effects
            .iter()
            .filter(|effect| effect.status != EffectStatus::Done)
            .map(|effect| {
                format!(
                    "{} {} {} stop={}",
                    effect.id,
                    effect.kind,
                    effect.status.as_str(),
                    effect.stop
                )
            })
            .collect();
        text.push_str(&format!(
            "\n{} {} held={} open={open:?} {}",
            row.run, row.phase, row.held, row.state
        ));
    }
    text
}

fn ensure(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong()) }
}

async fn rows(stage: &Stage) -> Result<Vec<RunRow>, String> {
    let filter = RunFilter {
        limit: 10_000,
        ..RunFilter::default()
    };
    stage
        .memory
        .runs(&filter)
        .await
        .map_err(|fault| fault.to_string())
}

async fn judge_run(stage: &Stage, row: &RunRow, phase: PhaseName) -> Result<(), String> {
    let may_be_cancelled = stage.remember(|memories| memories.cancelled)
        && stage.specs.last().is_some_and(|spec| spec.run == row.run);
    if phase == PhaseName::Completed {
        judge_completed(stage, row)?;
    } else if phase == PhaseName::Cancelled && may_be_cancelled {
        judge_cancelled(stage, row)?;
    } else {
        return Err(format!("ended {phase}: {}", row.state));
    }
    let run = row.parse().map_err(|error| error.to_string())?;
    if let Some(law) = broken_law(&run) {
        return Err(format!("breaks {law}"));
    }
    judge_writes(stage, row).await
}

fn states_of_pull_requests(stage: &Stage, row: &RunRow) -> Vec<PullRequestState> {
    let branch = format!("conductor/run-{}", row.run);
    let archive = stage.forge.archive();
    archive
        .pull_requests
        .values()
        .filter(|pull| pull.branch == branch)
        .map(|pull| pull.state.clone())
        .collect()
}

fn judge_completed(stage: &Stage, row: &RunRow) -> Result<(), String> {
    let states = states_of_pull_requests(stage, row);
    ensure(
        matches!(states.as_slice(), [PullRequestState::Merged { .. }]),
        || format!("pull requests: {states:?}"),
    )?;
    let header = format!("run:{}]", row.run);
    let archive = stage.forge.archive();
    let said: Vec<&str> = archive
        .comments
        .iter()
        .map(|comment| comment.body.as_str())
        .filter(|body| body.lines().next().is_some_and(|line| line.contains(&header)))
        .collect();
    for once in SAID_ONCE {
        let times = said.iter().filter(|body| body.contains(once)).count();
        ensure(times == 1, || {
            format!("\"{once}\" was said {times} times:\n{}", said.join("\n"))
        })?;
    }
    let branch = archive
        .branches
        .get(&(stage.repo.id, format!("conductor/run-{}", row.run)));
    let file = format!("things/{}.txt", row.run);
    let right = branch
        .and_then(|commit| stage.workspace.disk().commits.get(commit).cloned())
        .and_then(|commit| commit.tree.get(&file).cloned());
    ensure(right.as_deref() == Some(b"right"), || {
        format!("{file} holds {right:?}")
    })
}

fn judge_cancelled(stage: &Stage, row: &RunRow) -> Result<(), String> {
    let states = states_of_pull_requests(stage, row);
    let is_open = states.contains(&PullRequestState::Open);
    ensure(states.len() <= 1 && !is_open, || {
        format!("pull requests after cancelling: {states:?}")
    })
}

/// Every effect is done; every comment, push, pull request and check is at the forge once, and stands in the audit.
async fn judge_writes(stage: &Stage, row: &RunRow) -> Result<(), String> {
    let effects = stage
        .memory
        .effects(&row.run)
        .await
        .map_err(|fault| fault.to_string())?;
    let writes = stage
        .memory
        .writes(&row.run)
        .await
        .map_err(|fault| fault.to_string())?;
    for effect in &effects {
        ensure(effect.status == EffectStatus::Done, || {
            format!("{} {} is {}", effect.kind, effect.id, effect.status.as_str())
        })?;
        if effect.kind == EffectKind::PostComment {
            let marker = marker(&effect.id);
            let times = stage
                .forge
                .archive()
                .comments
                .iter()
                .filter(|comment| has_marker(&comment.body, &marker))
                .count();
            ensure(times == 1, || {
                format!("comment {} is there {times} times", effect.id)
            })?;
        }
        if effect.kind.writes_to_forge() {
            let result = writes
                .iter()
                .find(|write| write.effect == effect.id)
                .map(|write| write.result.as_str());
            let stopped = effect.stop && result == Some("pending");
            ensure(result == Some("done") || stopped, || {
                format!("the audit of {} says {result:?}", effect.id)
            })?;
        }
    }
    Ok(())
}

async fn judge_leftovers(stage: &Stage) -> Result<(), String> {
    let held = stage.memory.held(None).await.map_err(|fault| fault.to_string())?;
    ensure(held.is_empty(), || format!("still leased: {held:?}"))?;
    let open = stage.executor.open_sandboxes();
    ensure(open.is_empty(), || format!("still running: {open:?}"))?;
    {
        let disk = stage.workspace.disk();
        ensure(disk.repos.is_empty() && disk.dirs.is_empty(), || {
            format!("still there: {:?}", disk.dirs.keys())
        })?;
    }
    let most = stage.remember(|memories| memories.most_at_once);
    ensure(most <= stage.story.slots as usize, || {
        format!("{most} runs at once with {} slots", stage.story.slots)
    })
}

async fn judge_log(stage: &Stage, rows: &[RunRow]) -> Result<u64, String> {
    let (memory, said) = (stage.memory.as_ref(), |fault: conductor_domain::fault::Fault| {
        fault.to_string()
    });
    let kept = audit::Kept {
        views: memory,
        ledger: memory,
        tool_log: memory,
        blobs: memory,
    };
    let audit = audit::verify(kept).await.map_err(said)?;
    ensure(audit.is_sound(), || {
        format!("the audit found {:?}", audit.problems)
    })?;
    ensure(!stage.is_calm() || audit.unanchored.is_empty(), || {
        format!("not anchored: {:?}", audit.unanchored)
    })?;
    for row in rows {
        let replay = replay::replay(memory, memory, &row.run).await.map_err(said)?;
        ensure(replay.is_equal(), || {
            format!("the replay differs: {:?}", replay.differences)
        })?;
    }
    let instance = memory.instance().await.map_err(said)?;
    let mut writes = vec![];
    for row in rows {
        writes.push(memory.writes(&row.run).await.map_err(said)?);
    }
    rebuild::rebuild(memory, memory).await.map_err(said)?;
    for (row, before) in rows.iter().zip(writes) {
        let rebuilt = memory.writes(&row.run).await.map_err(said)?;
        ensure(rebuilt == before, || {
            format!("the rebuilt forge writes of {} differ", row.run)
        })?;
    }
    let rebuilt = self::rows(stage).await?;
    ensure(rebuilt == rows, || "the rebuilt projections differ".to_owned())?;
    let rebuilt = memory.instance().await.map_err(said)?;
    ensure(rebuilt == instance, || "the rebuilt instance differs".to_owned())?;
    Ok(audit.records)
}
