//! Limits and outages, classified with the time to wait.

use conductor_domain::id::IssueNumber;
use conductor_forge::{Fault, When};
use conductor_port::forge::Forge as _;
use reqwest::Method;

use crate::site::{REPO, Site, is_permanent, transient};

struct Reader {
    site: Site,
    number: IssueNumber,
}

impl Reader {
    async fn start() -> Self {
        let site = Site::start().await;
        let number = IssueNumber(site.alice.open_issue(REPO, "Widgets squeak", "").unwrap());
        let reader = Self { site, number };
        reader.read().await.unwrap();
        reader
    }

    async fn read(&self) -> Result<(), conductor_domain::fault::Fault> {
        self.site
            .client
            .issue(&self.site.repo, self.number)
            .await
            .map(|issue| drop(issue.unwrap()))
    }

    fn inject(&self, fault: Fault) {
        self.site
            .forge
            .faults()
            .next(Method::GET, &format!("/repos/{REPO}/issues"), fault);
    }
}

/// GH-4.
#[tokio::test]
async fn a_primary_limit_rests_the_installation_until_its_reset() {
    let reader = Reader::start().await;
    reader.inject(Fault::PrimaryLimit { resets_in: 90 });
    let wait = transient(&reader.read().await.unwrap_err()).unwrap();
    assert!((89_000..=91_000).contains(&wait.0), "{wait:?}");
    let fault = reader.read().await.unwrap_err();
    assert!(
        fault.what.contains("did not read"),
        "no second request is made: {fault}"
    );
    assert!(transient(&fault).unwrap() <= wait);
    reader.site.clock.shift(92);
    reader.read().await.unwrap();
}

/// GH-4.
#[tokio::test]
async fn a_secondary_limit_waits_as_told_or_a_minute() {
    for (told, expected) in [(Some(17), 17_000), (None, 60_000)] {
        let reader = Reader::start().await;
        reader.inject(Fault::SecondaryLimit { retry_after: told });
        assert_eq!(transient(&reader.read().await.unwrap_err()).unwrap().0, expected);
        let other = reader.site.client.git_token(&reader.site.repo).await;
        assert!(other.is_ok(), "minting is the App's own identity");
        reader.site.clock.shift(61);
        reader.read().await.unwrap();
    }
}

/// GH-4: the reset is told in GitHub's time, not in ours.
#[tokio::test]
async fn a_reset_is_understood_although_the_clocks_differ() {
    let reader = Reader::start().await;
    reader.site.forge.shift_clock(-1800);
    reader.read().await.unwrap();
    reader.inject(Fault::PrimaryLimit { resets_in: 90 });
    let wait = transient(&reader.read().await.unwrap_err()).unwrap();
    assert!((88_000..=92_000).contains(&wait.0), "{wait:?}");
}

#[tokio::test]
async fn a_forge_that_is_down_is_transient_and_comes_back() {
    let reader = Reader::start().await;
    reader.site.forge.faults().set_down(true);
    let fault = reader.read().await.unwrap_err();
    assert!(transient(&fault).is_some(), "{fault:?}");
    assert!(
        fault.what.starts_with("could not read acme/widgets#1: no answer"),
        "{fault}"
    );
    reader.site.forge.faults().set_down(false);
    reader.read().await.unwrap();
}

#[tokio::test]
async fn server_errors_are_transient_and_client_errors_permanent() {
    let reader = Reader::start().await;
    for status in [500, 502, 503, 504] {
        reader.inject(Fault::Status {
            status,
            when: When::BeforeTheWrite,
        });
        assert!(transient(&reader.read().await.unwrap_err()).is_some(), "{status}");
    }
    for status in [400, 422, 451] {
        reader.inject(Fault::Status {
            status,
            when: When::BeforeTheWrite,
        });
        assert!(is_permanent(&reader.read().await.unwrap_err()), "{status}");
    }
}

#[tokio::test]
async fn silence_ends_after_the_clients_patience() {
    let reader = Reader::start().await;
    let key = secrecy::SecretString::from(reader.site.forge.app_key_pem().to_owned());
    let config = conductor_github::Config {
        patience: std::time::Duration::from_millis(200),
        ..conductor_github::Config::new(reader.site.forge.base_url(), reader.site.forge.app_id(), key)
    };
    let client = conductor_github::Client::new(config, reader.site.clock.clone()).unwrap();
    reader.inject(Fault::Hang(When::BeforeTheWrite));
    let fault = client.issue(&reader.site.repo, reader.number).await.unwrap_err();
    assert!(
        transient(&fault).is_some() && fault.what.contains("no answer in time"),
        "{fault:?}"
    );
}
