//! What a browser may send by mistake.

use super::*;
use crate::access::{api, staffed};

/// Takes a page apart by its forms.
fn forms(page: &str) -> Vec<&str> {
    let begun = page.split("<form").skip(1);
    begun
        .map(|form| form.split("</form>").next().unwrap_or_default())
        .collect()
}

/// UI-3: Enter in a field presses the first button of its form. Where the run's id is typed, every button ends the run; and
/// one that does not is refused when the id was typed all the same.
#[tokio::test]
async fn typing_the_id_never_lets_anything_through() {
    let fake = Fake::with_repo();
    let _played = Played::start(&fake).until_plan_gate("the plan");
    let browser = Browser::inside(&fake).await;
    for path in ["/runs/r-1", "/approvals"] {
        let page = browser.get(path).await.text;
        let typed: Vec<&str> = forms(&page)
            .into_iter()
            .filter(|form| form.contains("name=\"confirm\""))
            .collect();
        assert!(!typed.is_empty(), "{path}: {page}");
        for form in typed {
            for button in form
                .split("value=\"")
                .skip(1)
                .filter(|part| part.contains("</button>"))
            {
                let action = button.split('"').next().unwrap_or_default();
                assert!(
                    ["reject", "cancel", "fail"].contains(&action),
                    "{path}: {action} in {form}"
                );
            }
        }
    }
    let subject = fake.world().rows[0].clone();
    let run: conductor_domain::Run = serde_json::from_str(&subject.state).expect("a run");
    let subject = run
        .gate()
        .expect("a gate")
        .subject
        .to_string()
        .replace(':', "%3A");
    for action in ["approve", "revise", "pause", "resume", "retry"] {
        let form = format!("action={action}&subject={subject}&comment=x&confirm=r-1");
        let refused = browser.post("/runs/r-1/act", &form).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{action}: {}",
            refused.text
        );
    }
    assert_eq!(fake.world().submitted, []);
    let rejected = browser
        .post(
            "/runs/r-1/act",
            &format!("action=reject&subject={subject}&confirm=r-1"),
        )
        .await;
    assert_eq!(rejected.status, StatusCode::SEE_OTHER, "{}", rejected.text);
}

/// S-53: starting a phase over lets go of every hold, so it is meant for the run exactly as the page showed it.
#[tokio::test]
async fn starting_over_is_for_what_the_page_showed() {
    let fake = Fake::with_repo();
    fake.world().rows.push(row("r-1", 1, None));
    let browser = Browser::inside(&fake).await;
    for (action, expected) in [
        ("retry", conductor_port::inbox::Seen::Record(3)),
        (
            "resume",
            conductor_port::inbox::Seen::Phase(conductor_domain::phase::PhaseName::Pending),
        ),
        ("pause", conductor_port::inbox::Seen::Anything),
    ] {
        browser
            .post("/runs/r-1/act", &format!("action={action}&phase=pending&seen=3"))
            .await;
        let submitted = fake.world().submitted.pop().expect("passed on");
        assert_eq!(submitted.seen, expected, "{action}");
    }
}

/// An empty field is one that was left out, and a number that nothing is counted to is refused by name.
#[tokio::test]
async fn numbers_are_left_out_or_fit() {
    let fake = Fake::with_repo();
    let browser = Browser::inside(&fake).await;
    let started = browser.post("/start", "repo=o%2Fr&issue=1&priority=").await;
    assert_eq!(started.status, StatusCode::SEE_OTHER, "{}", started.text);
    let added = browser
        .post("/repos/add", "project=p&repo=o%2Fr&test=make&slots=&board=")
        .await;
    assert_ne!(added.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", added.text);
    for (form, path) in [
        ("repo=o%2Fr&issue=1&priority=many", "/start"),
        ("repo=o%2Fr&issue=9223372036854775808", "/start"),
    ] {
        assert_eq!(
            browser.post(path, form).await.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{form}"
        );
    }
    let staffed = staffed();
    let router = staffed.router();
    for path in [
        "/runs?issue=9223372036854775808",
        "/runs/r-1/events?after=9223372036854775808",
        "/audit/records?before=9223372036854775808",
    ] {
        let seen = api(&router, "admin", "GET", path, "").await;
        assert_eq!(seen.status, 422, "{path}: {}", seen.text);
    }
    let huge = r#"{"repo":"o/r","issue":9223372036854775808}"#;
    assert_eq!(api(&router, "admin", "POST", "/runs", huge).await.status, 422);
}

/// SEC-1: a run's own policies lift what others forbid, so only those who write policies bring them along.
#[tokio::test]
async fn only_admins_bring_policies_along() {
    let fake = staffed();
    let router = fake.router();
    let wish = r#"{"repo":"o/r","issue":1,"policy":"permit (principal, action, resource);"}"#;
    let refused = api(&router, "operator", "POST", "/runs", wish).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    assert_eq!(fake.world().submitted, []);
}
