//! Tests of who gets in and what they may do, at the door as a whole (SEC-7, S-55).

mod coming;
mod project;

use std::net::{IpAddr, SocketAddr};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode, header};
use conductor_domain::digest::Digest;
use conductor_domain::id::{OperatorName, RunId, TokenId};
use conductor_domain::instance::InstanceInput;
use conductor_domain::staff::{Rank, StaffChange, Token};
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::key::{Holder, Key, KeyKind, Keys as _};
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use tokio::sync::broadcast;
use tower::ServiceExt as _;

use crate::backstage::Change;
use crate::fake::{Fake, HOST, TOKEN, row};
use crate::operation::OPERATIONS;
use crate::page::FORMS;

const PASSWORD: &str = "correct horse battery";
const PEER: [u8; 4] = [192, 0, 2, 7];

pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Seen {
    pub(crate) fn cookie(&self) -> String {
        let cookie = self.headers[header::SET_COOKIE].to_str().expect("text");
        cookie.split(';').next().unwrap_or_default().to_owned()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

pub(crate) fn name(name: &str) -> OperatorName {
    OperatorName::parse(name).expect("a name")
}

/// A world with an operator of each rank, named after it, and a token for each, named and spelled after it.
pub(crate) fn staffed() -> Fake {
    let fake = Fake::with_repo();
    fake.world().rows.push(row("r-1", 1, None));
    for rank in Rank::ALL {
        let staff = &mut fake.world().instance.staff;
        staff.operators.insert(name(rank.as_str()), rank);
        let token = Token {
            operator: name(rank.as_str()),
            rank,
            hash: Digest::of(rank.as_str().as_bytes()),
            expires_at: Timestamp(i64::MAX),
            project: None,
        };
        let id = TokenId::parse(rank.as_str()).expect("a name");
        staff.tokens.insert(id, token);
    }
    fake
}

pub(crate) fn asked(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let mut asked = Request::builder().method(method).uri(path).header("host", HOST);
    for (name, value) in headers {
        asked = asked.header(*name, *value);
    }
    let mut asked = asked.body(Body::from(body.to_owned())).expect("well-formed");
    let peer = SocketAddr::from((PEER, 40_000));
    asked.extensions_mut().insert(ConnectInfo(peer));
    asked
}

pub(crate) async fn send(router: &Router, asked: Request<Body>) -> Seen {
    let response = router.clone().oneshot(asked).await.expect("a router never fails");
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a body").to_bytes();
    Seen {
        status: parts.status.as_u16(),
        headers: parts.headers,
        text: String::from_utf8_lossy(&bytes).into_owned(),
    }
}

/// Asks and does not wait for a stream to end.
pub(crate) async fn status_of(router: &Router, asked: Request<Body>) -> StatusCode {
    let response = router.clone().oneshot(asked).await.expect("a router never fails");
    response.status()
}

pub(crate) fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

pub(crate) async fn api(router: &Router, token: &str, method: &str, path: &str, body: &str) -> Seen {
    let path = format!("/api/v1{path}");
    let authorization = bearer(token);
    let headers = [("authorization", authorization.as_str())];
    send(router, asked(method, &path, &headers, body)).await
}

async fn post(router: &Router, cookie: &str, path: &str, form: &str) -> Seen {
    let headers = [
        ("cookie", cookie),
        ("sec-fetch-site", "same-origin"),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    send(router, asked("POST", path, &headers, form)).await
}

pub(crate) async fn get(router: &Router, cookie: &str, path: &str) -> Seen {
    send(router, asked("GET", path, &[("cookie", cookie)], "")).await
}

/// A browser that is signed in as somebody already; each has one session.
pub(crate) async fn session_of(fake: &Fake, operator: &str) -> String {
    let secret = format!("session-of-{operator}");
    let now = fake.world().now;
    let session = Key {
        kind: KeyKind::Session,
        hash: Digest::of(secret.as_bytes()),
        holder: Holder::Operator(name(operator)),
        since: now,
        ends_at: now.after(Millis::hours(12)),
    };
    fake.keys().keep(&session, now).await.expect("kept");
    format!("conductor4180={secret}")
}

pub(crate) fn path_of(pattern: &str) -> String {
    pattern
        .replace("{id}", "r-1")
        .replace("{name}", "nobody")
        .replace("{digest}", Digest::of(b"").as_str())
}

/// SEC-7: of every address and every form the table says who may, and nobody else does; whoever may not is refused before
/// anything is read. An address that forgets its guard fails here.
#[tokio::test]
async fn every_address_is_for_its_ranks_and_no_other() {
    let fake = staffed();
    let router = fake.router();
    for rank in Rank::ALL {
        let authorization = bearer(rank.as_str());
        for operation in OPERATIONS {
            let path = path_of(&format!("/api/v1{}", operation.path));
            let headers = [("authorization", authorization.as_str())];
            let status = status_of(&router, asked(operation.method, &path, &headers, "not json")).await;
            let without = status_of(&router, asked(operation.method, &path, &[], "not json")).await;
            assert_eq!(without, StatusCode::UNAUTHORIZED, "{}", operation.name);
            let is_refused = status == StatusCode::FORBIDDEN;
            assert_eq!(
                is_refused,
                rank < operation.rank,
                "{rank} {}: {status}",
                operation.name
            );
        }
        let cookie = session_of(&fake, rank.as_str()).await;
        for (form, needed, _) in FORMS.iter().filter(|(form, _, _)| *form != "/leave") {
            let seen = post(&router, &cookie, &path_of(form), "nonsense=1").await;
            assert_eq!(
                seen.status == 403,
                rank < *needed,
                "{rank} {form}: {}",
                seen.status
            );
        }
    }
    assert_eq!(fake.world().submitted, []);
    assert!(fake.world().told.is_empty());
}

/// SEC-7: what changes something is never for viewers, and what changes what there is, who works here or what a
/// policy says is for admins.
#[test]
fn the_table_gives_nobody_too_much() {
    for operation in OPERATIONS {
        let is_own = operation.name == "revoke_token";
        let is_for_all = !operation.changes || is_own;
        assert_eq!(is_for_all, operation.rank == Rank::Viewer, "{}", operation.name);
        let admins = [
            "/projects",
            "/repos",
            "/egress",
            "/policies",
            "/operators",
            "/tokens",
            "/links",
            "/sign-out",
        ];
        let lifts_a_policy = operation.name == "grant_override";
        let is_theirs =
            lifts_a_policy || (!is_for_all && admins.iter().any(|path| operation.path.starts_with(path)));
        assert_eq!(is_theirs, operation.rank == Rank::Admin, "{}", operation.name);
    }
}

/// SEC-7: whoever is removed or demoted is so at their very next request, with session and token.
#[tokio::test]
async fn a_rank_is_what_it_is_now() {
    let fake = staffed();
    let router = fake.router();
    let cookie = session_of(&fake, "operator").await;
    let pause = r#"{"action":"pause"}"#;
    assert_eq!(
        api(&router, "operator", "POST", "/runs/r-1/actions", pause)
            .await
            .status,
        200
    );
    assert_eq!(
        post(&router, &cookie, "/runs/r-1/act", "action=pause")
            .await
            .status,
        303
    );
    let demote = r#"{"rank":"viewer"}"#;
    let demoted = api(&router, "admin", "POST", "/operators/operator/rank", demote).await;
    assert_eq!(demoted.status, 200, "{}", demoted.text);
    assert_eq!(
        api(&router, "operator", "POST", "/runs/r-1/actions", pause)
            .await
            .status,
        403
    );
    assert_eq!(
        post(&router, &cookie, "/runs/r-1/act", "action=pause")
            .await
            .status,
        403
    );
    assert_eq!(get(&router, &cookie, "/runs").await.status, 200);
    let removed = api(&router, "admin", "POST", "/operators/operator/remove", "{}").await;
    assert_eq!(removed.status, 200, "{}", removed.text);
    assert_eq!(api(&router, "operator", "GET", "/runs", "").await.status, 401);
    assert_eq!(get(&router, &cookie, "/runs").await.status, 401);
}

/// SEC-7: a token is for its time, for no more than whoever asked, and for nobody else to see.
#[tokio::test]
async fn a_token_ends_and_is_no_greater_than_whoever_asked() {
    let fake = staffed();
    let router = fake.router();
    let cookie = session_of(&fake, "operator").await;
    for (form, status) in [
        ("id=a&rank=admin&days=1", 403),
        ("id=a&rank=viewer&days=1&operator=admin", 403),
        ("id=a&rank=viewer&days=0", 422),
        ("id=a&rank=viewer&days=366", 422),
        ("id=A+b&rank=viewer&days=1", 422),
        ("id=a&rank=king&days=1", 422),
        ("id=admin&rank=viewer&days=1", 409),
    ] {
        let seen = post(&router, &cookie, "/tokens/issue", form).await;
        assert_eq!(seen.status, status, "{form}: {}", seen.text);
    }
    for (body, status) in [
        (r#"{"id":"a","rank":"viewer"}"#, 422),
        (r#"{"id":"a","rank":"viewer","operator":"nobody"}"#, 404),
    ] {
        let seen = api(&router, TOKEN, "POST", "/tokens", body).await;
        assert_eq!(seen.status, status, "{body}: {}", seen.text);
    }
    let issued = post(&router, &cookie, "/tokens/issue", "id=ci&rank=viewer&days=1").await;
    assert_eq!(issued.status, 200, "{}", issued.text);
    let from = issued.text.find("cdr_").expect("the secret is shown");
    let secret: String = issued.text[from..].chars().take_while(|c| *c != '<').collect();
    assert_eq!(api(&router, &secret, "GET", "/runs", "").await.status, 200);
    let pause = r#"{"action":"pause"}"#;
    let act = api(&router, &secret, "POST", "/runs/r-1/actions", pause).await;
    assert_eq!(act.status, 403, "it only looks");
    let again = get(&router, &cookie, "/settings").await;
    assert!(!again.text.contains(&secret), "it is shown once");
    let listed = api(&router, "viewer", "GET", "/tokens", "").await;
    let is_own = listed.text.contains("\"viewer\"") && !listed.text.contains("\"ci\"");
    assert!(is_own, "{}", listed.text);
    assert!(!listed.text.contains("sha256:"), "not even the hash is shown");
    let revoked = api(&router, "viewer", "POST", "/tokens/ci/revoke", "{}").await;
    assert_eq!(revoked.status, 404, "somebody else's is not there");
    fake.world().now = Timestamp(0).after(Millis::hours(24));
    let late = api(&router, &secret, "GET", "/runs", "").await;
    assert_eq!(late.status, 401, "its day is over");
    fake.world().now = Timestamp(0);
    let revoked = api(&router, "operator", "POST", "/tokens/ci/revoke", "{}").await;
    assert_eq!(revoked.status, 200);
    assert_eq!(api(&router, &secret, "GET", "/runs", "").await.status, 401);
}

/// The token `lesser` lets a program do less than its operator, the admin.
fn give_admin_a_lesser_token(fake: &Fake) {
    let lesser = Token {
        operator: name("admin"),
        rank: Rank::Operator,
        hash: Digest::of(b"lesser"),
        expires_at: Timestamp(i64::MAX),
        project: None,
    };
    let id = TokenId::parse("lesser").expect("a name");
    fake.world().instance.staff.tokens.insert(id, lesser);
}

/// SEC-7: a token that may only look, of somebody who may do everything, makes neither a session nor another token, so that
/// it cannot become what its operator is, nor outlive its time.
#[tokio::test]
async fn a_token_that_leaked_makes_no_other_way_in() {
    let fake = staffed();
    give_admin_a_lesser_token(&fake);
    let router = fake.router();
    let before = fake.world().told.len();
    for (path, body) in [
        ("/links", "{}"),
        ("/sign-out", "{}"),
        ("/tokens", r#"{"id":"b","rank":"viewer"}"#),
        (
            "/operators",
            r#"{"name":"eve","rank":"viewer","password":"long enough, that"}"#,
        ),
        ("/operators/admin/password", r#"{"password":"long enough, that"}"#),
    ] {
        let seen = api(&router, "lesser", "POST", path, body).await;
        assert_eq!(
            (seen.status, seen.json()["code"].as_str()),
            (403, Some("CDR0325")),
            "{path}"
        );
    }
    assert_eq!(fake.world().told.len(), before);
}

/// SEC-7: what is shown once is not kept for a repeated request either.
#[tokio::test]
async fn a_secret_is_not_told_again_for_an_idempotency_key() {
    let fake = staffed();
    let router = fake.router();
    let authorization = bearer("admin");
    let headers = [
        ("authorization", authorization.as_str()),
        ("idempotency-key", "k"),
    ];
    let body = r#"{"id":"b","rank":"viewer"}"#;
    let first = send(&router, asked("POST", "/api/v1/tokens", &headers, body)).await;
    assert_eq!(first.status, 201, "{}", first.text);
    let again = send(&router, asked("POST", "/api/v1/tokens", &headers, body)).await;
    assert_eq!(again.status, 409, "{}", again.text);
    assert!(!again.text.contains("cdr_"), "{}", again.text);
}

/// SEC-7, UI-2: who is outside hears nothing more, on a page's stream and on a run's: neither who signed out, nor who was
/// removed, nor whose time is over.
#[tokio::test]
async fn a_stream_ends_with_what_opened_it() {
    let run = || Some(RunId::parse("r-1").expect("a slug"));
    let later = Timestamp(0).after(Millis::minutes(1));
    for (stream, is_page) in [
        ("/live", true),
        ("/runs/r-1/live", true),
        ("/api/v1/runs/r-1/stream", false),
    ] {
        for end in ["nothing", "removed", "expired", "left"] {
            let fake = staffed();
            let (tell, _) = broadcast::channel(8);
            fake.world().changes = Some(tell.clone());
            let router = fake.router();
            let cookie = session_of(&fake, "viewer").await;
            let authorization = bearer("viewer");
            let header = if is_page {
                ("cookie", cookie.as_str())
            } else {
                ("authorization", authorization.as_str())
            };
            let response = router
                .clone()
                .oneshot(asked("GET", stream, &[header], ""))
                .await
                .expect("an answer");
            assert_eq!(response.status(), StatusCode::OK, "{stream}");
            let mut told = response.into_body().into_data_stream();
            if stream != "/live" {
                told.next().await.expect("where it stands").expect("bytes");
            }
            let change = match end {
                "removed" => {
                    fake.world().instance.staff.operators.remove(&name("viewer"));
                    None
                }
                "expired" => {
                    fake.world().now = Timestamp(0).after(Millis::hours(12));
                    for token in fake.world().instance.staff.tokens.values_mut() {
                        token.expires_at = Timestamp(0);
                    }
                    run()
                }
                "left" => {
                    post(&router, &cookie, "/leave", "").await;
                    fake.world().instance.staff.tokens.clear();
                    fake.world().now = later;
                    run()
                }
                _ => None,
            };
            tell.send(Change { run: change }).expect("somebody listens");
            let next = told.next().await;
            assert_eq!(next.is_none(), end != "nothing", "{stream} {end}: {next:?}");
        }
    }
}

async fn with_password(fake: &Fake) -> Router {
    let router = fake.router();
    let body = format!(r#"{{"name":"ann","rank":"operator","password":"{PASSWORD}"}}"#);
    let added = api(&router, TOKEN, "POST", "/operators", &body).await;
    assert_eq!(added.status, 201, "{}", added.text);
    router
}

fn login_form(name: &str, password: &str) -> String {
    format!("name={name}&password={}", password.replace(' ', "+"))
}

/// SEC-7: name and password open a session, another one than the browser had; a wrong name is not told from a wrong
/// password; the password itself stands nowhere.
#[tokio::test]
async fn a_password_opens_a_session_of_its_own() {
    let fake = staffed();
    let router = with_password(&fake).await;
    let before = session_of(&fake, "viewer").await;
    let wrong = post(&router, "", "/login", &login_form("ann", "wrong wrong wrong")).await;
    let unknown = post(&router, "", "/login", &login_form("eve", PASSWORD)).await;
    assert_eq!((wrong.status, unknown.status), (401, 401));
    assert_eq!(wrong.text, unknown.text);
    let came = post(&router, &before, "/login", &login_form("ann", PASSWORD)).await;
    assert_eq!(came.status, 303);
    assert_eq!(came.headers[header::LOCATION], "/");
    let after = came.cookie();
    assert_ne!(after, before);
    assert_eq!(
        get(&router, &before, "/").await.status,
        401,
        "the old session is over"
    );
    assert_eq!(
        post(&router, &after, "/runs/r-1/act", "action=pause")
            .await
            .status,
        303
    );
    let world = fake.world();
    let submitted = world.submitted.last().expect("submitted");
    assert_eq!(submitted.cause, "page from 192.0.2.7");
    assert!(
        matches!(&submitted.input, conductor_domain::input::Input::Operate { by, .. } if by.as_str() == "ann")
    );
    let (signed_in, cause) = world.told.last().expect("told");
    let expected = InstanceInput::ChangeStaff {
        by: name("ann"),
        change: StaffChange::SignIn {
            operator: name("ann"),
        },
    };
    assert_eq!((signed_in, cause.as_str()), (&expected, "page from 192.0.2.7"));
    assert!(
        !format!("{:?}", world.told).contains("horse"),
        "the password was told"
    );
}

/// SEC-7: a new password ends every session of its operator, and the old one opens nothing.
#[tokio::test]
async fn a_new_password_ends_what_the_old_one_opened() {
    let fake = staffed();
    let router = with_password(&fake).await;
    let cookie = post(&router, "", "/login", &login_form("ann", PASSWORD))
        .await
        .cookie();
    let form = "current=not+it+not+it&password=another+good+one";
    assert_eq!(post(&router, &cookie, "/password", form).await.status, 422);
    let form = format!("current={}&password=another+good+one", PASSWORD.replace(' ', "+"));
    let set = post(&router, &cookie, "/password", &form).await;
    assert_eq!(set.status, 303, "{}", set.text);
    assert_eq!(get(&router, &cookie, "/").await.status, 401);
    assert_eq!(
        post(&router, "", "/login", &login_form("ann", PASSWORD))
            .await
            .status,
        401
    );
    assert_eq!(
        post(&router, "", "/login", &login_form("ann", "another good one"))
            .await
            .status,
        303
    );
}

/// SEC-7: after a few wrong passwords nobody is listened to for a while, not even with the right one.
#[tokio::test]
async fn guessing_is_stopped() {
    let fake = staffed();
    let router = with_password(&fake).await;
    for _ in 0..5 {
        let wrong = post(&router, "", "/login", &login_form("ann", "wrong wrong wrong")).await;
        assert_eq!(wrong.status, 401);
    }
    let right = post(&router, "", "/login", &login_form("ann", PASSWORD)).await;
    assert_eq!(right.status, 429);
    assert!(right.text.contains("CDR0326"), "{}", right.text);
    fake.world().now = Timestamp(0).after(Millis::minutes(15));
    assert_eq!(
        post(&router, "", "/login", &login_form("ann", PASSWORD))
            .await
            .status,
        303
    );
}

/// SEC-7: whoever had to wait after wrong passwords comes in at once with the new one that an admin sets.
#[tokio::test]
async fn a_new_password_ends_the_wait() {
    let fake = staffed();
    let router = with_password(&fake).await;
    for _ in 0..5 {
        post(&router, "", "/login", &login_form("ann", "wrong wrong wrong")).await;
    }
    let form = login_form("ann", "another good one");
    assert_eq!(post(&router, "", "/login", &form).await.status, 429);
    let body = r#"{"password":"another good one"}"#;
    let set = api(&router, "admin", "POST", "/operators/ann/password", body).await;
    assert_eq!(set.status, 200, "{}", set.text);
    assert_eq!(post(&router, "", "/login", &form).await.status, 303);
}

/// SEC-7: another site cannot sign a browser in, and no form is larger than forms are.
#[tokio::test]
async fn nobody_else_signs_a_browser_in() {
    let fake = staffed();
    let router = with_password(&fake).await;
    let form = login_form("ann", PASSWORD);
    for site in ["cross-site", "same-site", "none"] {
        let headers = [
            ("sec-fetch-site", site),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let seen = send(&router, asked("POST", "/login", &headers, &form)).await;
        assert_eq!(seen.status, 403, "{site}");
        assert!(!seen.headers.contains_key(header::SET_COOKIE));
    }
    let large = login_form("ann", &"x".repeat(1024 * 1024));
    let seen = post(&router, "", "/login", &large).await;
    assert!((400..500).contains(&seen.status), "{}", seen.status);
    for hostile in ["%2F%2Fevil.example", "https%3A%2F%2Fevil.example", "..%2F.."] {
        let seen = post(&router, "", "/login", &format!("{form}&run={hostile}")).await;
        assert_eq!(seen.headers[header::LOCATION], "/", "{hostile}");
    }
}

/// SEC-7: only a proxy that the operator spoke of is believed about where a request comes from, and only its own word.
#[tokio::test]
async fn where_a_request_comes_from_is_not_for_it_to_say() {
    for (is_proxied, told, expected) in [
        (false, "203.0.113.9", "192.0.2.7"),
        (true, "203.0.113.9", "203.0.113.9"),
        (true, "198.51.100.1, 203.0.113.9", "203.0.113.9"),
        (true, "nonsense", "192.0.2.7"),
    ] {
        let fake = staffed();
        fake.world().is_proxied = is_proxied;
        let authorization = bearer("operator");
        let headers = [
            ("authorization", authorization.as_str()),
            ("x-forwarded-for", told),
        ];
        let act = asked(
            "POST",
            "/api/v1/runs/r-1/actions",
            &headers,
            r#"{"action":"pause"}"#,
        );
        assert_eq!(send(&fake.router(), act).await.status, 200);
        let world = fake.world();
        let submitted = world.submitted.last().expect("submitted");
        assert_eq!(submitted.cause, format!("api from {expected}"), "{told}");
        assert!(expected.parse::<IpAddr>().is_ok());
    }
}

/// SEC-7: over HTTPS the cookie is for this host alone, and the browser is told never to come without.
#[tokio::test]
async fn over_https_everything_is_told_to_stay_there() {
    let fake = staffed();
    let plain = send(&fake.router(), asked("GET", "/login", &[], "")).await;
    assert!(!plain.headers.contains_key(header::STRICT_TRANSPORT_SECURITY));
    fake.world().public_url = "https://conductor.example/".to_owned();
    let router = with_password(&fake).await;
    let came = post(&router, "", "/login", &login_form("ann", PASSWORD)).await;
    let cookie = came.headers[header::SET_COOKIE].to_str().expect("text");
    assert!(
        cookie.starts_with("__Host-conductor=") && cookie.ends_with("; Secure"),
        "{cookie}"
    );
    assert!(came.headers.contains_key(header::STRICT_TRANSPORT_SECURITY));
    for seen in [plain, came] {
        for (header, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(seen.headers[header], value);
        }
    }
}

/// UI-4, SEC-7: nobody is given the answer to somebody else's request, whatever key they guess.
#[tokio::test]
async fn idempotency_keys_are_everybodys_own() {
    let fake = staffed();
    give_admin_a_lesser_token(&fake);
    let router = fake.router();
    let pause = async |token: &str| {
        let authorization = bearer(token);
        let headers = [
            ("authorization", authorization.as_str()),
            ("idempotency-key", "same"),
        ];
        let asked = asked(
            "POST",
            "/api/v1/runs/r-1/actions",
            &headers,
            r#"{"action":"pause"}"#,
        );
        let seen = send(&router, asked).await;
        (seen.status, seen.headers.contains_key("idempotency-replayed"))
    };
    assert_eq!(pause("operator").await, (200, false));
    assert_eq!(pause("admin").await, (200, false));
    assert_eq!(pause("viewer").await.0, 403);
    assert_eq!(pause("operator").await, (200, true));
    assert_eq!(fake.world().submitted.len(), 2);
    assert_eq!(
        pause("lesser").await,
        (200, false),
        "one's own of another rank is another"
    );
    assert_eq!(fake.world().submitted.len(), 3);
}
