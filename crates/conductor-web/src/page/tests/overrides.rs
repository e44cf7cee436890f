//! What a browser does with overrides.

use conductor_domain::event::Event;
use conductor_domain::id::OperatorName;
use conductor_domain::relief::{Relief, ReliefScope};
use conductor_domain::role::Role;
use conductor_domain::time::Timestamp;

use super::*;
use crate::access::{session_of, staffed};

/// A run that was granted an override which counts and one that is over.
fn granted(fake: &Fake) {
    let mut world = fake.world();
    let stored = world.rows.iter_mut().find(|row| row.run.as_str() == "r-1");
    let stored = stored.expect("the run");
    let mut run = serde_json::from_str(&stored.state).ok();
    for (number, until) in [(1, Timestamp(i64::MAX)), (2, Timestamp(0))] {
        let relief = Relief {
            number,
            scope: ReliefScope {
                policy: "no-<b>greetings".into(),
                role: Role::Implementer,
                tool: "create_file".into(),
                target: "worktree:greeting.txt".into(),
            },
            by: OperatorName::parse("ann").expect("a name"),
            justification: "asked for \u{202e}by the owner".into(),
            until,
            revoked_by: None,
        };
        run = conductor_domain::evolve(run, &Event::ReliefGranted { relief });
    }
    stored.state = serde_json::to_string(&run).expect("plain data");
}

/// SEC-1, UI-3, S-48: a run's page shows what it was granted, an admin grants and an operator takes back, each by a plain form
/// that says exactly what; what is over cannot be taken back, and whoever looks is offered neither.
#[tokio::test]
async fn overrides_are_granted_and_taken_back_by_forms() {
    let fake = staffed();
    granted(&fake);
    let as_rank = async |rank: &str| Browser {
        router: fake.router(),
        cookie: Some(session_of(&fake, rank).await),
    };
    let admin = as_rank("admin").await;
    let page = admin.get("/runs/r-1").await.text;
    for part in [
        "implementer create_file worktree:greeting.txt",
        "no-&#60;b&#62;greetings",
        "asked for ⟨U+202E⟩by the owner",
        "in force",
        "ended",
        "Take override 1 back",
        "action=\"/runs/r-1/override\"",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(!page.contains("Take override 2 back"), "it is over");
    let operator = as_rank("operator").await.get("/runs/r-1").await.text;
    assert!(operator.contains("Take override 1 back") && !operator.contains("\"/runs/r-1/override\""));
    let viewer = as_rank("viewer").await.get("/runs/r-1").await.text;
    assert!(viewer.contains("in force") && !viewer.contains("/runs/r-1/override"));

    let form = "policy=no-greetings&role=implementer&tool=create_file&target=worktree%3Agreeting.txt\
                &justification=the+owner+asked+for+it&minutes=5";
    for rank in ["operator", "viewer"] {
        let refused = as_rank(rank).await.post("/runs/r-1/override", form).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{rank}");
    }
    let foreign = admin.post_from("/runs/r-1/override", form, &[("sec-fetch-site", "cross-site")]);
    assert_eq!(foreign.await.status, StatusCode::FORBIDDEN);
    assert_eq!(fake.world().submitted, []);
    for (form, path) in [
        (form, "/runs/r-1/override"),
        ("number=1", "/runs/r-1/override/revoke"),
    ] {
        let done = admin.post(path, form).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        assert_eq!(done.headers[header::LOCATION], "/runs/r-1#overrides");
    }
    let submitted: Vec<Input> = fake.world().submitted.drain(..).map(|it| it.input).collect();
    let [
        Input::Operate {
            by,
            action: Action::GrantRelief { scope, .. },
        },
        Input::Operate {
            action: Action::RevokeRelief { number: 1 },
            ..
        },
    ] = submitted.as_slice()
    else {
        panic!("{submitted:?}")
    };
    assert_eq!(by.as_str(), "admin");
    assert_eq!(
        scope.to_string(),
        "no-greetings for implementer create_file worktree:greeting.txt"
    );
}
