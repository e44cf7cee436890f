//! Who did what from where is found, and what runs took is counted: with a server, without one, and after a rebuild.

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::program::Program;
use conductor_it::stage::REPO;
use serde_json::Value;

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(who_did_what_from_where_is_found);

fn found(program: &Program, asked: &[&str]) -> Result<Vec<Value>> {
    let said = program.say(&[&["audit", "search"][..], asked].concat())?.done()?;
    let found = said.data["records"].as_array().context("a list of records")?;
    Ok(found.clone())
}

/// UI-1, UI-4, SEC-3, SEC-7, BEY-9, RUN-3: an approval is found by what was done, by whom and from where; a secret by
/// nothing; what is exported is all there is; and a rebuild finds and counts the same.
async fn who_did_what_from_where_is_found(kept: Kept) -> Result<()> {
    let secret = ["ghp_", "Zk3vR8xQp2LmN7sT4wYb9cJd6fHg1aVe5uKi"].concat();
    let mut stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let issue = stage
        .person
        .open_issue(REPO, "Greet people", &format!("My token is {secret}."))?;
    let run = stage.start_run_for(issue)?;
    stage.carry_through(&run).await?;
    stage.wait_for_clean_up(&run)?;

    let approvals = ["approve", "127.0.0.1", "--kind", "operate", "--repo", REPO];
    let look = |program: &Program| -> Result<(Vec<Value>, Value)> {
        let approved = found(program, &approvals)?;
        ensure!(approved.len() == 1, "{approved:?}");
        ensure!(approved[0]["cause"] == "api from 127.0.0.1", "{approved:?}");
        ensure!(approved[0]["run"] == run.as_str(), "{approved:?}");
        ensure!(found(program, &[&secret])?.is_empty(), "the secret is found");
        ensure!(!found(program, &["Greet*", "--run", &run])?.is_empty());
        let all = found(program, &["--run", &run, "--limit", "500"])?;
        let file = program
            .say(&["audit", "export", "--run", &run, "--format", "json"])?
            .done()?;
        ensure!(
            file.data.as_array() == Some(&all),
            "another file than what is found"
        );
        let seqs: Vec<u64> = all.iter().filter_map(|record| record["seq"].as_u64()).collect();
        let last = seqs.first().copied().unwrap_or_default();
        ensure!(seqs == (1..=last).rev().collect::<Vec<_>>(), "{seqs:?}");
        let metrics = program.say(&["metrics", "--days", "7"])?.done()?.data;
        ensure!(
            metrics["completed"] == 1 && metrics["uncounted"] == 0,
            "{metrics}"
        );
        ensure!(metrics["attempts"]["median"].as_u64() >= Some(1), "{metrics}");
        ensure!(metrics["phases"][3]["ms"]["runs"] == 1, "{metrics}");
        let without_places = |record: &Value| {
            let mut record = record.clone();
            record["place"] = Value::Null;
            record
        };
        Ok((all.iter().map(without_places).collect(), metrics))
    };
    let with_server = look(&stage.program)?;
    let staff = found(&stage.program, &["--run", "instance", "--kind", "register_repo"])?;
    ensure!(staff.len() == 1, "{staff:?}");
    stage.program.stop()?;
    ensure!(
        look(&stage.program)? == with_server,
        "without a server it differs"
    );
    stage.program.say(&["projections", "rebuild"])?.done()?;
    ensure!(look(&stage.program)? == with_server, "after a rebuild it differs");
    Ok(())
}
