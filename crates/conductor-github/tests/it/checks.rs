//! Conductor's own check run: one per effect.

use conductor_domain::id::CommitId;
use conductor_forge::state::{CheckStatus, Conclusion};
use conductor_forge::{Fault, When};
use conductor_port::forge::{Forge as _, NewCheck};
use reqwest::Method;

use crate::site::{REPO, Site, is_permanent, transient};

fn check(head: &str, title: &str) -> NewCheck {
    NewCheck {
        head: CommitId::parse(head).unwrap(),
        external_id: "run-1.9.0".into(),
        title: title.into(),
        summary: "command exited 0".into(),
        details_url: "http://127.0.0.1:1/runs/1".into(),
    }
}

/// RUN-9, RUN-4.
#[tokio::test]
async fn a_check_is_published_once_and_a_repeat_updates_it() {
    let site = Site::start().await;
    let head = site.push_change("# Oiled\n").await;
    site.forge.faults().next(
        Method::POST,
        &format!("/repos/{REPO}/check-runs"),
        Fault::Drop(When::AfterTheWrite),
    );
    let fault = site
        .client
        .publish_check(&site.repo, &check(&head, "first"))
        .await
        .unwrap_err();
    assert!(transient(&fault).is_some(), "{fault:?}");
    site.client
        .publish_check(&site.repo, &check(&head, "second"))
        .await
        .unwrap();
    let runs = site.forge.check_runs(REPO).unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].title.as_deref(), Some("second"));
    assert_eq!(
        (runs[0].status, runs[0].conclusion),
        (CheckStatus::Completed, Some(Conclusion::Success))
    );
    assert_eq!(runs[0].head_sha, head);
}

#[tokio::test]
async fn our_own_check_never_counts_as_a_failed_one_of_others() {
    let site = Site::start().await;
    let head = site.push_change("# Oiled\n").await;
    site.client
        .publish_check(&site.repo, &check(&head, "ours"))
        .await
        .unwrap();
    site.forge
        .report_check(REPO, &head, "build-bot", "Conductor", Conclusion::Success)
        .unwrap();
    site.client
        .publish_check(&site.repo, &check(&head, "ours again"))
        .await
        .unwrap();
    let titles: Vec<_> = site
        .forge
        .check_runs(REPO)
        .unwrap()
        .into_iter()
        .map(|run| run.title)
        .collect();
    assert_eq!(
        titles,
        [
            Some("ours again".to_owned()),
            Some("Conductor has ended".to_owned())
        ],
        "another App's run of the same name is left alone"
    );
}

#[tokio::test]
async fn a_check_on_an_unknown_commit_is_a_permanent_fault() {
    let site = Site::start().await;
    let fault = site
        .client
        .publish_check(&site.repo, &check(&"a".repeat(40), "x"))
        .await
        .unwrap_err();
    assert!(is_permanent(&fault), "{fault:?}");
}

/// RUN-4: a commit may have more checks than fit on a page.
#[tokio::test]
async fn a_lost_check_is_found_again_behind_many_others() {
    let site = Site::start().await;
    let head = site.push_change("# Oiled\n").await;
    let publish = async |title| site.client.publish_check(&site.repo, &check(&head, title)).await;
    publish("first").await.unwrap();
    for index in 0..120 {
        site.forge
            .report_check(
                REPO,
                &head,
                "build-bot",
                &format!("job {index}"),
                Conclusion::Success,
            )
            .unwrap();
    }
    publish("second").await.unwrap();
    let runs = site.forge.check_runs(REPO).unwrap();
    let ours: Vec<_> = runs
        .into_iter()
        .filter(|run| run.external_id == "run-1.9.0")
        .map(|run| run.title)
        .collect();
    assert_eq!(ours, [Some("second".to_owned())]);
}
