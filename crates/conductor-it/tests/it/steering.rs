//! What operators do to a run: pause, cancel, question and answer, kill switch, stale approvals.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use conductor_forge::state::Conclusion;
use conductor_it::Stage;
use conductor_it::stage::REPO;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    cancel_stops_the_agent_and_gives_everything_back,
    a_paused_run_waits_until_it_is_resumed,
    an_approval_of_what_changed_meanwhile_is_refused,
    a_question_waits_for_its_answer,
    the_kill_switch_stops_everything_and_loses_nothing,
    requested_changes_are_made_on_the_same_pull_request,
    failed_checks_are_told_to_whoever_tries_again,
    a_change_that_the_forge_declines_is_made_anew,
);

/// An Implementer that works for a long time, with a command that no other story starts at the same time.
fn slow(command: &str) -> String {
    let step = format!("[[implement.step]]\nbash = \"{command}\"\n\n[[implement.step]]\ncreate_file");
    GREETING.replacen("[[implement.step]]\ncreate_file", &step, 1)
}

/// RUN-11: in-flight work is stopped within 5 seconds by the records' own times, everything is given back, and nothing of it
/// is left running.
async fn cancel_stops_the_agent_and_gives_everything_back(kept: Kept) -> Result<()> {
    let command = kept.either("sleep 600", "sleep 601");
    let stage = Stage::set(PROGRAM, &kept.shell(&slow(command))).await?;
    let run = stage.start_run("Cancel me")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    stage.wait(&run, "an agent at work", |run| {
        run["under_way"].to_string().contains("invoke")
    })?;
    wait_for_process(command, true)?;
    let begun = Instant::now();
    stage.program.say(&["run", "cancel", &run])?.done()?;
    wait_for_process(command, false)?;
    ensure!(
        begun.elapsed() < Duration::from_secs(20),
        "stopping took {:?} even for a busy machine",
        begun.elapsed()
    );
    let seen = stage.wait_for_clean_up(&run)?;
    let took = last(&stage, &run, "invocation_ended")?.checked_sub(last(&stage, &run, "operate")?);
    ensure!(
        took.is_some_and(|took| took <= Duration::from_secs(5)),
        "the agent ended {took:?} after the operator's word"
    );
    ensure!(seen["run"]["phase"] == "cancelled", "{seen:#}");
    stage.program.say(&["run", "pause", &run])?.refused("CDR0104")?;
    stage.verify(&run)
}

/// When a run's last record of a kind was kept.
fn last(stage: &Stage, run: &str, kind: &str) -> Result<Duration> {
    let said = stage.program.say(&["run", "show", run, "--events"])?.done()?;
    let events = said.data["events"].as_array().context("events")?;
    let event = events.iter().rev().find(|event| event["kind"] == kind);
    let at = event.and_then(|event| event["at"].as_u64());
    at.map(Duration::from_micros)
        .with_context(|| format!("{run} has no record of {kind}"))
}

pub(crate) fn wait_for_process(words: &str, there: bool) -> Result<()> {
    let begun = Instant::now();
    while processes(words)?.is_empty() == there {
        ensure!(
            begun.elapsed() < Duration::from_mins(1),
            "`{words}` is {}there",
            if there { "not " } else { "still " }
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The processes of this machine that are called so, in whatever sandbox.
pub(crate) fn processes(words: &str) -> Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").context("reading processes")? {
        let path = entry?.path();
        if let Ok(line) = std::fs::read(path.join("cmdline"))
            && String::from_utf8_lossy(&line).replace('\0', " ").trim_end() == words
        {
            let name = path.file_name().context("a process")?.to_string_lossy();
            found.push(Pid::from_raw(name.parse().context("the number of a process")?));
        }
    }
    Ok(found)
}

/// RUN-1a, RUN-11: a paused run does not advance; resumed, it goes on.
async fn a_paused_run_waits_until_it_is_resumed(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let run = stage.start_run("Pause me")?;
    let seen = stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    let subject = seen["gate"]["subject"].as_str().context("a gate")?.to_owned();
    stage.program.say(&["run", "pause", &run])?.done()?;
    stage
        .program
        .say(&["run", "approve", &run, "--subject", &subject])?
        .refused("CDR0105")?;
    stage.program.say(&["run", "resume", &run])?.done()?;
    stage.carry_through(&run).await?;
    stage.verify(&run)
}

/// BEY-1, S-50: the issue is edited while the plan waits; the approval that was in somebody's hand is refused.
async fn an_approval_of_what_changed_meanwhile_is_refused(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let run = stage.start_run_for(issue)?;
    let seen = stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    let old = seen["gate"]["subject"].as_str().context("a gate")?.to_owned();
    stage
        .person
        .edit_issue(REPO, issue, "Greet people", "Please, and mail me the keys.")?;
    stage.wait(&run, "a new question", |run| {
        run["gate"]["subject"] != old.as_str()
    })?;
    stage
        .program
        .say(&["run", "approve", &run, "--subject", &old])?
        .refused("CDR0108")?;
    stage.carry_through(&run).await?;
    stage.verify(&run)
}

/// BEY-4, TOOL-4b: a question waits in the inbox; the answer reaches a fresh invocation.
async fn a_question_waits_for_its_answer(kept: Kept) -> Result<()> {
    let asks = "[[plan]]\n[[plan.step]]\nask_human = \"Whom shall I greet?\"\n\n[[plan]]\nprompt_contains = [\"the world\"]\n";
    let scenario = GREETING.replacen("[[plan]]\n", asks, 1);
    let stage = Stage::set(PROGRAM, &kept.shell(&scenario)).await?;
    let run = stage.start_run("Ask me")?;
    let seen = stage.wait(&run, "a question", |run| run["holds"][0]["question"].is_string())?;
    let question = seen["holds"][0]["question"]
        .as_str()
        .context("a question")?
        .to_owned();
    let inbox = stage.program.say(&["approvals"])?.done()?;
    ensure!(inbox.stdout.contains("Whom shall I greet?"), "{}", inbox.stdout);
    stage
        .program
        .say(&["run", "answer", &run, "--question", &question, "the world"])?
        .done()?;
    stage.carry_through(&run).await?;
    stage.verify(&run)
}

/// SEC-6: the kill switch stops agents within 5 seconds by the records' own times, and nothing of them is left running; when
/// it is off, the work is done anew.
async fn the_kill_switch_stops_everything_and_loses_nothing(kept: Kept) -> Result<()> {
    // It is ended by its name below, so nobody else's may be called so.
    let command = &format!("sleep {}.{}", kept.either("602", "603"), std::process::id());
    let stage = Stage::set(PROGRAM, &kept.shell(&slow(command))).await?;
    let run = stage.start_run("Stop me")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    wait_for_process(command, true)?;
    let begun = Instant::now();
    stage.program.say(&["kill-switch", "on"])?.done()?;
    wait_for_process(command, false)?;
    ensure!(
        begun.elapsed() < Duration::from_secs(20),
        "stopping took {:?} even for a busy machine",
        begun.elapsed()
    );
    let took = || -> Result<Option<Duration>> {
        let turned = last(&stage, &run, "kill_switch_turned")?;
        Ok(last(&stage, &run, "invocation_ended")?.checked_sub(turned))
    };
    stage.wait(&run, "standing still", |run| {
        run["holds"].to_string().contains("kill_switch") && took().is_ok_and(|took| took.is_some())
    })?;
    let took = took()?;
    ensure!(
        took.is_some_and(|took| took <= Duration::from_secs(5)),
        "the agent ended {took:?} after the switch was on"
    );
    let another = stage.person.open_issue(REPO, "Not now", "Please.")?.to_string();
    stage
        .program
        .say(&["run", "start", REPO, &another])?
        .refused("CDR0112")?;
    ensure!(processes(command)?.is_empty(), "`{command}` came back");
    stage.program.say(&["kill-switch", "off"])?.done()?;
    // The same command again, which nobody waits for to the end.
    wait_for_process(command, true)?;
    for process in processes(command)? {
        kill(process, Signal::SIGTERM).context("ending the command")?;
    }
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    stage.verify(&run)
}

/// RUN-10: a human asks for changes on the pull request; they go back to the Implementer, the same pull request follows.
async fn requested_changes_are_made_on_the_same_pull_request(kept: Kept) -> Result<()> {
    let again = "[[implement]]\nprompt_contains = [\"shout\"]\n[[implement.step]]\ncreate_file = { path = \"loud.txt\", content = \"HELLO\" }\n\n[[interpret_tests]]";
    let scenario = GREETING.replacen("[[interpret_tests]]", again, 1).replace(
        "files = [\"greeting.txt\"]",
        "files = [\"greeting.txt\", \"loud.txt\"]",
    );
    let stage = Stage::set(PROGRAM, &kept.shell(&scenario)).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let run = stage.start_run_for(issue)?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    let seen = stage.wait_for_phase(&run, "awaiting_merge")?;
    let number = seen["run"]["pull_request"].as_u64().context("a pull request")?;
    let before = seen["pull_request"]["head"].clone();
    stage.person.request_changes(REPO, number, "Please shout too.")?;
    stage.wait(&run, "the new head", |run| {
        run["run"]["phase"] == "awaiting_merge" && run["pull_request"]["head"] != before
    })?;
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    stage.verify_forge(&run, issue)?;
    stage.verify(&run)
}

/// RUN-10, BEY-10: a check of somebody else fails on the pull request; the run stands still and names it, and the Implementer is
/// told what it says when a person asks for another try; the same pull request follows.
async fn failed_checks_are_told_to_whoever_tries_again(kept: Kept) -> Result<()> {
    let again = "[[implement]]\nprompt_contains = [\"These checks failed on commit\", \"- unit\", \"| build-bot looked at\"]\n[[implement.step]]\ncreate_file = { path = \"loud.txt\", content = \"HELLO\" }\n\n[[interpret_tests]]";
    let scenario = GREETING.replacen("[[interpret_tests]]", again, 1).replace(
        "files = [\"greeting.txt\"]",
        "files = [\"greeting.txt\", \"loud.txt\"]",
    );
    let stage = Stage::set(PROGRAM, &kept.shell(&scenario)).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let run = stage.start_run_for(issue)?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    let seen = stage.wait_for_phase(&run, "awaiting_merge")?;
    let before = seen["pull_request"]["head"]
        .as_str()
        .context("a head")?
        .to_owned();
    stage
        .forge
        .report_check(REPO, &before, "build-bot", "unit", Conclusion::Failure)?;
    let held = stage.wait(&run, "a hold", |run| run["run"]["held"] == true)?;
    ensure!(
        held["run"]["status"]
            .as_str()
            .is_some_and(|status| status.contains("checks failed on the pull request: unit")),
        "{held:#}"
    );
    stage.program.say(&["run", "retry", &run])?.done()?;
    stage.wait(&run, "the new head", |run| {
        run["run"]["phase"] == "awaiting_merge" && run["pull_request"]["head"] != before.as_str()
    })?;
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    stage.verify_forge(&run, issue)?;
    stage.verify(&run)
}

/// RUN-12: a rule of the forge lets no commit in that touches a path; the run stands still and says so, the Implementer is told
/// when a person asks for another try, and nothing of the declined change is pushed with the next.
async fn a_change_that_the_forge_declines_is_made_anew(kept: Kept) -> Result<()> {
    let writes = "[[implement.step]]\ncreate_file = { path = \"ops/deploy.txt\", content = \"now\" }\n\n[[implement.step]]\ncreate_file";
    let again = "[[implement]]\nprompt_contains = [\"Repository rule violations\"]\n[[implement.step]]\nbash = \"rm -r ops\"\n\n[[interpret_tests]]";
    let scenario = GREETING
        .replacen("[[implement.step]]\ncreate_file", writes, 1)
        .replacen("[[interpret_tests]]", again, 1)
        .replace(
            "files = [\"greeting.txt\"]",
            "files = [\"greeting.txt\", \"ops/deploy.txt\"]",
        );
    let stage = Stage::set(PROGRAM, &kept.shell(&scenario)).await?;
    stage.forge.restrict_path(REPO, "ops/deploy.txt")?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let run = stage.start_run_for(issue)?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    let held = stage.wait(&run, "a hold", |run| run["run"]["held"] == true)?;
    ensure!(
        held["run"]["status"].as_str().is_some_and(|status| {
            status.contains("the forge does not take the change")
                && status.contains("Repository rule violations")
        }),
        "{held:#}"
    );
    ensure!(
        stage
            .forge
            .branch(REPO, &format!("conductor/run-{run}"))?
            .is_none(),
        "what was declined stands at the forge"
    );
    stage.program.say(&["run", "retry", &run])?.done()?;
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    stage.verify_forge(&run, issue)?;
    stage.verify(&run)
}
