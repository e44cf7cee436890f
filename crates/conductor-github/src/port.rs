//! Makes the client the engine's forge.
//!
//! It only translates; the operations are in the modules named after what they touch.

use async_trait::async_trait;
use conductor_domain::effect::CommentTarget;
use conductor_domain::fault::Fault;
use conductor_domain::forge::IssueProblem;
use conductor_domain::id::{IssueNumber, PullRequestNumber};
use conductor_domain::spec::RepoRef;
use conductor_port::forge::{Forge, Issue, NewCheck, NewPullRequest, PullRequestReading, RepoDescription};
use conductor_port::workspace::GitToken;

use crate::client::Client;
use crate::credential::{Grant, Place};

#[async_trait]
impl Forge for Client {
    async fn repository(&self, owner: &str, name: &str) -> Result<Option<RepoDescription>, Fault> {
        self.read_repository(&Place::named(owner, name)?).await
    }

    async fn issue(&self, repo: &RepoRef, number: IssueNumber) -> Result<Result<Issue, IssueProblem>, Fault> {
        self.read_issue(&Place::of(repo)?, number.0).await
    }

    async fn comment(
        &self,
        repo: &RepoRef,
        target: CommentTarget,
        body: &str,
        marker: &str,
        repeated: bool,
    ) -> Result<String, Fault> {
        let (number, grant) = match target {
            CommentTarget::Issue(number) => (number.0, Grant::WriteIssues),
            CommentTarget::PullRequest(number) => (number.0, Grant::WritePullRequests),
        };
        self.post_comment(&Place::of(repo)?, grant, number, body, marker, repeated)
            .await
    }

    async fn open_pull_request(
        &self,
        repo: &RepoRef,
        new: &NewPullRequest,
    ) -> Result<(PullRequestNumber, String), Fault> {
        self.propose(repo, new).await
    }

    async fn pull_request(
        &self,
        repo: &RepoRef,
        number: PullRequestNumber,
    ) -> Result<PullRequestReading, Fault> {
        self.read_pull_request(repo, number).await
    }

    async fn close_pull_request(&self, repo: &RepoRef, number: PullRequestNumber) -> Result<(), Fault> {
        self.withdraw(repo, number).await
    }

    async fn publish_check(&self, repo: &RepoRef, check: &NewCheck) -> Result<(), Fault> {
        self.publish(repo, check).await
    }

    async fn delete_branch(&self, repo: &RepoRef, branch: &str) -> Result<(), Fault> {
        self.remove_branch(&Place::of(repo)?, branch).await
    }

    async fn git_token(&self, repo: &RepoRef) -> Result<Option<GitToken>, Fault> {
        self.push_token(&Place::of(repo)?).await.map(Some)
    }
}
