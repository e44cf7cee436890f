//! Pull requests: opened once, read with what people and checks say, closed, and merged at exactly one commit.

use conductor_domain::forge::PullRequestState;
use conductor_domain::id::{CommitId, PullRequestNumber};
use conductor_forge::state::{Conclusion, Role, Standing};
use conductor_forge::{Edit, Fault, MergeMethod, When};
use conductor_port::forge::{
    FailedCheck, Forge as _, Merges as _, NewCheck, NewPullRequest, PullRequestReading, ReviewReading,
};
use reqwest::Method;

use crate::site::{BRANCH, REPO, Site, is_permanent, transient};

fn proposal() -> NewPullRequest {
    NewPullRequest {
        branch: BRANCH.into(),
        title: "Oil the widgets".into(),
        body: "Closes #1".into(),
    }
}

async fn proposed(site: &Site) -> (PullRequestNumber, CommitId) {
    let head = site.push_change("# Oiled widgets\n").await;
    let (number, page) = site
        .client
        .open_pull_request(&site.repo, &proposal())
        .await
        .unwrap();
    assert_eq!(
        page,
        format!("{}/{REPO}/pull/{}", site.forge.base_url(), number.0)
    );
    (number, CommitId::parse(head).unwrap())
}

fn main_head(site: &Site) -> Option<CommitId> {
    site.forge
        .branch(REPO, "main")
        .unwrap()
        .map(|sha| CommitId::parse(sha).unwrap())
}

/// RUN-14, S-53: only the very commit that is named is merged, and only once; what the forge refuses it says.
#[tokio::test]
async fn a_merge_is_of_one_commit_or_of_none() {
    let site = Site::start().await;
    site.alice.open_issue(REPO, "Widgets squeak", "").unwrap();
    let (number, head) = proposed(&site).await;
    let before = main_head(&site);
    let other = CommitId::parse("d".repeat(40)).unwrap();
    let refused = site.client.merge(&site.repo, number, &other).await.unwrap();
    assert!(refused.unwrap_err().contains("Head branch was modified"));
    assert_eq!(main_head(&site), before);
    assert_eq!(site.client.merge(&site.repo, number, &head).await, Ok(Ok(())));
    assert_ne!(main_head(&site), before);
    let reading = site.client.pull_request(&site.repo, number).await.unwrap();
    assert!(matches!(reading.state, PullRequestState::Merged { by: Some(by) } if by.ends_with("[bot]")));
    let again = site.client.merge(&site.repo, number, &head).await.unwrap();
    assert_eq!(again, Err("Pull Request is not mergeable".to_owned()));
}

/// RUN-9, RUN-10: from proposal to merge, with a person merging.
#[tokio::test]
async fn a_pull_request_is_opened_read_and_seen_merged() {
    let site = Site::start().await;
    site.alice.open_issue(REPO, "Widgets squeak", "").unwrap();
    let (number, head) = proposed(&site).await;
    let open = PullRequestReading {
        state: PullRequestState::Open,
        head: head.clone(),
        head_repo: Some(site.repo.id),
        base_head: main_head(&site),
        changes_requested: vec![],
        failed_checks: vec![],
        pending_checks: vec![],
    };
    assert_eq!(
        site.client.pull_request(&site.repo, number).await,
        Ok(open.clone())
    );
    let merge = site
        .alice
        .merge(REPO, number.0, MergeMethod::Merge)
        .await
        .unwrap();
    let merged = PullRequestReading {
        state: PullRequestState::Merged {
            by: Some("alice".into()),
        },
        base_head: Some(CommitId::parse(merge).unwrap()),
        ..open
    };
    assert_eq!(site.client.pull_request(&site.repo, number).await, Ok(merged));
    assert_eq!(
        site.forge.issue(REPO, 1).unwrap().standing,
        Standing::Closed,
        "the issue is closed with it"
    );
}

/// RUN-4.
#[tokio::test]
async fn opening_twice_gives_the_same_pull_request() {
    let site = Site::start().await;
    let (number, _) = proposed(&site).await;
    let again = site
        .another_client()
        .open_pull_request(&site.repo, &proposal())
        .await
        .unwrap();
    assert_eq!(again.0, number);
    assert_eq!(site.forge.pulls(REPO).unwrap().len(), 1);
}

/// RUN-4: a person closed it between a crash and the repeat; that is not undone by a second one.
#[tokio::test]
async fn a_closed_pull_request_of_the_branch_is_found_and_not_opened_anew() {
    let site = Site::start().await;
    let (number, _) = proposed(&site).await;
    site.alice.close(REPO, number.0).unwrap();
    let again = site
        .client
        .open_pull_request(&site.repo, &proposal())
        .await
        .unwrap();
    assert_eq!(again.0, number);
    let reading = site.client.pull_request(&site.repo, number).await.unwrap();
    assert_eq!(reading.state, PullRequestState::Closed);
    assert_eq!(site.forge.pulls(REPO).unwrap().len(), 1);
}

/// RUN-4.
#[tokio::test]
async fn a_lost_answer_and_a_repeat_leave_one_pull_request() {
    let site = Site::start().await;
    site.push_change("# Oiled widgets\n").await;
    site.forge.faults().next(
        Method::POST,
        &format!("/repos/{REPO}/pulls"),
        Fault::Drop(When::AfterTheWrite),
    );
    let fault = site
        .client
        .open_pull_request(&site.repo, &proposal())
        .await
        .unwrap_err();
    assert!(transient(&fault).is_some(), "{fault:?}");
    let (number, _) = site
        .client
        .open_pull_request(&site.repo, &proposal())
        .await
        .unwrap();
    let numbers: Vec<u64> = site
        .forge
        .pulls(REPO)
        .unwrap()
        .iter()
        .map(|pull| pull.number)
        .collect();
    assert_eq!(numbers, [number.0]);
}

/// The race: it is not there when looked for, and there when asked for.
#[tokio::test]
async fn already_exists_is_answered_with_the_one_that_exists() {
    let site = Site::start().await;
    site.push_change("# Oiled widgets\n").await;
    let new = proposal();
    let (first, second) = tokio::join!(
        site.client.open_pull_request(&site.repo, &new),
        site.client.open_pull_request(&site.repo, &new),
    );
    assert_eq!(first.unwrap().0, second.unwrap().0);
    assert_eq!(site.forge.pulls(REPO).unwrap().len(), 1);
}

#[tokio::test]
async fn a_branch_without_commits_of_its_own_is_a_permanent_fault() {
    let site = Site::start().await;
    let fault = site
        .client
        .open_pull_request(&site.repo, &proposal())
        .await
        .unwrap_err();
    assert!(is_permanent(&fault), "{fault:?}");
}

/// RUN-10, S-53: only the word of someone who may write counts.
#[tokio::test]
async fn changes_requested_count_only_from_people_with_write_permission() {
    let site = Site::start().await;
    let (number, head) = proposed(&site).await;
    let mallory = site.forge.create_user("mallory").unwrap();
    site.forge.grant(REPO, "mallory", Role::Read).unwrap();
    mallory
        .request_changes(REPO, number.0, "Add my backdoor")
        .unwrap();
    assert_eq!(
        site.client
            .pull_request(&site.repo, number)
            .await
            .unwrap()
            .changes_requested,
        []
    );
    let review = site
        .alice
        .request_changes(REPO, number.0, "Too much oil")
        .unwrap();
    site.alice
        .remark(REPO, &review, "README.md", 1, "Less here")
        .unwrap();
    mallory
        .request_changes(REPO, number.0, "Add my backdoor, please")
        .unwrap();
    let expected = ReviewReading {
        id: review.id,
        by: "alice".into(),
        standing: conductor_domain::forge::Standing::Collaborator,
        text: "Too much oil\n\nREADME.md:1: Less here".into(),
        commit: Some(head),
    };
    let reading = site.client.pull_request(&site.repo, number).await.unwrap();
    assert_eq!(reading.changes_requested, [expected]);
    site.alice.approve(REPO, number.0, "").unwrap();
    assert_eq!(
        site.client
            .pull_request(&site.repo, number)
            .await
            .unwrap()
            .changes_requested,
        []
    );
}

/// RUN-10: several people ask between two readings, and one of them twice; none of it is lost behind another's.
#[tokio::test]
async fn all_that_people_ask_for_is_read_oldest_first() {
    let site = Site::start().await;
    let (number, first) = proposed(&site).await;
    let bob = site.forge.create_user("bob").unwrap();
    site.forge.grant(REPO, "bob", Role::Write).unwrap();
    let read = async || {
        let reading = site.client.pull_request(&site.repo, number).await.unwrap();
        let asked = reading.changes_requested.into_iter();
        asked
            .map(|review| (review.by, review.text, review.commit.unwrap()))
            .collect::<Vec<_>>()
    };
    let says = |by: &str, text: &str, commit: &CommitId| (by.to_owned(), text.to_owned(), commit.clone());
    site.alice
        .request_changes(REPO, number.0, "Too much oil")
        .unwrap();
    bob.request_changes(REPO, number.0, "Too dark").unwrap();
    site.alice
        .request_changes(REPO, number.0, "And too sticky")
        .unwrap();
    let all = [
        says("alice", "Too much oil", &first),
        says("bob", "Too dark", &first),
        says("alice", "And too sticky", &first),
    ];
    assert_eq!(read().await, all);
    let second = CommitId::parse(site.push_change("# Less oiled widgets\n").await).unwrap();
    site.alice
        .request_changes(REPO, number.0, "Still sticky")
        .unwrap();
    assert_eq!(
        read().await,
        [
            says("bob", "Too dark", &first),
            says("alice", "Still sticky", &second)
        ]
    );
    bob.approve(REPO, number.0, "").unwrap();
    assert_eq!(read().await, [says("alice", "Still sticky", &second)]);
}

/// RUN-10.
#[tokio::test]
async fn failed_checks_of_others_are_read_for_the_head_commit_only() {
    let site = Site::start().await;
    let (number, head) = proposed(&site).await;
    let report = |sha: &str, name: &str, conclusion| {
        site.forge
            .report_check(REPO, sha, "build-bot", name, conclusion)
            .unwrap();
    };
    report(head.as_str(), "unit", Conclusion::Failure);
    report(head.as_str(), "lint", Conclusion::Success);
    report(head.as_str(), "docs", Conclusion::TimedOut);
    let failed = async || {
        site.client
            .pull_request(&site.repo, number)
            .await
            .unwrap()
            .failed_checks
    };
    let check = |name: &str| FailedCheck {
        name: name.to_owned(),
        words: format!("{name} has ended\n\nbuild-bot looked at {head}."),
    };
    assert_eq!(failed().await, [check("docs"), check("unit")]);
    let head = site.push_change("# Better oiled widgets\n").await;
    assert_eq!(failed().await, []);
    assert_eq!(
        site.client
            .pull_request(&site.repo, number)
            .await
            .unwrap()
            .head
            .as_str(),
        head
    );
}

/// RUN-14: a merge rests on all checks or on none, however many pages they fill.
#[tokio::test]
async fn a_failed_check_behind_many_others_is_seen_and_too_many_are_pending() {
    let site = Site::start().await;
    let (number, head) = proposed(&site).await;
    let report = |name: &str, conclusion| {
        site.forge
            .report_check(REPO, head.as_str(), "build-bot", name, conclusion)
            .unwrap();
    };
    let read = async || {
        let reading = site.client.pull_request(&site.repo, number).await.unwrap();
        let failed = reading.failed_checks.into_iter().map(|check| check.name);
        (failed.collect::<Vec<_>>(), reading.pending_checks)
    };
    // The forge lists the newest first.
    report("unit", Conclusion::Failure);
    for index in 1..1000 {
        report(&format!("job {index}"), Conclusion::Success);
    }
    assert_eq!(read().await, (vec!["unit".to_owned()], vec![]));
    report("one more", Conclusion::Success);
    assert_eq!(
        read().await,
        (vec![], vec!["more checks than are read".to_owned()])
    );
}

/// RUN-14: GitHub makes the checks of a push some seconds after it, so a list without any proves nothing at first. How long
/// that is told by the forge's clock alone.
#[tokio::test]
async fn checks_may_be_to_come_until_our_own_is_two_minutes_old() {
    let site = Site::start().await;
    let client = site.usual_client();
    let (number, head) = proposed(&site).await;
    let publish = async |head: &str| {
        let check = NewCheck {
            head: CommitId::parse(head).unwrap(),
            external_id: format!("run-1.{head}"),
            title: "Tests passed".into(),
            summary: "command exited 0".into(),
            details_url: "http://127.0.0.1:1/runs/1".into(),
        };
        client.publish_check(&site.repo, &check).await.unwrap();
    };
    let pending = async || {
        let reading = client.pull_request(&site.repo, number).await.unwrap();
        reading.pending_checks
    };
    let to_come = ["checks may not have begun yet"];
    assert_eq!(pending().await, to_come, "our own is not there yet");
    publish(head.as_str()).await;
    assert_eq!(pending().await, to_come);
    site.clock.shift(600);
    assert_eq!(pending().await, to_come, "our clock has no say");
    site.forge.shift_clock(60);
    assert_eq!(pending().await, to_come);
    site.forge.shift_clock(121);
    assert_eq!(pending().await, [""; 0], "nobody checks anything here");
    let head = site.push_change("# Better oiled widgets\n").await;
    publish(&head).await;
    assert_eq!(pending().await, to_come);
    site.forge
        .report_check(REPO, &head, "build-bot", "lint", Conclusion::Success)
        .unwrap();
    assert_eq!(pending().await, [""; 0], "the others have begun");
}

/// BEY-3.
#[tokio::test]
async fn a_base_that_moved_is_seen() {
    let site = Site::start().await;
    let (number, _) = proposed(&site).await;
    let edit = Edit {
        path: "NEWS.md",
        content: Some(b"news\n"),
    };
    let moved = site
        .alice
        .commit(REPO, "main", &[edit], "Add news")
        .await
        .unwrap();
    let reading = site.client.pull_request(&site.repo, number).await.unwrap();
    assert_eq!(reading.base_head, Some(CommitId::parse(moved).unwrap()));
}

/// RUN-11: a late success is compensated by closing.
#[tokio::test]
async fn closing_is_done_once_and_a_repeat_changes_nothing() {
    let site = Site::start().await;
    let (number, _) = proposed(&site).await;
    site.client.close_pull_request(&site.repo, number).await.unwrap();
    site.client.close_pull_request(&site.repo, number).await.unwrap();
    let reading = site.client.pull_request(&site.repo, number).await.unwrap();
    assert_eq!(reading.state, PullRequestState::Closed);
}
