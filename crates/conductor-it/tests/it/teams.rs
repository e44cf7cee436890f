//! Servers die, freeze and come back while others go on with their work; nothing is lost, and nothing stays done twice.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use conductor_forge::{Fault, MergeMethod};
use conductor_it::Stage;
use conductor_it::program::HOPELESS;
use conductor_it::stage::{Play, REPO};
use nix::sys::signal::Signal;

use crate::between::Between;
use crate::postgres::{column, database, raw};
use crate::steering::wait_for_process;
use crate::team::{LEASE, Seen, Team};
use crate::{GREETING, PROGRAM};

const ZERO_THINK: &str = include_str!("../../testdata/scenarios/zero_think.toml");

/// Deaths and frosts are nobody's fault, so no run is held because of them.
const LIMITS: &str = "poll-seconds = 2\ninterruptions = 1000\neffect-retries = 1000\nagent-retries = 1000\n";

/// DEP-3: what a dead server had begun another one finishes, though their machines' clocks are an hour apart; commands
/// speak to either.
#[tokio::test(flavor = "multi_thread")]
async fn a_living_server_finishes_what_a_dead_one_began() -> Result<()> {
    let mut team = Team::gather(Play::shell(GREETING), 2, LIMITS).await?;
    // Only the second one works when the run starts, so the lease that it leaves is its own.
    team.stage.program.kill()?;
    let run = team.start_run(1, REPO, "Greet people").await?;
    let leased = "SELECT COUNT(*) FROM effects WHERE status = 'leased'";
    team.until("a lease", leased, |leased| leased > 0).await?;
    team.server(1).kill()?;
    team.stage.program.start(None)?;
    let begun = Instant::now();
    let seen = team
        .stage
        .carry_through(&run)
        .await
        .with_context(|| team.last_words())?;
    ensure!(seen["run"]["phase"] == "completed", "{seen:#}");
    ensure!(
        begun.elapsed() < Duration::from_mins(30),
        "leases of a machine whose clock was ahead were waited for"
    );
    team.server(1).start(None)?;
    team.verify(&[REPO.to_owned()]).await
}

/// DEP-3, RUN-4: a comment that was on its way when its server froze arrives after another server had posted it. The
/// repeated one is found by its marker, removed and counted, and what the frozen server still reports is not taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_comment_that_a_frozen_server_posts_late_is_removed() -> Result<()> {
    let mut team = Team::gather(Play::shell(ZERO_THINK), 2, LIMITS).await?;
    let late = LEASE * 3;
    team.server(1).signal(Signal::SIGSTOP)?;
    team.stage.forge.faults().next(
        reqwest::Method::POST,
        &format!("/repos/{REPO}/issues/1/comments"),
        Fault::Late(late),
    );
    let run = team.start_run(0, REPO, "Greet people").await?;
    let posting = "SELECT COUNT(*) FROM effects WHERE status = 'leased' AND kind = 'post_comment'";
    team.until("the first comment", posting, |posting| posting > 0)
        .await?;
    // The request is on its way as soon as the fault was taken by it.
    let begun = Instant::now();
    while team.stage.forge.faults().is_waiting() {
        ensure!(begun.elapsed() < HOPELESS, "no comment was posted");
        tokio::task::yield_now().await;
    }
    team.server(0).signal(Signal::SIGSTOP)?;
    team.server(1).signal(Signal::SIGCONT)?;
    let taken =
        "SELECT COUNT(*) FROM effects WHERE kind = 'post_comment' AND attempts > 1 AND status = 'done'";
    team.until("the take-over", taken, |taken| taken > 0).await?;
    let begun = Instant::now();
    while doubled(&team)? == 0 {
        ensure!(begun.elapsed() < late * 4, "the late comment never arrived");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    team.server(0).signal(Signal::SIGCONT)?;
    let begun = Instant::now();
    while doubled(&team)? > 0 {
        ensure!(
            begun.elapsed() < HOPELESS,
            "the comment still stands twice\n{}",
            team.last_words()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    team.until(
        "the plan",
        "SELECT COUNT(*) FROM runs WHERE phase = 'awaiting_plan_approval'",
        |n| n > 0,
    )
    .await?;
    team.answer(1, &run, true).await?;
    team.stage.merge(&run).await?;
    team.stage.wait_for_clean_up(&run)?;
    ensure!(
        team.repeats_removed() >= 1,
        "it was not counted\n{}",
        team.last_words()
    );
    team.verify(&[REPO.to_owned()]).await
}

/// DEP-3: a server that cannot reach the database any more ends what it began before its lease ends, so that whoever gets
/// the lease next has it alone; with the database back, its run goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_loses_the_database_stops_acting_before_its_lease_ends() -> Result<()> {
    const COMMAND: &str = "sleep 604.5";
    let direct = database().await;
    let (between, address) = Between::stand(&direct)?;
    let step = format!("[[implement.step]]\nbash = \"{COMMAND}\"\n\n[[implement.step]]\ncreate_file");
    let play = Play {
        settings: format!("[limits]\n{LIMITS}"),
        database_url: Some(address),
        ..Play::shell(&ZERO_THINK.replacen("[[implement.step]]\ncreate_file", &step, 1))
    };
    let mut stage = Stage::set_without_server(PROGRAM, &play).await?;
    stage.program.also("--lease-ms", "6000");
    stage.program.start(None)?;
    stage.register(&play)?;
    let run = stage.start_run("Take your time")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    wait_for_process(COMMAND, true)?;
    between.darken(true);
    wait_for_process(COMMAND, false)?;
    // Nobody else is there who could have renewed it, and it could not either.
    let left = "SELECT CAST(MAX(lease_until) - CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) AS TEXT) \
        FROM effects WHERE status = 'leased' AND kind = 'invoke'";
    let left: i64 = column(&mut raw(&direct).await, left).await[0].parse()?;
    println!("its command was ended {} ms before its lease", left / 1000);
    ensure!(
        left > 0,
        "it went on for {} ms after its lease\n{}",
        -left / 1000,
        stage.log()
    );
    between.darken(false);
    wait_for_process(COMMAND, true)?;
    stage.program.say(&["run", "cancel", &run])?.done()?;
    stage.wait_for_clean_up(&run)?;
    stage.verify(&run)
}

/// How many comments on the first issue stand there more than once.
fn doubled(team: &Team) -> Result<usize> {
    let comments = team.stage.forge.comments(REPO, 1)?;
    let markers: Vec<&str> = comments
        .iter()
        .filter_map(|comment| {
            comment
                .body
                .lines()
                .rev()
                .find(|line| line.starts_with("<!-- conductor:write"))
        })
        .collect();
    let distinct: BTreeSet<&str> = markers.iter().copied().collect();
    Ok(markers.len() - distinct.len())
}

/// DEP-3: servers that do not share one storage, or one name, do not share a database.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_another_storage_is_refused() -> Result<()> {
    let mut team = Team::gather(Play::shell(ZERO_THINK), 1, LIMITS).await?;
    let mut stranger = team.stage.beside("stranger")?;
    let elsewhere = stranger.data_dir().join("elsewhere").display().to_string();
    stranger.also("--storage", &elsewhere);
    stranger.start_in_vain()?.refused("CDR0616")?;
    let mut twin = team.stage.beside("twin")?;
    std::fs::copy(
        team.stage.program.data_dir().join("worker.id"),
        twin.data_dir().join("worker.id"),
    )?;
    twin.start_in_vain()?.refused("CDR0614")?;
    team.server(0).stop()
}

/// DEP-3, RUN-4: a hundred runs on three servers, of which one after the other is killed or frozen for longer than a
/// lease. Every run ends, at most one of each write remains at the forge, every chain verifies.
///
/// `CONDUCTOR_CHAOS_ROUNDS` says how often a server is struck, `CONDUCTOR_CHAOS_SEED` repeats a story. Of the runs every
/// `CONDUCTOR_CHAOS_EVERY`-th goes all the way to a pull request, which is closed or merged; the plans of the others are
/// rejected, because a hundred whole runs take more than a minute of two processors.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_runs_end_though_servers_die_and_freeze() -> Result<()> {
    const MERGED: usize = 5;
    let rounds: u64 = setting("CONDUCTOR_CHAOS_ROUNDS").unwrap_or(5);
    let runs: usize = setting("CONDUCTOR_CHAOS_RUNS").unwrap_or(100);
    let every: usize = setting("CONDUCTOR_CHAOS_EVERY").unwrap_or(5);
    let seed: u64 = setting("CONDUCTOR_CHAOS_SEED").unwrap_or(7);
    println!("seed {seed}, {rounds} rounds, {runs} runs, every {every}. of them whole");
    let mut chance = Chance(seed);
    let play = Play {
        slots: 200,
        ..Play::shell(ZERO_THINK)
    };
    let mut team = Team::gather(play.clone(), 3, LIMITS).await?;
    let mut repos = vec![REPO.to_owned()];
    for n in 0..MERGED {
        // Merging moves the base of all other runs of a repository, which then test again; those have one each.
        repos.push(team.stage.add_repo(&play, &format!("merged-{n}")).await?.0);
    }
    let begun = Instant::now();
    let mut whole = BTreeSet::new();
    for n in 0..runs {
        let repo = if n < MERGED { &repos[n + 1] } else { REPO };
        let server = chance.below(team.len());
        let run = team
            .start_run(server, repo, &format!("Greet people, {n}"))
            .await?;
        if n < MERGED || n % every == 0 {
            whole.insert(run);
        }
    }
    let started = begun.elapsed();
    let (mut kills, mut frosts, mut round) = (0, 0, 0);
    let mut next_strike = 0;
    let mut ailing: Option<Ailing> = None;
    let mut answered = BTreeSet::new();
    loop {
        let all = team.runs().await?;
        let ended = all.iter().filter(|seen| seen.has_ended).count();
        let open = team
            .count("SELECT COUNT(*) FROM effects WHERE status <> 'done'")
            .await?;
        if ended == runs && open == 0 && round == rounds && ailing.is_none() {
            break;
        }
        if begun.elapsed() > HOPELESS * 2 + Duration::from_secs(30) * u32::try_from(rounds)? {
            let left: Vec<String> = all
                .iter()
                .filter(|seen| !seen.has_ended)
                .map(|seen| format!("{} {} {}", seen.run, seen.phase, seen.needs_human))
                .collect();
            bail!(
                "{ended} of {runs} runs ended, {open} effects open: {left:?}\n{}",
                team.last_words()
            );
        }
        // A struck server is looked after before the next strike.
        if ailing
            .as_ref()
            .is_some_and(|ailing| ailing.until <= Instant::now())
        {
            let Some(Ailing {
                server, was_killed, ..
            }) = ailing.take()
            else {
                bail!("just seen");
            };
            if was_killed {
                team.server(server).start(None)?;
            } else {
                team.server(server).signal(Signal::SIGCONT)?;
            }
        }
        let records = team.count("SELECT COUNT(*) FROM records").await?;
        if round < rounds && ailing.is_none() && (records >= next_strike || ended == runs) {
            let server = chance.below(team.len());
            let was_killed = chance.below(2) == 0;
            if was_killed {
                team.server(server).kill()?;
                kills += 1;
            } else {
                team.server(server).signal(Signal::SIGSTOP)?;
                frosts += 1;
            }
            let lasts = LEASE + LEASE * u32::try_from(chance.below(100))? / 100;
            ailing = Some(Ailing {
                server,
                was_killed,
                until: Instant::now() + lasts,
            });
            round += 1;
            // Spread over what the runs will come to; each makes thirty records or more.
            let share = runs * 30 / usize::try_from(rounds)?;
            next_strike = records + i64::try_from(share / 2 + chance.below(share.max(1)))?;
        }
        people(
            &mut team,
            all,
            &whole,
            &mut answered,
            &mut chance,
            ailing.as_ref(),
        )
        .await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let took = begun.elapsed();
    team.verify(&repos).await.with_context(|| team.last_words())?;
    let checks: usize = repos
        .iter()
        .map(|repo| {
            let checks = team.stage.forge.check_runs(repo)?;
            let ids: BTreeSet<_> = checks.iter().map(|check| check.external_id.clone()).collect();
            Ok(checks.len() - ids.len())
        })
        .sum::<Result<usize>>()?;
    let again = team
        .count("SELECT COUNT(*) FROM effects WHERE attempts > 1")
        .await?;
    println!(
        "{runs} runs, {} of them whole, ended in {:.1} s (started within {:.1} s) under {kills} kills and {frosts} frosts; {again} effects were \
         leased again, {} repeated comments removed, {checks} check runs written twice",
        whole.len(),
        took.as_secs_f64(),
        started.as_secs_f64(),
        team.repeats_removed(),
    );
    ensure!(rounds == 0 || again > 0, "no strike hit any work");
    ensure!(
        checks == 0,
        "{checks} check runs stand twice\n{}",
        team.last_words()
    );
    Ok(())
}

/// A server that was struck, and when it is looked after.
struct Ailing {
    server: usize,
    was_killed: bool,
    until: Instant,
}

/// Plays the people's part: approves plans through whichever server is well, and merges or closes pull requests.
async fn people(
    team: &mut Team,
    all: Vec<Seen>,
    whole: &BTreeSet<String>,
    answered: &mut BTreeSet<(String, String)>,
    chance: &mut Chance,
    ailing: Option<&Ailing>,
) -> Result<()> {
    for seen in all {
        let key = (seen.run.clone(), seen.phase.clone());
        match (seen.phase.as_str(), seen.pull_request) {
            ("awaiting_plan_approval", _) if seen.needs_human && !answered.contains(&key) => {
                let mut server = chance.below(team.len());
                if ailing.is_some_and(|ailing| ailing.server == server) {
                    server = (server + 1) % team.len();
                }
                // The server may have been busy, and the run may have moved on; the next look decides.
                let is_whole = whole.contains(&seen.run);
                if team.answer(server, &seen.run, is_whole).await.is_ok() {
                    answered.insert(key);
                }
            }
            ("awaiting_merge", Some(number)) if !answered.contains(&key) => {
                if seen.repo == REPO {
                    team.stage.person.close(&seen.repo, number)?;
                } else {
                    team.stage
                        .person
                        .merge(&seen.repo, number, MergeMethod::Merge)
                        .await?;
                }
                answered.insert(key);
            }
            _on_its_way => ensure!(
                seen.has_ended || seen.phase.starts_with("awaiting") || !seen.needs_human,
                "run {} is held in {}\n{}",
                seen.run,
                seen.phase,
                team.last_words()
            ),
        }
    }
    Ok(())
}

fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// Chance that can be repeated; SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit.max(1) as u64).unwrap_or_default()
    }
}
