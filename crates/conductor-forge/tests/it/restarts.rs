//! A forge that is stopped, killed, or overtaken by its own repositories.

use conductor_forge::{Fault, Webhook, When};
use reqwest::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::rig::{REPO, Rig, move_branch};

/// GH-8.
#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let number = rig.alice.open_issue(REPO, "A", "body").unwrap();
    rig.alice.comment(REPO, number, "hello").unwrap();
    let head = rig.commit("topic", "a", "a").await;
    rig.forge
        .report_check(
            REPO,
            &head,
            "build-bot",
            "unit",
            conductor_forge::state::Conclusion::Failure,
        )
        .unwrap();
    let before = serde_json::to_value(rig.forge.repository(REPO).unwrap()).unwrap();
    let key = rig.forge.app_key_pem().to_owned();
    let rig = rig.restart().await;
    assert_eq!(
        serde_json::to_value(rig.forge.repository(REPO).unwrap()).unwrap(),
        before
    );
    assert_eq!(rig.forge.app_key_pem(), key);
    assert_eq!(
        rig.get(&format!("/repos/{REPO}"), &token).await.status,
        200,
        "tokens stay good"
    );
}

/// GH-8: a forge that was killed half-way through a write has the old state or the new.
#[tokio::test]
async fn a_half_written_file_is_not_read() {
    let rig = Rig::start().await;
    rig.alice.open_issue(REPO, "A", "").unwrap();
    std::fs::write(rig.data_dir().join("state.json.new"), b"{\"last_id\": 9").unwrap();
    let rig = rig.restart().await;
    assert_eq!(rig.forge.issue(REPO, 1).unwrap().title, "A");
    assert_eq!(rig.alice.open_issue(REPO, "B", "").unwrap(), 2);
}

/// GH-8: git took a push, and the forge was killed before it wrote that down.
#[tokio::test]
async fn a_push_that_was_taken_before_a_kill_is_noticed_at_the_start() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let first = rig.commit("topic", "a", "a").await;
    let body = json!({ "head": "topic", "base": "main", "title": "Oil" });
    rig.send(Method::POST, &format!("/repos/{REPO}/pulls"), &token, &body)
        .await;
    let second = rig.commit("other", "b", "b").await;
    move_branch(&rig.bare_repository(), "topic", &second);
    assert_eq!(rig.forge.pulls(REPO).unwrap()[0].head_sha, first);
    let rig = rig.restart().await;
    assert_eq!(rig.forge.pulls(REPO).unwrap()[0].head_sha, second);
}

/// GH-8: whoever waits for an answer does not decide whether the work is done.
#[tokio::test]
async fn a_client_that_hangs_up_does_not_undo_what_it_asked_for() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let path = format!("/repos/{REPO}/issues");
    rig.forge
        .faults()
        .next(Method::POST, &path, Fault::Hang(When::AfterTheWrite));
    let request = rig
        .request(Method::POST, &path, &token)
        .json(&json!({ "title": "A" }));
    let answer = request.timeout(std::time::Duration::from_secs(2)).send().await;
    assert!(answer.unwrap_err().is_timeout());
    assert_eq!(rig.forge.issue(REPO, 1).unwrap().title, "A");
}

#[tokio::test]
async fn a_second_repository_of_the_same_name_is_refused() {
    let rig = Rig::start().await;
    let again = rig
        .forge
        .import_repository("Acme", "WIDGETS", &rig.bare_repository())
        .await;
    assert_eq!(again.unwrap_err().status(), 422);
    let hostile = rig
        .forge
        .import_repository("acme", "../evil", &rig.bare_repository())
        .await;
    assert_eq!(hostile.unwrap_err().status(), 422);
}

/// GH-8: a git repository keeps its history and its default branch; an empty one is empty.
#[tokio::test]
async fn a_bare_repository_is_imported_with_its_branches() {
    let rig = Rig::start().await;
    let head = rig.commit("topic", "a", "a").await;
    rig.forge
        .import_repository("acme", "copy", &rig.bare_repository())
        .await
        .unwrap();
    let copy = rig.forge.repository("acme/copy").unwrap();
    assert_eq!(copy.heads.get("topic"), Some(&head));
    assert_eq!(
        copy.heads.get("main"),
        rig.forge.repository(REPO).unwrap().heads.get("main")
    );
    let empty = rig.data_dir().join("empty.git");
    #[allow(clippy::disallowed_methods, reason = "tests drive real git")]
    let made = std::process::Command::new("git")
        .args(["init", "-q", "--bare", "-b", "trunk"])
        .arg(&empty)
        .status();
    assert!(made.unwrap().success());
    rig.forge
        .import_repository("acme", "empty", &empty)
        .await
        .unwrap();
    let repo = rig.forge.repository("acme/empty").unwrap();
    assert_eq!((repo.default_branch.as_str(), repo.heads.len()), ("trunk", 0));
    let token = rig.token().await;
    assert_eq!(
        rig.get("/repos/acme/empty/git/ref/heads/trunk", &token)
            .await
            .status,
        409
    );
    assert_eq!(
        rig.get("/repos/acme/empty/branches/trunk", &token).await.status,
        404
    );
}

/// GH-2, GH-8: a forge that is stopped while its receiver is silent sends again when it is back.
#[tokio::test]
async fn a_delivery_without_an_outcome_is_sent_again_after_a_restart() {
    let rig = Rig::start().await;
    let receiver = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", receiver.local_addr().unwrap());
    rig.forge
        .set_webhook(Some(Webhook {
            url,
            secret: "s".into(),
        }))
        .unwrap();
    rig.alice.open_issue(REPO, "A", "").unwrap();
    let (silent, _) = receiver.accept().await.unwrap();
    let rig = rig.restart().await;
    drop(silent);
    let (mut stream, _) = receiver.accept().await.unwrap();
    let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    stream.write_all(answer).await.unwrap();
    rig.forge.deliveries_settled().await;
    let outcomes: Vec<_> = rig
        .forge
        .deliveries()
        .into_iter()
        .map(|it| (it.status_code, it.redelivery))
        .collect();
    assert_eq!(outcomes, [(204, false)]);
}

/// GH-8.
#[tokio::test(flavor = "multi_thread")]
async fn writes_made_at_once_are_all_kept() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let number = rig.alice.open_issue(REPO, "A", "").unwrap();
    let path = format!("/repos/{REPO}/issues/{number}/comments");
    let mut posts = tokio::task::JoinSet::new();
    for index in 0..50 {
        let request = rig
            .request(Method::POST, &path, &token)
            .json(&json!({ "body": format!("comment {index:02}") }));
        posts.spawn(async move { request.send().await.unwrap().status().as_u16() });
    }
    assert_eq!(posts.join_all().await, [201; 50]);
    let rig = rig.restart().await;
    let mut bodies: Vec<_> = rig
        .forge
        .comments(REPO, number)
        .unwrap()
        .into_iter()
        .map(|it| it.body)
        .collect();
    bodies.sort();
    let expected: Vec<_> = (0..50).map(|index| format!("comment {index:02}")).collect();
    assert_eq!(bodies, expected);
}
