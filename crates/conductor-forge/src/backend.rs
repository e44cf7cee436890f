//! Serves git over HTTP by running `git http-backend`, for callers that the records let in.
//!
//! Credentials are asked for first (401), a repository that the caller may not see does not exist (404),
//! and a push is noticed before it is answered. It does not look into packs.

use std::process::Stdio;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use futures_util::TryStreamExt;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdout};
use tokio_util::io::{ReaderStream, StreamReader};

use crate::act::push;
use crate::answer::set;
use crate::auth::{self, Caller};
use crate::refusal::Refusal;
use crate::site::Site;
use crate::state::{Level, Scope};

pub(crate) fn router() -> Router<Arc<Site>> {
    Router::new()
        .route("/{owner}/{name}/info/refs", get(advertise))
        .route("/{owner}/{name}/git-upload-pack", post(upload_pack))
        .route("/{owner}/{name}/git-receive-pack", post(receive_pack))
}

#[derive(Deserialize)]
struct Wanted {
    service: Option<String>,
}

type RepoPath = Path<(String, String)>;

async fn advertise(
    State(site): State<Arc<Site>>,
    Path((owner, name)): RepoPath,
    Query(wanted): Query<Wanted>,
    request: Request,
) -> Response<Body> {
    let (query, level) = match wanted.service.as_deref() {
        Some("git-upload-pack") => ("service=git-upload-pack", Level::Read),
        Some("git-receive-pack") => ("service=git-receive-pack", Level::Write),
        Some(_) | None => return refused(Refusal::Forbidden("Please upgrade your git client.".into())),
    };
    let advertised = async {
        let (repo, login) = admit(&site, request.headers(), &owner, &name, level)?;
        streamed(
            &site,
            Cgi {
                repo,
                login,
                path: "info/refs",
                query,
                method: "GET",
            },
            request,
        )
        .await
    };
    advertised.await.unwrap_or_else(refused)
}

async fn upload_pack(
    State(site): State<Arc<Site>>,
    Path((owner, name)): RepoPath,
    request: Request,
) -> Response<Body> {
    let uploaded = async {
        let (repo, login) = admit(&site, request.headers(), &owner, &name, Level::Read)?;
        streamed(
            &site,
            Cgi {
                repo,
                login,
                path: "git-upload-pack",
                query: "",
                method: "POST",
            },
            request,
        )
        .await
    };
    uploaded.await.unwrap_or_else(refused)
}

async fn receive_pack(
    State(site): State<Arc<Site>>,
    Path((owner, name)): RepoPath,
    request: Request,
) -> Response<Body> {
    let pushed = async {
        let (repo, login) = admit(&site, request.headers(), &owner, &name, Level::Write)?;
        received(&site, repo, login, request).await
    };
    pushed.await.unwrap_or_else(refused)
}

fn admit(
    site: &Site,
    headers: &HeaderMap,
    owner: &str,
    name: &str,
    level: Level,
) -> Result<(u64, String), Refusal> {
    let authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let caller = auth::identify(site, authorization)?;
    if caller == Caller::Nobody {
        return Err(Refusal::Unauthorized("Requires authentication".into()));
    }
    let name = name.strip_suffix(".git").unwrap_or(name);
    let missing = || Refusal::NotFound("Repository not found.".into());
    let repo = site
        .look(|state| state.repo_named(owner, name).cloned())
        .ok_or_else(missing)?;
    caller.may(&repo, Scope::Contents, level)?;
    Ok((repo.id, site.look(|state| caller.login(state))))
}

/// git asks for credentials only when it is challenged.
fn refused(refusal: Refusal) -> Response<Body> {
    let mut response = refusal.into_response();
    if response.status() == StatusCode::UNAUTHORIZED {
        set(&mut response, WWW_AUTHENTICATE, "Basic realm=\"GitHub\"");
    }
    response
}

struct Cgi<'a> {
    repo: u64,
    login: String,
    path: &'a str,
    query: &'a str,
    method: &'a str,
}

async fn streamed(site: &Arc<Site>, cgi: Cgi<'_>, request: Request) -> Result<Response<Body>, Refusal> {
    let (mut child, mut stdout) = start(site, &cgi, request)?;
    let mut response = head(&mut stdout).await?;
    site.tasks.spawn(async move { child.wait().await });
    *response.body_mut() = Body::from_stream(ReaderStream::new(stdout));
    Ok(response)
}

/// Takes a push to its end and notices it before the client hears of it.
async fn received(
    site: &Arc<Site>,
    repo: u64,
    login: String,
    request: Request,
) -> Result<Response<Body>, Refusal> {
    let cgi = Cgi {
        repo,
        login,
        path: "git-receive-pack",
        query: "",
        method: "POST",
    };
    let (mut child, mut stdout) = start(site, &cgi, request)?;
    let mut response = head(&mut stdout).await?;
    let mut report = Vec::new();
    stdout.read_to_end(&mut report).await.map_err(broken)?;
    child.wait().await.map_err(broken)?;
    push::notice(site, repo, &cgi.login).await?;
    *response.body_mut() = Body::from(report);
    Ok(response)
}

fn start(
    site: &Arc<Site>,
    cgi: &Cgi<'_>,
    request: Request,
) -> Result<(Child, BufReader<ChildStdout>), Refusal> {
    let text = |name: HeaderName| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let mut command = site.git.command();
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", site.repos_dir())
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", format!("/{}.git/{}", cgi.repo, cgi.path))
        .env("QUERY_STRING", cgi.query)
        .env("REQUEST_METHOD", cgi.method)
        .env("CONTENT_TYPE", text(CONTENT_TYPE))
        .env("HTTP_CONTENT_ENCODING", text(CONTENT_ENCODING))
        .env("GIT_PROTOCOL", text(HeaderName::from_static("git-protocol")))
        .env("REMOTE_USER", &cgi.login)
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().map_err(broken)?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
        return Err(Refusal::Broken("git http-backend has no pipes".into()));
    };
    let body = request
        .into_body()
        .into_data_stream()
        .map_err(std::io::Error::other);
    site.tasks.spawn(async move {
        let mut body = std::pin::pin!(StreamReader::new(body));
        // A client that hangs up, or a backend that has heard enough, ends the copy; both end in its report.
        let _ = tokio::io::copy(&mut body, &mut stdin).await;
        let _ = stdin.shutdown().await;
    });
    Ok((child, BufReader::new(stdout)))
}

/// Reads the CGI header lines; what follows them is the body.
async fn head(stdout: &mut BufReader<ChildStdout>) -> Result<Response<Body>, Refusal> {
    let mut response = Response::new(Body::empty());
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).await.map_err(broken)? == 0 {
            return Err(Refusal::Broken("git http-backend ended without an answer".into()));
        }
        let line = line.trim_end();
        if line.is_empty() {
            return Ok(response);
        }
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("status") {
            let code = value.split(' ').next().and_then(|code| code.parse().ok());
            *response.status_mut() = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        } else if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value),
        ) {
            response.headers_mut().insert(name, value);
        }
    }
}

fn broken(error: std::io::Error) -> Refusal {
    Refusal::Broken(format!("git http-backend failed: {error}"))
}
