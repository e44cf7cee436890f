//! Commands that could do less than was meant: several issues at once.

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::{Play, REPO};
use serde_json::{Value, json};

use crate::{GREETING, PROGRAM};

/// What is wrong with one issue keeps no other from its run, and a program reads one document of all.
#[tokio::test(flavor = "multi_thread")]
async fn every_issue_is_tried_whatever_became_of_those_before() -> Result<()> {
    let stage = Stage::set(PROGRAM, &Play::shell(GREETING)).await?;
    let mut issues = Vec::new();
    for title in ["One", "Two", "Three"] {
        issues.push(stage.person.open_issue(REPO, title, "Please.")?.to_string());
    }
    let [one, two, three] = issues.as_slice() else {
        anyhow::bail!("three issues")
    };

    let said = stage
        .program
        .say(&["run", "start", REPO, "9999", one, "9998", two])?;
    ensure!(said.code == 4, "the worst of them is a refusal: {said:?}");
    let results = said.data["results"].as_array().context("one document")?;
    let shapes: Vec<Value> = results
        .iter()
        .map(|result| json!([result["issue"], result["run"].is_string(), result["code"]]))
        .collect();
    let started = |issue: &str| -> Result<Value> { Ok(json!([issue.parse::<u64>()?, true, null])) };
    ensure!(
        shapes
            == [
                json!([9999, false, "CDR0309"]),
                started(one)?,
                json!([9998, false, "CDR0309"]),
                started(two)?,
            ],
        "{results:#?}"
    );
    for issue in ["#9999: ", "#9998: "] {
        ensure!(
            said.stderr.contains(issue),
            "{issue} is not told: {}",
            said.stderr
        );
    }
    let first = results[1]["run"].as_str().context("a run")?;
    ensure!(stage.show(first)?["run"]["issue"] == started(one)?[0], "{first}");

    let said = stage
        .program
        .say_plainly(&["run", "start", REPO, "9997", three, two])?;
    ensure!(said.code == 4, "{said:?}");
    ensure!(said.stdout.lines().count() == 1, "one run began: {}", said.stdout);
    ensure!(
        said.stderr.contains("CDR0309") && said.stderr.contains("CDR0312"),
        "{}",
        said.stderr
    );

    // One issue alone is told as ever.
    let four = stage.person.open_issue(REPO, "Four", "Please.")?.to_string();
    let said = stage.program.say(&["run", "start", REPO, &four])?.done()?;
    let mut keys: Vec<&String> = said.data.as_object().context("an object")?.keys().collect();
    keys.sort();
    ensure!(keys == ["page", "run"], "{}", said.stdout);
    let said = stage.program.say(&["run", "start", REPO, "9999"])?;
    ensure!(said.code == 4 && said.stdout.is_empty(), "{said:?}");
    Ok(())
}
