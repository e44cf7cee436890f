//! What others write never runs in a real browser, on any page that shows it.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::REPO;
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::desk::Desk;
use crate::kept::{Kept, on_both_databases};

on_both_databases!(what_others_write_runs_on_no_page);

/// The strings that the pages are attacked with elsewhere, one by one and without a browser.
const CORPUS: &str = include_str!("../../../conductor-web/testdata/hostile.json");

/// Runs before anything of a page does: notes what ran that should not, and what the policy of the page refused.
const WATCH: &str = "window.ran = []; window.refused = [];
    window.pwned = (...words) => window.ran.push(words);
    window.alert = window.confirm = window.prompt = window.pwned;
    addEventListener('securitypolicyviolation', (one) => window.refused.push(`${one.violatedDirective} ${one.blockedURI} ${one.sample}`));";

/// So long, in milliseconds, an agent is at work after its first words, so that a page that comes late hears them, too.
const TALKING: u32 = 4000;

/// Says a text as TOML does; JSON's way of saying it is one of TOML's.
fn quoted(text: &str) -> Result<String> {
    Ok(serde_json::to_string(text)?.replace('\u{7f}', "\\u007f"))
}

/// A whole run in which every word is hostile.
fn scenario(words: &[String]) -> Result<String> {
    let all = quoted(&words.join("\n\n"))?;
    let one = |n: usize| quoted(words.get(n).map_or("", String::as_str));
    let mut risks = String::new();
    for word in words.iter().take(20) {
        write!(risks, "{}, ", quoted(word)?)?;
    }
    // A file is text; what is not is shown by its name alone.
    let is_text = |word: &&String| !word.contains(|c: char| c.is_control() && c != '\n');
    let lines: Vec<&str> = words.iter().filter(is_text).map(String::as_str).collect();
    let content = quoted(&(lines.join("\n") + "\n"))?;
    Ok(format!(
        "schema = 1\n\
         [[plan]]\n[[plan.step]]\nsay = {all}\n[[plan.step]]\nsleep_ms = {TALKING}\n[[plan.step]]\nview = {view}\nexpect = {{ refused = \"\" }}\n[[plan.step]]\n\
         submit_plan = {{ summary = {summary}, approach = {all}, files = [\"notes.md\", \"a.html\"], risks = [{risks}] }}\n\
         [[review_plan]]\n[[review_plan.step]]\n\
         submit_review = {{ verdict = \"approve\", summary = {all}, findings = [{risks}] }}\n\
         [[implement]]\n[[implement.step]]\ncreate_file = {{ path = \"notes.md\", content = {content} }}\n\
         [[implement.step]]\ncreate_file = {{ path = \"a.html\", content = {content} }}\n\
         [[interpret_tests]]\n[[interpret_tests.step]]\n\
         submit_test_report = {{ passed = true, interpretation = {all} }}\n\
         [[review_implementation]]\n[[review_implementation.step]]\n\
         submit_review = {{ verdict = \"approve\", summary = {all} }}\n",
        view = one(1)?,
        summary = one(8)?,
    ))
}

/// UI-5, S-48: no word of an issue, an agent or a file runs, loads or navigates on any page; and the watch would see it.
async fn what_others_write_runs_on_no_page(kept: Kept) -> Result<()> {
    let words: Vec<String> = serde_json::from_str(CORPUS)?;
    ensure!(words.len() > 60, "the corpus is gone");
    let stage = Stage::set(PROGRAM, &kept.shell(&scenario(&words)?)).await?;
    let body = words.join("\n\n");
    let issue = stage.person.open_issue(REPO, &words[0], &body)?;
    let desk = Desk::of(&stage).await?;
    desk.browser
        .devtools(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({ "source": WATCH }),
        )
        .await?;

    let run = stage.start_run_for(issue)?;
    // Watched from its first word on: what agents say arrives live.
    let page = format!("/runs/{run}");
    desk.go(&page).await?;
    let said = "return document.getElementById('talk').textContent.length > 0";
    desk.browser.wait("what the agent says", said).await?;
    let hidden = "return /[\\u001b\\u200b\\u202e]/.test(document.getElementById('talk').textContent)";
    ensure!(
        desk.browser.run(hidden).await? == false,
        "the agent's words hide something"
    );
    judge(&desk, "what the agent says").await?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    desk.browser.see("Approve").await?;
    judge(&desk, "the live page").await?;
    for path in [
        page.as_str(),
        "/",
        "/approvals",
        "/runs",
        "/runs?view=list",
        "/bulk",
    ] {
        desk.go(path).await?;
        judge(&desk, path).await?;
    }
    stage.approve(&run)?;
    // What the change holds needs a second look, or even stops the run; either is shown.
    let shown = stage.wait(&run, "somebody who must act", |run| {
        run["run"]["needs_human"] == true && run["run"]["phase"] != "awaiting_plan_approval"
    })?;
    let mut paths = vec![page.clone()];
    for part in ["/log", "/calls", "/change"] {
        paths.push(format!("{page}{part}"));
    }
    if let Some(printed) = shown["tests"][0]["output"].as_str() {
        paths.push(format!("{page}/output/{printed}"));
    }
    paths.extend(["/", "/approvals", "/audit", "/audit?words=script"].map(str::to_owned));
    for path in &paths {
        desk.go(path).await?;
        judge(&desk, path).await?;
    }
    // The watch sees what it is there for: markup that came in would be refused by the page's own policy, and noted.
    desk.browser
        .run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=pwned(1)>')")
        .await?;
    let noted = "return window.refused.some((one) => one.startsWith('script-src-attr'))";
    desk.browser.wait("a refusal", noted).await
}

async fn judge(desk: &Desk, path: &str) -> Result<()> {
    let seen = desk
        .browser
        .run("return { ran: window.ran, refused: window.refused, host: location.host }")
        .await?;
    let host = desk.base.split_once("://").context("an address")?.1;
    ensure!(
        seen == json!({ "ran": Value::Array(vec![]), "refused": Value::Array(vec![]), "host": host }),
        "{path}: {seen}"
    );
    Ok(())
}
