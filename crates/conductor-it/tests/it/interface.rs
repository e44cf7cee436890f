//! The HTTP interface of the real server as strangers use it: by its own description, with names on writes, and by parts.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use conductor_it::{Program, Stage};
use reqwest::{Client, StatusCode, header};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    every_answer_is_as_the_interface_describes_it,
    a_write_with_a_name_is_done_once_though_the_server_dies,
);

/// Where a server is, and its token.
fn told(program: &Program) -> Result<(String, String)> {
    let text =
        std::fs::read_to_string(program.data_dir().join("server.json")).context("the server's file")?;
    let file: Value = serde_json::from_str(&text).context("the server's file")?;
    let word = |name: &str| {
        file[name]
            .as_str()
            .map(str::to_owned)
            .context("a word of the file")
    };
    Ok((word("url")?, word("token")?))
}

/// UI-4: a program that knows the interface by its description alone asks whatever that allows, and much that it does not:
/// no answer is a fault of ours, and each has the status, the type and the form that were promised.
async fn every_answer_is_as_the_interface_describes_it(kept: Kept) -> Result<()> {
    let stranger = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/schemathesis/bin/st");
    ensure!(
        stranger.exists(),
        "the stranger is not there: cargo xtask setup schemathesis"
    );
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let run = stage.start_run("Greet people")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    let (url, token) = told(&stage.program)?;
    let dir = tempfile::tempdir().context("a directory")?;
    // Chance finds what a description forgot, which is the same whatever keeps the records.
    let phases = kept.either("examples,coverage,fuzzing", "examples,coverage");
    let said = Command::new(stranger)
        .args(["run", &format!("{url}/api/v1/openapi.json"), "--no-color"])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        // A stream ends with its run, and nobody here waits for that.
        .args(["--exclude-operation-id", "follow_run"])
        .args(["--checks", CHECKS, "--phases", phases])
        // One worker: two at once make Python 3.11 stumble over its own syntax trees now and then.
        .args(["--max-examples", "6", "--max-time", "40", "--workers", "1"])
        .args(["--seed", "1", "--generation-deterministic"])
        .args(["--continue-on-failure", "--request-timeout", "30"])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .output()
        .await
        .context("running the stranger")?;
    let words = String::from_utf8_lossy(&said.stdout);
    let judged = Judged::read(&words);
    ensure!(
        said.status.success() && judged.as_ref().is_some_and(Judged::is_everything),
        "{judged:?}: {words}\n{}",
        String::from_utf8_lossy(&said.stderr)
    );
    ensure!(stage.show(&run)?["run"]["id"] == run.as_str(), "the run is gone");
    Ok(())
}

/// How many operations there are, how many of them the stranger chose, and how many it asked for, by its last words:
///
/// ```text
/// API Operations:
///   Selected: 58/59
///   Tested: 58
/// ```
#[derive(Debug)]
struct Judged {
    total: u64,
    selected: u64,
    tested: u64,
}

impl Judged {
    fn read(words: &str) -> Option<Self> {
        let after = |name: &str| {
            let found = words.lines().find_map(|line| line.trim().strip_prefix(name));
            found.map(str::trim)
        };
        let (selected, total) = after("Selected:")?.split_once('/')?;
        Some(Self {
            total: total.trim().parse().ok()?,
            selected: selected.trim().parse().ok()?,
            tested: after("Tested:")?.parse().ok()?,
        })
    }

    /// Tells whether every operation but the one that was left out was asked for.
    fn is_everything(&self) -> bool {
        self.total == self.selected + 1 && self.tested == self.selected
    }
}

/// What every answer is judged by.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_headers_conformance,response_schema_conformance,negative_data_rejection,unsupported_method,ignored_auth";

/// UI-4, S-57: a write that named itself is done once, though the server dies before it is sent again; and kept bytes are
/// given by parts.
async fn a_write_with_a_name_is_done_once_though_the_server_dies(kept: Kept) -> Result<()> {
    let mut stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let run = stage.start_run("Greet people")?;
    let at_gate = stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    let http = Client::builder().no_proxy().build().context("preparing to ask")?;
    let send = async |program: &Program, action: &str| -> Result<(StatusCode, bool, Value)> {
        let (url, token) = told(program)?;
        let asked = http.post(format!("{url}/api/v1/runs/{run}/actions"));
        let asked = asked.bearer_auth(token).header("idempotency-key", "the-one");
        let answer = asked
            .json(&json!({ "action": action }))
            .send()
            .await
            .context("asking")?;
        let is_old = answer.headers().contains_key("idempotency-replayed");
        Ok((answer.status(), is_old, answer.json().await.context("an answer")?))
    };
    let (status, is_old, first) = send(&stage.program, "pause").await?;
    ensure!(status == StatusCode::OK && !is_old, "{status} {first}");
    stage.program.kill()?;
    stage.program.start(None)?;
    let (status, is_old, again) = send(&stage.program, "pause").await?;
    ensure!(
        status == StatusCode::OK && is_old && again == first,
        "{status} {again}"
    );
    let (status, _, other) = send(&stage.program, "resume").await?;
    ensure!(status == StatusCode::UNPROCESSABLE_ENTITY, "{status} {other}");
    let done = format!(
        "SELECT CAST(count(*) AS TEXT) FROM records WHERE stream = 'run/{run}' AND class = 'fact' AND kind = 'operate'"
    );
    let done = kept.column(stage.program.data_dir(), &done).await?;
    ensure!(done == ["1"], "it was done {done:?} times");

    let plan = at_gate["gate"]["shown"][1]["digest"].as_str().context("a plan")?;
    let whole = at_gate["gate"]["shown"][1]["text"].as_str().context("a plan")?;
    let (url, token) = told(&stage.program)?;
    for (range, known, status, expected) in [
        ("bytes=1-4", plan, 206, &whole[1..5]),
        ("bytes=0-0", "another", 200, whole),
        ("bytes=999999-", plan, 416, ""),
    ] {
        let asked = http
            .get(format!("{url}/api/v1/artifacts/{plan}"))
            .bearer_auth(&token);
        let asked = asked
            .header(header::RANGE, range)
            .header(header::IF_RANGE, format!("{known:?}"));
        let answer = asked.send().await.context("asking for a part")?;
        ensure!(answer.status().as_u16() == status, "{range}: {answer:?}");
        let text = answer.text().await.context("a part")?;
        ensure!(text == expected, "{range}: {text:?}");
    }
    Ok(())
}
