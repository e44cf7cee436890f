//! Every page in every look: nothing that keeps somebody out, nothing wider than the screen, and a picture of each.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::browser::{Browser, LOOKS, Look};
use conductor_it::stage::REPO;
use serde_json::Value;

use crate::desk::Desk;
use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(every_page_is_open_to_everybody_in_every_look);

/// Where the policies of the stage's project are written.
const EDITOR: &str = "/policies?project=acme";

/// A title as long as the forge lets one be, with characters that nobody sees.
fn longest_title() -> String {
    let words = "Make the greeting honest about whom it greets and why\u{200b} ";
    let mut title: String = words.repeat(6).chars().take(256).collect();
    title.truncate(title.trim_end().len());
    title
}

/// A title as long, in which no line can be broken between words.
fn unbroken_title() -> String {
    "W".repeat(256)
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("..")
}

/// UI-5: axe-core finds no serious violation, and a phone scrolls no page sideways, in light and dark; pictures of all
/// of it are left in `target/screenshots` where `CONDUCTOR_SCREENSHOTS` is set.
async fn every_page_is_open_to_everybody_in_every_look(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let axe = std::fs::read_to_string(target().join("tools/axe/node_modules/axe-core/axe.min.js"))
        .context("reading axe-core\nhint: cargo xtask setup axe")?;
    // Where records are kept changes what a page says, not how it looks.
    let looks = match kept {
        Kept::File => &LOOKS[..],
        Kept::Server(_) => &LOOKS[..1],
    };
    let desk = Desk::of(&stage).await?;
    let mut wrong = Vec::new();
    let empty = [
        ("/", "empty-home"),
        ("/runs", "empty-runs"),
        ("/approvals", "empty-approvals"),
        ("/audit?run=nothing-yet", "empty-audit"),
        ("/figures", "empty-metrics"),
        ("/login", "login-without-staff"),
    ];
    wrong.extend(judge(&desk, &axe, looks, &empty).await?);

    let done = stage.start_run("Greet people")?;
    stage.carry_through(&done).await?;
    let off = stage.start_run("Something that nobody wants")?;
    stage.wait_for_phase(&off, "awaiting_plan_approval")?;
    stage.program.say(&["run", "cancel", &off])?.done()?;
    let held = stage.start_run(&unbroken_title())?;
    stage.wait(&held, "its title", |run| run["run"]["title"] != "")?;
    stage.program.say(&["run", "pause", &held])?.done()?;
    let waiting = stage.start_run(&longest_title())?;
    stage.wait_for_phase(&waiting, "awaiting_plan_approval")?;
    ensure!(stage.person.open_issue(REPO, "Not started", "")? > 0);
    stage
        .program
        .say(&["operator", "add", "ann", "--rank", "operator"])?
        .done()?;
    stage
        .program
        .say(&["token", "issue", "ci", "--operator", "ann", "--rank", "viewer"])?
        .done()?;
    for (path, words) in [("/settings", "Revoke ci"), (EDITOR, "Write the next version")] {
        desk.go(path).await?;
        desk.browser.see(words).await?;
    }

    let shown = stage.program.say(&["run", "show", &done])?.done()?;
    let printed = shown.data["tests"][0]["output"]
        .as_str()
        .context("the tests printed something")?;
    let output = format!("/runs/{done}/output/{printed}");
    let (at_gate, over, log) = (
        format!("/runs/{waiting}"),
        format!("/runs/{done}"),
        format!("/runs/{done}/log"),
    );
    let paused = format!("/runs/{held}");
    let (calls, change) = (format!("/runs/{done}/calls"), format!("/runs/{done}/change"));
    let full = [
        ("/", "home"),
        ("/runs", "runs-board"),
        ("/runs?view=list", "runs-list"),
        ("/approvals", "approvals"),
        ("/projects", "projects"),
        ("/policies", "policies"),
        (EDITOR, "policies-editor"),
        ("/bulk", "bulk"),
        ("/audit", "audit"),
        ("/audit?words=approve&class=fact&from=2020-01-01", "audit-found"),
        ("/audit?words=nothing.like.it", "audit-nothing"),
        ("/figures", "metrics"),
        ("/figures?days=7", "metrics-week"),
        ("/settings", "settings"),
        ("/start", "start"),
        ("/stop", "stop"),
        ("/keys", "keys"),
        (&at_gate, "run-at-gate"),
        (&over, "run-over"),
        (&paused, "run-paused"),
        (&calls, "calls"),
        (&change, "change"),
        (&log, "log"),
        (&output, "output"),
        ("/runs/nothing-like-it", "trouble"),
    ];
    wrong.extend(judge(&desk, &axe, looks, &full).await?);
    desk.browser.follow("Home").await?;
    desk.browser.follow("Leave").await?;
    desk.browser.see("Sign in").await?;
    wrong.extend(judge(&desk, &axe, looks, &[("/", "signed-out")]).await?);
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Looks at pages, each in every look; pictures are taken where somebody wants them.
async fn judge(desk: &Desk, axe: &str, looks: &[Look], pages: &[(&str, &str)]) -> Result<Vec<String>> {
    let browser = &desk.browser;
    let are_wanted = std::env::var_os("CONDUCTOR_SCREENSHOTS").is_some();
    let mut wrong = Vec::new();
    for (path, name) in pages {
        desk.go(path).await?;
        browser.run(axe).await.context("loading axe-core")?;
        for &look in looks {
            browser.look(look).await?;
            if are_wanted {
                let picture = format!("screenshots/{name}-{}-{}.png", look.name, look.scheme);
                browser.screenshot(&target().join(picture)).await?;
            }
            for finding in findings(browser, look).await? {
                wrong.push(format!("{path} ({}, {}): {finding}", look.name, look.scheme));
            }
        }
    }
    Ok(wrong)
}

/// What is wrong with the page; what a scheme changes is contrast, and a phone only the width.
async fn findings(browser: &Browser, look: Look) -> Result<Vec<String>> {
    let rules = match (look.scheme, look.mobile) {
        ("light", false) => "{ resultTypes: ['violations'] }",
        _ => {
            "{ resultTypes: ['violations'], runOnly: ['color-contrast', 'target-size', 'scrollable-region-focusable'] }"
        }
    };
    let script = format!(
        "const found = [];
        const root = document.documentElement;
        if (root.scrollWidth > root.clientWidth) found.push(`wider than the screen by ${{root.scrollWidth - root.clientWidth}}`);
        return axe.run(document, {rules}).then((said) => found.concat(said.violations
            .filter((one) => one.impact === 'serious' || one.impact === 'critical')
            .flatMap((one) => one.nodes.map((node) => `${{one.id}}: ${{one.help}}: ${{node.html}} ${{node.failureSummary}}`))));"
    );
    let found = browser.run(&script).await.context("running axe-core")?;
    let found = found.as_array().context("a list of findings")?;
    Ok(found
        .iter()
        .map(|one| one.as_str().map_or_else(|| Value::to_string(one), str::to_owned))
        .collect())
}
