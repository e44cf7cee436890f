//! Deliveries: signed by the forge, checked by us, hostile ones first.

use conductor_domain::forge::NoticeSubject;
use conductor_domain::id::{IssueNumber, PullRequestNumber};
use conductor_forge::Webhook;
use conductor_github::webhook::{Headers, Rejected, receive};
use conductor_port::forge::{Forge as _, NewPullRequest};
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::site::{BRANCH, REPO, Site};

const SECRET: &str = "It's a Secret to Everybody";
const BODY: &[u8] = b"Hello, World!";
/// From GitHub's documentation, for the secret and body above.
const SIGNATURE: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

fn headers(signature: Option<&str>) -> Headers<'_> {
    Headers {
        event: Some("issues"),
        delivery: Some("72d3162e-cc78-11e3-81ab-4c9367dc0958"),
        signature,
    }
}

/// GH-2.
#[test]
fn githubs_own_example_verifies_and_every_forgery_is_rejected() {
    let secret = SecretString::from(SECRET);
    let verdict = |signature: Option<&str>, body: &[u8]| receive(&secret, headers(signature), body);
    assert_eq!(verdict(Some(SIGNATURE), BODY), Ok(None), "sound, and no JSON");
    assert_eq!(verdict(None, BODY), Err(Rejected::Unsigned));
    assert_eq!(verdict(Some(""), BODY), Err(Rejected::Unsigned));
    assert_eq!(
        verdict(Some(&SIGNATURE.replace("sha256", "sha1")), BODY),
        Err(Rejected::Unsigned)
    );
    assert_eq!(verdict(Some(SIGNATURE), b"Hello, World?"), Err(Rejected::Forged));
    assert_eq!(
        verdict(Some(&SIGNATURE[..SIGNATURE.len() - 2]), BODY),
        Err(Rejected::Forged)
    );
    assert_eq!(verdict(Some("sha256="), BODY), Err(Rejected::Forged));
    assert_eq!(verdict(Some("sha256=zz"), BODY), Err(Rejected::Forged));
    let other = SecretString::from("another secret");
    assert_eq!(
        receive(&other, headers(Some(SIGNATURE)), BODY),
        Err(Rejected::Forged)
    );
}

/// GH-2: header values become dedupe keys, so they have to look like what GitHub sends.
#[test]
fn a_sound_body_with_strange_headers_is_rejected() {
    let secret = SecretString::from(SECRET);
    for (event, delivery) in [
        (None, Some("x")),
        (Some("issues"), None),
        (Some("a b"), Some("x")),
        (Some("issues"), Some("../x")),
    ] {
        let headers = Headers {
            event,
            delivery,
            signature: Some(SIGNATURE),
        };
        assert_eq!(receive(&secret, headers, BODY), Err(Rejected::Incomplete));
    }
}

/// A delivery as it came over the wire.
struct Received {
    event: String,
    delivery: String,
    signature: String,
    body: Vec<u8>,
}

async fn receiver() -> (String, tokio::sync::mpsc::Receiver<Received>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, received) = tokio::sync::mpsc::channel(64);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            let (head, length) = loop {
                stream.read_buf(&mut bytes).await.unwrap();
                if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                    break (
                        head.clone(),
                        end + 4 + header(&head, "content-length").parse::<usize>().unwrap(),
                    );
                }
            };
            while bytes.len() < length {
                stream.read_buf(&mut bytes).await.unwrap();
            }
            let start = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
            let answer = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            let delivery = Received {
                event: header(&head, "x-github-event"),
                delivery: header(&head, "x-github-delivery"),
                signature: header(&head, "x-hub-signature-256"),
                body: bytes[start..].to_vec(),
            };
            if sender.send(delivery).await.is_err() {
                return;
            }
        }
    });
    (url, received)
}

fn header(head: &str, name: &str) -> String {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let mut found = lines
        .filter(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.to_owned());
    found.next().unwrap_or_default()
}

/// GH-2, GH-8, S-53: what the forge signs, we believe, and it names repository and number.
#[tokio::test]
async fn a_story_arrives_as_hints_in_order() {
    let site = Site::start().await;
    let (url, mut received) = receiver().await;
    site.forge
        .set_webhook(Some(Webhook {
            url,
            secret: SECRET.into(),
        }))
        .unwrap();
    let issue = site.alice.open_issue(REPO, "Widgets squeak", "").unwrap();
    site.alice.comment(REPO, issue, "Please").unwrap();
    let head = site.push_change("# Oiled\n").await;
    let new = NewPullRequest {
        branch: BRANCH.into(),
        title: "Oil".into(),
        body: "Oil".into(),
    };
    let (pull, _) = site.client.open_pull_request(&site.repo, &new).await.unwrap();
    site.alice.request_changes(REPO, pull.0, "More").unwrap();
    let failure = conductor_forge::state::Conclusion::Failure;
    site.forge
        .report_check(REPO, &head, "build-bot", "unit", failure)
        .unwrap();
    site.alice.comment(REPO, pull.0, "See above").unwrap();
    site.alice.close(REPO, pull.0).unwrap();
    site.forge.deliveries_settled().await;

    let secret = SecretString::from(SECRET);
    let mut hints = Vec::new();
    while let Ok(delivery) = received.try_recv() {
        let headers = Headers {
            event: Some(&delivery.event),
            delivery: Some(&delivery.delivery),
            signature: Some(&delivery.signature),
        };
        let hint = receive(&secret, headers, &delivery.body).unwrap().unwrap();
        assert_eq!(hint.repo, site.repo.id);
        hints.push((hint.event, hint.subjects, hint.pushed_branch));
    }
    let on_issue = vec![NoticeSubject::Issue {
        number: IssueNumber(issue),
    }];
    let on_pull = vec![NoticeSubject::PullRequest {
        number: PullRequestNumber(pull.0),
    }];
    let expected = [
        ("issues", &on_issue, None),
        ("issue_comment", &on_issue, None),
        ("push", &vec![NoticeSubject::Base], Some(BRANCH)),
        ("pull_request", &on_pull, None),
        ("pull_request_review", &on_pull, None),
        ("check_run", &on_pull, None),
        ("check_run", &on_pull, None),
        ("check_suite", &on_pull, None),
        ("issue_comment", &on_pull, None),
        ("pull_request", &on_pull, None),
    ];
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(event, subjects, branch)| (event.to_owned(), subjects.clone(), branch.map(str::to_owned)))
        .collect();
    assert_eq!(hints, expected);
}

/// GH-2: a redelivery has the same GUID and the same body.
#[tokio::test]
async fn a_redelivery_is_recognised_by_guid_and_by_body() {
    let site = Site::start().await;
    let (url, mut received) = receiver().await;
    site.forge
        .set_webhook(Some(Webhook {
            url,
            secret: SECRET.into(),
        }))
        .unwrap();
    site.alice.open_issue(REPO, "Widgets squeak", "").unwrap();
    let first = received.recv().await.unwrap();
    site.forge.deliveries_settled().await;
    site.forge.redeliver(site.forge.deliveries()[0].id).unwrap();
    let second = received.recv().await.unwrap();
    assert_eq!((first.delivery, first.body), (second.delivery, second.body));
    site.forge.deliveries_settled().await;
    let statuses: Vec<_> = site
        .forge
        .deliveries()
        .into_iter()
        .map(|it| (it.redelivery, it.status, it.status_code))
        .collect();
    assert_eq!(
        statuses,
        [(true, "OK".to_owned(), 202), (false, "OK".to_owned(), 202)]
    );
}
