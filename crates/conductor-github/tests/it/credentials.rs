//! Signing in: keys, clocks, scopes, and fresh tokens.

use std::sync::Arc;

use conductor_domain::forge::IssueProblem;
use conductor_domain::id::{IssueNumber, RepoId};
use conductor_domain::spec::RepoRef;
use conductor_forge::{Fault, Forge, Options, When};
use conductor_github::{Client, Config};
use conductor_port::forge::Forge as _;
use reqwest::Method;
use secrecy::SecretString;

use crate::site::{REPO, Site, TestClock, describe, is_permanent, transient};

/// GH-1.
#[tokio::test]
async fn another_apps_key_is_refused_for_good() {
    let site = Site::start().await;
    let stranger = Forge::start(Options::in_dir(site.path("stranger")))
        .await
        .unwrap();
    let key = SecretString::from(stranger.app_key_pem().to_owned());
    let config = Config::new(site.forge.base_url(), site.forge.app_id(), key);
    let client = Client::new(config, Arc::new(TestClock::default())).unwrap();
    let fault = client.repository("acme", "widgets").await.unwrap_err();
    assert!(is_permanent(&fault) && fault.what.contains("401"), "{fault:?}");
}

/// GH-1.
#[tokio::test]
async fn another_apps_id_is_refused_for_good() {
    let site = Site::start().await;
    let key = SecretString::from(site.forge.app_key_pem().to_owned());
    let client = Client::new(Config::new(site.forge.base_url(), 4242, key), site.clock.clone()).unwrap();
    assert_eq!(
        client.repository("acme", "widgets").await,
        Ok(None),
        "GitHub says not found"
    );
}

/// GH-1: our clock is wrong by an hour; the first answer tells, the repeat succeeds.
#[tokio::test]
async fn a_skewed_clock_is_corrected_from_the_first_answer() {
    for hours in [-1, 1] {
        let site = Site::start().await;
        site.forge.shift_clock(hours * 3600);
        let client = site.another_client();
        let fault = client.repository("acme", "widgets").await.unwrap_err();
        assert!(transient(&fault).is_some(), "{fault:?}");
        assert!(fault.what.contains("our clock is"), "{fault}");
        describe(&client, "acme", "widgets").await;
    }
}

/// GH-1, S-53: a token reaches only the repository that it was minted for, by numeric id.
#[tokio::test]
async fn a_repository_that_took_over_a_name_is_not_reached_with_the_old_id() {
    let site = Site::start().await;
    let other = site.path("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("x"), "x").unwrap();
    site.forge
        .import_repository("acme", "gadgets", &other)
        .await
        .unwrap();
    let impostor = RepoRef {
        name: "gadgets".into(),
        ..site.repo.clone()
    };
    let problem = site.client.issue(&impostor, IssueNumber(1)).await;
    let fault = problem.unwrap_err();
    assert!(
        transient(&fault).is_some(),
        "a fresh token cannot tell yet: {fault:?}"
    );
    site.clock.shift(31);
    assert_eq!(
        site.client.issue(&impostor, IssueNumber(1)).await,
        Ok(Err(IssueProblem::NotFound))
    );
    let nowhere = RepoRef {
        id: RepoId(999_999),
        ..site.repo.clone()
    };
    let fault = site.client.issue(&nowhere, IssueNumber(1)).await.unwrap_err();
    assert!(is_permanent(&fault) && fault.what.contains("422"), "{fault:?}");
}

/// GH-1: GitHub needs seconds until all of its machines know a token.
#[tokio::test]
async fn a_fresh_token_that_is_refused_is_transient_and_used_again() {
    let site = Site::start().await;
    let number = site.alice.open_issue(REPO, "Widgets squeak", "").unwrap();
    let client = site.another_client();
    site.forge.faults().refuse_fresh_tokens(2);
    for _ in 0..2 {
        let fault = client.issue(&site.repo, IssueNumber(number)).await.unwrap_err();
        assert_eq!(transient(&fault).map(|it| it.0), Some(3000), "{fault:?}");
    }
    client
        .issue(&site.repo, IssueNumber(number))
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn an_unknown_issue_is_known_to_be_unknown_even_with_a_fresh_token() {
    let site = Site::start().await;
    let problem = site.another_client().issue(&site.repo, IssueNumber(77)).await;
    assert_eq!(problem, Ok(Err(IssueProblem::NotFound)));
}

/// BEY-7, GH-1: the kill switch takes tokens back; afterwards new ones are minted, and only then.
#[tokio::test]
async fn revoked_tokens_are_refused_at_once_and_never_handed_out_again() {
    let site = Site::start().await;
    let number = IssueNumber(site.alice.open_issue(REPO, "Widgets squeak", "").unwrap());
    site.client.issue(&site.repo, number).await.unwrap().unwrap();
    let token = site.client.git_token(&site.repo).await.unwrap().unwrap();
    assert_eq!(site.client.revoke_tokens().await, []);
    assert_eq!(comment_with(&site, &token.0, number.0).await, 401);
    let after = site.client.git_token(&site.repo).await.unwrap().unwrap();
    assert_ne!(token.0, after.0, "a revoked token is not handed out again");
    site.client.issue(&site.repo, number).await.unwrap().unwrap();
}

/// GH-1.
#[tokio::test]
async fn tokens_are_cached_and_renewed_before_they_expire() {
    let site = Site::start().await;
    let first = site.client.git_token(&site.repo).await.unwrap().unwrap().0;
    assert_eq!(site.client.git_token(&site.repo).await.unwrap().unwrap().0, first);
    site.clock.shift(56 * 60);
    site.forge.shift_clock(56 * 60);
    assert_ne!(site.client.git_token(&site.repo).await.unwrap().unwrap().0, first);
}

/// GH-1: each use has its own least permissions.
#[tokio::test]
async fn a_git_token_cannot_comment() {
    let site = Site::start().await;
    let number = site.alice.open_issue(REPO, "Widgets squeak", "").unwrap();
    let token = site.client.git_token(&site.repo).await.unwrap().unwrap().0;
    assert_eq!(comment_with(&site, &token, number).await, 403);
}

/// GH-1: what a token may do can be the last thing that GitHub's machines learn about it.
#[tokio::test]
async fn forbidden_is_transient_for_a_fresh_token_and_final_for_an_older_one() {
    let site = Site::start().await;
    let number = IssueNumber(site.alice.open_issue(REPO, "Widgets squeak", "").unwrap());
    let forbidden = || {
        let fault = Fault::Status {
            status: 403,
            when: When::BeforeTheWrite,
        };
        site.forge
            .faults()
            .next(Method::GET, &format!("/repos/{REPO}/issues"), fault);
    };
    forbidden();
    assert!(transient(&site.client.issue(&site.repo, number).await.unwrap_err()).is_some());
    site.clock.shift(31);
    forbidden();
    assert!(is_permanent(
        &site.client.issue(&site.repo, number).await.unwrap_err()
    ));
}

async fn comment_with(site: &Site, token: &str, number: u64) -> u16 {
    let url = format!("{}/repos/{REPO}/issues/{number}/comments", site.forge.base_url());
    let http = reqwest::Client::builder()
        .no_proxy()
        .user_agent("test")
        .build()
        .unwrap();
    let request = http.post(url).bearer_auth(token).body(r#"{"body":"hi"}"#);
    request.send().await.unwrap().status().as_u16()
}

/// GH-1.
#[tokio::test]
async fn nothing_about_a_client_prints_a_secret() {
    let site = Site::start().await;
    let token = site.client.git_token(&site.repo).await.unwrap().unwrap();
    let key = SecretString::from(site.forge.app_key_pem().to_owned());
    let printed = format!(
        "{:?} {:?} {token:?}",
        site.client,
        Config::new("https://x.example", 1, key)
    );
    assert!(
        !printed.contains("ghs_") && !printed.contains("PRIVATE KEY"),
        "{printed}"
    );
}
