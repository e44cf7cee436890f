//! Shows issues and pull requests as plain pages, so that links in the demo open something.
//!
//! Everything people wrote is text: escaped, without script, image or style from outside. Pages cannot
//! change anything.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Response;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::act::issue;
use crate::answer::set;
use crate::refusal::Refusal;
use crate::site::Site;
use crate::state::{Issue, Pull, Repo, Standing, Verdict};

const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) fn router() -> Router<Arc<Site>> {
    Router::new()
        .route("/{owner}/{name}/issues/{number}", get(show))
        .route("/{owner}/{name}/pull/{number}", get(show))
}

async fn show(
    State(site): State<Arc<Site>>,
    Path((owner, name, number)): Path<(String, String, u64)>,
) -> Response<Body> {
    let page = site.look(|state| {
        let repo = state.repo_named(&owner, &name).ok_or_else(Refusal::not_found)?;
        let issue = issue::find(repo, number)?;
        Ok::<_, Refusal>(render(repo, issue, repo.pulls.get(&number)))
    });
    let page = match page {
        Ok(page) => page,
        Err(refusal) => return refusal.into_response(),
    };
    let mut response = Response::new(Body::from(page));
    set(&mut response, CONTENT_TYPE, "text/html; charset=utf-8");
    set(&mut response, CONTENT_SECURITY_POLICY, POLICY);
    set(&mut response, REFERRER_POLICY, "no-referrer");
    set(
        &mut response,
        HeaderName::from_static("x-content-type-options"),
        "nosniff",
    );
    response
}

fn render(repo: &Repo, issue: &Issue, pull: Option<&Pull>) -> String {
    let kind = if pull.is_some() { "Pull request" } else { "Issue" };
    let standing = match (issue.standing, pull.and_then(|pull| pull.merge.as_ref())) {
        (_, Some(_)) => "merged",
        (Standing::Open, None) => "open",
        (Standing::Closed, None) => "closed",
    };
    let title = escape(&issue.title);
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title} · {kind} #{number}</title></head>\
         <body><main><p>{repo}</p><h1>{title} <small>#{number}</small></h1>\
         <p>{kind}, <strong>{standing}</strong>, opened by {author} at {at}</p>",
        number = issue.number,
        repo = escape(&repo.full_name()),
        author = escape(&issue.author),
        at = issue.created_at,
    );
    if let Some(pull) = pull {
        let _ = write!(
            page,
            "<p>From <code>{}</code> into <code>{}</code>: {} commits, {} files, +{} −{}, head <code>{}</code></p>",
            escape(&pull.head_branch),
            escape(&pull.base_branch),
            pull.size.commits,
            pull.size.changed_files,
            pull.size.additions,
            pull.size.deletions,
            escape(&pull.head_sha),
        );
    }
    let _ = write!(
        page,
        "<pre>{}</pre>",
        escape(issue.body.as_deref().unwrap_or("No description."))
    );
    for comment in repo
        .comments
        .values()
        .filter(|comment| comment.issue == issue.number)
    {
        let _ = write!(
            page,
            "<article id=\"issuecomment-{}\"><h2>{} at {}</h2><pre>{}</pre></article>",
            comment.id,
            escape(&comment.author),
            comment.created_at,
            escape(&comment.body),
        );
    }
    for review in repo.reviews.values().filter(|review| review.pull == issue.number) {
        let verdict = match review.verdict {
            Verdict::Approved => "approved",
            Verdict::ChangesRequested => "requested changes",
            Verdict::Commented => "reviewed",
        };
        let _ = write!(
            page,
            "<article id=\"pullrequestreview-{}\"><h2>{} {verdict} at {}</h2><pre>{}</pre></article>",
            review.id,
            escape(&review.author),
            review.submitted_at,
            escape(&review.body),
        );
    }
    page.push_str("</main></body></html>");
    page
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
