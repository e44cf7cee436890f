//! Issues and comments over REST.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;

use crate::rig::{REPO, Rig};

/// GH-5: the limit counts characters, and 65 536 are allowed.
#[tokio::test]
async fn the_longest_comment_is_taken_and_one_character_more_is_not() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let number = rig.alice.open_issue(REPO, "A", "").unwrap();
    let path = format!("/repos/{REPO}/issues/{number}/comments");
    let longest = "ü".repeat(65_536);
    let accepted = rig
        .send(Method::POST, &path, &token, &json!({ "body": longest }))
        .await;
    assert_eq!(accepted.status, 201);
    assert_eq!(
        accepted.header("location"),
        accepted.body["url"].as_str().unwrap()
    );
    let refused = rig
        .send(Method::POST, &path, &token, &json!({ "body": longest + "ü" }))
        .await;
    assert_eq!(refused.status, 422);
    assert_eq!(refused.body["errors"][0]["field"], "body");
    assert_eq!(rig.forge.comments(REPO, number).unwrap().len(), 1);
}

/// GH-8.
#[tokio::test]
async fn a_comment_can_be_edited_and_since_finds_what_changed() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let number = rig.alice.open_issue(REPO, "A", "").unwrap();
    let path = format!("/repos/{REPO}/issues/{number}/comments");
    let first = rig
        .send(Method::POST, &path, &token, &json!({ "body": "first" }))
        .await;
    rig.send(Method::POST, &path, &token, &json!({ "body": "second" }))
        .await;
    rig.forge.shift_clock(100);
    let edit = format!("/repos/{REPO}/issues/comments/{}", first.body["id"]);
    let edited = rig
        .send(Method::PATCH, &edit, &token, &json!({ "body": "edited" }))
        .await;
    let since = edited.body["updated_at"].as_str().unwrap();
    let changed = rig.get(&format!("{path}?since={since}"), &token).await;
    assert_eq!(changed.body.as_array().unwrap().len(), 1);
    assert_eq!(changed.body[0]["body"], "edited");
    assert_eq!(changed.body[0]["user"]["login"], "conductor[bot]");
    assert_eq!(
        changed.body[0]["performed_via_github_app"]["id"],
        rig.forge.app_id()
    );
    assert_eq!(
        rig.get(&format!("{path}?since=yesterday"), &token).await.status,
        422
    );
}

/// GH-8.
#[tokio::test]
async fn deleted_issues_are_gone_for_reading_and_for_writing() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let number = rig.alice.open_issue(REPO, "A", "").unwrap();
    rig.alice.delete_issue(REPO, number).unwrap();
    let path = format!("/repos/{REPO}/issues/{number}");
    assert_eq!(
        rig.get(&path, &token).await.message(),
        (410, "This issue was deleted")
    );
    let comment = rig
        .send(
            Method::POST,
            &format!("{path}/comments"),
            &token,
            &json!({ "body": "x" }),
        )
        .await;
    assert_eq!(comment.status, 410);
    let listed = rig.get(&format!("/repos/{REPO}/issues?state=all"), &token).await;
    assert_eq!(listed.body, json!([]));
}

/// GH-8: strict clients reject a user with a key missing.
#[tokio::test]
async fn users_are_complete() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let number = rig.alice.open_issue(REPO, "A", "").unwrap();
    let issue = rig.get(&format!("/repos/{REPO}/issues/{number}"), &token).await;
    // The order of an object's names means nothing.
    let keys: BTreeSet<&str> = issue.body["user"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = BTreeSet::from([
        "avatar_url",
        "events_url",
        "followers_url",
        "following_url",
        "gists_url",
        "gravatar_id",
        "html_url",
        "id",
        "login",
        "node_id",
        "organizations_url",
        "received_events_url",
        "repos_url",
        "site_admin",
        "starred_url",
        "subscriptions_url",
        "type",
        "url",
    ]);
    assert_eq!(keys, expected);
}

/// GH-8: a stranger has no hands here.
#[tokio::test]
async fn people_act_only_where_they_are_let_in() {
    let rig = Rig::start().await;
    let number = rig.alice.open_issue(REPO, "A", "").unwrap();
    let mallory = rig.forge.create_user("mallory").unwrap();
    assert_eq!(mallory.comment(REPO, number, "x").unwrap_err().status(), 404);
    rig.forge
        .grant(REPO, "mallory", conductor_forge::state::Role::Read)
        .unwrap();
    mallory.comment(REPO, number, "x").unwrap();
    let edit = conductor_forge::Edit {
        path: "x",
        content: Some(b"x"),
    };
    assert_eq!(
        mallory
            .commit(REPO, "main", &[edit], "x")
            .await
            .unwrap_err()
            .status(),
        403
    );
}
