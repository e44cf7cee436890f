//! Saves what an agent left uncommitted, and gives working directories back only after that (BEY-8, invariant 8).
//!
//! Work goes to `refs/conductor/saved/<n>` in the run's repository, through the same snapshot and the same checks
//! as a commit, and is read back before anything is removed. Ignored files are not saved (see `snapshot`).
//!
//! This module does not know why a directory has to go.

use std::fs;
use std::io;

use conductor_domain::id::CommitId;
use conductor_domain::time::Timestamp;

use crate::call::Git;
use crate::commit::{Identity, Words, write_commit};
use crate::error::Error;
use crate::import::{Limits, import};
use crate::layout::{Layout, is_there};
use crate::lock::Lock;
use crate::object::ObjectId;
use crate::record::{Record, write_durably};
use crate::run_repo::RunRepo;
use crate::snapshot::{Purpose, Request, Snapshotter};
use crate::workdir::Retired;

/// Where saved work stands.
const SAVED: &str = "refs/conductor/saved/";

/// What saving needs besides the repository.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Saver<'a> {
    pub(crate) git: &'a Git,
    pub(crate) layout: &'a Layout,
    pub(crate) snapshotter: &'a dyn Snapshotter,
    pub(crate) identity: &'a Identity,
    pub(crate) limits: Limits,
}

impl Saver<'_> {
    /// Saves the uncommitted work of the run's working directory; `None` when there is none.
    ///
    /// If repeated: the same work is found under its earlier ref.
    pub(crate) async fn save(&self, repo: &RunRepo, lock: &Lock) -> Result<Option<String>, Error> {
        let workdir = self.layout.workdir(repo.run());
        if !is_there(&workdir)? {
            return Ok(None);
        }
        let head = repo.head(self.git).await?;
        let filled_from = match Record::read(self.layout, repo.run())? {
            Some(Record::Fresh(commit) | Record::Given(commit)) => commit,
            None => head.clone(),
        };
        let before = repo.tree_of(self.git, &filled_from).await?;
        let request = Request {
            run: repo.run().clone(),
            workdir,
            objects: vec![repo.base_objects(), repo.objects()],
            parent: before.clone(),
            purpose: Purpose::Save,
        };
        let snapshot = self.snapshotter.snapshot(&request).await?;
        let tree = import(self.git, repo, snapshot, &before, self.limits).await?;
        if tree == before || tree == repo.tree_of(self.git, &head).await? {
            return Ok(None);
        }
        let name = self.keep(repo, lock, &tree, &filled_from).await?;
        self.verify(repo, &name, &tree).await?;
        Ok(Some(name))
    }

    /// Saves, verifies, and only then removes the run's working directory; returns where the work was saved.
    ///
    /// If repeated: says what the earlier call said.
    pub(crate) async fn remove_workdir(&self, repo: &RunRepo, lock: &Lock) -> Result<Option<String>, Error> {
        let workdir = self.layout.workdir(repo.run());
        let note = self.layout.run(repo.run()).join("removed");
        if is_there(&workdir)? {
            let saved = self.save(repo, lock).await.map_err(|source| Error::SaveFailed {
                run: repo.run().to_string(),
                source: Box::new(source),
            })?;
            write_durably(&note, saved.as_deref().unwrap_or_default().as_bytes())?;
            if let Some(retired) = Retired::take(self.layout, &workdir)? {
                retired.remove().await?;
            }
        }
        match fs::read_to_string(&note) {
            Ok(name) if name.is_empty() => Ok(None),
            Ok(name) => Ok(Some(name)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("read", note, e)),
        }
    }

    async fn keep(
        &self,
        repo: &RunRepo,
        lock: &Lock,
        tree: &ObjectId,
        parent: &CommitId,
    ) -> Result<String, Error> {
        // The parent's own time makes the same work the same commit, so that a repeat recognises it.
        let at = commit_time(self.git, repo, parent).await?;
        let message = format!("Uncommitted work of run {}\n", repo.run());
        let words = Words {
            identity: self.identity,
            at,
            message: &message,
        };
        let commit = write_commit(self.git, repo, tree, parent, &words).await?;
        let saved = repo.refs_below(self.git, SAVED).await?;
        if let Some((name, _)) = saved.iter().find(|(_, id)| *id == commit) {
            return Ok(name.clone());
        }
        let used = saved
            .iter()
            .filter_map(|(name, _)| name.strip_prefix(SAVED)?.parse::<u64>().ok());
        let name = format!("{SAVED}{}", used.max().unwrap_or(0) + 1);
        repo.move_ref(self.git, lock, &name, &commit, None).await?;
        Ok(name)
    }

    /// Reads everything back under the name that people will use.
    async fn verify(&self, repo: &RunRepo, name: &str, tree: &ObjectId) -> Result<(), Error> {
        let incomplete = |detail: String| Error::TreeIncomplete {
            tree: tree.to_string(),
            detail,
        };
        let Some(commit) = repo.resolve(self.git, name).await? else {
            return Err(incomplete(format!("{name} was not written")));
        };
        if repo.tree_of(self.git, &commit).await? != *tree {
            return Err(incomplete(format!("{name} holds another tree")));
        }
        let walk = repo
            .call(self.git, "rev-list")
            .args(["--objects", "--quiet", tree.as_str()]);
        let walked = walk.finish().await?;
        if walked.status.success() {
            Ok(())
        } else {
            Err(incomplete(walked.stderr))
        }
    }
}

async fn commit_time(git: &Git, repo: &RunRepo, commit: &CommitId) -> Result<Timestamp, Error> {
    let shown = repo
        .call(git, "show")
        .args(["--no-patch", "--format=%ct", commit.as_str()])
        .text()
        .await?;
    let seconds: i64 = shown.trim().parse().map_err(|_| Error::UnexpectedOutput {
        verb: "show",
        detail: "a time that is no number".to_owned(),
    })?;
    Ok(Timestamp(seconds.saturating_mul(1_000_000)))
}
