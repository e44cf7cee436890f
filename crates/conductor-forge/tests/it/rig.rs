//! A forge with a repository, a person, and a bare HTTP client.

use std::path::PathBuf;

use conductor_forge::state::Role;
use conductor_forge::{Edit, Forge, Human, Options};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const REPO: &str = "acme/widgets";

pub(crate) struct Rig {
    pub(crate) forge: Forge,
    pub(crate) alice: Human,
    pub(crate) http: reqwest::Client,
    dir: TempDir,
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn message(&self) -> (u16, &str) {
        (self.status, self.body["message"].as_str().unwrap_or_default())
    }
}

impl Rig {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(adjust: impl FnOnce(&mut Options)) -> Self {
        let dir = TempDir::new().unwrap();
        let source = dir.path().join("source");
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("README.md"), "# Widgets\n").unwrap();
        let mut options = Options::in_dir(dir.path().join("forge"));
        adjust(&mut options);
        let forge = Forge::start(options).await.unwrap();
        forge.import_repository("acme", "widgets", &source).await.unwrap();
        let alice = forge.create_user("alice").unwrap();
        forge.grant(REPO, "alice", Role::Write).unwrap();
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .user_agent("test")
            .build()
            .unwrap();
        Self {
            forge,
            alice,
            http,
            dir,
        }
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("forge")
    }

    pub(crate) fn bare_repository(&self) -> PathBuf {
        let id = self.forge.repository(REPO).unwrap().id;
        self.data_dir().join("repos").join(format!("{id}.git"))
    }

    /// Stops the forge and starts another on the same data.
    pub(crate) async fn restart(self) -> Self {
        let Self { forge, http, dir, .. } = self;
        forge.shutdown().await;
        let forge = Forge::start(Options::in_dir(dir.path().join("forge")))
            .await
            .unwrap();
        let alice = forge.create_user("alice").unwrap();
        Self {
            forge,
            alice,
            http,
            dir,
        }
    }

    pub(crate) fn jwt(&self, issued_in: i64, expires_in: i64) -> String {
        sign(
            self.forge.app_key_pem(),
            &self.forge.app_id().to_string(),
            issued_in,
            expires_in,
        )
    }

    pub(crate) fn request(&self, method: Method, path: &str, credential: &str) -> RequestBuilder {
        let request = self
            .http
            .request(method, format!("{}{path}", self.forge.base_url()));
        if credential.is_empty() {
            request
        } else {
            request.bearer_auth(credential)
        }
    }

    pub(crate) async fn get(&self, path: &str, credential: &str) -> Answer {
        read(self.request(Method::GET, path, credential).send().await.unwrap()).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, credential: &str, body: &Value) -> Answer {
        read(
            self.request(method, path, credential)
                .json(body)
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    pub(crate) async fn mint(&self, wish: &Value) -> Answer {
        let id = self.forge.installation_id("acme").unwrap();
        let path = format!("/app/installations/{id}/access_tokens");
        self.send(Method::POST, &path, &self.jwt(-60, 540), wish).await
    }

    /// A token with everything that the App has.
    pub(crate) async fn token(&self) -> String {
        let minted = self.mint(&json!({})).await;
        minted.body["token"].as_str().unwrap().to_owned()
    }

    /// Commits a file to a branch that starts at `main`.
    pub(crate) async fn commit(&self, branch: &str, path: &str, content: &str) -> String {
        if self.forge.branch(REPO, branch).unwrap().is_none() {
            let main = self.forge.branch(REPO, "main").unwrap().unwrap();
            move_branch(&self.bare_repository(), branch, &main);
        }
        let edit = Edit {
            path,
            content: Some(content.as_bytes()),
        };
        self.alice.commit(REPO, branch, &[edit], "Edit").await.unwrap()
    }
}

/// Moves a branch behind the forge's back.
#[allow(clippy::disallowed_methods, reason = "tests drive real git")]
pub(crate) fn move_branch(bare: &std::path::Path, branch: &str, to: &str) {
    let status = std::process::Command::new("git")
        .arg("--git-dir")
        .arg(bare)
        .args(["update-ref", &format!("refs/heads/{branch}"), to])
        .status()
        .unwrap();
    assert!(status.success());
}

pub(crate) async fn read(response: Response) -> Answer {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.bytes().await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Answer {
        status,
        headers,
        body,
    }
}

#[allow(clippy::disallowed_methods, reason = "tests read the machine's clock")]
pub(crate) fn sign(key_pem: &str, issuer: &str, issued_in: i64, expires_in: i64) -> String {
    let now = jiff::Timestamp::now().as_second();
    let claims = json!({ "iss": issuer, "iat": now + issued_in, "exp": now + expires_in });
    let key = EncodingKey::from_rsa_pem(key_pem.as_bytes()).unwrap();
    jsonwebtoken::encode(&Header::new(Algorithm::RS256), &claims, &key).unwrap()
}
