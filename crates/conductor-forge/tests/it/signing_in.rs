//! Who gets in, and how far.

use conductor_forge::{Forge, Options};
use reqwest::Method;
use serde_json::json;

use crate::rig::{REPO, Rig, read, sign};

/// GH-1, GH-8.
#[tokio::test]
async fn only_a_jwt_of_our_key_and_of_now_is_the_app() {
    let rig = Rig::start().await;
    assert_eq!(rig.get("/app", &rig.jwt(-60, 540)).await.status, 200);
    let refused = [
        (rig.jwt(-700, -60), "'Expiration time' claim ('exp') must be"),
        (rig.jwt(-60, 3600), "'Expiration time' claim ('exp') is too far"),
        (rig.jwt(120, 540), "'Issued at' claim ('iat') must be"),
        (rig.jwt(-60, 540) + "x", "A JSON web token could not be decoded"),
    ];
    for (jwt, words) in refused {
        let answer = rig.get("/app", &jwt).await;
        assert_eq!(answer.status, 401);
        assert!(answer.message().1.starts_with(words), "{:?}", answer.body);
    }
    let stranger = Forge::start(Options::in_dir(rig.data_dir().join("stranger")))
        .await
        .unwrap();
    let jwt = sign(stranger.app_key_pem(), &rig.forge.app_id().to_string(), -60, 540);
    assert_eq!(rig.get("/app", &jwt).await.status, 401);
    let jwt = sign(rig.forge.app_key_pem(), "4242", -60, 540);
    assert_eq!(
        rig.get("/app", &jwt).await.message(),
        (404, "Integration not found")
    );
}

/// GH-1: a JWT that claims to need no signature is no JWT.
#[tokio::test]
async fn an_unsigned_jwt_is_refused() {
    let rig = Rig::start().await;
    let jwt = rig.jwt(-60, 540);
    let claims = jwt.split('.').nth(1).unwrap();
    let unsigned = format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{claims}.");
    assert_eq!(rig.get("/app", &unsigned).await.status, 401);
}

/// GH-1.
#[tokio::test]
async fn a_token_has_what_was_asked_for_and_no_more() {
    let rig = Rig::start().await;
    let number = rig.alice.open_issue(REPO, "A", "").unwrap();
    let minted = rig
        .mint(&json!({ "repositories": ["widgets"], "permissions": { "issues": "read" } }))
        .await;
    assert_eq!(minted.status, 201);
    assert_eq!(
        minted.body["permissions"],
        json!({ "issues": "read", "metadata": "read" })
    );
    let token = minted.body["token"].as_str().unwrap();
    let issue = format!("/repos/{REPO}/issues/{number}");
    assert_eq!(rig.get(&issue, token).await.status, 200);
    let comment = rig
        .send(
            Method::POST,
            &format!("{issue}/comments"),
            token,
            &json!({ "body": "x" }),
        )
        .await;
    assert_eq!(comment.message(), (403, "Resource not accessible by integration"));
    assert_eq!(
        rig.get(&format!("/repos/{REPO}/branches/main"), token)
            .await
            .status,
        403
    );
    assert_eq!(rig.get("/app", token).await.status, 401);
}

/// GH-1: what a token is not for does not exist for it.
#[tokio::test]
async fn a_token_for_one_repository_does_not_see_another() {
    let rig = Rig::start().await;
    let other = rig.data_dir().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("x"), "x").unwrap();
    rig.forge
        .import_repository("acme", "vault", &other)
        .await
        .unwrap();
    rig.forge
        .import_repository("umbrella", "lab", &other)
        .await
        .unwrap();
    let minted = rig.mint(&json!({ "repositories": ["widgets"] })).await;
    let token = minted.body["token"].as_str().unwrap();
    for hidden in ["/repos/acme/vault", "/repos/umbrella/lab", "/repos/acme/nothing"] {
        assert_eq!(
            rig.get(hidden, token).await.message(),
            (404, "Not Found"),
            "{hidden}"
        );
    }
    let listed = rig.get("/installation/repositories", token).await;
    assert_eq!(listed.body["total_count"], 1);
    assert_eq!(
        rig.mint(&json!({ "repositories": ["lab"] })).await.status,
        422,
        "another account's"
    );
    assert_eq!(rig.mint(&json!({ "repository_ids": [1] })).await.status, 422);
    assert_eq!(
        rig.mint(&json!({ "permissions": { "workflows": "write" } }))
            .await
            .status,
        422
    );
    assert_eq!(
        rig.mint(&json!({ "permissions": { "metadata": "write" } }))
            .await
            .status,
        422
    );
}

/// GH-1.
#[tokio::test]
async fn expired_revoked_and_invented_tokens_are_bad_credentials() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let path = format!("/repos/{REPO}");
    assert_eq!(
        rig.get(&path, "ghs_invented").await.message(),
        (401, "Bad credentials")
    );
    rig.forge.shift_clock(3601);
    assert_eq!(rig.get(&path, &token).await.message(), (401, "Bad credentials"));
    rig.forge.shift_clock(0);
    assert_eq!(rig.get(&path, &token).await.status, 200);
    assert_eq!(
        rig.send(Method::DELETE, "/installation/token", &token, &json!({}))
            .await
            .status,
        204
    );
    assert_eq!(rig.get(&path, &token).await.message(), (401, "Bad credentials"));
    assert_eq!(
        rig.get(&path, "").await.message(),
        (401, "Requires authentication")
    );
}

/// GH-8: the state file of a forge gives no one a token.
#[tokio::test]
async fn tokens_are_not_kept_in_the_clear() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    let state = std::fs::read_to_string(rig.data_dir().join("state.json")).unwrap();
    assert!(!state.contains(&token));
}

#[tokio::test]
async fn long_tokens_with_dots_work_like_short_ones() {
    let rig = Rig::start_with(|options| options.stateless_tokens = true).await;
    let token = rig.token().await;
    assert!(token.len() > 400 && token.contains('.'), "{token}");
    assert_eq!(rig.get(&format!("/repos/{REPO}"), &token).await.status, 200);
}

/// A page of another origin that points its own name at loopback is not answered.
#[tokio::test]
async fn other_host_names_than_loopback_are_not_answered() {
    let rig = Rig::start().await;
    let token = rig.token().await;
    for (host, status) in [
        ("evil.example", 400),
        ("127.0.0.1.evil.example", 400),
        ("localhost:1", 200),
        ("[::1]:1", 200),
    ] {
        let request = rig
            .request(Method::GET, &format!("/repos/{REPO}"), &token)
            .header("host", host);
        assert_eq!(read(request.send().await.unwrap()).await.status, status, "{host}");
    }
}

#[tokio::test]
async fn the_forge_listens_on_loopback_only() {
    let dir = tempfile::TempDir::new().unwrap();
    let options = Options {
        listen: "0.0.0.0:0".parse().unwrap(),
        ..Options::in_dir(dir.path())
    };
    assert!(Forge::start(options).await.is_err());
}
