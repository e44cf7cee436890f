//! The bare repository of one run: its branch, what it saved, what it did; outside of every sandbox (S-5).
//!
//! Only references change here, and each change names the value it replaces. Objects come in through `import` and
//! are never collected. This module does not know where the objects come from.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use conductor_domain::id::{CommitId, EffectId, RunId};

use crate::base::{Base, ObjectFormat, init_bare};
use crate::call::{Call, Git, Place};
use crate::error::Error;
use crate::layout::{Layout, make_private, make_temporary, sync_directory};
use crate::lock::Lock;
use crate::object::{ObjectId, commit_id};

/// How long to wait for another writer of the same run.
const PATIENCE: Duration = Duration::from_mins(2);

/// The commit that the run was started from.
const BASE_REF: &str = "refs/conductor/base";

/// The file that names the base clone; beside git's own files, which ignore it.
const BASE_KEY: &str = "conductor-base";

/// A run's repository that exists.
#[derive(Debug, Clone)]
pub(crate) struct RunRepo {
    path: PathBuf,
    lock: PathBuf,
    run: RunId,
    base_objects: PathBuf,
}

impl RunRepo {
    /// Makes the repository of `run` with its branch at `at`.
    ///
    /// If repeated: finds the earlier one and leaves its branch where it is.
    pub(crate) async fn create(
        git: &Git,
        layout: &Layout,
        run: &RunId,
        base: &Base,
        at: &CommitId,
    ) -> Result<Self, Error> {
        let home = layout.run(run);
        make_private(&home)?;
        let repo = Self {
            path: layout.run_repository(run),
            lock: layout.run_lock(run),
            run: run.clone(),
            base_objects: base.objects(),
        };
        let _lock = repo.lock().await?;
        if repo.path.exists() {
            return Self::open(layout, run);
        }
        let staging = make_temporary(layout.staging(), "run-")?;
        let fresh = Self {
            path: staging.path().join("run.git"),
            ..repo.clone()
        };
        init_bare(git, &fresh.path, ObjectFormat::of(at)).await?;
        let alternates = fresh.path.join("objects/info/alternates");
        let entry = [alternate(&base.objects()), b"\n".to_vec()].concat();
        let key = fresh.path.join(BASE_KEY);
        fs::create_dir_all(fresh.path.join("objects/info"))
            .and_then(|()| fs::write(&alternates, entry))
            .map_err(|e| Error::io("write", &alternates, e))?;
        fs::write(&key, base.key()).map_err(|e| Error::io("write", &key, e))?;
        fresh.require(git, at).await?;
        for name in [BASE_REF.to_owned(), repo.branch()] {
            fresh
                .call(git, "update-ref")
                .args(["--", &name, at.as_str()])
                .bytes()
                .await?;
        }
        fresh
            .call(git, "symbolic-ref")
            .args(["HEAD", &repo.branch()])
            .bytes()
            .await?;
        fs::rename(&fresh.path, &repo.path)
            .map_err(|e| Error::io("move the run's repository to", &repo.path, e))?;
        sync_directory(&home)?;
        Ok(repo)
    }

    /// Opens the repository that was made earlier.
    pub(crate) fn open(layout: &Layout, run: &RunId) -> Result<Self, Error> {
        let path = layout.run_repository(run);
        let key = match fs::read_to_string(path.join(BASE_KEY)) {
            Ok(key) => key,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(Error::RunMissing { run: run.to_string() });
            }
            Err(e) => return Err(Error::io("read", path.join(BASE_KEY), e)),
        };
        let base_objects = layout.base(&key).join("objects");
        Ok(Self {
            path,
            lock: layout.run_lock(run),
            run: run.clone(),
            base_objects,
        })
    }

    /// Begins a call in this repository.
    pub(crate) fn call<'a>(&'a self, git: &'a Git, verb: &str) -> Call<'a> {
        git.call(Place::Repository(&self.path), verb)
    }

    /// Takes the right to write here.
    pub(crate) async fn lock(&self) -> Result<Lock, Error> {
        Lock::take(&self.lock, &self.path, PATIENCE).await
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn run(&self) -> &RunId {
        &self.run
    }

    /// The objects that belong to this run alone.
    pub(crate) fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    /// The objects that the run borrows.
    pub(crate) fn base_objects(&self) -> PathBuf {
        self.base_objects.clone()
    }

    /// The full name of the run's branch.
    pub(crate) fn branch(&self) -> String {
        branch_ref(&self.run)
    }

    /// The ref that remembers what an effect did.
    pub(crate) fn effect_ref(effect: &EffectId) -> String {
        format!("refs/conductor/effects/{effect}")
    }

    /// Finds where the run's branch stands.
    pub(crate) async fn head(&self, git: &Git) -> Result<CommitId, Error> {
        self.resolve(git, &self.branch())
            .await?
            .ok_or_else(|| Error::RunMissing {
                run: self.run.to_string(),
            })
    }

    /// Finds the commit that the run was started from.
    pub(crate) async fn base_commit(&self, git: &Git) -> Result<CommitId, Error> {
        self.resolve(git, BASE_REF)
            .await?
            .ok_or_else(|| Error::RunMissing {
                run: self.run.to_string(),
            })
    }

    /// Finds the commit that a full ref name stands for.
    pub(crate) async fn resolve(&self, git: &Git, name: &str) -> Result<Option<CommitId>, Error> {
        let call = self
            .call(git, "rev-parse")
            .args(["--verify", "--quiet", "--end-of-options"]);
        let finished = call.arg(format!("{name}^{{commit}}")).finish().await?;
        match finished.status.code() {
            Some(0) => commit_id(String::from_utf8_lossy(&finished.stdout).trim()).map(Some),
            Some(1) => Ok(None),
            _ => Err(finished.into_error("rev-parse")),
        }
    }

    /// Finds the tree of a commit.
    pub(crate) async fn tree_of(&self, git: &Git, commit: &CommitId) -> Result<ObjectId, Error> {
        let call = self
            .call(git, "rev-parse")
            .args(["--verify", "--quiet", "--end-of-options"]);
        let finished = call.arg(format!("{commit}^{{tree}}")).finish().await?;
        if !finished.status.success() {
            return Err(Error::CommitMissing {
                repository: self.path.clone(),
                commit: commit.clone(),
            });
        }
        ObjectId::parse(String::from_utf8_lossy(&finished.stdout).trim())
    }

    /// Checks that a commit is here before it is used.
    pub(crate) async fn require(&self, git: &Git, commit: &CommitId) -> Result<(), Error> {
        self.tree_of(git, commit).await.map(drop)
    }

    /// Moves a ref from a known value to a new one; `None` is "not there".
    ///
    /// A ref that stands elsewhere is left alone and reported.
    pub(crate) async fn move_ref(
        &self,
        git: &Git,
        lock: &Lock,
        name: &str,
        new: &CommitId,
        expected: Option<&CommitId>,
    ) -> Result<(), Error> {
        let nothing = "0".repeat(new.as_str().len());
        let old = expected.map_or(nothing.as_str(), CommitId::as_str);
        let call = self
            .call(git, "update-ref")
            .args(["--no-deref", "--", name, new.as_str(), old]);
        let finished = call.holding(lock)?.finish().await?;
        if finished.status.success() {
            return Ok(());
        }
        let found = self.resolve(git, name).await?;
        if found.as_ref() == expected {
            return Err(finished.into_error("update-ref"));
        }
        Err(Error::BranchMoved {
            branch: name.to_owned(),
            expected: expected.map_or("nothing".to_owned(), ToString::to_string),
            found: found.map_or("nothing".to_owned(), |id| id.to_string()),
        })
    }

    /// Lists the refs below a prefix, in order of their names.
    pub(crate) async fn refs_below(&self, git: &Git, prefix: &str) -> Result<Vec<(String, CommitId)>, Error> {
        let call = self
            .call(git, "for-each-ref")
            .args(["--format=%(objectname) %(refname)", "--", prefix]);
        let mut refs = Vec::new();
        for line in call.text().await?.lines() {
            if let Some((id, name)) = line.split_once(' ') {
                refs.push((name.to_owned(), commit_id(id)?));
            }
        }
        Ok(refs)
    }
}

/// The full name of a run's branch, here and at the forge.
pub(crate) fn branch_ref(run: &RunId) -> String {
    format!("refs/heads/conductor/run-{run}")
}

/// Writes a list of alternates.
pub(crate) fn alternates(paths: &[PathBuf]) -> Vec<u8> {
    let mut list = Vec::new();
    for path in paths {
        list.extend(alternate(path));
        list.push(b'\n');
    }
    list
}

/// Writes a path as an entry of a list of alternates, quoted where the list's own syntax would misread it.
pub(crate) fn alternate(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = path.as_os_str().as_bytes();
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+ ".contains(b);
    if bytes.iter().all(is_plain) {
        return bytes.to_vec();
    }
    let mut quoted = b"\"".to_vec();
    for b in bytes {
        if is_plain(b) {
            quoted.push(*b);
        } else {
            quoted.extend_from_slice(format!("\\{b:03o}").as_bytes());
        }
    }
    quoted.push(b'"');
    quoted
}
