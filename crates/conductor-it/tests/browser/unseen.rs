//! Pages that nobody looks at: they hold no connection but one for all of them, and stay true.

use anyhow::Result;
use conductor_it::Stage;
use serde_json::json;

use crate::desk::Desk;
use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(a_page_that_nobody_looks_at_leaves_the_connections_to_others);

/// Runs before anything of a page does: notes every stream, and lets a test say whether somebody looks.
const WATCH: &str = "window.heard = []; window.isUnseen = false; window.setInterval = () => 0;
    window.EventSource = class extends EventSource { constructor(address) { super(address); heard.push(this); } };
    Object.defineProperty(document, 'hidden', { get: () => isUnseen });
    window.look = (isUnseen) => { window.isUnseen = isUnseen; document.dispatchEvent(new Event('visibilitychange')); };";

/// Which streams are open, as a script that tells whether it is these.
fn streams(paths: &[&str]) -> String {
    format!(
        "return heard.filter((one) => one.readyState < 2).map((one) => new URL(one.url).pathname).join() === {}",
        json!(paths.join(","))
    )
}

/// UI-2: browsers allow six connections to a server, so a page that nobody looks at has no stream of its own: the first of
/// them listens for all, the others hear of it from that one; and who looks again sees a page that is live.
async fn a_page_that_nobody_looks_at_leaves_the_connections_to_others(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let desk = Desk::of(&stage).await?;
    let browser = &desk.browser;
    browser
        .devtools(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({ "source": WATCH }),
        )
        .await?;
    desk.go("/").await?;
    browser.be_live().await?;
    browser.wait("its stream", &streams(&["/live"])).await?;

    // Another one listens already: this one only hears what it is told.
    let another = "navigator.locks.request('listens', () => new Promise((done) => { window.release = done; })); \
                   window.another = new BroadcastChannel('conductor')";
    browser.run(another).await?;
    browser
        .wait("that it listens", "return 'release' in window")
        .await?;
    browser.run("look(true)").await?;
    browser.wait("no stream", &streams(&[])).await?;
    let run = stage.start_run("While nobody looks")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    browser.run("another.postMessage('changed')").await?;
    browser.see("While nobody looks").await?;

    // That one is gone: this one listens for all.
    browser.run("release()").await?;
    browser.wait("the common stream", &streams(&["/live"])).await?;
    stage.program.say(&["kill-switch", "on"])?.done()?;
    browser.see("Emergency stop is on").await?;

    browser.run("look(false)").await?;
    browser.wait("its own stream", &streams(&["/live"])).await?;
    browser.be_live().await?;
    let is_free = "return (async () => (await navigator.locks.query()).held.length === 0)()";
    browser.wait("that another may listen", is_free).await
}
