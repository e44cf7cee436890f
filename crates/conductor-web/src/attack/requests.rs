//! What others send: forms of other sites, addresses that lead elsewhere, too much, too slowly, twice (SEC-7, S-55).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, header};
use conductor_domain::staff::Rank;
use futures_util::stream::{self, StreamExt as _};

use super::encoded;
use crate::access::{Seen, asked, get, path_of, send, session_of, staffed, status_of};
use crate::door::MAX_BODY;
use crate::fake::{Fake, HOST, TOKEN, request};
use crate::operation::OPERATIONS;
use crate::page::{FORMS, MAX_FORM, PAGES, STREAMS};
use crate::patience;

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// What a form of each kind could say; none of the fields matters, because none may be read.
const FIELDS: &str = "on=true&action=pause&name=eve&project=p&repo=o%2Fr&issue=1&confirm=r-1&id=admin";

async fn post(router: &Router, cookie: &str, path: &str, from: &[(&str, &str)], fields: &str) -> Seen {
    let mut headers = vec![("cookie", cookie), FORM];
    headers.extend(from);
    send(router, asked("POST", path, &headers, fields)).await
}

/// Insists that nothing was told to anybody behind the door.
fn nothing_happened(fake: &Fake, what: &str) {
    let world = fake.world();
    assert_eq!(world.submitted, [], "{what}");
    assert!(world.told.is_empty(), "{what}: {:?}", world.told);
}

/// SEC-7: no form does anything for another site, whatever it says of itself and whichever form it is; nor does it do
/// anything for one that hides where it comes from.
#[tokio::test]
async fn no_form_works_for_another_site() {
    let fake = staffed();
    let router = fake.router();
    let cookie = session_of(&fake, "admin").await;
    let ours = format!("http://{HOST}");
    let others: [&[(&str, &str)]; 15] = [
        &[],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[("sec-fetch-site", "SAME-ORIGIN")],
        &[("sec-fetch-site", "")],
        &[
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "cross-site"),
        ],
        &[("sec-fetch-site", "cross-site"), ("origin", &ours)],
        &[("origin", "null")],
        &[("origin", "")],
        &[("origin", "http://evil.example")],
        &[("origin", "https://127.0.0.1:4180")],
        &[("origin", "http://127.0.0.1:4180.evil.example")],
        &[("origin", &ours), ("origin", "http://evil.example")],
        &[
            ("sec-fetch-site", "same-origin"),
            ("origin", "http://evil.example"),
        ],
    ];
    let forms = FORMS
        .iter()
        .map(|(form, _, _)| path_of(form))
        .chain(["/login".to_owned()]);
    for form in forms {
        for from in others {
            let seen = post(&router, &cookie, &form, from, FIELDS).await;
            assert!(
                [403, 421].contains(&seen.status),
                "{form} from {from:?}: {}",
                seen.status
            );
            assert!(
                !seen.headers.contains_key(header::SET_COOKIE),
                "{form} from {from:?}"
            );
            nothing_happened(&fake, &form);
        }
        for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            let headers = [
                ("cookie", cookie.as_str()),
                ("sec-fetch-site", "cross-site"),
                FORM,
            ];
            let form = format!("{form}?{FIELDS}");
            let seen = send(&router, asked(method, &form, &headers, FIELDS)).await;
            assert!(
                !(300..400).contains(&seen.status),
                "{method} {form}: {}",
                seen.status
            );
            nothing_happened(&fake, &form);
        }
    }
    assert_eq!(
        get(&router, &cookie, "/").await.status,
        200,
        "the session is what it was"
    );
    let ours = post(
        &router,
        &cookie,
        "/runs/r-1/act",
        &[("origin", &ours)],
        "action=pause",
    )
    .await;
    assert_eq!(ours.status, 303, "our own form works: {}", ours.text);
}

/// SEC-7: a form that is none is not read as one, so that no other encoding smuggles one past a browser's rules.
#[tokio::test]
async fn a_form_is_a_form() {
    let fake = staffed();
    let router = fake.router();
    let cookie = session_of(&fake, "admin").await;
    for kind in [
        "text/plain",
        "multipart/form-data; boundary=x",
        "application/json",
        "",
    ] {
        for (form, _, _) in FORMS.iter().filter(|(form, _, _)| *form != "/leave") {
            let headers = [
                ("cookie", cookie.as_str()),
                ("sec-fetch-site", "same-origin"),
                ("content-type", kind),
            ];
            // These two would be done.
            let fields = match *form {
                "/stop" => "on=true",
                "/runs/{id}/act" => "action=pause",
                _ => FIELDS,
            };
            let seen = send(&router, asked("POST", &path_of(form), &headers, fields)).await;
            assert!(
                (400..500).contains(&seen.status),
                "{form} as {kind}: {}",
                seen.status
            );
        }
    }
    nothing_happened(&fake, "another encoding");
}

/// SEC-7: a browser's cookie opens no address of the API, so that no other site's script can ride on it.
#[tokio::test]
async fn a_cookie_is_no_token() {
    let fake = staffed();
    let router = fake.router();
    let cookie = session_of(&fake, "admin").await;
    for operation in OPERATIONS {
        let path = path_of(&format!("/api/v1{}", operation.path));
        let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
        let status = status_of(&router, asked(operation.method, &path, &headers, "{}")).await;
        assert_eq!(status, 401, "{}", operation.name);
    }
    nothing_happened(&fake, "a cookie");
}

/// S-55, SEC-7: a cookie that somebody else put into the browser is not taken over by whoever comes in, by link or password.
#[tokio::test]
async fn nobody_comes_in_on_a_session_that_somebody_else_chose() {
    let fake = staffed();
    let router = fake.router();
    let chosen = "conductor4180=chosen-by-eve";
    let made = send(&router, request("POST", "/api/v1/links", "{}")).await;
    let url = made
        .text
        .split('"')
        .find(|word| word.contains("/enter/"))
        .expect("a link");
    let path = url.strip_prefix(&format!("http://{HOST}")).expect("ours");
    let came = get(&router, chosen, path).await;
    assert_eq!(came.status, 303);
    let own = came.cookie();
    assert!(!own.contains("chosen"), "{own}");
    assert_eq!(get(&router, chosen, "/").await.status, 401, "eve is inside");
    assert_eq!(get(&router, &own, "/").await.status, 200);
    // Beside the right cookie a second of the same name decides nothing.
    let both = format!("{chosen}; {own}");
    let seen = get(&router, &both, "/").await.status;
    assert!([200, 401].contains(&seen), "{seen}");
}

/// S-55: a stream is heard under our own name and by our own pages only, like everything else.
#[tokio::test]
async fn every_page_and_stream_is_for_our_own_host_and_origin() {
    let fake = staffed();
    let router = fake.router();
    let cookie = session_of(&fake, "admin").await;
    let pages = PAGES.iter().chain(STREAMS).map(|(page, _)| path_of(page));
    let others = [
        "/login",
        "/enter/x",
        "/static/x",
        "/webhooks/github",
        "/api/v1/runs/r-1/stream",
        "/nothing",
    ];
    for path in pages.chain(others.map(str::to_owned)) {
        for (host, origin) in [
            ("evil.example", None),
            ("evil.example:4180", None),
            ("127.0.0.1", None),
            ("127.0.0.1:4181", None),
            ("127.0.0.1:4180.", None),
            ("127.0.0.1:4180@evil.example", None),
            ("", None),
            (HOST, Some("http://evil.example")),
            (HOST, Some("null")),
            (HOST, Some("http://127.0.0.1:4180/")),
            (HOST, Some("http://127.0.0.1")),
        ] {
            let mut wrong = asked("GET", &path, &[("cookie", &cookie)], "");
            let authorization = format!("Bearer {TOKEN}").parse().expect("a header");
            wrong.headers_mut().insert(header::AUTHORIZATION, authorization);
            wrong
                .headers_mut()
                .insert(header::HOST, host.parse().expect("a header"));
            if let Some(origin) = origin {
                wrong
                    .headers_mut()
                    .insert(header::ORIGIN, origin.parse().expect("a header"));
            }
            let status = status_of(&router, wrong).await;
            assert_eq!(status, 421, "{path} at {host:?} from {origin:?}");
        }
    }
}

/// Ways to climb out of a directory, as far as a server could be talked into them.
const CLIMBING: [&str; 15] = [
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..%252f..%252fetc%252fpasswd",
    "..%5c..%5cetc%5cpasswd",
    "%2fetc%2fpasswd",
    "%2e%2e",
    "..",
    ".",
    "%00",
    "conductor.db%00.css",
    "..%c0%af..%c0%afetc",
    "..;%2fetc",
    "file:%2f%2f%2fetc%2fpasswd",
    "sha256:..%2f..%2fconductor.db",
    "sha256:0000",
];

/// S-57: no address leads out of what it is for, however it is written.
#[tokio::test]
async fn no_address_climbs() {
    let fake = staffed();
    let router = fake.router();
    let cookie = session_of(&fake, "admin").await;
    for climbing in CLIMBING {
        for path in [
            format!("/static/{climbing}"),
            format!("/runs/{climbing}"),
            format!("/runs/{climbing}/log"),
            format!("/runs/r-1/output/{climbing}"),
            format!("/enter/{climbing}"),
        ] {
            let seen = get(&router, &cookie, &path).await;
            assert!((400..500).contains(&seen.status), "{path}: {}", seen.status);
        }
        for operation in OPERATIONS.iter().filter(|operation| operation.path.contains('{')) {
            let mut path = format!("/api/v1{}", operation.path);
            for name in ["{id}", "{digest}", "{name}"] {
                path = path.replace(name, climbing);
            }
            let headers = [("authorization", "Bearer admin")];
            let seen = send(&router, asked(operation.method, &path, &headers, "{}")).await;
            assert!(
                (400..500).contains(&seen.status),
                "{path}: {} {}",
                seen.status,
                seen.text
            );
        }
    }
    nothing_happened(&fake, "climbing");
}

/// SEC-7: whatever an address or a form names as the place to go on to, the door leads to its own pages alone.
#[tokio::test]
async fn nobody_is_led_elsewhere() {
    let fake = staffed();
    let router = fake.router();
    let cookie = session_of(&fake, "admin").await;
    for place in [
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "javascript:pwned(1)",
        "/%09/evil.example",
        "\r\nLocation: https://evil.example",
        "r-1/../../evil.example",
    ] {
        let place = encoded(place);
        let query = [
            "run",
            "next",
            "return",
            "return_to",
            "redirect",
            "url",
            "continue",
        ]
        .map(|name| format!("{name}={place}"))
        .join("&");
        let made = send(&router, request("POST", "/api/v1/links", "{}")).await;
        let url = made
            .text
            .split('"')
            .find(|word| word.contains("/enter/"))
            .expect("a link");
        let link = url
            .strip_prefix(&format!("http://{HOST}"))
            .expect("ours")
            .to_owned();
        let forms = FORMS
            .iter()
            .filter(|(form, _, _)| *form != "/leave")
            .map(|(form, _, _)| post_request(&path_of(form), &cookie, &query));
        let others = [
            asked("GET", &format!("{link}?{query}"), &[], ""),
            asked(
                "GET",
                &format!("/login?{query}"),
                &[("cookie", cookie.as_str())],
                "",
            ),
            asked(
                "GET",
                &format!("/?{query}"),
                &[("x-forwarded-host", "evil.example")],
                "",
            ),
            post_request("/login", "", &format!("name=admin&password=x&run={place}")),
        ];
        for asked in forms.chain(others) {
            let path = asked.uri().path().to_owned();
            let seen = send(&router, asked).await;
            let Some(to) = seen.headers.get(header::LOCATION) else {
                continue;
            };
            let to = to.to_str().expect("text");
            let is_ours = to.starts_with('/') && !to.starts_with("//") && !to.contains("evil");
            assert!(is_ours, "{path} leads to {to}");
        }
    }
}

fn post_request(path: &str, cookie: &str, fields: &str) -> Request<Body> {
    let headers = [("cookie", cookie), ("sec-fetch-site", "same-origin"), FORM];
    asked("POST", path, &headers, fields)
}

/// An address that a body can be sent to.
struct Taker {
    path: String,
    headers: Vec<(&'static str, String)>,
    /// So much of it is held.
    limit: usize,
}

/// Every address that a body can be sent to, with what opens it.
async fn takers(fake: &Fake) -> Vec<Taker> {
    let cookie = session_of(fake, "admin").await;
    let form = |path: String| Taker {
        path,
        headers: vec![
            ("cookie", cookie.clone()),
            ("sec-fetch-site", "same-origin".to_owned()),
            (FORM.0, FORM.1.to_owned()),
        ],
        limit: MAX_FORM,
    };
    let forms = FORMS.iter().filter(|(path, _, _)| *path != "/leave");
    let mut found: Vec<Taker> = forms.map(|(path, _, _)| form(path_of(path))).collect();
    found.push(form("/login".to_owned()));
    for operation in OPERATIONS.iter().filter(|operation| operation.method == "POST") {
        let token = ("authorization", format!("Bearer {TOKEN}"));
        let key = ("idempotency-key", format!("of-{}", operation.name));
        for headers in [vec![token.clone()], vec![token, key]] {
            found.push(Taker {
                path: path_of(&format!("/api/v1{}", operation.path)),
                headers,
                limit: MAX_BODY,
            });
        }
    }
    found
}

fn with_body(path: &str, headers: &[(&'static str, String)], body: Body) -> Request<Body> {
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    asked("POST", path, &headers, "").map(|_| body)
}

/// What an endless body is made of.
static PIECE: [u8; 65_536] = [b'a'; 65_536];

/// SEC-7: nobody makes the door hold more than it said it takes, with a length before it or without.
#[tokio::test]
async fn too_much_is_refused_everywhere() {
    let fake = staffed();
    let router = fake.router();
    for Taker { path, headers, limit } in takers(&fake).await {
        let sent = Arc::new(AtomicUsize::new(0));
        let count = sent.clone();
        let endless = stream::repeat_with(move || {
            count.fetch_add(PIECE.len(), Ordering::Relaxed);
            Ok::<_, std::io::Error>(Bytes::from_static(&PIECE))
        });
        let large = Body::from(vec![b'a'; limit + 1]);
        for body in [large, Body::from_stream(endless)] {
            let seen = send(&router, with_body(&path, &headers, body)).await;
            assert_eq!(seen.status, 413, "{path}: {}", seen.text);
        }
        let most = limit + 2 * PIECE.len();
        assert!(sent.load(Ordering::Relaxed) <= most, "{path} went on reading");
    }
    nothing_happened(&fake, "too much");
}

/// SEC-7, S-54: nobody is waited for: a body that does not end in its time is answered, everywhere, and the next comes in.
#[tokio::test(start_paused = true)]
async fn too_slow_is_refused_everywhere() {
    let fake = staffed();
    let router = fake.router();
    let mut all = takers(&fake).await;
    for _ in 0..100 {
        all.push(Taker {
            path: "/webhooks/github".to_owned(),
            headers: vec![],
            limit: 0,
        });
    }
    for Taker { path, headers, .. } in all {
        // A letter every second, for days.
        let letters = stream::repeat(()).then(|()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok::<_, std::io::Error>(Bytes::from_static(b"a"))
        });
        let asked = with_body(&path, &headers, Body::from_stream(letters));
        let seen = tokio::time::timeout(patience::BODY * 2, send(&router, asked)).await;
        let seen = seen.unwrap_or_else(|_| panic!("{path} waits for ever"));
        assert_eq!(
            (seen.status, seen.text.contains("CDR0328")),
            (408, true),
            "{path}: {}",
            seen.text
        );
    }
    nothing_happened(&fake, "too slow");
}

/// SEC-7: whoever may only look gets no form that does more, and the server says no all the same; so for every rank.
#[tokio::test]
async fn a_page_offers_only_what_its_reader_may() {
    let fake = staffed();
    let router = fake.router();
    for rank in Rank::ALL {
        let cookie = session_of(&fake, rank.as_str()).await;
        for (page, _) in PAGES {
            let seen = get(&router, &cookie, &path_of(page)).await;
            for (form, needed, _) in FORMS {
                let offered = format!("action=\"{}\"", form.replace("{id}", "r-1"));
                let is_offered = seen.text.contains(&offered);
                assert!(!is_offered || rank >= *needed, "{page} offers {form} to a {rank}");
            }
        }
    }
}
