//! Reads issues, and posts comments that are found again by their hidden marker.
//!
//! It does not know what the comments say.

use conductor_domain::fault::Fault;
use conductor_domain::forge::IssueProblem;
use conductor_port::forge::{Issue, IssueComment, has_marker};
use reqwest::header::LINK;
use reqwest::{Method, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::classify::Reply;
use crate::client::{Call, Client};
use crate::credential::{Grant, Place};
use crate::model;

/// The pages of a list, as far as they are read.
pub(crate) struct Pages<P> {
    pub(crate) read: Vec<P>,
    pub(crate) is_whole: bool,
    /// When the last of them was answered, in seconds by GitHub's clock.
    pub(crate) at: Option<i64>,
}

impl Client {
    pub(crate) async fn read_issue(
        &self,
        place: &Place,
        number: u64,
    ) -> Result<Result<Issue, IssueProblem>, Fault> {
        let attempt = format!("read {place}#{number}");
        let id = number.to_string();
        let call = self.call(&attempt, Method::GET, place, &["issues", &id], &[]);
        let reply = self.ask(place, Grant::ReadIssues, call).await?;
        match reply.status {
            StatusCode::GONE => return Ok(Err(IssueProblem::Deleted)),
            StatusCode::NOT_FOUND => return Ok(Err(IssueProblem::NotFound)),
            StatusCode::MOVED_PERMANENTLY => return Ok(Err(IssueProblem::Moved)),
            _ => {}
        }
        let found: model::Issue = self.parse(&attempt, &reply)?;
        if found.pull_request.is_some_and(|it| !it.is_null()) {
            return Ok(Err(IssueProblem::IsPullRequest));
        }
        let comments = if found.comments == Some(0) {
            vec![]
        } else {
            self.read_comments(place, number).await?
        };
        // What somebody let an app write for them is the app's.
        let by_app = found.performed_via_github_app.is_some_and(|app| !app.is_null());
        let author = found.user.as_ref().filter(|_| !by_app);
        Ok(Ok(Issue {
            comments,
            standing: model::standing(author, found.author_association.as_deref()),
            title: found.title,
            body: found.body.unwrap_or_default(),
            open: found.state == "open",
            author: found.user.map_or_else(|| "ghost".to_owned(), |user| user.login),
        }))
    }

    /// What people said below an issue, oldest first. What an app said, ourselves included, is no part of the issue.
    async fn read_comments(&self, place: &Place, number: u64) -> Result<Vec<IssueComment>, Fault> {
        let attempt = format!("read what was said below {place}#{number}");
        let id = number.to_string();
        let path = ["issues", id.as_str(), "comments"];
        let call = self.call(&attempt, Method::GET, place, &path, &[("per_page", "100")]);
        let comments: Vec<model::Comment> = self.read_all(place, Grant::ReadIssues, call).await?;
        let by_people = comments.into_iter().filter(|comment| {
            comment.performed_via_github_app.is_none()
                && comment
                    .user
                    .as_ref()
                    .is_none_or(|user| user.kind.as_deref() != Some("Bot"))
        });
        Ok(by_people
            .map(|comment| IssueComment {
                standing: model::standing(comment.user.as_ref(), comment.author_association.as_deref()),
                by: comment.user.map_or_else(|| "ghost".to_owned(), |user| user.login),
                text: comment.body.unwrap_or_default(),
            })
            .collect())
    }

    /// Posts a comment and returns its page. If repeated: the one with the marker is the answer.
    pub(crate) async fn post_comment(
        &self,
        place: &Place,
        grant: Grant,
        number: u64,
        body: &str,
        marker: &str,
        repeated: bool,
    ) -> Result<String, Fault> {
        if !has_marker(body, marker) {
            return Err(Fault::permanent(format!(
                "did not comment on {place}#{number}: the text does not end with the marker that would find it again"
            )));
        }
        if repeated && let Some(page) = self.find_comment(place, grant, number, marker).await? {
            return Ok(page);
        }
        let attempt = format!("comment on {place}#{number}");
        let id = number.to_string();
        let call = self.call(&attempt, Method::POST, place, &["issues", &id, "comments"], &[]);
        let posted: model::Comment = self
            .read(
                place,
                grant,
                Call {
                    body: Some(json!({ "body": body })),
                    ..call
                },
            )
            .await?;
        Ok(posted.html_url)
    }

    /// Looks for our own comment with a marker among the newest hundred or more.
    pub(crate) async fn find_comment(
        &self,
        place: &Place,
        grant: Grant,
        number: u64,
        marker: &str,
    ) -> Result<Option<String>, Fault> {
        let ours = self.our_comments(place, grant, number, marker).await?;
        Ok(ours.into_iter().next().map(|comment| comment.html_url))
    }

    /// Removes our own comments with a marker, all but the oldest; returns how many. Whoever does this at the same time
    /// keeps the same one.
    pub(crate) async fn remove_repeated_comments(
        &self,
        place: &Place,
        grant: Grant,
        number: u64,
        marker: &str,
    ) -> Result<u32, Fault> {
        let mut removed = 0;
        for comment in self
            .our_comments(place, grant, number, marker)
            .await?
            .iter()
            .skip(1)
        {
            let attempt = format!("remove the repeated comment {} on {place}#{number}", comment.id);
            let id = comment.id.to_string();
            let call = self.call(&attempt, Method::DELETE, place, &["issues", "comments", &id], &[]);
            let reply = self.ask(place, grant, call).await?;
            match reply.status {
                status if status.is_success() => removed += 1,
                StatusCode::NOT_FOUND => {}
                _ => return Err(reply.fault(&attempt, self.server_now())),
            }
        }
        Ok(removed)
    }

    /// Lists our own comments with a marker among the newest hundred or more, oldest first. Others may write what they
    /// like, the marker included: theirs do not count.
    async fn our_comments(
        &self,
        place: &Place,
        grant: Grant,
        number: u64,
        marker: &str,
    ) -> Result<Vec<model::Comment>, Fault> {
        let attempt = format!("look for a comment on {place}#{number}");
        let id = number.to_string();
        let path = ["issues", id.as_str(), "comments"];
        let bot = self.bot_login().await?.to_owned();
        let first = self.call(&attempt, Method::GET, place, &path, &[("per_page", "100")]);
        let mut reply = self.ask(place, grant, first).await?;
        // Comments come oldest first: the newest are on the last page, and the last page may hold few.
        if let Some(last) = self.link(&reply, "last")? {
            reply = self.follow(place, grant, &attempt, last).await?;
        }
        let mut ours = Vec::new();
        for pages_left in (0..2).rev() {
            let comments: Vec<model::Comment> = self.parse(&attempt, &reply)?;
            ours.extend(comments.into_iter().filter(|comment| {
                comment
                    .body
                    .as_deref()
                    .is_some_and(|body| has_marker(body, marker))
                    && (comment
                        .performed_via_github_app
                        .as_ref()
                        .is_some_and(|app| app.id == self.app_id)
                        || comment.user.as_ref().is_some_and(|user| user.login == bot))
            }));
            match self.link(&reply, "prev")? {
                Some(previous) if pages_left > 0 => {
                    reply = self.follow(place, grant, &attempt, previous).await?;
                }
                Some(_) | None => break,
            }
        }
        ours.sort_by_key(|comment| comment.id);
        Ok(ours)
    }

    /// Reads all pages of a list, up to a thousand items.
    pub(crate) async fn read_all<T: DeserializeOwned>(
        &self,
        place: &Place,
        grant: Grant,
        call: Call<'_>,
    ) -> Result<Vec<T>, Fault> {
        let pages: Pages<Vec<T>> = self.read_pages(place, grant, call).await?;
        Ok(pages.read.into_iter().flatten().collect())
    }

    /// Reads the pages of a list, and tells whether more follow than are read.
    pub(crate) async fn read_pages<P: DeserializeOwned>(
        &self,
        place: &Place,
        grant: Grant,
        call: Call<'_>,
    ) -> Result<Pages<P>, Fault> {
        const MOST_PAGES: usize = 10;
        let attempt = call.attempt;
        let mut reply = self.ask(place, grant, call).await?;
        let mut read = Vec::new();
        loop {
            read.push(self.parse(attempt, &reply)?);
            match self.link(&reply, "next")? {
                Some(next) if read.len() < MOST_PAGES => {
                    reply = self.follow(place, grant, attempt, next).await?;
                }
                next => {
                    return Ok(Pages {
                        read,
                        is_whole: next.is_none(),
                        at: reply.date(),
                    });
                }
            }
        }
    }

    async fn follow(&self, place: &Place, grant: Grant, attempt: &str, url: Url) -> Result<Reply, Fault> {
        self.ask(
            place,
            grant,
            Call {
                attempt,
                method: Method::GET,
                url,
                body: None,
            },
        )
        .await
    }

    /// The page that GitHub names with a relation; an address of another site would receive our token.
    pub(crate) fn link(&self, reply: &Reply, relation: &str) -> Result<Option<Url>, Fault> {
        let header = reply
            .headers
            .get(LINK)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let wanted = format!("rel=\"{relation}\"");
        let target = header.split(',').find_map(|entry| {
            let (target, parameters) = entry.split_once(';')?;
            parameters
                .split(';')
                .any(|it| it.trim() == wanted)
                .then(|| target.trim().trim_matches(['<', '>']))
        });
        let Some(target) = target else { return Ok(None) };
        match target.parse::<Url>() {
            Ok(url) if self.address.owns(&url) => Ok(Some(url)),
            Ok(_) | Err(_) => Err(Fault::permanent(
                "did not read the next page: its address belongs to another site".to_owned(),
            )),
        }
    }
}
