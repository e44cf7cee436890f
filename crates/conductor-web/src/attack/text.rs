//! What agents, forges and their people write, on every page that shows any of it (UI-5, S-48).

use axum::Router;
use axum::http::header;

use super::dom::{self, Shape};
use super::encoded;
use super::world::{HOSTILE, MARK, Poisoned, poisoned};
use crate::access::{Seen, asked, get, send, session_of};
use crate::operation::OPERATIONS;
use crate::page::{FORMS, PAGES, STREAMS};

/// What stands where nobody is hostile; it needs no colours, and hides nothing.
const HARMLESS: &str = "words";

/// Every page; where one shows a run, there is one for each.
fn addresses(world: &Poisoned) -> Vec<String> {
    let mut found = vec!["/runs?view=list".to_owned()];
    for (page, _) in PAGES {
        let page = page.replace("{digest}", world.output.as_str());
        match page.as_str() {
            "/runs/{id}" => found.extend(world.runs.iter().map(|run| page.replace("{id}", run.as_str()))),
            // The last records are enough: it shows all in the same way.
            "/runs/{id}/log" => found.push("/runs/r-0/log?after=80".to_owned()),
            _ => found.push(page.replace("{id}", "r-0")),
        }
    }
    found
}

/// Insists that an answer is a page of ours that lets nothing else in, and tells its shape.
fn judge(path: &str, text: &str, seen: &Seen) -> Shape {
    assert_eq!(
        seen.headers[header::CONTENT_TYPE],
        "text/html; charset=utf-8",
        "{path}"
    );
    assert_eq!(seen.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
    let policy = seen.headers[header::CONTENT_SECURITY_POLICY]
        .to_str()
        .expect("text");
    let is_strict = policy.starts_with("default-src 'none'") && policy.contains("base-uri 'none'");
    assert!(
        is_strict && !policy.contains("unsafe") && !policy.contains("http"),
        "{path}: {policy}"
    );
    let found = dom::read(&seen.text);
    assert!(
        found.foreign.is_empty(),
        "{path} with {text:?}: {:#?}",
        found.foreign
    );
    found.shape
}

/// Each part of the hostile texts is a test of its own, so that they are tried side by side.
macro_rules! parts {
    ($($name:ident = $part:literal),+) => {
        $(
            /// UI-5, S-48.
            #[tokio::test]
            async fn $name() {
                no_page_becomes_what_somebody_else_wrote($part).await;
            }
        )+
        const PARTS: usize = [$($part),+].len();
    };
}

parts!(
    no_page_becomes_what_the_first_wrote = 0,
    no_page_becomes_what_the_second_wrote = 1,
    no_page_becomes_what_the_third_wrote = 2,
    no_page_becomes_what_the_fourth_wrote = 3
);

/// Whatever others write, in every field that takes any text, no page has an element, an attribute or an address of theirs,
/// none lacks or gains a part, and nothing hidden stays hidden.
async fn no_page_becomes_what_somebody_else_wrote(part: usize) {
    let world = poisoned(HARMLESS);
    assert!(world.places > 250, "only {} fields take a text", world.places);
    assert!(HOSTILE.len() >= 60, "only {} texts are tried", HOSTILE.len());
    let cookie = session_of(&world.fake, "admin").await;
    let router = world.fake.router();
    let mut shapes = Vec::new();
    for path in addresses(&world) {
        let seen = get(&router, &cookie, &path).await;
        assert_eq!(seen.status, 200, "{path}: {}", seen.text);
        let speaks = path.starts_with("/runs") || ["/", "/approvals", "/projects"].contains(&path.as_str());
        assert!(
            seen.text.contains(MARK) || !speaks,
            "{path} shows nothing of theirs"
        );
        shapes.push(judge(&path, HARMLESS, &seen));
    }
    for (turn, text) in HOSTILE.iter().enumerate().skip(part).step_by(PARTS) {
        let world = poisoned(text);
        let router = world.fake.router();
        let cookie = session_of(&world.fake, "admin").await;
        for (place, (path, shape)) in addresses(&world).iter().zip(&shapes).enumerate() {
            // There are as many states as texts of a kind: they take turns.
            let is_its_turn = !path.starts_with("/runs/r-") || path == "/runs/r-0" || (place + turn) % 4 == 0;
            if !is_its_turn {
                continue;
            }
            let seen = get(&router, &cookie, path).await;
            assert_eq!(seen.status, 200, "{path} with {text:?}: {}", seen.text);
            let shown = judge(path, text, &seen);
            // A plan that hides something is not of low risk: the form that approves it is not there.
            if path != "/bulk" {
                assert_eq!(&shown, shape, "{path} with {text:?}");
            }
        }
    }
}

/// UI-5: nor does a page that says what was wrong with a request, wherever in it the text stood.
#[tokio::test]
async fn no_answer_becomes_what_was_asked() {
    let world = poisoned(HARMLESS);
    let router = world.fake.router();
    let cookie = session_of(&world.fake, "admin").await;
    for text in HOSTILE.iter() {
        let hostile = encoded(text);
        for path in [
            format!("/runs/{hostile}"),
            format!("/runs/{hostile}/log"),
            format!("/runs/r-0/output/{hostile}"),
            format!("/runs?repo={hostile}&phase={hostile}&view={hostile}"),
            format!("/runs?view=list&phase={hostile}"),
            format!("/login?run={hostile}&next={hostile}"),
        ] {
            let seen = get(&router, &cookie, &path).await;
            if seen.headers[header::CONTENT_TYPE] == "application/problem+json" {
                assert_eq!(seen.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
                continue;
            }
            judge(&path, text, &seen);
        }
        let outside = get(&router, "", &format!("/runs/{hostile}")).await;
        judge("outside", text, &outside);
        for (form, _, _) in FORMS.iter().filter(|(form, _, _)| *form != "/leave") {
            let path = form.replace("{id}", "r-0");
            let fields = fields(&hostile);
            let seen = send(&router, posted(&path, &cookie, &fields)).await;
            if seen.headers.contains_key(header::LOCATION) {
                continue;
            }
            judge(&path, text, &seen);
        }
    }
}

/// Every name that a form of ours has, with one value; a form refuses the ones that it does not know.
fn fields(value: &str) -> String {
    format!("action={value}&name={value}&repo={value}&project={value}&id={value}&grant={value}")
}

fn posted(path: &str, cookie: &str, fields: &str) -> axum::http::Request<axum::body::Body> {
    let headers = [
        ("cookie", cookie),
        ("sec-fetch-site", "same-origin"),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    asked("POST", path, &headers, fields)
}

/// UI-5: what is data is never taken for a page, and a stream holds no event of somebody else's.
#[tokio::test]
async fn no_data_becomes_a_page_and_no_words_an_event() {
    for text in HOSTILE.iter() {
        let world = poisoned(text);
        let router = world.fake.router();
        for operation in OPERATIONS.iter().filter(|operation| operation.method == "GET") {
            let path = operation
                .path
                .replace("{id}", "r-0")
                .replace("{digest}", world.output.as_str());
            let headers = [("authorization", "Bearer admin")];
            let seen = send(&router, asked("GET", &format!("/api/v1{path}"), &headers, "")).await;
            is_data(&path, text, &seen);
            if path.ends_with("/stream") {
                are_events(&seen.text);
            }
        }
        follow(&router, &world).await;
    }
}

fn is_data(path: &str, text: &str, seen: &Seen) {
    assert!(seen.status < 500, "{path} with {text:?}: {}", seen.text);
    let kind = seen.headers[header::CONTENT_TYPE].to_str().expect("text");
    let kinds = [
        "application/json",
        "application/problem+json",
        "application/octet-stream",
        "text/event-stream",
    ];
    assert!(kinds.contains(&kind), "{path}: {kind}");
    assert_eq!(seen.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
    let policy = seen.headers[header::CONTENT_SECURITY_POLICY]
        .to_str()
        .expect("text");
    assert!(policy.contains("sandbox"), "{path}: {policy}");
}

/// A page's own stream, as its script hears it.
async fn follow(router: &Router, world: &Poisoned) {
    let cookie = session_of(&world.fake, "viewer").await;
    for (stream, _) in STREAMS {
        let path = stream.replace("{id}", "r-0");
        let seen = get(router, &cookie, &path).await;
        assert_eq!(seen.status, 200, "{path}");
        are_events(&seen.text);
    }
}

fn are_events(stream: &str) {
    for line in stream.split('\n') {
        let is_ours = match line.split_once(": ") {
            Some(("event", name)) => ["record", "state", "talk", "changed", "problem"].contains(&name),
            Some(("id", id)) => id.bytes().all(|byte| byte.is_ascii_digit()),
            Some(("data", data)) => serde_json::from_str::<serde_json::Value>(data).is_ok(),
            Some(_) => false,
            None => line.is_empty() || line == ":",
        };
        assert!(is_ours && !line.contains('\r'), "{line:?}");
    }
}
