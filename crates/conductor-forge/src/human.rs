//! A person acting at the site as in a browser: writing issues, reviewing, merging, committing.
//!
//! Rights are checked as for everyone else. It does not know the programs that also act there.

use std::fmt;
use std::sync::Arc;

use crate::act::issue::{self, IssueEdit};
use crate::act::pull::{self, Remark};
use crate::act::push;
use crate::auth::Caller;
use crate::refusal::Refusal;
use crate::site::Site;
use crate::state::{Comment, Level, Review, ReviewComment, Scope, Standing, Verdict};

pub use crate::act::pull::MergeMethod;
pub use crate::git::Edit;

/// One person; repositories are named `owner/name`.
#[derive(Clone)]
pub struct Human {
    site: Arc<Site>,
    login: String,
}

impl fmt::Debug for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Human")
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

impl Human {
    pub(crate) fn new(site: Arc<Site>, login: &str) -> Self {
        Self {
            site,
            login: login.to_owned(),
        }
    }

    pub fn login(&self) -> &str {
        &self.login
    }

    pub fn open_issue(&self, repo: &str, title: &str, body: &str) -> Result<u64, Refusal> {
        let repo = self.may(repo, Scope::Issues, Level::Write)?;
        self.site
            .change(|change| issue::open(change, repo, &self.login, title, Some(body)))
    }

    pub fn edit_issue(&self, repo: &str, number: u64, title: &str, body: &str) -> Result<(), Refusal> {
        let edit = IssueEdit {
            title: Some(title.to_owned()),
            body: Some(body.to_owned()),
            standing: None,
        };
        self.edit(repo, number, edit)
    }

    /// Closes an issue or a pull request.
    pub fn close(&self, repo: &str, number: u64) -> Result<(), Refusal> {
        self.edit(
            repo,
            number,
            IssueEdit {
                standing: Some(Standing::Closed),
                ..IssueEdit::default()
            },
        )
    }

    /// Reopens an issue or a pull request.
    pub fn reopen(&self, repo: &str, number: u64) -> Result<(), Refusal> {
        self.edit(
            repo,
            number,
            IssueEdit {
                standing: Some(Standing::Open),
                ..IssueEdit::default()
            },
        )
    }

    /// Deletes an issue; from then on it answers 410.
    pub fn delete_issue(&self, repo: &str, number: u64) -> Result<(), Refusal> {
        let repo = self.may(repo, Scope::Issues, Level::Write)?;
        self.site
            .change(|change| issue::delete(change, repo, number, &self.login))
    }

    /// Moves an issue to another repository and returns its new number; the old one answers 301.
    pub fn transfer_issue(&self, repo: &str, number: u64, to: &str) -> Result<u64, Refusal> {
        let repo = self.may(repo, Scope::Issues, Level::Write)?;
        let to = self.may(to, Scope::Issues, Level::Write)?;
        self.site
            .change(|change| issue::transfer(change, repo, number, to, &self.login))
    }

    /// Comments on an issue or a pull request.
    pub fn comment(&self, repo: &str, number: u64, body: &str) -> Result<Comment, Refusal> {
        let repo = self.may(repo, Scope::Issues, Level::Write)?;
        self.site
            .change(|change| issue::comment(change, repo, number, &self.login, body))
    }

    pub fn approve(&self, repo: &str, number: u64, body: &str) -> Result<Review, Refusal> {
        self.review(repo, number, Verdict::Approved, body)
    }

    pub fn request_changes(&self, repo: &str, number: u64, body: &str) -> Result<Review, Refusal> {
        self.review(repo, number, Verdict::ChangesRequested, body)
    }

    /// Adds a remark on a line to a review.
    pub fn remark(
        &self,
        repo: &str,
        review: &Review,
        path: &str,
        line: u64,
        body: &str,
    ) -> Result<ReviewComment, Refusal> {
        let repo = self.may(repo, Scope::PullRequests, Level::Write)?;
        let remark = Remark {
            review: Some(review.id),
            body: body.to_owned(),
            path: path.to_owned(),
            commit_sha: review.commit_sha.clone(),
            line: Some(line),
            in_reply_to: None,
        };
        self.site
            .change(|change| pull::remark(change, repo, review.pull, &self.login, remark))
    }

    /// Merges a pull request and returns the commit that the base now points to.
    pub async fn merge(&self, repo: &str, number: u64, method: MergeMethod) -> Result<String, Refusal> {
        let repo = self.may(repo, Scope::Contents, Level::Write)?;
        pull::merge(&self.site, repo, number, &self.login, method, None).await
    }

    /// Commits edits to a branch, as with the editor in the browser, and returns the commit.
    pub async fn commit(
        &self,
        repo: &str,
        branch: &str,
        edits: &[Edit<'_>],
        message: &str,
    ) -> Result<String, Refusal> {
        let repo = self.may(repo, Scope::Contents, Level::Write)?;
        let user = self.site.look(|state| state.users.get(&self.login).cloned());
        let identity = pull::identity(user.as_ref(), &self.login);
        let dir = self.site.repo_dir(repo);
        let commit = self
            .site
            .git
            .commit_edits(&dir, branch, edits, message, &identity)
            .await?;
        push::notice(&self.site, repo, &self.login).await?;
        Ok(commit)
    }

    fn edit(&self, repo: &str, number: u64, edit: IssueEdit) -> Result<(), Refusal> {
        let repo = self.may(repo, Scope::Issues, Level::Write)?;
        self.site
            .change(|change| issue::edit(change, repo, number, &self.login, edit))
    }

    fn review(&self, repo: &str, number: u64, verdict: Verdict, body: &str) -> Result<Review, Refusal> {
        let repo = self.may(repo, Scope::PullRequests, Level::Write)?;
        self.site
            .change(|change| pull::review(change, repo, number, &self.login, verdict, body))
    }

    fn may(&self, repo: &str, scope: Scope, level: Level) -> Result<u64, Refusal> {
        let (owner, name) = repo.split_once('/').ok_or_else(Refusal::not_found)?;
        let record = self.site.look(|state| state.repo_named(owner, name).cloned());
        let record = record.ok_or_else(Refusal::not_found)?;
        Caller::Person {
            login: self.login.clone(),
        }
        .may(&record, scope, level)?;
        Ok(record.id)
    }
}
