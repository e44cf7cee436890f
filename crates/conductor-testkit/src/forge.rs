//! A forge in memory: issues, comments, pull requests, checks and branches, each write counted.
//!
//! Like the real one it accepts the same comment twice if nobody looks for it first; tests then see two. It does not
//! know git beyond the names of commits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use conductor_domain::board::{BoardNumber, OwnFields};
use conductor_domain::effect::CommentTarget;
use conductor_domain::fault::Fault;
use conductor_domain::forge::{IssueProblem, PullRequestState};
use conductor_domain::id::{CommitId, IssueNumber, PullRequestNumber, RepoId};
use conductor_domain::spec::RepoRef;
use conductor_port::forge::{
    Forge, Issue, Merges, NewCheck, NewPullRequest, PastPullRequest, PullRequestReading, RepoDescription,
    ReviewReading, has_marker,
};
use conductor_port::workspace::GitToken;

use crate::world::{Weather, World};

/// A comment as it was posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostedComment {
    /// Where.
    pub target: CommentTarget,
    /// What.
    pub body: String,
}

/// A pull request as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakePullRequest {
    /// Its number.
    pub number: PullRequestNumber,
    /// Its branch.
    pub branch: String,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Open, merged or closed.
    pub state: PullRequestState,
    /// The reviews that ask for changes, oldest first.
    pub reviews: Vec<ReviewReading>,
}

/// Everything at the forge.
#[derive(Debug, Default)]
pub struct Archive {
    /// The issues by repository and number.
    pub issues: BTreeMap<(RepoId, u64), Issue>,
    /// The comments, oldest first.
    pub comments: Vec<PostedComment>,
    /// The pull requests by repository and number.
    pub pull_requests: BTreeMap<(RepoId, u64), FakePullRequest>,
    /// The check runs by external id.
    pub checks: BTreeMap<String, NewCheck>,
    /// What fields say, by repository, board and issue.
    pub fields: BTreeMap<(RepoId, u32, u64), BTreeMap<String, String>>,
    /// The branches by repository and name.
    pub branches: BTreeMap<(RepoId, String), CommitId>,
    /// Checks of others that have not ended, on every head.
    pub pending_checks: Vec<String>,
    /// Whether nobody may delete a branch.
    pub keeps_branches: bool,
    /// Every change of anything, in order.
    pub writes: Vec<String>,
}

/// A forge in memory.
#[derive(Debug)]
pub struct FakeForge {
    world: Arc<World>,
    archive: Mutex<Archive>,
    is_forgetful: bool,
    is_down: AtomicBool,
}

impl FakeForge {
    /// Makes an empty forge.
    pub fn new(world: Arc<World>) -> Self {
        Self {
            world,
            archive: Mutex::default(),
            is_forgetful: false,
            is_down: AtomicBool::new(false),
        }
    }

    /// Makes a forge whose adapter never looks for a comment first; a story on it must end badly.
    pub fn forgetful(world: Arc<World>) -> Self {
        Self {
            is_forgetful: true,
            ..Self::new(world)
        }
    }

    /// Takes the forge down or brings it back; while down it does nothing and says so.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::Relaxed);
    }

    async fn weather(&self, what: &'static str) -> Result<Weather, Fault> {
        if self.is_down.load(Ordering::Relaxed) {
            return Err(Fault::transient(format!("{what}: the forge is down")));
        }
        let weather = self.world.weather(what).await;
        weather.before()?;
        Ok(weather)
    }

    /// Looks at, or changes, what is at the forge.
    pub fn archive(&self) -> MutexGuard<'_, Archive> {
        self.archive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn page(repo: &RepoRef, what: &str, number: u64) -> String {
    format!("https://{}/{repo}/{what}/{number}", repo.host)
}

#[async_trait]
impl Forge for FakeForge {
    async fn repository(&self, owner: &str, name: &str) -> Result<Option<RepoDescription>, Fault> {
        let weather = self.weather("read a repository").await?;
        weather.after(Some(RepoDescription {
            id: RepoId(1),
            owner: owner.to_owned(),
            name: name.to_owned(),
            clone_url: format!("https://forge.test/{owner}/{name}.git"),
            default_branch: "main".to_owned(),
        }))
    }

    async fn issue(&self, repo: &RepoRef, number: IssueNumber) -> Result<Result<Issue, IssueProblem>, Fault> {
        let weather = self.weather("read an issue").await?;
        let issue = self.archive().issues.get(&(repo.id, number.0)).cloned();
        weather.after(issue.ok_or(IssueProblem::NotFound))
    }

    async fn comment(
        &self,
        repo: &RepoRef,
        target: CommentTarget,
        body: &str,
        marker: &str,
        repeated: bool,
    ) -> Result<String, Fault> {
        let weather = self.weather("comment").await?;
        let number = {
            let mut archive = self.archive();
            let found = archive
                .comments
                .iter()
                .position(|comment| comment.target == target && has_marker(&comment.body, marker));
            if let Some(found) = found.filter(|_| repeated && !self.is_forgetful) {
                found
            } else {
                let body = body.to_owned();
                archive.comments.push(PostedComment { target, body });
                archive.writes.push(format!("comment {marker}"));
                archive.comments.len() - 1
            }
        };
        weather.after(page(repo, "comment", number as u64))
    }

    async fn remove_repeats(
        &self,
        _repo: &RepoRef,
        target: CommentTarget,
        marker: &str,
    ) -> Result<u32, Fault> {
        let weather = self.world.weather("remove repeated comments").await;
        weather.before()?;
        let removed = {
            let mut archive = self.archive();
            let mut found = 0;
            // Forgotten and not taken out, because the others are known by their place.
            for comment in &mut archive.comments {
                if !self.is_forgetful && comment.target == target && has_marker(&comment.body, marker) {
                    found += 1;
                    if found > 1 {
                        comment.body.clear();
                    }
                }
            }
            found.max(1) - 1
        };
        weather.after(removed)
    }

    async fn open_pull_request(
        &self,
        repo: &RepoRef,
        new: &NewPullRequest,
    ) -> Result<(PullRequestNumber, String), Fault> {
        let weather = self.weather("open a pull request").await?;
        let number = {
            let mut archive = self.archive();
            let of_branch = |((id, _), pull_request): (&(RepoId, u64), &FakePullRequest)| {
                (*id == repo.id && pull_request.branch == new.branch).then_some(pull_request.number)
            };
            let found = archive.pull_requests.iter().find_map(of_branch);
            if let Some(found) = found {
                found
            } else {
                let number = PullRequestNumber(1000 + archive.pull_requests.len() as u64);
                let pull_request = FakePullRequest {
                    number,
                    branch: new.branch.clone(),
                    title: new.title.clone(),
                    body: new.body.clone(),
                    state: PullRequestState::Open,
                    reviews: vec![],
                };
                archive.pull_requests.insert((repo.id, number.0), pull_request);
                archive.writes.push(format!("open {}", new.branch));
                number
            }
        };
        weather.after((number, page(repo, "pull", number.0)))
    }

    async fn pull_request(
        &self,
        repo: &RepoRef,
        number: PullRequestNumber,
    ) -> Result<PullRequestReading, Fault> {
        let weather = self.weather("read a pull request").await?;
        let reading = {
            let archive = self.archive();
            let pull_request = archive
                .pull_requests
                .get(&(repo.id, number.0))
                .ok_or_else(|| Fault::permanent(format!("there is no pull request {number}")))?;
            let head = archive
                .branches
                .get(&(repo.id, pull_request.branch.clone()))
                .cloned();
            PullRequestReading {
                state: pull_request.state.clone(),
                head: head.ok_or_else(|| Fault::permanent("the pull request has no branch"))?,
                head_repo: Some(repo.id),
                base_head: archive
                    .branches
                    .get(&(repo.id, repo.base_branch.clone()))
                    .cloned(),
                changes_requested: pull_request.reviews.clone(),
                failed_checks: vec![],
                pending_checks: archive.pending_checks.clone(),
            }
        };
        weather.after(reading)
    }

    async fn past_pull_requests(&self, repo: &RepoRef, most: u8) -> Result<Vec<PastPullRequest>, Fault> {
        let weather = self.weather("list past pull requests").await?;
        let past = {
            let archive = self.archive();
            let of_repo = archive
                .pull_requests
                .iter()
                .rev()
                .filter(|(key, _)| key.0 == repo.id);
            of_repo
                .filter(|(_, pull_request)| pull_request.state != PullRequestState::Open)
                .take(usize::from(most))
                .map(|(_, pull_request)| PastPullRequest {
                    number: pull_request.number,
                    title: pull_request.title.clone(),
                    by: None,
                    is_merged: matches!(pull_request.state, PullRequestState::Merged { .. }),
                })
                .collect()
        };
        weather.after(past)
    }

    async fn close_pull_request(&self, repo: &RepoRef, number: PullRequestNumber) -> Result<(), Fault> {
        let weather = self.weather("close a pull request").await?;
        {
            let mut archive = self.archive();
            if let Some(pull_request) = archive.pull_requests.get_mut(&(repo.id, number.0))
                && pull_request.state == PullRequestState::Open
            {
                pull_request.state = PullRequestState::Closed;
                archive.writes.push(format!("close {number}"));
            }
        }
        weather.after(())
    }

    async fn publish_check(&self, _repo: &RepoRef, check: &NewCheck) -> Result<(), Fault> {
        let weather = self.weather("publish a check").await?;
        {
            let mut archive = self.archive();
            let before = archive.checks.insert(check.external_id.clone(), check.clone());
            if before.as_ref() != Some(check) {
                archive.writes.push(format!("check {}", check.external_id));
            }
        }
        weather.after(())
    }

    async fn update_fields(
        &self,
        repo: &RepoRef,
        board: BoardNumber,
        issue: IssueNumber,
        fields: &OwnFields,
    ) -> Result<(), Fault> {
        let weather = self.weather("update fields").await?;
        {
            let mut archive = self.archive();
            let known = archive.fields.entry((repo.id, board.0, issue.0)).or_default();
            known.extend(fields.values().clone());
            archive.writes.push(format!("fields on board {}", board.0));
        }
        weather.after(())
    }

    async fn git_token(&self, _repo: &RepoRef) -> Result<Option<GitToken>, Fault> {
        Ok(None)
    }
}

#[async_trait]
impl Merges for FakeForge {
    async fn merge(
        &self,
        repo: &RepoRef,
        number: PullRequestNumber,
        head: &CommitId,
    ) -> Result<Result<(), String>, Fault> {
        let weather = self.weather("merge a pull request").await?;
        let merged = {
            let mut archive = self.archive();
            let branches = archive.branches.clone();
            match archive.pull_requests.get_mut(&(repo.id, number.0)) {
                Some(pull_request) if pull_request.state != PullRequestState::Open => {
                    Err("Pull Request is not mergeable".to_owned())
                }
                Some(pull_request) if branches.get(&(repo.id, pull_request.branch.clone())) == Some(head) => {
                    pull_request.state = PullRequestState::Merged {
                        by: Some("conductor[bot]".to_owned()),
                    };
                    archive.writes.push(format!("merge {number}"));
                    Ok(())
                }
                Some(_) => Err("Head branch was modified".to_owned()),
                None => Err("there is no such pull request".to_owned()),
            }
        };
        weather.after(merged)
    }
}
