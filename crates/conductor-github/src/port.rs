//! Makes the client the engine's forge.
//!
//! It only translates; the operations are in the modules named after what they touch.

use async_trait::async_trait;
use conductor_domain::board::{BoardNumber, OwnFields};
use conductor_domain::effect::CommentTarget;
use conductor_domain::fault::Fault;
use conductor_domain::forge::IssueProblem;
use conductor_domain::id::{IssueNumber, PullRequestNumber};
use conductor_domain::spec::RepoRef;
use conductor_port::forge::{
    Forge, Issue, NewCheck, NewPullRequest, PastPullRequest, PullRequestReading, RepoDescription,
};
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
        let (number, grant) = conversation(target);
        self.post_comment(&Place::of(repo)?, grant, number, body, marker, repeated)
            .await
    }

    async fn remove_repeats(
        &self,
        repo: &RepoRef,
        target: CommentTarget,
        marker: &str,
    ) -> Result<u32, Fault> {
        let (number, grant) = conversation(target);
        self.remove_repeated_comments(&Place::of(repo)?, grant, number, marker)
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

    async fn past_pull_requests(&self, repo: &RepoRef, most: u8) -> Result<Vec<PastPullRequest>, Fault> {
        self.list_past_pull_requests(repo, most).await
    }

    async fn close_pull_request(&self, repo: &RepoRef, number: PullRequestNumber) -> Result<(), Fault> {
        self.withdraw(repo, number).await
    }

    async fn publish_check(&self, repo: &RepoRef, check: &NewCheck) -> Result<(), Fault> {
        self.publish(repo, check).await
    }

    async fn update_fields(
        &self,
        repo: &RepoRef,
        board: BoardNumber,
        issue: IssueNumber,
        fields: &OwnFields,
    ) -> Result<(), Fault> {
        self.set_fields(repo, board, issue, fields).await
    }

    async fn git_token(&self, repo: &RepoRef) -> Result<Option<GitToken>, Fault> {
        self.push_token(&Place::of(repo)?).await.map(Some)
    }
}

fn conversation(target: CommentTarget) -> (u64, Grant) {
    match target {
        CommentTarget::Issue(number) => (number.0, Grant::WriteIssues),
        CommentTarget::PullRequest(number) => (number.0, Grant::WritePullRequests),
    }
}
