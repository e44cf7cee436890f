//! Check runs and suites.

use conductor_forge::state::{CheckStatus, Conclusion};
use reqwest::Method;
use serde_json::json;

use crate::rig::{REPO, Rig};

/// GH-8: what public mocks of the API let pass.
#[tokio::test]
async fn a_completed_check_needs_a_conclusion_and_an_app() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let head = rig.commit("topic", "a", "a").await;
    let path = format!("/repos/{REPO}/check-runs");
    let wish = json!({ "name": "C", "head_sha": head, "status": "completed" });
    assert_eq!(rig.send(Method::POST, &path, &token, &wish).await.status, 422);
    assert_eq!(
        rig.forge.check_runs(REPO).unwrap(),
        [],
        "a refused change leaves nothing behind"
    );
    let wish = json!({ "name": "C", "head_sha": head, "conclusion": "success" });
    let created = rig.send(Method::POST, &path, &token, &wish).await;
    assert_eq!(
        (created.status, created.body["status"].as_str()),
        (201, Some("completed"))
    );
    let personal = rig.forge.personal_token("alice").unwrap();
    assert_eq!(rig.send(Method::POST, &path, &personal, &wish).await.status, 403);
    let unknown = json!({ "name": "C", "head_sha": "a".repeat(40) });
    assert_eq!(rig.send(Method::POST, &path, &token, &unknown).await.status, 422);
}

/// GH-8.
#[tokio::test]
async fn a_suite_completes_with_its_worst_run_and_each_app_has_its_own() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let head = rig.commit("topic", "a", "a").await;
    let path = format!("/repos/{REPO}/check-runs");
    let ours = rig
        .send(
            Method::POST,
            &path,
            &token,
            &json!({ "name": "C", "head_sha": head }),
        )
        .await;
    rig.forge
        .report_check(REPO, &head, "build-bot", "lint", Conclusion::Success)
        .unwrap();
    let theirs = rig
        .forge
        .report_check(REPO, &head, "build-bot", "unit", Conclusion::Failure)
        .unwrap();
    assert_eq!(theirs.status, CheckStatus::Completed);
    let suites = rig
        .get(&format!("/repos/{REPO}/commits/topic/check-suites"), &token)
        .await;
    let states: Vec<_> = suites.body["check_suites"]
        .as_array()
        .unwrap()
        .iter()
        .map(|suite| {
            (
                suite["app"]["slug"].clone(),
                suite["status"].clone(),
                suite["conclusion"].clone(),
            )
        })
        .collect();
    let expected = [
        (json!("conductor"), json!("in_progress"), json!(null)),
        (json!("build-bot"), json!("completed"), json!("failure")),
    ];
    assert_eq!(states, expected);
    let foreign = format!("{path}/{}", theirs.id);
    let foreign_edit = rig
        .send(
            Method::PATCH,
            &foreign,
            &token,
            &json!({ "conclusion": "success" }),
        )
        .await;
    assert_eq!(
        foreign_edit.status, 403,
        "another App's run is not ours to change"
    );
    let id = ours.body["id"].as_u64().unwrap();
    rig.send(
        Method::PATCH,
        &format!("{path}/{id}"),
        &token,
        &json!({ "conclusion": "success" }),
    )
    .await;
    let app = format!(
        "/repos/{REPO}/commits/{head}/check-runs?app_id={}",
        rig.forge.app_id()
    );
    let listed = rig.get(&app, &token).await;
    assert_eq!(
        (&listed.body["total_count"], &listed.body["check_runs"][0]["id"]),
        (&json!(1), &json!(id))
    );
}
