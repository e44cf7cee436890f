//! What a browser sees, and what it may send.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use conductor_domain::input::{Action, Input};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use crate::fake::played::Played;
use crate::fake::{Fake, HOST, request, row};

struct Browser {
    router: Router,
    cookie: Option<String>,
}

struct Seen {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Browser {
    fn outside(fake: &Fake) -> Self {
        Self {
            router: fake.router(),
            cookie: None,
        }
    }

    /// A browser that was signed in by a link; what is told from here on, the test caused.
    async fn inside(fake: &Fake) -> Self {
        let mut browser = Self::outside(fake);
        let link = browser.link().await;
        let entered = browser.get(&link).await;
        let cookie = entered.headers[header::SET_COOKIE].to_str().expect("text");
        browser.cookie = cookie.split(';').next().map(str::to_owned);
        fake.world().told.clear();
        browser
    }

    /// Asks the API for a link, as `conductor open` does, and returns its path.
    async fn link(&self) -> String {
        let answer = self.send(request("POST", "/api/v1/links", "{}")).await;
        assert_eq!(answer.status, StatusCode::CREATED);
        let link: serde_json::Value = serde_json::from_str(&answer.text).expect("json");
        let url = link["url"].as_str().expect("an address");
        url.strip_prefix(&format!("http://{HOST}"))
            .expect("our address")
            .to_owned()
    }

    async fn send(&self, request: Request<Body>) -> Seen {
        let response = self
            .router
            .clone()
            .oneshot(request)
            .await
            .expect("a router never fails");
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        Seen {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).expect("text"),
        }
    }

    fn asked(&self, method: &str, path: &str) -> axum::http::request::Builder {
        let asked = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, HOST);
        match &self.cookie {
            Some(cookie) => asked.header(header::COOKIE, cookie),
            None => asked,
        }
    }

    async fn get(&self, path: &str) -> Seen {
        let asked = self.asked("GET", path).body(Body::empty());
        self.send(asked.expect("a well-formed request")).await
    }

    async fn post_from(&self, path: &str, form: &str, from: &[(&str, &str)]) -> Seen {
        let mut asked = self
            .asked("POST", path)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        for (name, value) in from {
            asked = asked.header(*name, *value);
        }
        let asked = asked.body(Body::from(form.to_owned()));
        self.send(asked.expect("a well-formed request")).await
    }

    async fn post(&self, path: &str, form: &str) -> Seen {
        self.post_from(path, form, &[("sec-fetch-site", "same-origin")])
            .await
    }
}

mod forms;
mod overrides;
mod several;
mod work;

const PAGES: [&str; 15] = [
    "/",
    "/runs",
    "/runs?view=list",
    "/runs/r-1",
    "/runs/r-1/calls",
    "/runs/r-1/log",
    "/approvals",
    "/projects",
    "/audit",
    "/figures",
    "/policies",
    "/bulk",
    "/stop",
    "/start",
    "/settings",
];

/// S-55, SEC-7: the link in every comment leads somewhere; without a session it tells nothing, not even whether there
/// is such a run, and no page, stream or form is open.
#[tokio::test]
async fn without_a_session_no_page_tells_anything() {
    let fake = Fake::with_repo();
    let _played = Played::start(&fake).until_plan_gate("the plan");
    let browser = Browser::outside(&fake);
    let known = browser.get("/runs/r-1").await;
    assert_eq!(known.status, StatusCode::UNAUTHORIZED);
    assert!(known.text.contains("conductor open r-1"), "{}", known.text);
    let unknown = browser.get("/runs/r-9").await;
    assert_eq!(
        unknown.text.replace("open r-9", "open r-1"),
        known.text,
        "a run that is not there looks the same"
    );
    let nowhere = browser.get("/").await.text;
    for path in PAGES
        .into_iter()
        .chain(["/live", "/runs/r-1/live", "/keys", "/audit/export/csv"])
    {
        let seen = browser.get(path).await;
        assert_eq!(seen.status, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(seen.text.replace(" r-1", ""), nowhere, "{path}");
    }
    let hostile = browser.get("/runs/%3Cscript%3E").await;
    assert_eq!(hostile.text, nowhere);
    let act = browser.post("/runs/r-1/act", "action=pause").await;
    assert_eq!(act.status, StatusCode::UNAUTHORIZED);
    assert_eq!(fake.world().submitted, []);
}

/// S-55: the link is used up by its first use, and the cookie cannot be read by a script.
#[tokio::test]
async fn a_link_signs_one_browser_in_once() {
    let fake = Fake::with_repo();
    let browser = Browser::outside(&fake);
    let link = browser.link().await;
    let first = browser.get(&format!("{link}?run=r-1")).await;
    assert_eq!(first.status, StatusCode::SEE_OTHER);
    assert_eq!(first.headers[header::LOCATION], "/runs/r-1");
    assert_eq!(first.headers[header::REFERRER_POLICY], "no-referrer");
    let cookie = first.headers[header::SET_COOKIE].to_str().expect("text");
    assert!(cookie.starts_with("conductor4180=secret-"), "{cookie}");
    assert!(
        cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=604800"),
        "{cookie}"
    );
    let second = browser.get(&link).await;
    assert_eq!(second.status, StatusCode::UNAUTHORIZED);
    assert!(!second.headers.contains_key(header::SET_COOKIE));
    let guessed = browser.get("/enter/secret-9").await;
    assert_eq!(guessed.status, StatusCode::UNAUTHORIZED);
    let elsewhere = browser.link().await;
    let seen = browser.get(&format!("{elsewhere}?run=%2F%2Fevil.example")).await;
    assert_ne!(
        seen.status,
        StatusCode::SEE_OTHER,
        "an address leads nowhere else"
    );
}

/// SEC-7: leaving ends the session itself, not only the browser's memory of it.
#[tokio::test]
async fn a_cookie_is_worth_nothing_after_leaving() {
    let fake = Fake::with_repo();
    let browser = Browser::inside(&fake).await;
    assert_eq!(browser.get("/").await.status, StatusCode::OK);
    let left = browser.post("/leave", "").await;
    assert_eq!(left.status, StatusCode::SEE_OTHER);
    assert_eq!(browser.get("/").await.status, StatusCode::UNAUTHORIZED);
}

/// UI-1, UI-5: every page is whole, runs no script but ours, and can be framed by nobody.
#[tokio::test]
async fn every_page_shows_itself_and_lets_nothing_else_in() {
    let fake = Fake::with_repo();
    let _played = Played::start(&fake).until_plan_gate("the plan");
    let browser = Browser::inside(&fake).await;
    for path in PAGES.into_iter().chain(["/keys", "/runs?repo=o%2Fr"]) {
        let seen = browser.get(path).await;
        assert_eq!(seen.status, StatusCode::OK, "{path}: {}", seen.text);
        assert_eq!(
            seen.headers[header::CONTENT_TYPE],
            "text/html; charset=utf-8",
            "{path}"
        );
        let policy = seen.headers[header::CONTENT_SECURITY_POLICY]
            .to_str()
            .expect("text");
        assert!(
            policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"),
            "{policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(seen.text.contains("</html>"), "{path}");
        for inline in ["<style", "onclick", "onload", "javascript:", " style="] {
            assert!(!seen.text.contains(inline), "{path}: {inline}");
        }
    }
    let lost = browser.get("/runs/r-9").await;
    assert_eq!(lost.status, StatusCode::NOT_FOUND);
    let style = crate::page::asset::STYLE.path;
    assert_eq!(
        browser.get(style).await.headers[header::CONTENT_TYPE],
        "text/css; charset=utf-8"
    );
}

/// UI-2: every page has a part that is brought up to date beside those of the frame, and each is known by an id of its
/// own; but for the pages on which nothing ever changes.
#[tokio::test]
async fn every_page_stays_true_without_being_loaded_again() {
    const STILL: [&str; 2] = ["/keys", "/runs/{id}/output/{digest}"];
    fn parts(page: &str) -> Vec<&str> {
        let tags = page.split('<').filter_map(|tag| tag.split('>').next());
        let parts = tags.filter(|tag| tag.ends_with(" data-part"));
        let ids = parts.map(|tag| tag.split("id=\"").nth(1).unwrap_or_default());
        ids.map(|id| id.split('"').next().unwrap_or_default()).collect()
    }
    let fake = Fake::with_repo();
    let _played = Played::start(&fake).until_plan_gate("the plan");
    let browser = Browser::inside(&fake).await;
    let frame = browser.get("/keys").await.text;
    assert_eq!(parts(&frame), ["nav", "stopped"]);
    for (page, _) in crate::page::PAGES
        .iter()
        .filter(|(page, _)| !STILL.contains(page))
    {
        let seen = browser.get(&page.replace("{id}", "r-1")).await;
        assert_eq!(seen.status, StatusCode::OK, "{page}: {}", seen.text);
        let found = parts(&seen.text);
        assert!(found.len() > parts(&frame).len(), "{page} has no part of its own");
        for id in found {
            let named = seen.text.matches(&format!("id=\"{id}\"")).count();
            assert_eq!(named, 1, "{page} has {named} of `{id}`");
        }
    }
}

/// S-48: a letter that passes for another is shown where the plan is approved, and counted.
#[tokio::test]
async fn a_look_alike_letter_is_shown_as_its_code() {
    let fake = Fake::with_repo();
    let _played = Played::start(&fake).until_plan_gate("let r\u{43e}ot in, мир");
    let browser = Browser::inside(&fake).await;
    let page = browser.get("/approvals").await.text;
    assert!(
        page.contains("holds 1 look-alike character, shown as") && page.contains("let r⟨U+043E⟩ot in, мир"),
        "{page}"
    );
}

/// BEY-4, ENV-3: a clean-up that failed is told wherever it is said what needs a person, and can be asked for again.
#[tokio::test]
async fn a_clean_up_that_failed_is_shown_as_needing_a_person() {
    let fake = Fake::with_repo();
    Played::start(&fake)
        .until_plan_gate("the plan")
        .until_left_behind("the disk is gone");
    let browser = Browser::inside(&fake).await;
    for (path, expected) in [
        ("/", "<h2>Needs you</h2>"),
        ("/approvals", "its clean-up failed (the disk is gone)"),
        ("/runs/r-1", "value=\"retry\">Clean up again<"),
    ] {
        let page = browser.get(path).await.text;
        assert!(page.contains(expected), "{path}: {page}");
    }
}

/// S-48, UI-5: what an agent or an issue's author wrote is text, whatever it looks like, and hides nothing.
#[tokio::test]
async fn hostile_text_is_shown_as_text() {
    let hostile = "</pre><script>alert(1)</script>\n<img src=x onerror=alert(1)>\u{202e}{{7*7}}\"'><!--";
    let fake = Fake::with_repo();
    let _played = Played::start(&fake).until_plan_gate(hostile);
    fake.world().rows[0].title = hostile.to_owned();
    let browser = Browser::inside(&fake).await;
    for path in [
        "/",
        "/runs",
        "/runs?view=list",
        "/runs/r-1",
        "/approvals",
        "/runs/r-1/log",
    ] {
        let seen = browser.get(path).await;
        assert_eq!(seen.status, StatusCode::OK, "{path}");
        for raw in ["<script>alert", "<img", "\u{202e}", "<!--"] {
            assert!(!seen.text.contains(raw), "{path} shows {raw:?} as it is");
        }
    }
    let page = browser.get("/approvals").await.text;
    assert!(page.contains("holds 1 hidden character, shown as"), "{page}");
    assert!(page.contains("\u{27e8}U+202E\u{27e9}"), "{page}");
}

/// RUN-7, BEY-1: a form goes the way of the API, and names exactly what was looked at.
#[tokio::test]
async fn an_answer_on_the_page_names_what_it_showed() {
    let fake = Fake::with_repo();
    let _played = Played::start(&fake).until_plan_gate("the plan");
    let browser = Browser::inside(&fake).await;
    let page = browser.get("/runs/r-1").await.text;
    let (_, rest) = page
        .split_once("name=\"subject\" value=\"")
        .expect("the form names its subject");
    let subject = rest.split('"').next().expect("a value").to_owned();
    let form = format!(
        "action=approve&subject={}&comment=fine&confirm=",
        subject.replace(':', "%3A")
    );
    let seen = browser.post("/runs/r-1/act", &form).await;
    assert_eq!(seen.status, StatusCode::SEE_OTHER, "{}", seen.text);
    assert_eq!(seen.headers[header::LOCATION], "/runs/r-1");
    let world = fake.world();
    let submitted = world.submitted.last().expect("something was submitted");
    assert_eq!(submitted.cause, "page");
    let Input::Operate { by, action } = &submitted.input else {
        panic!("an operator acted: {submitted:?}");
    };
    assert_eq!(by.as_str(), "ann");
    let Action::Approve {
        subject: named,
        comment,
        ..
    } = action
    else {
        panic!("an approval: {action:?}");
    };
    assert_eq!((named.to_string(), comment.as_deref()), (subject, Some("fine")));
}

/// SEC-7: a form of another site is refused, whatever cookie it rides on; so is one that says nothing.
#[tokio::test]
async fn a_form_of_another_site_does_nothing() {
    let fake = Fake::with_repo();
    fake.world().rows.push(row("r-1", 1, None));
    let browser = Browser::inside(&fake).await;
    let ours = format!("http://{HOST}");
    let cases: [(&[(&str, &str)], u16); 7] = [
        (&[], 403),
        (&[("sec-fetch-site", "cross-site")], 403),
        (&[("sec-fetch-site", "same-site")], 403),
        (&[("sec-fetch-site", "none")], 403),
        (
            &[
                ("sec-fetch-site", "same-origin"),
                ("sec-fetch-site", "cross-site"),
            ],
            403,
        ),
        (&[("origin", "http://evil.example")], 421),
        (&[("sec-fetch-site", "cross-site"), ("origin", &ours)], 403),
    ];
    for (from, status) in cases {
        for (path, form) in [
            ("/runs/r-1/act", "action=pause"),
            ("/stop", "on=true"),
            ("/leave", ""),
        ] {
            let seen = browser.post_from(path, form, from).await;
            assert_eq!(seen.status.as_u16(), status, "{path} {from:?}");
        }
    }
    assert_eq!(fake.world().submitted, []);
    assert!(!fake.world().instance.kill_switch);
    let ours = browser
        .post_from("/runs/r-1/act", "action=pause", &[("origin", &ours)])
        .await;
    assert_eq!(ours.status, StatusCode::SEE_OTHER);
}

/// SEC-6: what cannot be taken back is typed; stopping everything is not slowed down.
#[tokio::test]
async fn ending_a_run_is_confirmed_and_stopping_everything_is_not() {
    let fake = Fake::with_repo();
    fake.world().rows.push(row("r-1", 1, None));
    let browser = Browser::inside(&fake).await;
    for form in [
        "action=cancel",
        "action=cancel&confirm=yes",
        "action=fail&confirm=r-2",
    ] {
        let seen = browser.post("/runs/r-1/act", form).await;
        assert_eq!(seen.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
        assert!(seen.text.contains("CDR0321"), "{form}");
    }
    assert_eq!(fake.world().submitted, []);
    let seen = browser
        .post("/runs/r-1/act", "action=cancel&confirm=r-1&comment=")
        .await;
    assert_eq!(seen.status, StatusCode::SEE_OTHER);
    assert_eq!(
        browser.post("/stop", "on=true").await.status,
        StatusCode::SEE_OTHER
    );
    assert!(fake.world().instance.kill_switch);
    assert!(browser.get("/").await.text.contains("Emergency stop is on"));
    let hasty = browser.post("/stop", "on=false").await;
    assert_eq!(hasty.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(fake.world().instance.kill_switch);
    assert_eq!(
        browser.post("/stop", "on=false&confirm=go+on").await.status,
        StatusCode::SEE_OTHER
    );
    assert!(!fake.world().instance.kill_switch);
}

/// What a form got wrong is said on a page, with a code and a next step.
#[tokio::test]
async fn a_form_that_cannot_be_understood_is_answered_by_a_page() {
    let fake = Fake::with_repo();
    fake.world().rows.push(row("r-1", 1, None));
    let browser = Browser::inside(&fake).await;
    for (path, form) in [
        ("/runs/r-1/act", "action=explode"),
        ("/runs/r-1/act", "action=approve"),
        ("/runs/r-1/act", "action=pause&more=1"),
        ("/start", "repo=o%2Fr&issue=many"),
        ("/repos/add", "project=p&repo=o%2Fr&test=make+%26%26+true&slots=1"),
        ("/projects/add", "name=%2e%2e%2f"),
    ] {
        let seen = browser.post(path, form).await;
        assert_eq!(
            seen.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{path} {form}: {}",
            seen.text
        );
        assert!(
            seen.text.contains("CDR0304") && seen.text.contains("</html>"),
            "{path} {form}"
        );
    }
    let large = format!("action=pause&comment={}", "x".repeat(super::MAX_FORM));
    let seen = browser.post("/runs/r-1/act", &large).await;
    assert!(seen.status.is_client_error(), "{}", seen.status);
    assert_eq!(fake.world().submitted, []);
}

/// S-55, SEC-7: a link's address is told to nobody; a page's forms tell where they come from, which browsers leave out
/// where a page asks for no referrers at all.
#[tokio::test]
async fn a_link_leaves_no_referrer_and_a_form_tells_its_origin() {
    let fake = Fake::with_repo();
    let browser = Browser::inside(&fake).await;
    let policy = |seen: &Seen| {
        let value = seen.headers[header::REFERRER_POLICY].to_str().expect("text");
        value.to_owned()
    };
    let link = browser.link().await;
    assert_eq!(policy(&browser.get(&link).await), "no-referrer");
    assert_eq!(policy(&browser.get(&link).await), "no-referrer", "a used one");
    for page in ["/", "/start", "/stop", "/projects"] {
        assert_eq!(policy(&browser.get(page).await), "same-origin", "{page}");
    }
    let api = browser.send(request("GET", "/api/v1/runs", "")).await;
    assert_eq!(policy(&api), "no-referrer");
}

/// RUN-11: a button means the phase that its page showed; whoever pauses is not held up.
#[tokio::test]
async fn an_action_for_another_phase_is_refused_with_what_happened_since() {
    let fake = Fake::with_repo();
    let _played = Played::start(&fake).until_plan_gate("the plan");
    let browser = Browser::inside(&fake).await;
    let stale = "action=resume&phase=planning&seen=1";
    let seen = browser.post("/runs/r-1/act", stale).await;
    assert_eq!(seen.status, StatusCode::CONFLICT);
    for words in ["CDR0322", "Since you loaded the page", "href=\"/runs/r-1\""] {
        assert!(seen.text.contains(words), "{words} in {}", seen.text);
    }
    let phase = fake.world().rows[0].phase.clone();
    let over = format!("action=retry&phase={phase}&seen=1");
    let seen = browser.post("/runs/r-1/act", &over).await;
    assert!(
        seen.status.is_client_error() && seen.text.contains("Since you loaded the page"),
        "{}",
        seen.text
    );
    assert_eq!(fake.world().submitted, []);
    let paused = browser.post("/runs/r-1/act", "action=pause&phase=planning").await;
    assert!(paused.status.is_redirection(), "{}", paused.text);
}
