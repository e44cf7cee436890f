//! Saves what an agent left uncommitted, and gives working directories back only after that (BEY-8, invariant 8).
//!
//! Work goes to `refs/conductor/saved/<n>` in the run's repository, through the same snapshot and the same checks
//! as a commit, and is read back before anything is removed. Ignored files are not saved (see `snapshot`).
//! Work that can never be saved so, being too large or nothing that git takes, is moved aside with its whole directory:
//! kept in place it would hold its run up for ever, and one large file would be enough for that.
//!
//! This module does not know why a directory has to go.

use std::fs;
use std::io;

use conductor_domain::id::CommitId;
use conductor_domain::time::Timestamp;

use crate::aside::Aside;
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

/// What became of the work in a working directory; its caller does the rest.
#[derive(Debug)]
pub(crate) enum Saved {
    /// There was none that no commit holds.
    Nothing,
    /// It stands under this ref; the directory may go.
    Ref(String),
    /// It can never be saved; the directory has to be moved here.
    Never(Aside),
}

impl Saved {
    /// Where people find the work, as they are told.
    pub(crate) fn place(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Ref(name) => Some(name.clone()),
            Self::Never(aside) => Some(aside.path().display().to_string()),
        }
    }
}

impl Saver<'_> {
    /// Saves the uncommitted work of the run's working directory, or says where it has to be moved.
    ///
    /// If repeated: the same work is found under its earlier ref.
    pub(crate) async fn save(&self, repo: &RunRepo, lock: &Lock) -> Result<Saved, Error> {
        match self.save_to_ref(repo, lock).await {
            Ok(None) => Ok(Saved::Nothing),
            Ok(Some(name)) => Ok(Saved::Ref(name)),
            Err(why) if why.is_due_to_the_work() => {
                let aside = Aside::reserve(self.layout, &self.layout.workdir(repo.run()), "unsaved-")?;
                let place = aside.path().display();
                tracing::warn!(run = %repo.run(), %why, %place, "moving work aside that cannot be saved");
                Ok(Saved::Never(aside))
            }
            Err(source) => Err(Error::SaveFailed {
                run: repo.run().to_string(),
                source: Box::new(source),
            }),
        }
    }

    async fn save_to_ref(&self, repo: &RunRepo, lock: &Lock) -> Result<Option<String>, Error> {
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
        let tree = self.take_in(repo, &request).await?;
        if tree == before || tree == repo.tree_of(self.git, &head).await? {
            return Ok(None);
        }
        let name = self.keep(repo, lock, &tree, &filled_from).await?;
        self.verify(repo, &name, &tree).await?;
        Ok(Some(name))
    }

    /// Reads the directory. One that takes too long is too large: a repeat would read as much.
    async fn take_in(&self, repo: &RunRepo, request: &Request) -> Result<ObjectId, Error> {
        let taken = async {
            let snapshot = self.snapshotter.snapshot(request).await?;
            import(self.git, repo, snapshot, &request.parent, self.limits).await
        };
        match taken.await {
            Err(Error::TimedOut { limit, .. }) => Err(Error::SnapshotTooLarge {
                limit: format!("what can be read in {} seconds", limit.as_secs()),
            }),
            taken => taken,
        }
    }

    /// Saves, verifies, and only then takes the run's working directory away; returns where the work is.
    ///
    /// If repeated: says what the earlier call said.
    pub(crate) async fn remove_workdir(&self, repo: &RunRepo, lock: &Lock) -> Result<Option<String>, Error> {
        let workdir = self.layout.workdir(repo.run());
        let note = self.layout.run(repo.run()).join("removed");
        if is_there(&workdir)? {
            let saved = self.save(repo, lock).await?;
            write_durably(&note, saved.place().unwrap_or_default().as_bytes())?;
            match saved {
                Saved::Never(aside) => {
                    aside.take()?;
                }
                Saved::Nothing | Saved::Ref(_) => {
                    if let Some(retired) = Retired::take(self.layout, &workdir)? {
                        retired.remove().await?;
                    }
                }
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
