//! What a browser sees of what agents did.

use conductor_domain::id::{EffectId, RunId};
use conductor_domain::time::Timestamp;
use conductor_port::blobs::ToolCall;

use super::*;

fn call(n: u64, decision: &str, target: &str) -> ToolCall {
    ToolCall {
        invocation: EffectId::parse("r-1.2.0").expect("an effect's name"),
        run: RunId::parse("r-1").expect("a slug"),
        n,
        tool: "bash".to_owned(),
        target: target.to_owned(),
        payload_hash: "sha256:0".to_owned(),
        decision: decision.to_owned(),
        reason: "no-network: it asks: twice".to_owned(),
        result: "ok".to_owned(),
        at: Timestamp(1),
        hash: String::new(),
    }
}

/// UI-1, TOOL-4: every call is there with what policy decided, in parts; what was stopped stands first on the run's page.
#[tokio::test]
async fn calls_are_shown_in_parts_and_stopped_ones_first() {
    let fake = Fake::with_repo();
    let _played = Played::start(&fake).until_plan_gate("the plan");
    let calls = (1..=450).map(|n| match n {
        3 => call(n, "deny", "curl <evil>\u{202e}"),
        _ => call(n, "allow", &format!("step-{n}.")),
    });
    fake.world().calls = calls.collect();
    let browser = Browser::inside(&fake).await;
    let run = browser.get("/runs/r-1").await.text;
    let (stopped, newest) = (run.find("Stopped by policy"), run.find("Newest tool calls"));
    assert!(stopped.is_some() && stopped < newest, "{run}");
    assert!(run.contains("curl &#60;evil&#62;⟨U+202E⟩"), "{run}");
    assert!(
        run.contains("<code>no-network</code> <span class=\"dim\">it asks: twice</span>"),
        "{run}"
    );
    assert!(run.contains("step-450.") && !run.contains("step-440."), "{run}");

    let mut path = "/runs/r-1/calls".to_owned();
    let mut seen = Vec::new();
    loop {
        let page = browser.get(&path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        let steps = page.text.split("<code>step-").skip(1);
        seen.extend(steps.filter_map(|rest| rest.split('.').next()?.parse::<u64>().ok()));
        let Some(older) = page.text.split("calls?after=").nth(1) else {
            break;
        };
        path = format!(
            "/runs/r-1/calls?after={}",
            older.split('"').next().unwrap_or_default()
        );
    }
    let all: Vec<u64> = (1..=450).rev().filter(|n| *n != 3).collect();
    assert_eq!(seen, all, "no gap and no repeat");
    let stopped = browser.get("/runs/r-1/calls?only=stopped").await.text;
    assert!(
        stopped.contains("evil") && !stopped.contains("step-"),
        "{stopped}"
    );
    for foreign in ["r-9.2.0%2F3", "nonsense", "r-1.2.0%2F-1"] {
        let page = browser.get(&format!("/runs/r-1/calls?after={foreign}")).await;
        assert!(page.status.is_client_error(), "{foreign}: {}", page.status);
    }
}

/// UI-1, S-48: what the newest commit changes is there from the first commit on, a long one file by file.
#[tokio::test]
async fn a_change_is_shown_by_files() {
    let fake = Fake::with_repo();
    let short =
        "added file a.rs\n--- /dev/null\n+++ b/a.rs\n@@ -0,0 +1,2 @@\n+fn a() {}\n+<script>\u{200b}\n";
    let played = Played::start(&fake).until_plan_gate("the plan");
    let browser = Browser::inside(&fake).await;
    let none = browser.get("/runs/r-1/change").await;
    assert!(none.text.contains("Nothing was committed yet"), "{}", none.text);
    let _played = played.until_committed(short);
    for path in ["/runs/r-1", "/runs/r-1/change"] {
        let page = browser.get(path).await.text;
        assert!(page.contains("1 file, 2 added and 0 removed lines"), "{page}");
        assert!(page.contains("<b class=\"word\">fn</b>"), "{page}");
        assert!(page.contains("&#60;script&#62;⟨U+"), "{page}");
        assert!(page.contains("holds 1 hidden character"), "{page}");
    }

    let long = format!(
        "{short}added file b.rs\n--- /dev/null\n+++ b/b.rs\n@@ -0,0 +1 @@\n{}",
        "+long\n".repeat(20_000)
    );
    let _played = Played::start(&fake)
        .until_plan_gate("the plan")
        .until_committed(&long);
    let page = browser.get("/runs/r-1").await.text;
    assert!(page.contains("href=\"/runs/r-1/change?file=1\""), "{page}");
    assert!(!page.contains("+long"), "a long change is not on the run's page");
    let file = browser.get("/runs/r-1/change?file=1").await.text;
    assert!(file.contains(">+long<") || file.contains("+long"), "{file}");
    assert!(!file.contains("fn</b>"), "only the file that was asked for");
    let beyond = browser.get("/runs/r-1/change?file=2").await;
    assert_eq!(beyond.status, StatusCode::NOT_FOUND);
}

/// BEY-1, UI-1: whoever is asked again sees what is different since the last time, beside all of it.
#[tokio::test]
async fn a_second_question_says_what_is_different() {
    let fake = Fake::with_repo();
    let played = Played::start(&fake).until_plan_gate("first\nold step\nlast\n");
    let browser = Browser::inside(&fake).await;
    let first = browser.get("/approvals").await.text;
    assert!(!first.contains("Since you were asked"), "{first}");
    let _played = played.until_revised("first\nnew step\nlast\n");
    for path in ["/approvals", "/runs/r-1"] {
        let page = browser.get(path).await.text;
        assert!(page.contains("Since you were asked"), "{page}");
        assert!(
            page.contains("<span class=\"removed\">-old step</span>"),
            "{page}"
        );
        assert!(page.contains("<span class=\"added\">+new step</span>"), "{page}");
        assert!(
            page.contains("plan is different") && !page.contains("issue is different"),
            "{page}"
        );
        assert!(
            page.contains("<span>new step</span>"),
            "all of it stands there, too: {page}"
        );
    }
}

/// S-49: what was cut can be sent back and not approved; no button says otherwise.
#[tokio::test]
async fn what_was_cut_has_no_button_that_approves_it() {
    let fake = Fake::with_repo();
    let _played = Played::start(&fake).until_plan_gate("the plan");
    let browser = Browser::inside(&fake).await;
    assert!(browser.get("/runs/r-1").await.text.contains("value=\"approve\""));
    {
        let mut world = fake.world();
        let state = &mut world.rows[0].state;
        *state = state.replace("\"truncated\":false", "\"truncated\":true");
    }
    let page = browser.get("/runs/r-1").await.text;
    assert!(page.contains("was cut when it was kept"), "{page}");
    assert!(
        page.contains("value=\"revise\"") && !page.contains("value=\"approve\""),
        "{page}"
    );
}
