//! The cached clone of one repository: bare, upstream heads and tags only, fetched, never written by runs (ENV-1).
//!
//! Runs borrow its objects through alternates, so nothing here ever collects garbage: an object that was once
//! fetched stays, even when upstream forgets it. Branches of runs are not fetched, so that no run sees another's
//! objects before they were merged (S-5).
//!
//! This module does not know the runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use conductor_domain::id::CommitId;
use conductor_port::workspace::GitToken;

use crate::address::Address;
use crate::call::{Git, Place};
use crate::error::Error;
use crate::layout::{Layout, make_private, make_temporary};
use crate::lock::Lock;
use crate::object::{ObjectId, commit_id};
use crate::remote::Remote;

/// Exactly what is mirrored.
const REFSPECS: [&str; 3] = [
    "+refs/heads/*:refs/heads/*",
    "+refs/tags/*:refs/tags/*",
    "^refs/heads/conductor/run-*",
];

/// How long to wait for another fetch of the same repository.
const FETCH_PATIENCE: Duration = Duration::from_mins(20);

/// A base clone that exists.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    path: PathBuf,
    key: String,
    url: String,
}

impl Base {
    /// Brings the clone up to date, making it when it is not there yet.
    ///
    /// If repeated: fetches again. Two at once: the second waits.
    pub(crate) async fn refresh(
        git: &Git,
        layout: &Layout,
        address: &Address,
        token: Option<&GitToken>,
    ) -> Result<Self, Error> {
        let remote = Remote::open(git, layout, address, token)?;
        let path = layout.base(address.key());
        let lock = Lock::take(&layout.base_lock(address.key()), &path, FETCH_PATIENCE).await?;
        if !path.exists() {
            create(git, layout, &remote, &path).await?;
        }
        let fetch = git
            .call(Place::Repository(&path), "fetch")
            .args([
                "--quiet",
                "--prune",
                "--no-tags",
                "--no-write-fetch-head",
                "--no-auto-maintenance",
            ])
            .args(["--recurse-submodules=no", "--"])
            .arg(address.url())
            .args(REFSPECS);
        let finished = remote.reach(fetch.holding(&lock)?).finish().await?;
        if !finished.status.success() {
            return Err(remote.name(finished, "fetch"));
        }
        Ok(Self {
            path,
            key: address.key().to_owned(),
            url: address.url().to_owned(),
        })
    }

    /// `host/owner/name`.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Finds where an upstream branch stands.
    pub(crate) async fn branch(&self, git: &Git, branch: &str) -> Result<CommitId, Error> {
        let name = format!("refs/heads/{branch}");
        let found = git
            .call(Place::Repository(&self.path), "for-each-ref")
            .args(["--format=%(refname) %(objectname)", "--", &name])
            .text()
            .await?;
        // A name that is a prefix matches too, and a name with a wildcard matches many.
        for line in found.lines() {
            if let Some(id) = line.strip_prefix(&name).and_then(|rest| rest.strip_prefix(' ')) {
                return commit_id(id);
            }
        }
        let any = git
            .call(Place::Repository(&self.path), "for-each-ref")
            .args(["--count=1", "--", "refs/heads"])
            .bytes()
            .await?;
        if any.is_empty() {
            return Err(Error::EmptyRepository {
                url: self.url.clone(),
            });
        }
        Err(Error::BranchMissing {
            url: self.url.clone(),
            branch: branch.to_owned(),
        })
    }

    /// The directory that runs and sandboxes may read.
    pub(crate) fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }
}

async fn create(git: &Git, layout: &Layout, remote: &Remote<'_>, path: &Path) -> Result<(), Error> {
    let staging = make_temporary(layout.staging(), "base-")?;
    let refs = remote.refs(git, staging.path(), &[]).await?;
    let Some((_, first)) = refs.first() else {
        return Err(Error::EmptyRepository {
            url: remote.address.url().to_owned(),
        });
    };
    let fresh = staging.path().join("base");
    init_bare(git, &fresh, ObjectFormat::of(first)).await?;
    let parent = path.parent().unwrap_or(path);
    make_private(parent)?;
    std::fs::rename(&fresh, path).map_err(|e| Error::io("move the new clone to", path, e))
}

/// How a repository names its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectFormat {
    Sha1,
    Sha256,
}

impl ObjectFormat {
    /// Tells the format from the length of an id.
    pub(crate) fn of(id: &CommitId) -> Self {
        Self::of_length(id.as_str().len())
    }

    /// Tells the format from the length of any object's id.
    pub(crate) fn of_object(id: &ObjectId) -> Self {
        Self::of_length(id.as_str().len())
    }

    fn of_length(length: usize) -> Self {
        if length == 64 { Self::Sha256 } else { Self::Sha1 }
    }
}

/// Makes an empty bare repository that holds nothing but what is written here.
pub(crate) async fn init_bare(git: &Git, path: &Path, format: ObjectFormat) -> Result<(), Error> {
    make_private(path)?;
    git.call(Place::Directory(path), "init")
        .args(init_words(format))
        .arg(path)
        .bytes()
        .await
        .map(drop)
}

/// How such a repository is asked for; its place follows.
pub(crate) fn init_words(format: ObjectFormat) -> [&'static str; 6] {
    let format = match format {
        ObjectFormat::Sha1 => "--object-format=sha1",
        ObjectFormat::Sha256 => "--object-format=sha256",
    };
    [
        "--quiet",
        "--bare",
        "--template=",
        "--initial-branch=main",
        format,
        "--",
    ]
}
