//! Pull requests over REST and by people.

use conductor_forge::MergeMethod;
use conductor_forge::state::Standing;
use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::{Answer, REPO, Rig};

async fn open(rig: &Rig, token: &str, head: &str) -> Answer {
    let body = json!({ "head": head, "base": "main", "title": "Oil", "body": "Closes #1" });
    rig.send(Method::POST, &format!("/repos/{REPO}/pulls"), token, &body)
        .await
}

async fn merge(rig: &Rig, token: &str, number: u64, body: &Value) -> Answer {
    rig.send(
        Method::PUT,
        &format!("/repos/{REPO}/pulls/{number}/merge"),
        token,
        body,
    )
    .await
}

/// GH-8.
#[tokio::test]
async fn a_branch_gets_one_open_pull_request() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    assert_eq!(
        open(&rig, &token, "topic").await.body["errors"][0]["code"],
        "invalid",
        "no such branch"
    );
    let head = rig.commit("topic", "a", "a").await;
    let opened = open(&rig, &token, "acme:topic").await;
    assert_eq!(opened.status, 201);
    assert_eq!(
        (&opened.body["head"]["sha"], &opened.body["commits"]),
        (&json!(head), &json!(1))
    );
    let again = open(&rig, &token, "topic").await;
    assert_eq!(again.status, 422);
    assert_eq!(
        again.body["errors"][0]["message"],
        "A pull request already exists for acme:topic."
    );
    assert_eq!(open(&rig, &token, "main").await.status, 422, "no commits between");
    let listed = rig
        .get(&format!("/repos/{REPO}/pulls?head=acme:topic&state=open"), &token)
        .await;
    assert_eq!(listed.body.as_array().unwrap().len(), 1);
    let listed = rig
        .get(&format!("/repos/{REPO}/pulls?head=acme:other"), &token)
        .await;
    assert_eq!(listed.body, json!([]));
}

/// GH-8: `null` first, as while GitHub computes.
#[tokio::test]
async fn mergeable_is_unknown_then_true_then_false_after_a_conflict() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    rig.commit("topic", "README.md", "ours\n").await;
    let number = open(&rig, &token, "topic").await.body["number"].as_u64().unwrap();
    let mergeable = async || {
        rig.get(&format!("/repos/{REPO}/pulls/{number}"), &token)
            .await
            .body["mergeable"]
            .clone()
    };
    assert_eq!(mergeable().await, Value::Null);
    assert_eq!(mergeable().await, json!(true));
    rig.commit("main", "README.md", "theirs\n").await;
    assert_eq!(mergeable().await, json!(false));
    assert_eq!(merge(&rig, &token, number, &json!({})).await.status, 405);
}

/// GH-8, RUN-10.
#[tokio::test]
async fn merging_needs_the_head_that_was_seen_and_happens_once() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let issue = rig.alice.open_issue(REPO, "Squeak", "").unwrap();
    let head = rig.commit("topic", "a", "a").await;
    let number = open(&rig, &token, "topic").await.body["number"].as_u64().unwrap();
    assert_eq!(
        merge(&rig, &token, number, &json!({ "sha": "0".repeat(40) }))
            .await
            .status,
        409
    );
    let merged = merge(
        &rig,
        &token,
        number,
        &json!({ "sha": head, "merge_method": "squash" }),
    )
    .await;
    assert_eq!(merged.body["merged"], true);
    assert_eq!(
        rig.forge.branch(REPO, "main").unwrap().as_deref(),
        merged.body["sha"].as_str()
    );
    assert_eq!(merge(&rig, &token, number, &json!({})).await.status, 405);
    assert_eq!(
        rig.get(&format!("/repos/{REPO}/pulls/{number}/merge"), &token)
            .await
            .status,
        204
    );
    assert_eq!(rig.forge.issue(REPO, issue).unwrap().standing, Standing::Closed);
    let reopened = rig.alice.reopen(REPO, number);
    assert_eq!(reopened.unwrap_err().status(), 422);
}

#[tokio::test]
async fn only_people_who_may_write_merge() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    rig.commit("topic", "a", "a").await;
    let number = open(&rig, &token, "topic").await.body["number"].as_u64().unwrap();
    let mallory = rig.forge.create_user("mallory").unwrap();
    rig.forge
        .grant(REPO, "mallory", conductor_forge::state::Role::Read)
        .unwrap();
    assert_eq!(
        mallory
            .merge(REPO, number, MergeMethod::Merge)
            .await
            .unwrap_err()
            .status(),
        403
    );
    let personal = rig.forge.personal_token("mallory").unwrap();
    assert_eq!(merge(&rig, &personal, number, &json!({})).await.status, 403);
    rig.alice.merge(REPO, number, MergeMethod::Merge).await.unwrap();
}

/// GH-8: a push moves the head; a deleted branch closes the pull request; a push of the head to the base
/// merges it.
#[tokio::test]
async fn branches_decide_the_fate_of_their_pull_requests() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    rig.commit("topic", "a", "a").await;
    let number = open(&rig, &token, "topic").await.body["number"].as_u64().unwrap();
    let moved = rig.commit("topic", "a", "b").await;
    assert_eq!(rig.forge.pulls(REPO).unwrap()[0].head_sha, moved);
    let path = format!("/repos/{REPO}/git/refs/heads/topic");
    assert_eq!(
        rig.send(Method::DELETE, &path, &token, &json!({})).await.status,
        204
    );
    assert_eq!(rig.forge.issue(REPO, number).unwrap().standing, Standing::Closed);
    assert_eq!(rig.alice.reopen(REPO, number).unwrap_err().status(), 422);
    assert_eq!(
        rig.send(Method::DELETE, &path, &token, &json!({})).await.status,
        422
    );

    let head = rig.commit("second", "c", "c").await;
    let number = open(&rig, &token, "second").await.body["number"]
        .as_u64()
        .unwrap();
    crate::rig::move_branch(&rig.bare_repository(), "main", &head);
    rig.commit("main", "d", "d").await;
    let pull = rig.get(&format!("/repos/{REPO}/pulls/{number}"), &token).await;
    assert_eq!(
        (&pull.body["merged"], &pull.body["merged_by"]["login"]),
        (&json!(true), &json!("alice"))
    );
}

/// GH-8.
#[tokio::test]
async fn nobody_approves_their_own_and_a_created_review_is_200() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    rig.commit("topic", "a", "a").await;
    let number = open(&rig, &token, "topic").await.body["number"].as_u64().unwrap();
    let path = format!("/repos/{REPO}/pulls/{number}/reviews");
    let own = rig
        .send(Method::POST, &path, &token, &json!({ "event": "APPROVE" }))
        .await;
    assert_eq!(own.message(), (422, "Can not approve your own pull request"));
    let personal = rig.forge.personal_token("alice").unwrap();
    let review = rig
        .send(Method::POST, &path, &personal, &json!({ "event": "APPROVE" }))
        .await;
    assert_eq!(
        (review.status, review.body["state"].as_str()),
        (200, Some("APPROVED"))
    );
    let silent = rig
        .send(
            Method::POST,
            &path,
            &personal,
            &json!({ "event": "REQUEST_CHANGES" }),
        )
        .await;
    assert_eq!(silent.status, 422, "a demand has to say what");
}
