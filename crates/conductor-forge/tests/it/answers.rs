//! The manners of every answer: errors, headers, pages, tags, limits.

use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::{REPO, Rig, read, sign};

/// GH-8.
#[tokio::test]
async fn malformed_requests_are_told_apart_as_github_does() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let path = format!("/repos/{REPO}/issues");
    let post = async |body: &'static str| {
        read(
            rig.request(Method::POST, &path, &token)
                .body(body)
                .send()
                .await
                .unwrap(),
        )
        .await
    };
    assert_eq!(post("{").await.message(), (400, "Problems parsing JSON"));
    assert_eq!(post("[]").await.message(), (400, "Body should be a JSON object"));
    let missing = post("{}").await;
    assert_eq!(missing.message(), (422, "Validation Failed"));
    assert_eq!(missing.body["errors"][0]["code"], "missing_field");
    assert_eq!(missing.body["status"], "422", "the status is a string");
    assert_eq!(post(r#"{"title":5}"#).await.status, 422);
    assert_eq!(
        rig.get(&format!("{path}/"), &token).await.status,
        404,
        "a trailing slash is another path"
    );
    assert_eq!(rig.send(Method::PUT, &path, &token, &json!({})).await.status, 404);
}

/// GH-8.
#[tokio::test]
async fn a_user_agent_is_required_and_unknown_api_versions_are_refused() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let request = || rig.request(Method::GET, &format!("/repos/{REPO}"), &token);
    assert_eq!(
        read(request().header("user-agent", "").send().await.unwrap())
            .await
            .status,
        403
    );
    let version = |version: &str| request().header("x-github-api-version", version);
    assert_eq!(
        read(version("2022-11-28").send().await.unwrap()).await.status,
        200
    );
    assert_eq!(
        read(version("2026-03-10").send().await.unwrap()).await.status,
        400
    );
}

/// GH-8: clients follow the links they are given and nothing else.
#[tokio::test]
async fn following_next_visits_every_issue_once_under_the_host_that_was_asked() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    for index in 0..7 {
        rig.alice.open_issue(REPO, &format!("Issue {index}"), "").unwrap();
    }
    let first = format!("/api/v3/repos/{REPO}/issues?per_page=3&direction=asc");
    let mut url = format!("{}{first}", rig.forge.base_url());
    let mut numbers = Vec::new();
    loop {
        let answer = read(rig.http.get(&url).bearer_auth(&token).send().await.unwrap()).await;
        numbers.extend(
            answer
                .body
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["number"].as_u64().unwrap()),
        );
        assert!(
            answer.body[0]["url"]
                .as_str()
                .unwrap()
                .starts_with(&format!("{}/api/v3/", rig.forge.base_url()))
        );
        let links = answer.header("link").to_owned();
        let Some(next) = links.split(", ").find(|link| link.ends_with("rel=\"next\"")) else {
            break;
        };
        url = next[1..next.find('>').unwrap()].to_owned();
    }
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    let all = rig
        .get(&format!("/repos/{REPO}/issues?per_page=1000"), &token)
        .await;
    assert_eq!(all.header("link"), "", "one page holds all");
}

/// GH-2: conditional requests cost nothing.
#[tokio::test]
async fn an_unchanged_answer_is_304_and_free() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let path = format!("/repos/{REPO}/issues");
    let first = rig.get(&path, &token).await;
    let again = rig
        .request(Method::GET, &path, &token)
        .header("if-none-match", first.header("etag"));
    let again = read(again.send().await.unwrap()).await;
    assert_eq!((again.status, again.body), (304, Value::String(String::new())));
    assert_eq!(
        again.headers["x-ratelimit-remaining"],
        first.headers["x-ratelimit-remaining"]
    );
    rig.alice.open_issue(REPO, "New", "").unwrap();
    let changed = rig
        .request(Method::GET, &path, &token)
        .header("if-none-match", first.header("etag"));
    assert_eq!(read(changed.send().await.unwrap()).await.status, 200);
}

/// GH-4.
#[tokio::test]
async fn a_used_up_budget_is_refused_until_the_hour_is_over() {
    let rig = Rig::start_with(|options| options.hourly_limit = 2).await;
    let token = rig.token().await;
    let path = format!("/repos/{REPO}");
    assert_eq!(rig.get(&path, &token).await.header("x-ratelimit-remaining"), "1");
    assert_eq!(rig.get(&path, &token).await.header("x-ratelimit-remaining"), "0");
    let refused = rig.get(&path, &token).await;
    assert_eq!(refused.status, 403);
    assert!(
        refused
            .message()
            .1
            .starts_with("API rate limit exceeded for installation ID")
    );
    assert_eq!(refused.header("x-ratelimit-remaining"), "0");
    assert_eq!(
        rig.get("/rate_limit", &token).await.body["resources"]["core"]["remaining"],
        0
    );
    rig.forge.shift_clock(3000);
    assert_eq!(rig.get(&path, &token).await.status, 403);
    rig.forge.shift_clock(3601);
    let renewed = sign(
        rig.forge.app_key_pem(),
        &rig.forge.app_id().to_string(),
        3541,
        4141,
    );
    let id = rig.forge.installation_id("acme").unwrap();
    let mint = format!("/app/installations/{id}/access_tokens");
    let minted = rig.send(Method::POST, &mint, &renewed, &json!({})).await;
    let token = minted.body["token"].as_str().unwrap();
    assert_eq!(rig.get(&path, token).await.header("x-ratelimit-remaining"), "1");
}

/// GH-8: strict clients reject milliseconds.
#[tokio::test]
async fn times_have_whole_seconds() {
    let rig = Rig::start().await;
    let minted = rig.mint(&json!({})).await;
    let text = minted.body["expires_at"].as_str().unwrap();
    assert_eq!(text.len(), "2026-11-15T21:38:21Z".len(), "{text}");
    assert!(text.ends_with('Z'));
}

/// GH-8: a renamed repository is found by its number.
#[tokio::test]
async fn a_renamed_repository_answers_301_to_its_numeric_address() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    rig.alice.open_issue(REPO, "A", "").unwrap();
    let id = rig.forge.repository(REPO).unwrap().id;
    rig.forge.rename_repository(REPO, "sprockets").unwrap();
    let moved = rig.get(&format!("/repos/{REPO}/issues/1"), &token).await;
    assert_eq!(moved.status, 301);
    let location = moved.header("location").to_owned();
    assert_eq!(
        location,
        format!("{}/repositories/{id}/issues/1", rig.forge.base_url())
    );
    let found = read(rig.http.get(location).bearer_auth(&token).send().await.unwrap()).await;
    assert_eq!(found.body["title"], "A");
}
