//! The whole story as one person sees it: let in, start, watch, approve, see the pull request; call off, stop, go on.

use anyhow::{Result, ensure};
use conductor_it::Stage;
use conductor_it::browser::Browser;
use conductor_it::stage::REPO;

use crate::desk::{Desk, link};
use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    an_issue_becomes_a_pull_request_before_a_persons_eyes,
    a_link_lets_one_browser_in,
);

/// UI-1, UI-2, RUN-7, RUN-11, SEC-6, S-55: everything that happens is on the page without loading it again.
async fn an_issue_becomes_a_pull_request_before_a_persons_eyes(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let desk = Desk::of(&stage).await?;
    let browser = &desk.browser;
    browser.see("Nothing needs you.").await?;
    browser.follow("Start a run").await?;
    browser.fill("[name=issue]", &issue.to_string()).await?;
    browser.follow("Start").await?;
    let run = desk.run_here().await?;
    browser.be_live().await?;
    desk.mark().await?;
    browser.see("Is this plan right?").await?;
    browser.see("Write a greeting and test it.").await?;
    ensure!(desk.is_marked().await?, "the page was loaded again");
    browser.follow("Approve").await?;
    browser.be_live().await?;
    desk.mark().await?;
    browser.see("Pull request #").await?;
    // S-21: a command's exit code is what is known, and on which tree.
    browser.see("exited 0 on tree").await?;
    stage.merge(&run).await?;
    browser.see("completed").await?;
    ensure!(desk.is_marked().await?, "the page was loaded again");

    calling_off(&stage, &desk).await?;
    stopping(&stage, &desk).await?;
    browser.follow("Leave").await?;
    browser.see("This browser is not signed in").await?;
    stage.verify(&run)
}

/// What cannot be taken back is typed; a slip changes nothing.
async fn calling_off(stage: &Stage, desk: &Desk) -> Result<()> {
    let browser = &desk.browser;
    let issue = stage.person.open_issue(REPO, "Another thing", "Please.")?;
    let run = desk.start(issue).await?;
    browser.see("Is this plan right?").await?;
    browser.press("End the run…").await?;
    browser.fill("#actions [name=confirm]", "yes").await?;
    browser.follow("Cancel the run").await?;
    browser.see("That did not work").await?;
    ensure!(stage.show(&run)?["run"]["phase"] == "awaiting_plan_approval");
    desk.go(&format!("/runs/{run}")).await?;
    browser.press("End the run…").await?;
    browser.fill("#actions [name=confirm]", &run).await?;
    browser.follow("Cancel the run").await?;
    browser.see("cancelled").await?;
    stage.wait_for_clean_up(&run).map(drop)
}

/// Stopping asks nothing; going on is typed, and every page tells.
async fn stopping(stage: &Stage, desk: &Desk) -> Result<()> {
    let browser = &desk.browser;
    browser.follow("Stop").await?;
    browser.follow("Stop everything").await?;
    browser.see("Emergency stop is on").await?;
    let issue = stage.person.open_issue(REPO, "Not now", "Please.")?.to_string();
    let start = ["run", "start", REPO, &issue];
    stage.program.say(&start)?.refused("CDR0112")?;
    desk.go("/").await?;
    browser.see("Emergency stop is on").await?;
    desk.go("/stop").await?;
    browser.fill("[name=confirm]", "go on").await?;
    browser.follow("Let everything go on").await?;
    browser.see("Ends every agent and command").await?;
    stage.program.say(&start)?.done().map(drop)
}

/// S-55: a link lets one browser in, once; a page without a session tells nothing.
async fn a_link_lets_one_browser_in(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let link = link(&stage)?;
    let first = Browser::open().await?;
    first.go(&link).await?;
    first.see("Nothing needs you.").await?;
    let cookie = first.run("return document.cookie").await?;
    ensure!(cookie == "", "a script can read {cookie}");
    let second = Browser::open().await?;
    second.go(&link).await?;
    second.see("This link was used already").await?;
    let (base, _) = link.split_once("/enter/").unwrap_or_default();
    second.go(&format!("{base}/runs")).await?;
    second.see("This browser is not signed in").await?;
    Ok(())
}
