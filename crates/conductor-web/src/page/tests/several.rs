//! What a browser does to several runs, to policies and to the list of runs.

use conductor_domain::instance::InstanceInput;

use super::*;

fn subject(fake: &Fake) -> String {
    let row = fake.world().rows[0].clone();
    let run: conductor_domain::Run = serde_json::from_str(&row.state).expect("a run");
    run.gate().expect("a gate is open").subject.to_string()
}

/// UI-3, BEY-1: only plans of low risk are approved together, each by the digest of what was shown; the others say why.
#[tokio::test]
async fn only_plans_of_low_risk_are_approved_together() {
    let fake = Fake::with_repo();
    let _played = Played::start(&fake).until_plan_gate("the plan");
    let browser = Browser::inside(&fake).await;
    let subject = subject(&fake);
    let page = browser.get("/bulk").await.text;
    assert!(
        page.contains(&format!("value=\"r-1 {subject}\"> ")) && !page.contains("checked"),
        "nobody has looked at it yet: {page}"
    );
    let exact = page.find("What exactly is approved").expect("all of it is there");
    assert!(page[exact..].contains("the plan"), "{page}");
    let approve = |subject: &str| format!("plan=r-1+{}&comment=together", subject.replace(':', "%3A"));
    let done = browser.post("/bulk/approve", &approve(&subject)).await.text;
    assert!(done.contains("Done: 1 of 1"), "{done}");
    assert!(
        done.contains("data-here=\"/bulk\"") && !page.contains("data-here"),
        "{done}"
    );
    let submitted = fake.world().submitted.pop().expect("submitted");
    assert!(
        matches!(&submitted.input, Input::Operate { action: Action::Approve { subject: seen, .. }, .. } if seen.to_string() == subject),
        "{submitted:?}"
    );

    let other = conductor_domain::digest::Digest::of(b"other").to_string();
    let stale = browser.post("/bulk/approve", &approve(&other)).await.text;
    assert!(
        stale.contains("Done: 0 of 1") && stale.contains("it is not what waits now"),
        "{stale}"
    );
    for (from, to, why) in [
        (
            "\"files\":[\"a\"]",
            "\"files\":[\"Cargo.lock\"]",
            "Cargo.lock: it changes dependencies",
        ),
        (
            "\"files\":[\"a\"]",
            "\"files\":[\".github/x\"]",
            ".github/x: because &#60;b&#62; (a-policy)",
        ),
        (
            "\"files\":[\"a\"]",
            "\"files\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"]",
            "it names 6 files, more than 5",
        ),
        (
            "\"verdict\":\"approve\"",
            "\"verdict\":\"reject\"",
            "the Reviewer did not approve it",
        ),
        (
            "\"truncated\":false",
            "\"truncated\":true",
            "it is longer than can be shown whole",
        ),
    ] {
        let before = fake.world().rows[0].state.clone();
        assert!(before.contains(from), "{before}");
        fake.world().rows[0].state = before.replace(from, to);
        let page = browser.get("/bulk").await.text;
        assert!(
            page.contains(why) && !page.contains("name=\"plan\""),
            "{why}: {page}"
        );
        let refused = browser.post("/bulk/approve", &approve(&subject)).await.text;
        assert!(refused.contains("Done: 0 of 1"), "{why}: {refused}");
        assert_eq!(fake.world().submitted, [], "{why}");
        fake.world().rows[0].state = before;
    }
    let _hidden = Played::start(&fake).until_plan_gate("the plan\u{202e}");
    let page = browser.get("/bulk").await.text;
    assert!(page.contains("its plan holds 1 hidden character"), "{page}");
}

/// S-49: nothing of what is approved is folded away or cut, alone or among several: its texts stand open, and the digest that
/// an answer names stands there whole, to be copied by a click.
#[tokio::test]
async fn nothing_that_is_approved_is_folded_away_or_cut() {
    let fake = Fake::with_repo();
    let _played = Played::start(&fake).until_plan_gate("the plan");
    let browser = Browser::inside(&fake).await;
    let named = format!("<code class=\"copy whole\">{}</code>", subject(&fake));
    for (path, from, to) in [
        ("/bulk", "id=\"plans\"", "Approve the ticked plans"),
        ("/approvals", "class=\"needs gate\"", "value=\"approve\""),
        ("/runs/r-1", "class=\"needs gate\"", "value=\"approve\""),
    ] {
        let page = browser.get(path).await.text;
        let (_, approved) = page.split_once(from).expect("it is asked");
        let (approved, _) = approved.split_once(to).expect("it can be approved");
        for text in ["the issue", "the plan", "fine", named.as_str()] {
            assert!(approved.contains(text), "{path} shows {text}: {approved}");
        }
        for folded in ["<details", "class=\"digest", "digest\""] {
            assert!(!approved.contains(folded), "{path} has {folded}: {approved}");
        }
    }
    let style = browser.get(crate::page::asset::STYLE.path).await.text;
    let whole: Vec<&str> = style.lines().filter(|line| line.contains(".whole")).collect();
    assert_eq!(whole, [".whole { overflow-wrap: anywhere; font-weight: 400; }"]);
}

/// UI-1: however many wait, Home shows what goes on without them, and says where the rest is.
#[tokio::test]
async fn home_shows_what_is_running_however_many_wait() {
    let fake = Fake::with_repo();
    let browser = Browser::inside(&fake).await;
    for n in 1..=20 {
        let mut waiting = row(&format!("w-{n}"), n, None);
        waiting.needs_human = true;
        fake.world().rows.push(waiting);
    }
    let all = browser.get("/").await.text;
    assert!(
        all.contains("/runs/w-20\"") && !all.contains(" more</a>"),
        "{all}"
    );
    let mut waiting = row("w-21", 21, None);
    waiting.needs_human = true;
    fake.world().rows.push(waiting);
    fake.world().rows.push(row("r-1", 1, None));
    let home = browser.get("/").await.text;
    let (needs, running) = home
        .split_once("<h2>Running</h2>")
        .expect("what needs nobody has its part");
    assert!(needs.contains("<a href=\"/approvals\">and 1 more</a>"), "{needs}");
    assert!(
        running.contains("/runs/r-1\"") && !running.contains("/runs/w-") && !running.contains(" more</a>"),
        "{running}"
    );
    for n in 2..=23 {
        fake.world().rows.push(row(&format!("r-{n}"), n, None));
    }
    let home = browser.get("/").await.text;
    assert!(home.contains("<a href=\"/runs\">and 3 more</a>"), "{home}");
}

/// UI-3, SEC-6: every run is asked by itself and answers for itself; what cannot be taken back is typed.
#[tokio::test]
async fn runs_are_moved_and_called_off_one_by_one() {
    let fake = Fake::with_repo();
    for (id, issue) in [("r-1", 1), ("r-2", 2)] {
        fake.world().rows.push(row(id, issue, None));
    }
    let browser = Browser::inside(&fake).await;
    let moved = browser
        .post("/bulk/reprioritize", "run=r-1&run=r-9&run=r-2&priority=9")
        .await
        .text;
    assert!(
        moved.contains("Done: 2 of 3") && moved.contains("there is no such run"),
        "{moved}"
    );
    let asked = |fake: &Fake| -> Vec<String> {
        let submitted = std::mem::take(&mut fake.world().submitted);
        submitted.into_iter().map(|one| one.run.to_string()).collect()
    };
    assert_eq!(asked(&fake), ["r-1", "r-2"]);
    for form in ["project=p&confirm=", "project=p&confirm=q", "project=&confirm="] {
        let refused = browser.post("/bulk/cancel", form).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
    }
    let nowhere = browser.post("/bulk/cancel", "project=q&confirm=q").await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
    assert_eq!(asked(&fake), Vec::<String>::new());
    let off = browser
        .post("/bulk/cancel", "project=p&confirm=p&comment=no")
        .await
        .text;
    assert!(off.contains("Done: 2 of 2"), "{off}");
    assert_eq!(asked(&fake), ["r-1", "r-2"]);
}

/// SEC-1: what is wrong with a text is said with line and column beside what was typed, and nothing is stored; nor is what
/// was written over a version that its writer did not see.
#[tokio::test]
async fn a_text_is_checked_before_it_is_stored() {
    let fake = Fake::with_repo();
    let browser = Browser::inside(&fake).await;
    let form = |action: &str, text: &str, version: u32| {
        format!("project=p&repo=&text={text}&version={version}&action={action}")
    };
    let wrong = browser
        .post("/policies/set", &form("store", "wrong%0D%0A%3Cb%3E", 0))
        .await;
    assert!(
        wrong
            .text
            .contains("project, line 2, column 7: `wrong` is no policy"),
        "{}",
        wrong.text
    );
    assert!(
        wrong.text.contains("wrong\n&#60;b&#62;</textarea>"),
        "what was typed stays: {}",
        wrong.text
    );
    let checked = browser
        .post("/policies/set", &form("check", "fine", 0))
        .await
        .text;
    assert!(checked.contains("it is not stored yet"), "{checked}");
    assert_eq!(fake.world().told, []);
    let stored = browser.post("/policies/set", &form("store", "fine", 0)).await;
    assert_eq!(stored.status, StatusCode::SEE_OTHER, "{}", stored.text);
    assert!(matches!(
        &fake.world().told[..],
        [(InstanceInput::SetPolicy { .. }, _)]
    ));
    let over = browser.post("/policies/set", &form("store", "mine", 0)).await;
    assert!(
        over.text.contains("somebody stored another version"),
        "{}",
        over.text
    );
    let page = browser.get("/policies?project=p&version=1").await.text;
    assert!(
        page.contains("Store as version 2") && page.contains("Version 1, the first"),
        "{page}"
    );
    let asked = browser
        .get("/policies?project=p&actor=implementer&action=create_file&target=worktree%3A.github")
        .await
        .text;
    assert!(
        asked.contains("deny") && asked.contains("because &#60;b&#62;"),
        "{asked}"
    );
    let unknown = browser
        .get("/policies?actor=x&action=y&target=%3Cz%3E")
        .await
        .text;
    assert!(unknown.contains("`x y &#60;z&#62;` is no question"), "{unknown}");
    assert_eq!(
        browser.get("/policies?project=nope").await.status,
        StatusCode::NOT_FOUND
    );
}

/// UI-1: the address holds the filters, whatever stands in them.
#[tokio::test]
async fn the_address_holds_the_filters() {
    let fake = Fake::with_repo();
    for n in 0..100 {
        fake.world().rows.push(row(&format!("r-{n}"), n, None));
    }
    let browser = Browser::inside(&fake).await;
    let page = browser
        .get("/runs?view=list&project=p&repo=o%2Fr&text=%22a%26b%22&needs=")
        .await
        .text;
    assert!(page.contains("value=\"&#34;a&#38;b&#34;\""), "{page}");
    let kept = "project=p&#38;repo=o%2Fr&#38;text=%22a%26b%22";
    assert!(page.contains(&format!("view=board&amp;{kept}\"")), "{page}");
    assert!(
        page.contains(&format!("view=list&amp;{kept}&amp;after=r-99\"")),
        "{page}"
    );
}
