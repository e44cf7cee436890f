//! People who work from afar: over HTTPS, by name and password, and by tokens; and who is kept outside.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use reqwest::{Certificate, Client, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(an_operator_works_from_afar);

const HOST: &str = "conductor.example";

/// Tells the server by its file to be open over HTTPS, or not to be.
fn settings(data_dir: &Path, told: &str, rest: &str) -> Result<()> {
    std::fs::write(data_dir.join("conductor.toml"), format!("{told}\n{rest}")).context("writing the settings")
}

/// A person's browser, as far as it matters here.
struct Afar {
    http: Client,
    base: String,
}

impl Afar {
    async fn get(&self, path: &str, cookie: &str) -> Result<Response> {
        let asked = self.http.get(format!("{}{path}", self.base));
        asked
            .header(header::COOKIE, cookie)
            .send()
            .await
            .context("asking")
    }

    async fn login(&self, name: &str, password: &str) -> Result<Response> {
        let asked = self
            .http
            .post(format!("{}/login", self.base))
            .header(header::ORIGIN, &self.base)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(format!("name={name}&password={password}"));
        asked.send().await.context("signing in")
    }

    async fn api(&self, token: &str, path: &str, body: Option<Value>) -> Result<Response> {
        let url = format!("{}/api/v1{path}", self.base);
        let asked = match body {
            None => self.http.get(url),
            Some(body) => self.http.post(url).json(&body),
        };
        asked.bearer_auth(token).send().await.context("asking the API")
    }
}

/// SEC-7, S-55: a server that others can reach does not start while nobody could sign in; then an operator signs in over
/// HTTPS, acts under their own name and address, stays signed in when the server starts anew, and is outside at once when
/// they are removed. Commands on the machine itself go on as ever.
async fn an_operator_works_from_afar(kept: Kept) -> Result<()> {
    let mut stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let data_dir = stage.program.data_dir().to_owned();
    let rest = std::fs::read_to_string(data_dir.join("conductor.toml")).context("the settings")?;
    let made = rcgen::generate_simple_self_signed([HOST.to_owned()]).context("making a certificate")?;
    let (certificate, key) = (data_dir.join("cert.pem"), data_dir.join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).context("writing the certificate")?;
    std::fs::write(&key, made.signing_key.serialize_pem()).context("writing the key")?;
    let address = stage.program.address()?;
    let base = format!("https://{HOST}:{}", address.port());
    let told = format!(
        "tls-cert = '{}'\ntls-key = '{}'\npublic-url = {base:?}\n",
        certificate.display(),
        key.display()
    );

    stage.program.stop()?;
    settings(&data_dir, &told, &rest)?;
    let refused = stage.program.start_in_vain()?;
    ensure!(
        refused.code == 4 && refused.stderr.contains("CDR0432"),
        "{refused:?}"
    );

    settings(&data_dir, "", &rest)?;
    stage.program.start(None)?;
    let added = stage
        .program
        .say(&["operator", "add", "bob", "--rank", "operator"])?
        .done()?;
    let password = added.data["password"].as_str().context("a password")?.to_owned();
    let issue = ["token", "issue", "ci", "--operator", "bob", "--rank", "viewer"];
    let issued = stage.program.say(&issue)?.done()?;
    let token = issued.data["secret"].as_str().context("a secret")?.to_owned();
    let run = stage.start_run("Greet people")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;

    stage.program.stop()?;
    settings(&data_dir, &told, &rest)?;
    stage.program.start(None)?;
    let trusted = Certificate::from_pem(made.cert.pem().as_bytes()).context("reading the certificate")?;
    let http = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .resolve(HOST, address)
        .tls_certs_only([trusted])
        .build()
        .context("preparing to ask")?;
    let afar = Afar { http, base };

    let wrong = afar.login("bob", "not-the-password").await?;
    ensure!(wrong.status() == StatusCode::UNAUTHORIZED, "{wrong:?}");
    let came = afar.login("bob", &password).await?;
    ensure!(came.status() == StatusCode::SEE_OTHER, "{came:?}");
    let cookie = came.headers()[header::SET_COOKIE].to_str()?.to_owned();
    ensure!(
        cookie.starts_with("__Host-conductor=") && cookie.contains("; Secure"),
        "{cookie}"
    );
    ensure!(
        came.headers().contains_key(header::STRICT_TRANSPORT_SECURITY),
        "{came:?}"
    );
    let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
    let page = afar.get(&format!("/runs/{run}"), &cookie).await?.text().await?;
    ensure!(page.contains("bob (operator)"), "{page}");

    // The certificate's host is the only name, and loopback's name leads nowhere here.
    let elsewhere = afar
        .http
        .get(format!("{}/login", afar.base))
        .header(header::HOST, "evil.example");
    let elsewhere = elsewhere.send().await.context("asking")?;
    ensure!(
        elsewhere.status() == StatusCode::MISDIRECTED_REQUEST,
        "{elsewhere:?}"
    );

    let looked = afar.api(&token, "/runs", None).await?;
    ensure!(looked.status() == StatusCode::OK, "{looked:?}");
    let pause = json!({ "action": "pause" });
    let acted = afar
        .api(&token, &format!("/runs/{run}/actions"), Some(pause))
        .await?;
    ensure!(
        acted.status() == StatusCode::FORBIDDEN,
        "a token that looks does not act"
    );

    let form = afar
        .http
        .post(format!("{}/runs/{run}/act", afar.base))
        .header(header::ORIGIN, &afar.base)
        .header(header::COOKIE, &cookie)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body("action=pause");
    let paused = form.send().await.context("pausing")?;
    ensure!(paused.status() == StatusCode::SEE_OTHER, "{paused:?}");
    let who = format!(
        "SELECT actor || ' ' || cause FROM records WHERE stream = 'run/{run}' AND class = 'fact' AND kind = 'operate'"
    );
    let who = kept.column(&data_dir, &who).await?;
    ensure!(who == ["bob page from 127.0.0.1"], "{who:?}");

    stage.program.kill()?;
    stage.program.start(None)?;
    let again = afar.get("/", &cookie).await?;
    ensure!(
        again.status() == StatusCode::OK,
        "the session did not outlive the server"
    );
    stage.program.say(&["operator", "sign-out", "bob"])?.done()?;
    let outside = afar.get("/", &cookie).await?;
    ensure!(
        outside.status() == StatusCode::UNAUTHORIZED,
        "signed out everywhere: {outside:?}"
    );
    let came = afar.login("bob", &password).await?;
    let cookie = came.headers()[header::SET_COOKIE].to_str()?.to_owned();
    let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
    let back = afar.get("/", &cookie).await?;
    ensure!(back.status() == StatusCode::OK, "{back:?}");
    stage.program.say(&["operator", "remove", "bob"])?.done()?;
    let outside = afar.get("/", &cookie).await?;
    ensure!(outside.status() == StatusCode::UNAUTHORIZED, "{outside:?}");
    let outside = afar.api(&token, "/runs", None).await?;
    ensure!(outside.status() == StatusCode::UNAUTHORIZED, "{outside:?}");

    let left = "SELECT hash FROM passwords UNION ALL SELECT hash FROM door_keys WHERE holder = 'bob'";
    let left = kept.column(&data_dir, left).await?;
    ensure!(left.is_empty(), "{left:?}");
    let spelled =
        format!("SELECT kind FROM records WHERE payload LIKE '%{password}%' OR payload LIKE '%{token}%'");
    let spelled = kept.column(&data_dir, &spelled).await?;
    ensure!(spelled.is_empty(), "secrets were kept in {spelled:?}");
    stage.program.say(&["audit", "verify"])?.done()?;
    Ok(())
}
