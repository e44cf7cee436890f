//! Other hands: with the keyboard alone, without a script, with a connection that breaks.

use std::time::Instant;

use anyhow::{Result, ensure};
use conductor_it::Stage;
use conductor_it::program::HOPELESS;
use conductor_it::stage::REPO;
use serde_json::json;

use crate::desk::Desk;
use crate::kept::{Kept, on_both_databases};
use crate::line::Line;
use crate::{GREETING, PROGRAM};

on_both_databases!(
    the_keyboard_is_enough,
    the_focus_stays_on_its_run_and_enter_ends_what_was_typed,
    no_script_is_needed,
    a_lost_connection_is_shown_and_heals,
    who_walks_through_many_pages_waits_for_none,
);

const ENTER: &str = "\u{e007}";
const TAB: &str = "\u{e004}";

impl Desk {
    /// Presses Tab until the focus is where it should be; each stop on the way can be seen.
    async fn tab_to(&self, css: &str) -> Result<()> {
        let here = format!("return document.activeElement.matches({})", json!(css));
        let seen = "const e = document.activeElement; if (e === document.body || e.matches('main')) return true; \
                    const s = getComputedStyle(e); return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0";
        for _ in 0..60 {
            if self.browser.run(&here).await? == true {
                return Ok(());
            }
            self.browser.keys(TAB).await?;
            ensure!(
                self.browser.run(seen).await? == true,
                "nobody sees the focus on {}",
                self.browser
                    .run("return document.activeElement.outerHTML")
                    .await?
            );
        }
        anyhow::bail!("`{css}` is not reached by Tab")
    }
}

/// UI-5: from start to approval without a mouse.
async fn the_keyboard_is_enough(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let desk = Desk::of(&stage).await?;
    let browser = &desk.browser;
    browser.be_live().await?;
    browser.follow_keys("?").await?;
    browser.be_at("/keys").await?;
    browser.be_live().await?;
    browser.follow_keys("n").await?;
    browser.be_at("/start").await?;
    desk.tab_to("[name=issue]").await?;
    browser.keys(&issue.to_string()).await?;
    browser.follow_keys(ENTER).await?;
    let run = desk.run_here().await?;
    browser.see("Is this plan right?").await?;
    browser.follow_keys("ga").await?;
    browser.be_at("/approvals").await?;
    browser.be_live().await?;
    browser.keys("j").await?;
    browser.follow_keys(ENTER).await?;
    browser.be_at(&format!("/runs/{run}")).await?;
    browser.be_live().await?;
    browser.keys("r").await?;
    browser.keys("by hand").await?;
    desk.tab_to("[value=approve]").await?;
    browser.follow_keys(ENTER).await?;
    browser.see("Pull request #").await?;
    browser.follow_keys("gr").await?;
    browser.be_at("/runs").await?;
    browser.be_live().await?;
    browser.keys("j").await?;
    browser.follow_keys(ENTER).await?;
    browser.be_at(&format!("/runs/{run}")).await?;
    Ok(())
}

/// UI-3, BEY-1: when the inbox moves under a hand, the focus stays on the button of the same run; and Enter where a run's id
/// was typed presses what ends the run, never what lets it through.
async fn the_focus_stays_on_its_run_and_enter_ends_what_was_typed(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let (first, second) = (stage.start_run("First")?, stage.start_run("Second")?);
    stage.wait_for_phase(&first, "awaiting_plan_approval")?;
    stage.wait_for_phase(&second, "awaiting_plan_approval")?;
    let desk = Desk::of(&stage).await?;
    let browser = &desk.browser;
    desk.go("/approvals").await?;
    browser.be_live().await?;
    let button = |run: &str| format!("form[action='/runs/{run}/act'] [value=approve]");
    let runs =
        "[...document.querySelectorAll('#inbox .item h2 a')].map((a) => a.getAttribute('href')).join()";
    let shown = browser.run(&format!("return {runs}")).await?;
    let shown = shown.as_str().unwrap_or_default().to_owned();
    let (above, below) = match shown
        .strip_prefix("/runs/")
        .and_then(|runs| runs.split_once(",/runs/"))
    {
        Some((above, below)) => (above.to_owned(), below.to_owned()),
        None => anyhow::bail!("two runs were expected: {shown}"),
    };
    browser
        .run(&format!(
            "document.querySelector({}).focus()",
            json!(button(&below))
        ))
        .await?;
    // What is asked anew stands last.
    let asked = stage.show(&above)?;
    let subject = asked["gate"]["subject"].as_str().unwrap_or_default();
    let again = ["--subject", subject, "--comment", "Greet Mars instead."];
    stage
        .program
        .say(&[&["run", "revise", &above][..], &again].concat())?
        .done()?;
    let moved = format!(
        "return {runs} === {}",
        json!(format!("/runs/{below},/runs/{above}"))
    );
    browser.wait("the inbox in another order", &moved).await?;
    let focused = format!("return document.activeElement.matches({})", json!(button(&below)));
    ensure!(
        browser.run(&focused).await? == true,
        "the focus went to {}",
        browser.run("return document.activeElement.outerHTML").await?
    );
    // What is only touched stays where it is.
    stage.program.say(&["run", "reprioritize", &below, "9"])?.done()?;
    desk.go("/approvals").await?;
    ensure!(
        browser.run(&moved).await? == true,
        "a touch moved it: {}",
        browser.run(&format!("return {runs}")).await?
    );

    desk.go(&format!("/runs/{below}")).await?;
    browser.be_live().await?;
    browser
        .run("const end = document.querySelector('#asked .reject'); end.open = true; end.querySelector('[name=confirm]').focus()")
        .await?;
    browser.keys(&below).await?;
    browser.follow_keys(ENTER).await?;
    stage.wait_for_phase(&below, "cancelled")?;
    ensure!(stage.show(&above)?["run"]["phase"] == "awaiting_plan_approval");
    Ok(())
}

/// UI-5: every page and every form works where no script runs; what happened is there after loading again.
async fn no_script_is_needed(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let desk = Desk::of(&stage).await?;
    let browser = &desk.browser;
    browser.without_scripts().await?;
    let run = desk.start(issue).await?;
    let path = format!("/runs/{run}");
    desk.load_until(&path, "Is this plan right?").await?;
    let connection = "return document.getElementById('connection').textContent";
    ensure!(browser.run(connection).await? == "", "a script ran");
    browser
        .fill("#asked [name=comment]", "Greet Mars instead.")
        .await?;
    browser.follow("Send back with the comment").await?;
    desk.load_until(&path, "sent the plan back").await?;
    desk.load_until(&path, "Is this plan right?").await?;
    browser.follow("Approve").await?;
    desk.load_until(&path, "Pull request #").await?;
    browser.follow("Pause").await?;
    desk.load_until(&path, "paused").await?;
    browser.follow("Resume").await?;
    desk.go("/stop").await?;
    browser.follow("Stop everything").await?;
    browser.see("Emergency stop is on").await?;
    Ok(())
}

impl Desk {
    /// Loads a page until it shows these words.
    async fn load_until(&self, path: &str, words: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            self.go(path).await?;
            let text = self.browser.text().await?;
            if text.contains(words) {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < HOPELESS,
                "{path} never showed `{words}`:\n{text}"
            );
        }
    }
}

/// UI-2: a lost connection is said, heals by itself, and what happened meanwhile is on the page.
async fn a_lost_connection_is_shown_and_heals(kept: Kept) -> Result<()> {
    let play = kept.shell(GREETING);
    let mut stage = Stage::set_without_server(PROGRAM, &play).await?;
    let line = Line::to(stage.program.address()?).await?;
    stage
        .program
        .also("--public-url", &format!("http://{}", line.address));
    stage.program.start(None)?;
    stage.register(&play)?;
    let desk = Desk::of(&stage).await?;
    let browser = &desk.browser;
    browser.be_live().await?;
    desk.mark().await?;
    line.cut();
    browser.see("connection lost, trying again").await?;
    let run = stage.start_run("While nobody looks")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    line.heal();
    browser.see("While nobody looks").await?;
    browser.be_live().await?;
    ensure!(desk.is_marked().await?, "the page was loaded again");
    Ok(())
}

/// UI-2, SEC-6: a page that was left holds no connection, so that the seventh comes like the first; the way back leads to a
/// page that is live again; and what happens is on it because it was told, not because it looks every now and then.
async fn who_walks_through_many_pages_waits_for_none(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let desk = Desk::of(&stage).await?;
    let browser = &desk.browser;
    let unprompted = json!({ "source": "window.setInterval = () => 0" });
    browser
        .devtools("Page.addScriptToEvaluateOnNewDocument", unprompted)
        .await?;
    for path in [
        "/runs",
        "/approvals",
        "/projects",
        "/audit",
        "/keys",
        "/stop",
        "/settings",
        "/",
    ] {
        desk.go(path).await?;
        browser.be_live().await?;
    }
    browser.run("history.go(-5)").await?;
    browser.be_at("/projects").await?;
    browser.run("history.go(5)").await?;
    browser.be_at("/").await?;
    browser.be_live().await?;
    let run = stage.start_run("While somebody was away")?;
    browser.see("While somebody was away").await?;
    stage.program.say(&["run", "cancel", &run])?.done()?;
    stage.program.say(&["kill-switch", "on"])?.done()?;
    browser.see("Emergency stop is on").await
}
