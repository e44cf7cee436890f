//! Repositories and working directories in memory: trees are maps, commits are hashes over them.
//!
//! Keeps the promises of the port about repeats, so that the engine is tested against those and nothing kinder. It
//! does not know real git.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::{CommitId, EffectId, RunId};
use conductor_domain::spec::RepoRef;
use conductor_port::workspace::{
    Change, Checkout, CommitOrder, Committed, Diff, File, GitToken, Prepared, PushOrder, RebaseOrder,
    Rebased, Side, Workspace,
};

use crate::forge::FakeForge;
use crate::world::World;

/// The files of a commit or a directory.
pub type Tree = BTreeMap<String, Vec<u8>>;

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeCommit {
    /// What it stands on.
    pub parent: Option<CommitId>,
    /// What it holds.
    pub tree: Tree,
    /// Which effect made it.
    pub effect: Option<EffectId>,
}

/// The repository of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRepo {
    /// The commit it began with.
    pub base: CommitId,
    /// The head of the run's branch.
    pub head: CommitId,
    /// What the working directory held when it was last made to hold a commit.
    pub clean: Tree,
}

/// Everything on the disk.
#[derive(Debug, Default)]
pub struct Disk {
    /// The commits of all repositories.
    pub commits: BTreeMap<CommitId, FakeCommit>,
    /// The repositories of runs.
    pub repos: BTreeMap<RunId, RunRepo>,
    /// The files of every working directory.
    pub dirs: BTreeMap<PathBuf, Tree>,
    /// Work that was saved, by ref.
    pub saved: BTreeMap<String, Tree>,
    checkouts: u64,
}

/// Working directories in memory.
#[derive(Debug)]
pub struct FakeWorkspace {
    world: Arc<World>,
    forge: Arc<FakeForge>,
    disk: Arc<Mutex<Disk>>,
}

impl FakeWorkspace {
    /// Makes an empty disk beside a forge.
    pub fn new(world: Arc<World>, forge: Arc<FakeForge>) -> Self {
        Self {
            world,
            forge,
            disk: Arc::default(),
        }
    }

    /// Looks at, or changes, what is on the disk.
    pub fn disk(&self) -> MutexGuard<'_, Disk> {
        lock(&self.disk)
    }

    /// Shares the disk with an executor.
    pub fn share(&self) -> Arc<Mutex<Disk>> {
        self.disk.clone()
    }

    /// Puts a commit onto the base branch at the forge.
    pub fn push_to_base(&self, repo: &RepoRef, tree: Tree) -> CommitId {
        let key = (repo.id, repo.base_branch.clone());
        let parent = self.forge.archive().branches.get(&key).cloned();
        let commit = self.disk().commit(FakeCommit {
            parent,
            tree,
            effect: None,
        });
        self.forge.archive().branches.insert(key, commit.clone());
        commit
    }
}

pub(crate) fn lock(disk: &Mutex<Disk>) -> MutexGuard<'_, Disk> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run_dir(run: &RunId) -> PathBuf {
    Path::new("/fake").join(format!("run-{run}"))
}

fn object_id(bytes: &str) -> CommitId {
    let digest = Digest::of(bytes.as_bytes());
    let hex: String = digest.as_str().chars().skip("sha256:".len()).take(40).collect();
    CommitId::parse(hex).expect("forty hex digits of a digest")
}

/// The lines of one side of a change, each behind its mark.
fn lines(mark: char, content: Option<&Vec<u8>>) -> String {
    let text = content
        .map(|bytes| String::from_utf8_lossy(bytes))
        .unwrap_or_default();
    let lines: Vec<String> = text.lines().map(|line| format!("{mark}{line}\n")).collect();
    lines.concat()
}

fn side(tree: &Tree, path: &str) -> Side {
    tree.get(path)
        .map_or(Side::Absent, |content| Side::Bytes(content.clone()))
}

fn tree_id(tree: &Tree) -> CommitId {
    object_id(&format!("tree {tree:?}"))
}

impl Disk {
    fn commit(&mut self, commit: FakeCommit) -> CommitId {
        let id = object_id(&format!("commit {commit:?}"));
        self.commits.insert(id.clone(), commit);
        id
    }

    fn tree(&self, commit: &CommitId) -> Result<Tree, Fault> {
        let commit = self.commits.get(commit).map(|commit| commit.tree.clone());
        commit.ok_or_else(|| Fault::permanent("there is no such commit"))
    }

    /// What the commits between two brought that the second does not hold.
    fn passing(&self, from: &CommitId, to: &CommitId) -> Result<Vec<Change>, Fault> {
        let end = self.tree(to)?;
        let mut passing = Vec::new();
        let mut at = to.clone();
        while at != *from {
            let Some(parent) = self.commits.get(&at).and_then(|commit| commit.parent.clone()) else {
                break;
            };
            let (before, after) = (self.tree(&parent)?, self.tree(&at)?);
            let brought = after
                .iter()
                .filter(|(path, content)| before.get(*path) != Some(*content))
                .filter(|(path, content)| end.get(*path) != Some(*content));
            passing.extend(brought.map(|(path, _)| Change {
                path: path.clone(),
                findings: vec![],
                before: side(&before, path),
                after: side(&after, path),
            }));
            at = parent;
        }
        Ok(passing)
    }

    fn repo(&mut self, run: &RunId) -> Result<&mut RunRepo, Fault> {
        let repo = self.repos.get_mut(run);
        repo.ok_or_else(|| Fault::permanent(format!("run {run} has no repository")))
    }

    /// Saves what differs from the commit that the directory was made to hold.
    fn save(&mut self, run: &RunId) -> Result<Option<String>, Fault> {
        let clean = self.repo(run)?.clean.clone();
        let Some(now) = self.dirs.get(&run_dir(run)).filter(|now| **now != clean).cloned() else {
            return Ok(None);
        };
        let name = format!("refs/conductor/saved/{run}/{}", self.saved.len() + 1);
        self.saved.insert(name.clone(), now);
        Ok(Some(name))
    }
}

#[async_trait]
impl Workspace for FakeWorkspace {
    async fn prepare(
        &self,
        run: &RunId,
        repo: &RepoRef,
        _branch: &str,
        _token: Option<&GitToken>,
    ) -> Result<Prepared, Fault> {
        let weather = self.world.weather("prepare a workspace").await;
        weather.before()?;
        let head = self
            .forge
            .archive()
            .branches
            .get(&(repo.id, repo.base_branch.clone()))
            .cloned();
        let Some(head) = head else {
            return weather.after(Prepared::Impossible {
                why: format!("{repo} has no branch {}", repo.base_branch),
            });
        };
        let base = {
            let mut disk = self.disk();
            let clean = disk.tree(&head)?;
            let fresh = RunRepo {
                base: head.clone(),
                head,
                clean: clean.clone(),
            };
            let base = disk.repos.entry(run.clone()).or_insert(fresh).base.clone();
            disk.dirs.entry(run_dir(run)).or_insert(clean);
            base
        };
        weather.after(Prepared::Ready { base })
    }

    async fn reset(&self, run: &RunId, commit: &CommitId) -> Result<(PathBuf, Option<String>), Fault> {
        let weather = self.world.weather("reset a working directory").await;
        weather.before()?;
        let saved = {
            let mut disk = self.disk();
            let saved = disk.save(run)?;
            let tree = disk.tree(commit)?;
            let repo = disk.repo(run)?;
            repo.clean.clone_from(&tree);
            repo.head = commit.clone();
            disk.dirs.insert(run_dir(run), tree);
            saved
        };
        weather.after((run_dir(run), saved))
    }

    async fn commit(&self, order: &CommitOrder) -> Result<Committed, Fault> {
        let weather = self.world.weather("commit").await;
        weather.before()?;
        let committed = {
            let mut disk = self.disk();
            let earlier = disk
                .commits
                .iter()
                .find(|(_, commit)| commit.effect.as_ref() == Some(&order.effect));
            if let Some((commit, made)) = earlier {
                Committed::Commit {
                    commit: commit.clone(),
                    tree: tree_id(&made.tree),
                }
            } else {
                if disk.repo(&order.run)?.head != order.parent {
                    return Err(Fault::conflict("the branch does not stand at the parent"));
                }
                let tree = disk.dirs.get(&run_dir(&order.run)).cloned().unwrap_or_default();
                let parent = order.onto.as_ref().unwrap_or(&order.parent);
                if tree == disk.tree(parent)? {
                    Committed::Nothing
                } else {
                    let made = FakeCommit {
                        parent: Some(parent.clone()),
                        tree: tree.clone(),
                        effect: Some(order.effect.clone()),
                    };
                    let commit = disk.commit(made);
                    let repo = disk.repo(&order.run)?;
                    repo.head = commit.clone();
                    repo.clean.clone_from(&tree);
                    Committed::Commit {
                        commit,
                        tree: tree_id(&tree),
                    }
                }
            }
        };
        weather.after(committed)
    }

    async fn checkout(&self, run: &RunId, commit: &CommitId) -> Result<Checkout, Fault> {
        let weather = self.world.weather("check a commit out").await;
        weather.before()?;
        let mut disk = self.disk();
        disk.repo(run)?;
        let files = disk.tree(commit)?;
        let tree = tree_id(&files);
        disk.checkouts += 1;
        let dir = Path::new("/fake").join(format!("checkout-{}", disk.checkouts));
        disk.dirs.insert(dir.clone(), files);
        let guard = Box::new(Removes {
            dir: dir.clone(),
            disk: self.disk.clone(),
        });
        Ok(Checkout { dir, tree, guard })
    }

    async fn diff(&self, _run: &RunId, from: &CommitId, to: &CommitId) -> Result<Diff, Fault> {
        let weather = self.world.weather("compare two commits").await;
        weather.before()?;
        let (from, to, passing) = {
            let disk = self.disk();
            (disk.tree(from)?, disk.tree(to)?, disk.passing(from, to)?)
        };
        let paths: std::collections::BTreeSet<&String> = from.keys().chain(to.keys()).collect();
        let differing: Vec<&String> = paths
            .into_iter()
            .filter(|path| from.get(*path) != to.get(*path))
            .collect();
        let changes: Vec<Change> = differing
            .iter()
            .map(|path| Change {
                path: (*path).clone(),
                findings: vec![],
                before: side(&from, path),
                after: side(&to, path),
            })
            .collect();
        let rendered: Vec<String> = differing
            .iter()
            .map(|path| {
                let (before, after) = (lines('-', from.get(*path)), lines('+', to.get(*path)));
                format!("M {path}\n{before}{after}")
            })
            .collect();
        weather.after(Diff {
            digest: Digest::of(format!("{from:?}{to:?}").as_bytes()),
            changes,
            passing,
            rendered: rendered.concat(),
            unshown: vec![],
        })
    }

    async fn files(&self, _run: &RunId, commit: &CommitId) -> Result<Vec<File>, Fault> {
        let weather = self.world.weather("list the files of a commit").await;
        weather.before()?;
        let tree = self.disk().tree(commit)?;
        let files = tree.into_iter().map(|(path, content)| File {
            path,
            bytes: Some(content.len() as u64),
        });
        weather.after(files.collect())
    }

    async fn rebase(
        &self,
        order: &RebaseOrder,
        repo: &RepoRef,
        _token: Option<&GitToken>,
    ) -> Result<Rebased, Fault> {
        let run = &order.run;
        let weather = self.world.weather("rebase").await;
        weather.before()?;
        let onto = self
            .forge
            .archive()
            .branches
            .get(&(repo.id, repo.base_branch.clone()))
            .cloned();
        let onto = onto.ok_or_else(|| Fault::permanent("the base branch is gone"))?;
        let rebased = {
            let mut disk = self.disk();
            let RunRepo { base, head, .. } = disk.repo(run)?.clone();
            if base == onto {
                Rebased::Clean { base, head }
            } else {
                let (before, ours) = (disk.tree(&base)?, disk.tree(&head)?);
                let mut tree = disk.tree(&onto)?;
                for (path, content) in ours
                    .iter()
                    .filter(|(path, content)| before.get(*path) != Some(*content))
                {
                    tree.insert(path.clone(), content.clone());
                }
                let moved = FakeCommit {
                    parent: Some(onto.clone()),
                    tree: tree.clone(),
                    effect: None,
                };
                let head = disk.commit(moved);
                disk.dirs.insert(run_dir(run), tree.clone());
                *disk.repo(run)? = RunRepo {
                    base: onto.clone(),
                    head: head.clone(),
                    clean: tree,
                };
                Rebased::Clean { base: onto, head }
            }
        };
        weather.after(rebased)
    }

    async fn push(&self, order: &PushOrder, repo: &RepoRef, _token: Option<&GitToken>) -> Result<(), Fault> {
        let weather = self.world.weather("push").await;
        weather.before()?;
        {
            let mut archive = self.forge.archive();
            let key = (repo.id, order.branch.clone());
            let there = archive.branches.get(&key).cloned();
            if there != order.commit {
                if there != order.expected {
                    return Err(Fault::conflict(
                        "the branch at the forge is not what it was expected to be",
                    ));
                }
                if order.commit.is_none() && archive.keeps_branches {
                    return Err(Fault::permanent("nobody may delete a branch at this forge"));
                }
                let write = if let Some(commit) = &order.commit {
                    archive.branches.insert(key, commit.clone());
                    format!("push {} {commit}", order.branch)
                } else {
                    archive.branches.remove(&key);
                    format!("delete {}", order.branch)
                };
                archive.writes.push(write);
            }
        }
        weather.after(())
    }

    async fn clean_up(&self, run: &RunId, _repo: &RepoRef) -> Result<Option<String>, Fault> {
        let weather = self.world.weather("clean up").await;
        weather.before()?;
        let saved = {
            let mut disk = self.disk();
            let saved = if disk.repos.contains_key(run) {
                disk.save(run)?
            } else {
                None
            };
            disk.repos.remove(run);
            disk.dirs.remove(&run_dir(run));
            saved
        };
        weather.after(saved)
    }
}

#[derive(Debug)]
struct Removes {
    dir: PathBuf,
    disk: Arc<Mutex<Disk>>,
}

impl Drop for Removes {
    fn drop(&mut self) {
        lock(&self.disk).dirs.remove(&self.dir);
    }
}
