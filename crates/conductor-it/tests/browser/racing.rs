//! Two people at two desks: the second one's answer to what is no longer asked changes nothing, and tells why.

use anyhow::{Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::REPO;

use crate::desk::Desk;
use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    an_answer_on_a_stale_page_is_refused_and_says_what_changed,
    an_action_meant_for_another_phase_is_refused,
);

/// UI-4, BEY-1, SEC-7: two operators sign in and look at the same plan; what the second one typed is not lost to what
/// happens meanwhile, is not taken for what is asked by then, and who decided is told.
async fn an_answer_on_a_stale_page_is_refused_and_says_what_changed(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let first = Desk::of_operator(&stage, "ann").await?;
    let second = Desk::of_operator(&stage, "bob").await?;
    let run = first.start(issue).await?;
    first.browser.see("Is this plan right?").await?;
    second.go(&format!("/runs/{run}")).await?;
    second.browser.see("Is this plan right?").await?;
    second
        .browser
        .fill("#asked [name=comment]", "Greet Mars instead.")
        .await?;
    first.browser.follow("Approve").await?;
    first.browser.see("Pull request #").await?;
    // The page heard of it, and kept what was being typed.
    second.browser.see("Pull request #").await?;
    let typed = "return document.querySelector('#asked [name=comment]').value";
    ensure!(second.browser.run(typed).await? == "Greet Mars instead.");
    let says_so = "return document.querySelector('#asked').hasAttribute('data-stale')";
    ensure!(
        second.browser.run(says_so).await? == true,
        "nothing says that it changed"
    );
    second.browser.follow("Send back with the comment").await?;
    second.browser.see("That did not work").await?;
    second.browser.see("Since you loaded the page").await?;
    second.browser.see("ann approved the plan").await?;
    ensure!(stage.show(&run)?["run"]["phase"] == "awaiting_merge");
    Ok(())
}

/// RUN-11: `Start the phase over` means the phase that was shown.
async fn an_action_meant_for_another_phase_is_refused(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let desk = Desk::of(&stage).await?;
    let run = stage.start_run("Greet people")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    desk.browser.without_scripts().await?;
    desk.go(&format!("/runs/{run}")).await?;
    desk.browser.press("End the run…").await?;
    desk.browser.fill("#actions [name=confirm]", &run).await?;
    stage.approve(&run)?;
    stage.wait_for_phase(&run, "awaiting_merge")?;
    desk.browser.follow("Cancel the run").await?;
    desk.browser.see("That did not work").await?;
    desk.browser.see("Since you loaded the page").await?;
    ensure!(stage.show(&run)?["run"]["phase"] == "awaiting_merge");
    Ok(())
}
