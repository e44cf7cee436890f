//! Deliveries that do not arrive, and their way back.

use conductor_forge::Webhook;
use reqwest::Method;
use serde_json::json;

use crate::rig::{REPO, Rig};

/// GH-2: GitHub does not retry; what was lost is found in the list.
#[tokio::test]
async fn a_delivery_that_no_one_takes_is_kept_as_failed_and_can_be_sent_again() {
    let rig = Rig::start().await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let webhook = Webhook {
        url: format!("http://{closed}/"),
        secret: "s".into(),
    };
    rig.forge.set_webhook(Some(webhook)).unwrap();
    rig.alice.open_issue(REPO, "A", "").unwrap();
    rig.alice.open_issue(REPO, "B", "").unwrap();
    rig.forge.deliveries_settled().await;
    let jwt = rig.jwt(-60, 540);
    let newest = rig.get("/app/hook/deliveries?per_page=1", &jwt).await;
    assert_eq!(newest.body[0]["status_code"], 502);
    assert_eq!(newest.body[0]["action"], "opened");
    let links = newest.header("link");
    let next = &links[1..links.find('>').unwrap()];
    assert!(next.contains("cursor="), "{links}");
    let oldest = crate::rig::read(rig.http.get(next).bearer_auth(&jwt).send().await.unwrap()).await;
    let (id, guid) = (&oldest.body[0]["id"], &oldest.body[0]["guid"]);
    let shown = rig.get(&format!("/app/hook/deliveries/{id}"), &jwt).await;
    assert_eq!(shown.body["request"]["payload"]["issue"]["title"], "A");
    let again = rig
        .send(
            Method::POST,
            &format!("/app/hook/deliveries/{id}/attempts"),
            &jwt,
            &json!({}),
        )
        .await;
    assert_eq!(again.status, 202);
    rig.forge.deliveries_settled().await;
    let newest = rig.get("/app/hook/deliveries", &jwt).await;
    assert_eq!(newest.body.as_array().unwrap().len(), 3);
    assert_eq!(
        (&newest.body[0]["guid"], &newest.body[0]["redelivery"]),
        (guid, &json!(true))
    );
    let token = rig.token().await;
    assert_eq!(
        rig.get("/app/hook/deliveries", &token).await.status,
        401,
        "for the App itself only"
    );
}

/// GH-2.
#[tokio::test]
async fn without_an_address_nothing_is_recorded_and_the_secret_is_never_shown() {
    let rig = Rig::start().await;
    rig.alice.open_issue(REPO, "A", "").unwrap();
    assert_eq!(rig.forge.deliveries().len(), 0);
    let jwt = rig.jwt(-60, 540);
    let wish = json!({ "url": "http://127.0.0.1:1/", "secret": "very secret" });
    rig.send(Method::PATCH, "/app/hook/config", &jwt, &wish).await;
    let config = rig.get("/app/hook/config", &jwt).await;
    assert_eq!(config.body["url"], "http://127.0.0.1:1/");
    assert!(!config.body.to_string().contains("very secret"));
}
