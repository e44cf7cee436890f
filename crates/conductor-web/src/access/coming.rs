//! Tests of coming and going: what is kept about it, and how every session ends (SEC-7, S-55).

use axum::Router;
use conductor_domain::id::RunId;
use conductor_domain::instance::InstanceInput;
use conductor_domain::staff::{Holder, StaffChange};
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::key::Keys as _;
use futures_util::StreamExt as _;
use tokio::sync::broadcast;
use tower::ServiceExt as _;

use super::{Seen, api, asked, get, name, post, send, session_of, staffed};
use crate::backstage::Change;
use crate::fake::keys::Meanwhile;
use crate::fake::{Fake, TOKEN};

/// Whatever the instance was told last, by whom, and which way it came.
fn last_told(fake: &Fake) -> (String, StaffChange, String) {
    match fake.world().told.last() {
        Some((InstanceInput::ChangeStaff { by, change }, cause)) => {
            (by.to_string(), change.clone(), cause.clone())
        }
        other => panic!("{other:?}"),
    }
}

async fn link(router: &Router, token: &str) -> String {
    let made = api(router, token, "POST", "/links", "{}").await;
    assert_eq!(made.status, 201, "{}", made.text);
    let url = made.json()["url"].as_str().expect("an address").to_owned();
    let from = url.find("/enter/").expect("the way in");
    url[from..].to_owned()
}

async fn enter(router: &Router, link: &str) -> Seen {
    send(router, asked("GET", link, &[], "")).await
}

/// SEC-7: who makes a link, comes in by it and leaves is kept, with the address, for an owner and for an operator.
#[tokio::test]
async fn who_comes_and_goes_by_a_link_is_kept() {
    for (token, by, holder) in [
        (TOKEN, "ann", Holder::Owner(name("ann"))),
        ("admin", "admin", Holder::Operator(name("admin"))),
    ] {
        let fake = staffed();
        let router = fake.router();
        let link = link(&router, token).await;
        let expected = |change, way: &str| (by.to_owned(), change, format!("{way} from 192.0.2.7"));
        let holder = || holder.clone();
        assert_eq!(
            last_told(&fake),
            expected(StaffChange::Link { holder: holder() }, "api")
        );
        let came = enter(&router, &link).await;
        assert_eq!(came.status, 303, "{}", came.text);
        assert_eq!(
            last_told(&fake),
            expected(StaffChange::Enter { holder: holder() }, "page")
        );
        let told = fake.world().told.len();
        assert_eq!(enter(&router, &link).await.status, 401, "it was used");
        assert_eq!(
            fake.world().told.len(),
            told,
            "whoever stays outside leaves no record"
        );
        assert_eq!(post(&router, &came.cookie(), "/leave", "").await.status, 303);
        assert_eq!(
            last_told(&fake),
            expected(StaffChange::Leave { holder: holder() }, "page")
        );
        assert_eq!(get(&router, &came.cookie(), "/").await.status, 401);
    }
}

/// SEC-7: nobody comes in whose coming cannot be kept.
#[tokio::test]
async fn whoever_was_removed_comes_in_by_no_link() {
    let fake = staffed();
    let router = fake.router();
    let link = link(&router, "admin").await;
    fake.world().instance.staff.operators.remove(&name("admin"));
    let seen = enter(&router, &link).await;
    assert!(!seen.headers.contains_key("set-cookie"), "{}", seen.status);
    assert!((400..500).contains(&seen.status), "{}", seen.status);
}

/// SEC-7: whose keys are ended while they come in stays outside, and so does whoever knows the password before the last; of
/// what they opened nothing is left.
#[tokio::test]
async fn nobody_slips_in_while_somebody_is_signed_out() {
    let fake = staffed();
    let router = super::with_password(&fake).await;
    let link = link(&router, TOKEN).await;
    let form = super::login_form("ann", super::PASSWORD);
    for (meanwhile, by_link) in [
        (Meanwhile::AllKeysGo, true),
        (Meanwhile::ThePasswordChanges, false),
    ] {
        fake.keys().meanwhile(meanwhile);
        let told = fake.world().told.len();
        let seen = if by_link {
            enter(&router, &link).await
        } else {
            post(&router, "", "/login", &form).await
        };
        assert_eq!(seen.status, 401, "{meanwhile:?}: {}", seen.text);
        assert!(
            !seen.headers.contains_key("set-cookie"),
            "{meanwhile:?}: {:?}",
            seen.headers
        );
        assert_eq!(fake.world().told.len(), told, "{meanwhile:?}: nobody came");
        assert_eq!(fake.keys().count(), 0, "{meanwhile:?}");
    }
}

/// S-55: of two browsers with one link, one comes in, and the other keeps the session that it had.
#[tokio::test]
async fn a_browser_that_stays_outside_keeps_what_it_had() {
    let fake = staffed();
    let router = fake.router();
    let had = session_of(&fake, "viewer").await;
    let link = link(&router, TOKEN).await;
    assert_eq!(enter(&router, &link).await.status, 303);
    assert_eq!(get(&router, &had, &link).await.status, 401);
    assert_eq!(get(&router, &had, "/").await.status, 200);
}

/// UI-2, SEC-7: that somebody is signed out is told before their keys are gone; the next word they do not hear.
#[tokio::test]
async fn who_is_signed_out_hears_nothing_more() {
    let fake = staffed();
    let (tell, _) = broadcast::channel(8);
    fake.world().changes = Some(tell.clone());
    let router = fake.router();
    let cookie = session_of(&fake, "viewer").await;
    let asked = asked("GET", "/live", &[("cookie", &cookie)], "");
    let response = router.oneshot(asked).await.expect("a router never fails");
    let mut told = response.into_body().into_data_stream();
    tell.send(Change { run: None }).expect("somebody listens");
    told.next().await.expect("a word").expect("bytes");
    let holder = Holder::Operator(name("viewer"));
    fake.keys().take_all(&holder).await.expect("taken");
    let run = RunId::parse("r-1").expect("a slug");
    tell.send(Change { run: Some(run) }).expect("somebody listens");
    assert!(told.next().await.is_none());
}

/// SEC-7: a session that is used lasts, but no longer than a week; one that is not used ends the same day.
#[tokio::test]
async fn a_session_ends_however_much_it_is_used() {
    let at = |hours| Timestamp(0).after(Millis::hours(hours));
    let fake = staffed();
    let router = fake.router();
    let used = enter(&router, &link(&router, TOKEN).await).await;
    let age = used.headers["set-cookie"].to_str().expect("text").to_owned();
    assert!(
        age.contains("Max-Age=604800"),
        "the browser keeps it as long: {age}"
    );
    let used = used.cookie();
    let left = session_of(&fake, "viewer").await;
    for hours in (0..7 * 24).step_by(6) {
        fake.world().now = at(hours);
        assert_eq!(get(&router, &used, "/").await.status, 200, "after {hours} h");
    }
    assert_eq!(get(&router, &left, "/").await.status, 401);
    fake.world().now = at(7 * 24);
    assert_eq!(get(&router, &used, "/").await.status, 401, "after a week");
}

/// SEC-7: signing out ends every session and link of one person, and nobody else's; one's own for everybody, those of
/// others for admins.
#[tokio::test]
async fn signing_out_ends_all_of_ones_own() {
    let fake = staffed();
    let router = fake.router();
    let owner = enter(&router, &link(&router, TOKEN).await).await.cookie();
    let waiting = link(&router, TOKEN).await;
    let viewer = session_of(&fake, "viewer").await;
    let operator = session_of(&fake, "operator").await;
    let inside = async |cookie: &str| get(&router, cookie, "/").await.status == 200;

    for body in ["{}", r#"{"operator":"viewer"}"#] {
        let refused = api(&router, "operator", "POST", "/sign-out", body).await;
        assert_eq!(refused.status, 403, "{}", refused.text);
    }
    let form = "name=viewer&action=sign_out";
    assert_eq!(
        post(&router, &operator, "/operators/change", form).await.status,
        403
    );
    assert!(inside(&viewer).await);

    let done = api(&router, "admin", "POST", "/sign-out", r#"{"operator":"viewer"}"#).await;
    assert_eq!(done.status, 200, "{}", done.text);
    let holder = Holder::Operator(name("viewer"));
    let told = ("admin".to_owned(), StaffChange::SignOut { holder });
    let (by, change, _) = last_told(&fake);
    assert_eq!((by, change), told);
    assert!(!inside(&viewer).await && inside(&operator).await && inside(&owner).await);
    let unknown = api(&router, "admin", "POST", "/sign-out", r#"{"operator":"eve"}"#).await;
    assert_eq!(unknown.status, 404, "{}", unknown.text);

    let left = post(&router, &operator, "/sign-out", "").await;
    assert_eq!(
        (left.status, left.headers["location"].to_str().expect("text")),
        (303, "/login")
    );
    assert!(!inside(&operator).await && inside(&owner).await);

    let viewer = session_of(&fake, "viewer").await;
    let admin = session_of(&fake, "admin").await;
    let form = "name=viewer&action=sign_out";
    assert_eq!(post(&router, &admin, "/operators/change", form).await.status, 303);
    assert!(!inside(&viewer).await && inside(&admin).await);

    let done = api(&router, TOKEN, "POST", "/sign-out", "{}").await;
    assert_eq!(done.status, 200, "{}", done.text);
    assert!(!inside(&owner).await && inside(&admin).await);
    assert_eq!(enter(&router, &waiting).await.status, 401, "links go, too");
}
