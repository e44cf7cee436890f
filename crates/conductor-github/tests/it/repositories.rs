//! Repositories as the client describes them.

use conductor_domain::effect::CommentTarget;
use conductor_domain::fault::Fault;
use conductor_domain::id::IssueNumber;
use conductor_forge::{Fault as SiteFault, Injection};
use conductor_port::forge::{Forge as _, RepoDescription};

use crate::site::{Lies, Site, client_of, describe, is_permanent, lying_server};

/// GH-7, S-53.
#[tokio::test]
async fn a_repository_is_described_by_its_numeric_id_and_default_branch() {
    let site = Site::start().await;
    let described = site.client.repository("ACME", "Widgets").await.unwrap();
    let expected = RepoDescription {
        id: site.repo.id,
        owner: "acme".into(),
        name: "widgets".into(),
        clone_url: site.forge.clone_url("acme/widgets"),
        default_branch: "main".into(),
    };
    assert_eq!(described, Some(expected));
}

/// GH-7: the same code speaks to an Enterprise address.
#[tokio::test]
async fn the_enterprise_path_gives_the_same_repository() {
    let site = Site::start().await;
    let enterprise = client_of(
        &site.forge,
        &format!("{}/api/v3", site.forge.base_url()),
        site.clock.clone(),
    );
    assert_eq!(describe(&enterprise, "acme", "widgets").await, site.repo);
}

#[tokio::test]
async fn an_unknown_repository_is_none_and_not_a_fault() {
    let site = Site::start().await;
    assert_eq!(site.client.repository("acme", "gadgets").await, Ok(None));
    assert_eq!(site.client.repository("nobody", "widgets").await, Ok(None));
}

#[tokio::test]
async fn a_renamed_repository_is_a_permanent_fault_that_says_so() {
    let site = Site::start().await;
    site.forge.rename_repository("acme/widgets", "sprockets").unwrap();
    let fault = site.client.issue(&site.repo, IssueNumber(1)).await.unwrap_err();
    assert_eq!(
        fault,
        Fault::permanent("could not read acme/widgets#1: acme/widgets has another name or owner now")
    );
}

/// GH-1: a redirect to another host must not carry the token there.
#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let site = Site::start().await;
    let thief = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let location = format!("http://{}/stolen", thief.local_addr().unwrap());
    site.forge.faults().inject(Injection {
        method: None,
        path_prefix: "/repos/acme/widgets".into(),
        times: 1,
        fault: SiteFault::Redirect { location },
    });
    let fault = site
        .another_client()
        .repository("acme", "widgets")
        .await
        .unwrap_err();
    assert!(is_permanent(&fault), "{fault:?}");
    let visited = tokio::time::timeout(std::time::Duration::ZERO, thief.accept()).await;
    assert!(visited.is_err(), "the thief was visited");
}

/// S-12: git would send the token wherever the clone address leads.
#[tokio::test]
async fn a_clone_address_of_another_host_is_refused() {
    let site = Site::start().await;
    let by_name = site.forge.base_url().replace("127.0.0.1", "localhost");
    let client = client_of(&site.forge, &by_name, site.clock.clone());
    assert!(
        client.repository("acme", "widgets").await.is_ok(),
        "the same host is accepted"
    );
    let clone_url = "https://evil.example/acme/widgets.git".to_owned();
    let address = lying_server(Lies {
        clone_url,
        next_page: String::new(),
    })
    .await;
    let client = client_of(&site.forge, &address, site.clock.clone());
    let fault = client.repository("acme", "widgets").await.unwrap_err();
    assert!(fault.what.contains("belongs to another site"), "{fault}");
    assert!(is_permanent(&fault));
}

/// GH-1: the next page of a list may lead anywhere, and the token would travel with the question.
#[tokio::test]
async fn a_next_page_on_another_host_is_not_read() {
    let site = Site::start().await;
    let thief = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let next_page = format!("http://{}/stolen", thief.local_addr().unwrap());
    let address = lying_server(Lies {
        clone_url: String::new(),
        next_page,
    })
    .await;
    let client = client_of(&site.forge, &address, site.clock.clone());
    let target = CommentTarget::Issue(IssueNumber(1));
    let fault = client
        .comment(&site.repo, target, "x <!-- m -->", "<!-- m -->", true)
        .await
        .unwrap_err();
    assert!(fault.what.contains("belongs to another site"), "{fault}");
    let visited = tokio::time::timeout(std::time::Duration::ZERO, thief.accept()).await;
    assert!(visited.is_err(), "the thief was visited");
}
