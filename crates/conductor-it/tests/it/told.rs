//! What agents are told: everything that their role needs, fresh, without secrets, and kept to be looked at.

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::REPO;

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    every_agent_is_told_what_its_role_needs,
    a_planner_is_told_of_past_pull_requests,
    a_story_stops_where_an_agent_is_not_told_enough,
);

/// Every part of it insists on its context.
const TOLD: &str = include_str!("../../testdata/scenarios/told.toml");

/// RUN-6, RUN-8, OWN-2, S-47, SEC-3: the Planner gets the issue, the files and what was proposed before, and with a plan
/// that was sent back that plan and why; the Implementer the approved plan alone; whoever judges the change the diff of
/// the tested commit, the plan and what Conductor saw of the tests. All of it is kept, without secrets.
async fn every_agent_is_told_what_its_role_needs(kept: Kept) -> Result<()> {
    let secret = ["ghp_", "Zk3vR8xQp2LmN7sT4wYb9cJd6fHg1aVe5uKi"].concat();
    let first = TOLD.replace("PAST", "(there are none)");
    let mut stage = Stage::set(PROGRAM, &kept.shell(&first)).await?;
    let words = format!("Please. See README.md; my token is {secret}.");
    let issue = stage.person.open_issue(REPO, "Greet people", &words)?;
    let run = stage.start_run_for(issue)?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    let shown = stage.show(&run)?;
    let subject = shown["gate"]["subject"].as_str().context("a gate")?;
    let feedback = ["--subject", subject, "--comment", "Mention the tests."];
    stage
        .program
        .say(&[&["run", "revise", &run][..], &feedback].concat())?
        .done()?;
    stage.wait(&run, "another plan", |seen| {
        seen["plans"] == 3 && seen["run"]["phase"] == "awaiting_plan_approval"
    })?;
    stage.carry_through(&run).await?;
    stage.verify(&run)?;

    // Each was kept under the digest that stands in the run's chain.
    let data_dir = stage.program.data_dir();
    let digest = kept.either(
        "json_extract(payload, '$.papers.context.digest')",
        "CAST(payload AS jsonb) #>> '{papers,context,digest}'",
    );
    let told = format!(
        "SELECT {digest} FROM records WHERE stream = 'run/{run}' AND kind = 'invocation_ended' ORDER BY seq"
    );
    let told = kept.column(data_dir, &told).await?;
    ensure!(told.len() == 11, "{told:?}");
    for digest in &told {
        let text = kept.either("CAST(bytes AS TEXT)", "convert_from(bytes, 'UTF8')");
        let found = format!(
            "SELECT CASE WHEN {text} LIKE 'You are the %' THEN 'told' END || \
             CASE WHEN {text} LIKE '%{secret}%' THEN ', with the secret' ELSE '' END \
             FROM blobs WHERE kind = 'context' AND digest = '{digest}'"
        );
        let found = kept.column(data_dir, &found).await?;
        ensure!(found == ["told"], "{digest}: {found:?}");
    }
    stage.program.stop()
}

/// RUN-6: what a repository was offered before is told to the next Planner.
async fn a_planner_is_told_of_past_pull_requests(kept: Kept) -> Result<()> {
    let mut stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let run = stage.start_run("Greet people")?;
    stage.carry_through(&run).await?;
    let pull = stage.forge.pulls(REPO)?.first().context("a pull request")?.number;
    let line = format!("- #{pull} by conductor[bot], merged: Greet the world (#1)");
    let insists = format!("[[plan]]\nprompt_contains = [{line:?}]\n[[plan.step]]");
    stage.play_from_now_on(&GREETING.replacen("[[plan]]\n[[plan.step]]", &insists, 1))?;
    let next = stage.start_run("Greet again")?;
    stage.wait_for_phase(&next, "awaiting_plan_approval")?;
    stage.program.stop()
}

/// RUN-6, RUN-8: a story whose agent is not told what it insists on stops, and says what was missing.
async fn a_story_stops_where_an_agent_is_not_told_enough(kept: Kept) -> Result<()> {
    for (clause, complaint) in [
        (
            "context = [\"issue\", \"diff\"]",
            "the context is [issue, files, past_pull_requests], not [issue, diff]",
        ),
        (
            "prompt_contains = [\"+hello\"]",
            "the prompt lacks \\\"+hello\\\"",
        ),
    ] {
        let insists = format!("[[plan]]\n{clause}\n[[plan.step]]");
        let scenario = GREETING.replacen("[[plan]]\n[[plan.step]]", &insists, 1);
        let mut stage = Stage::set(PROGRAM, &kept.another().await.shell(&scenario)).await?;
        let run = stage.start_run("Tell me")?;
        let seen = stage.wait(&run, "a hold", |run| run["run"]["held"] == true)?;
        let holds = seen["holds"].to_string();
        ensure!(
            seen["run"]["phase"] == "planning" && holds.contains("the scenario was not met"),
            "{seen:#}"
        );
        ensure!(
            holds.replace("\\\\", "\\").contains(complaint),
            "{complaint}: {holds}"
        );
        stage.program.stop()?;
    }
    Ok(())
}
