//! Offers all of this crate as the engine's [`Workspace`].
//!
//! Each method takes the run's lock, tells one short story with the other modules, and classifies what went wrong.
//! This module does not know when, or how often, any of it is asked for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::diff::FindingKind;
use conductor_domain::fault::Fault;
use conductor_domain::id::{CommitId, RunId};
use conductor_domain::spec::RepoRef;
use conductor_port::executor::Executor;
use conductor_port::workspace::{
    Change, Checkout, CommitOrder, Committed, Diff, File, GitToken, Prepared, PushOrder, RebaseOrder,
    Rebased, Side, Workspace,
};

use crate::address::Address;
use crate::base::Base;
use crate::call::Git;
use crate::checkout::checkout;
use crate::commit::{self, Identity, Words, Work, commit};
use crate::diff::{Entry, EntryKind, Mark, diff, files, shown_path};
use crate::error::Error;
use crate::import::Limits;
use crate::layout::{Layout, is_there, make_temporary};
use crate::object::{ObjectId, commit_id};
use crate::push::push;
use crate::rebase::{self, rebase};
use crate::record::Record;
use crate::remote::Remote;
use crate::run_repo::{RunRepo, branch_ref};
use crate::save::{Saved, Saver};
use crate::snapshot::{ProcessSnapshotter, SandboxSnapshotter, Snapshotter};
use crate::sweep::{self, Mode, Unknown, sweep};
use crate::workdir::{Fresh, VisibleObjects};

/// Repositories and working directories below one data directory.
#[derive(Debug, Clone)]
pub struct GitWorkspace {
    git: Git,
    layout: Layout,
    snapshotter: Arc<dyn Snapshotter>,
    identity: Identity,
    limits: Limits,
    visible: Option<VisibleObjects>,
}

impl GitWorkspace {
    /// Opens the data directory and finishes removals that a crash interrupted.
    pub fn open(data: &Path, git: Git, identity: Identity) -> Result<Self, Error> {
        let layout = Layout::open(data)?;
        sweep::empty_trash(&layout)?;
        let snapshotter = Arc::new(ProcessSnapshotter::new(git.clone(), layout.staging()));
        Ok(Self {
            git,
            layout,
            snapshotter,
            identity,
            limits: Limits::default(),
            visible: None,
        })
    }

    /// Reads working directories in sandboxes of this executor, as S-7 has it; without this, in plain processes.
    pub fn with_sandboxes(self, executor: Arc<dyn Executor>) -> Self {
        let scratch = self.layout.staging().to_owned();
        let snapshotter = SandboxSnapshotter::new(self.git.clone(), executor, &scratch, self.limits);
        self.with_snapshotter(Arc::new(snapshotter))
    }

    /// Reads working directories with another snapshotter.
    pub fn with_snapshotter(mut self, snapshotter: Arc<dyn Snapshotter>) -> Self {
        self.snapshotter = snapshotter;
        self
    }

    /// Bounds what one snapshot may bring, and what a comparison may show.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Names object directories as agents see them inside their sandbox; without this, as the host does.
    pub fn with_visible_objects(mut self, visible: VisibleObjects) -> Self {
        self.visible = Some(visible);
        self
    }

    /// The places below the data directory.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The object directories that a run's working directory borrows from; what its sandbox may read besides (S-5).
    pub fn borrowed_objects(&self, run: &RunId) -> Result<Vec<PathBuf>, Error> {
        let repo = RunRepo::open(&self.layout, run)?;
        Ok(vec![repo.base_objects(), repo.objects()])
    }

    /// Reports working directories that belong to none of the `known` runs, and sets them aside if asked to.
    pub fn sweep(&self, known: &BTreeSet<RunId>, mode: Mode) -> Result<Vec<Unknown>, Error> {
        sweep(&self.layout, known, mode)
    }

    /// Compares two commits of a run, with all that is known about each change.
    pub async fn compare(
        &self,
        run: &RunId,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<crate::diff::Diff, Error> {
        let repo = RunRepo::open(&self.layout, run)?;
        diff(&self.git, &repo, from, to, self.limits.paths).await
    }

    fn saver(&self) -> Saver<'_> {
        Saver {
            git: &self.git,
            layout: &self.layout,
            snapshotter: &*self.snapshotter,
            identity: &self.identity,
            limits: self.limits,
        }
    }

    async fn fresh(&self, repo: &RunRepo, commit: &CommitId) -> Result<Fresh, Error> {
        let visible = self.visible.clone();
        let visible = visible.unwrap_or_else(|| VisibleObjects {
            base: repo.base_objects(),
            run: repo.objects(),
        });
        Fresh::make(&self.git, &self.layout, repo, commit, &visible).await
    }

    async fn try_prepare(
        &self,
        run: &RunId,
        repo: &RepoRef,
        token: Option<&GitToken>,
    ) -> Result<CommitId, Error> {
        let standing = match RunRepo::open(&self.layout, run) {
            Ok(standing) => standing,
            Err(Error::RunMissing { .. }) => self.begin(run, repo, token).await?,
            Err(e) => return Err(e),
        };
        let _lock = standing.lock().await?;
        let workdir = self.layout.workdir(run);
        if !is_there(&workdir)? {
            let head = standing.head(&self.git).await?;
            self.fresh(&standing, &head).await?.install(&workdir)?;
            Record::Fresh(head).write(&self.layout, run)?;
        }
        standing.base_commit(&self.git).await
    }

    async fn begin(&self, run: &RunId, repo: &RepoRef, token: Option<&GitToken>) -> Result<RunRepo, Error> {
        let address = Address::parse(&repo.clone_url)?;
        let remote = Remote::open(&self.git, &self.layout, &address, token)?;
        let own = branch_ref(run);
        let own = [own.as_str()];
        // Two questions to a server that may be far away, asked at once: neither needs the other's answer.
        let (base, existing) = tokio::try_join!(
            Base::refresh(&self.git, &self.layout, &address, token),
            remote.refs(&self.git, self.layout.staging(), &own),
        )?;
        if let Some((branch, _)) = existing.into_iter().next() {
            return Err(Error::BranchTaken {
                branch,
                url: address.url().to_owned(),
            });
        }
        let at = base.branch(&self.git, &repo.base_branch).await?;
        RunRepo::create(&self.git, &self.layout, run, &base, &at).await
    }

    async fn try_reset(&self, run: &RunId, commit: &CommitId) -> Result<(PathBuf, Option<String>), Error> {
        let repo = RunRepo::open(&self.layout, run)?;
        let lock = repo.lock().await?;
        // A commit or rebase that was told to stop may have moved the branch with nobody to hear of it. What it made stays
        // under its own ref; work goes on from where the record says that the run stands.
        let head = repo.head(&self.git).await?;
        if head != *commit {
            repo.require(&self.git, commit).await?;
            repo.move_ref(&self.git, &lock, &repo.branch(), commit, Some(&head))
                .await?;
        }
        let workdir = self.layout.workdir(run);
        let given = Record::Given(commit.clone());
        let untouched = Record::read(&self.layout, run)? == Some(Record::Fresh(commit.clone()));
        if untouched && is_there(&workdir)? {
            given.write(&self.layout, run)?;
            return Ok((workdir, None));
        }
        let saved = self.saver().save(&repo, &lock).await?;
        let place = saved.place();
        let fresh = self.fresh(&repo, commit).await?;
        given.write(&self.layout, run)?;
        if let Saved::Never(aside) = saved {
            // Before `install`, which hands what it finds in this place over to removal.
            aside.take()?;
        }
        if let Some(retired) = fresh.install(&workdir)? {
            retired.remove().await?;
        }
        Ok((workdir, place))
    }

    async fn try_commit(&self, order: &CommitOrder) -> Result<Committed, Error> {
        expect_name(&order.run, &order.branch)?;
        let repo = RunRepo::open(&self.layout, &order.run)?;
        let lock = repo.lock().await?;
        let workdir = self.layout.workdir(&order.run);
        let work = Work {
            effect: &order.effect,
            parent: &order.parent,
            onto: order.onto.as_ref(),
            workdir,
            objects: vec![repo.base_objects(), repo.objects()],
            words: Words {
                identity: &self.identity,
                at: order.at,
                message: &order.message,
            },
            limits: self.limits,
        };
        match commit(&self.git, &repo, &lock, &*self.snapshotter, &work).await? {
            commit::Outcome::NothingToCommit => Ok(Committed::Nothing),
            commit::Outcome::Committed(commit) => {
                Record::Given(commit.clone()).write(&self.layout, &order.run)?;
                let tree = tree_id(&repo.tree_of(&self.git, &commit).await?)?;
                Ok(Committed::Commit { commit, tree })
            }
        }
    }

    async fn try_checkout(&self, run: &RunId, commit: &CommitId) -> Result<Checkout, Error> {
        let repo = RunRepo::open(&self.layout, run)?;
        let holder = make_temporary(self.layout.staging(), "checkout-")?;
        let dir = holder.path().join("tree");
        std::fs::create_dir(&dir).map_err(|e| Error::io("make", &dir, e))?;
        checkout(&self.git, &self.layout, &repo, commit, &dir).await?;
        let tree = tree_id(&repo.tree_of(&self.git, commit).await?)?;
        Ok(Checkout {
            dir,
            tree,
            guard: Box::new(holder),
        })
    }

    async fn try_files(&self, run: &RunId, commit: &CommitId) -> Result<Vec<File>, Error> {
        let repo = RunRepo::open(&self.layout, run)?;
        let found = files(&self.git, &repo, commit).await?;
        Ok(found
            .into_iter()
            .map(|(path, bytes)| File {
                path: shown_path(&path),
                bytes,
            })
            .collect())
    }

    async fn try_rebase(
        &self,
        order: &RebaseOrder,
        repo: &RepoRef,
        token: Option<&GitToken>,
    ) -> Result<Rebased, Error> {
        expect_name(&order.run, &order.branch)?;
        let address = Address::parse(&repo.clone_url)?;
        let base = Base::refresh(&self.git, &self.layout, &address, token).await?;
        let onto = base.branch(&self.git, &repo.base_branch).await?;
        let standing = RunRepo::open(&self.layout, &order.run)?;
        let lock = standing.lock().await?;
        Ok(match rebase(&self.git, &standing, &lock, order, &onto).await? {
            rebase::Outcome::Clean { base, head } => Rebased::Clean { base, head },
            rebase::Outcome::Conflicted(paths) => Rebased::Conflicted {
                paths: paths.iter().map(|path| shown_path(path)).collect(),
            },
        })
    }

    async fn try_push(
        &self,
        order: &PushOrder,
        repo: &RepoRef,
        token: Option<&GitToken>,
    ) -> Result<(), Error> {
        expect_name(&order.run, &order.branch)?;
        let address = Address::parse(&repo.clone_url)?;
        let remote = Remote::open(&self.git, &self.layout, &address, token)?;
        let standing = RunRepo::open(&self.layout, &order.run)?;
        push(
            &self.git,
            &standing,
            &remote,
            order.commit.as_ref(),
            order.expected.as_ref(),
        )
        .await
    }

    async fn try_clean_up(&self, run: &RunId) -> Result<Option<String>, Error> {
        let repo = match RunRepo::open(&self.layout, run) {
            Ok(repo) => repo,
            Err(Error::RunMissing { .. }) => return Ok(None),
            Err(e) => return Err(e),
        };
        let lock = repo.lock().await?;
        self.saver().remove_workdir(&repo, &lock).await
    }
}

#[async_trait]
impl Workspace for GitWorkspace {
    async fn prepare(
        &self,
        run: &RunId,
        repo: &RepoRef,
        branch: &str,
        token: Option<&GitToken>,
    ) -> Result<Prepared, Fault> {
        expect_name(run, branch)?;
        match self.try_prepare(run, repo, token).await {
            Ok(base) => Ok(Prepared::Ready { base }),
            Err(e) if e.is_for_ever() => Ok(Prepared::Impossible { why: e.to_string() }),
            Err(e) => Err(e.into()),
        }
    }

    async fn reset(&self, run: &RunId, commit: &CommitId) -> Result<(PathBuf, Option<String>), Fault> {
        Ok(self.try_reset(run, commit).await?)
    }

    async fn commit(&self, order: &CommitOrder) -> Result<Committed, Fault> {
        Ok(self.try_commit(order).await?)
    }

    async fn checkout(&self, run: &RunId, commit: &CommitId) -> Result<Checkout, Fault> {
        Ok(self.try_checkout(run, commit).await?)
    }

    async fn diff(&self, run: &RunId, from: &CommitId, to: &CommitId) -> Result<Diff, Fault> {
        let found = self.compare(run, from, to).await?;
        let told = |changes: Vec<crate::diff::Change>| -> Vec<Change> {
            let told = changes.into_iter().map(|change| Change {
                path: shown_path(&change.path),
                findings: change.marks.iter().map(|mark| finding(*mark)).collect(),
                before: side(change.old),
                after: side(change.new),
            });
            told.collect()
        };
        Ok(Diff {
            digest: found.digest,
            changes: told(found.changes),
            passing: told(found.passing),
            rendered: found.rendered,
            unshown: found.unshown,
        })
    }

    async fn files(&self, run: &RunId, commit: &CommitId) -> Result<Vec<File>, Fault> {
        Ok(self.try_files(run, commit).await?)
    }

    async fn rebase(
        &self,
        order: &RebaseOrder,
        repo: &RepoRef,
        token: Option<&GitToken>,
    ) -> Result<Rebased, Fault> {
        Ok(self.try_rebase(order, repo, token).await?)
    }

    async fn push(&self, order: &PushOrder, repo: &RepoRef, token: Option<&GitToken>) -> Result<(), Fault> {
        Ok(self.try_push(order, repo, token).await?)
    }

    async fn clean_up(&self, run: &RunId, _repo: &RepoRef) -> Result<Option<String>, Fault> {
        Ok(self.try_clean_up(run).await?)
    }
}

/// Refuses any branch but the run's own (S-12).
fn expect_name(run: &RunId, branch: &str) -> Result<(), Error> {
    let own = branch_ref(run);
    if own.strip_prefix("refs/heads/") == Some(branch) {
        return Ok(());
    }
    Err(Error::ForeignBranch {
        branch: branch.to_owned(),
        run: run.to_string(),
    })
}

fn tree_id(tree: &ObjectId) -> Result<CommitId, Error> {
    commit_id(tree.as_str())
}

fn side(entry: Option<Entry>) -> Side {
    match entry {
        None => Side::Absent,
        Some(Entry {
            kind: EntryKind::Gitlink,
            ..
        }) => Side::Elsewhere,
        Some(Entry {
            content: Some(bytes), ..
        }) => Side::Bytes(bytes),
        Some(Entry { size, .. }) => Side::Unread {
            size: size.unwrap_or(0),
        },
    }
}

fn finding(mark: Mark) -> FindingKind {
    match mark {
        Mark::Gitlink => FindingKind::Gitlink,
        Mark::GitSettings => FindingKind::GitSettings,
        Mark::EscapingSymlink => FindingKind::EscapingSymlink,
        Mark::CollidingName => FindingKind::CollidingName,
    }
}
