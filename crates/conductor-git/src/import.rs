//! Takes objects that a snapshot claims into a run's repository, after checking all of them (S-7, S-8).
//!
//! The pack is hostile input. It is indexed in a quarantine directory under a size limit with every object
//! checked, then the claimed tree is walked to its last blob and to its last path, and only then does the pack get its
//! name in the repository. A crash in between leaves a directory that nothing refers to.
//!
//! This module does not know who made the snapshot, or what becomes of the tree.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use crate::call::{Call, Git};
use crate::diff::{Blobs, Entry, compare, named, parse, too_many};
use crate::error::Error;
use crate::layout::{make_temporary, sync_directory};
use crate::object::ObjectId;
use crate::paths;
use crate::run_repo::{RunRepo, alternate};
use crate::snapshot::Snapshot;

/// What one snapshot may bring.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of the pack as it is transferred.
    pub pack_bytes: u64,
    /// Bytes of all new objects, unpacked, and bytes that a checkout grows by; a small pack can hold a file that fills the
    /// disk, by its length or by the number of its names. What the parent held already counts for neither.
    pub content_bytes: u64,
    /// Number of new objects.
    pub objects: usize,
    /// Number of changed paths, also of all snapshots of a branch together; many paths can share one object.
    pub paths: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pack_bytes: 256 << 20,
            content_bytes: 1 << 30,
            objects: 250_000,
            paths: 100_000,
        }
    }
}

/// Checks and takes in a snapshot; returns the id of its tree, which then is complete in `repo`.
///
/// If repeated: the same objects are taken in once more, which changes nothing.
pub(crate) async fn import(
    git: &Git,
    repo: &RunRepo,
    snapshot: Snapshot,
    parent: &ObjectId,
    limits: Limits,
) -> Result<ObjectId, Error> {
    let tree = ObjectId::parse(&snapshot.tree)?;
    let home = repo.path().parent().unwrap_or(repo.path());
    let quarantine = make_temporary(home, "incoming-")?;
    let packs = quarantine.path().join("pack");
    fs::create_dir(&packs).map_err(|e| Error::io("make", &packs, e))?;
    let inside = Quarantine {
        git,
        repo,
        objects: quarantine.path(),
    };

    let index = inside
        .call("index-pack")
        // Blobs above this size are checked as a stream instead of in memory.
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "core.bigFileThreshold")
        .env("GIT_CONFIG_VALUE_0", "16m")
        .args([
            "--stdin",
            "--strict",
            &format!("--max-input-size={}", limits.pack_bytes),
        ])
        .stream_in(snapshot.pack)
        .finish()
        .await?;
    if !index.status.success() {
        if index.stderr.contains("maximum allowed size") {
            return Err(Error::SnapshotTooLarge {
                limit: format!("{} bytes", limits.pack_bytes),
            });
        }
        let error = index.into_error("index-pack");
        return Err(if let Error::Call { stderr, .. } = error {
            Error::PackRefused { detail: stderr }
        } else {
            error
        });
    }
    inside.check_tree(&tree, parent, limits).await?;
    inside.check_paths(&tree, parent, limits).await?;
    settle(&packs, &repo.objects().join("pack"))?;
    Ok(tree)
}

struct Quarantine<'a> {
    git: &'a Git,
    repo: &'a RunRepo,
    objects: &'a Path,
}

impl<'a> Quarantine<'a> {
    /// Begins a call that sees the quarantined objects and those of run and base, and writes only the former.
    fn call(&self, verb: &str) -> Call<'a> {
        let known = OsString::from_vec(alternate(&self.repo.objects()));
        self.repo
            .call(self.git, verb)
            .env("GIT_OBJECT_DIRECTORY", self.objects)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", known)
    }

    /// Walks everything that is new in `tree`; a missing object or one of the wrong kind is an error.
    async fn check_tree(&self, tree: &ObjectId, parent: &ObjectId, limits: Limits) -> Result<(), Error> {
        let incomplete = |detail| Error::TreeIncomplete {
            tree: tree.to_string(),
            detail,
        };
        let kind = self.call("cat-file").args(["-t", tree.as_str()]).finish().await?;
        if kind.stdout != b"tree\n" {
            return Err(incomplete("there is no such tree in the snapshot".to_owned()));
        }
        let walk = self.call("rev-list").args(["--objects", "--no-object-names"]);
        let walked = walk
            .args([tree.as_str(), "--not", parent.as_str()])
            .finish()
            .await?;
        if !walked.status.success() {
            return Err(incomplete(walked.stderr));
        }
        let count = walked.stdout.split(|b| *b == b'\n').count();
        if count > limits.objects {
            return Err(Error::SnapshotTooLarge {
                limit: format!("{} objects", limits.objects),
            });
        }
        let sizes = self
            .call("cat-file")
            .arg("--batch-check=%(objectsize)")
            .input(walked.stdout)
            .text()
            .await?;
        let mut total: u64 = 0;
        for line in sizes.lines() {
            let size: u64 = line.parse().map_err(|_| incomplete(line.to_owned()))?;
            total = total.saturating_add(size);
        }
        if total > limits.content_bytes {
            return Err(Error::SnapshotTooLarge {
                limit: format!("{} bytes, unpacked", limits.content_bytes),
            });
        }
        Ok(())
    }

    /// Counts the paths that `tree` changes, and what a checkout of it holds more than one of `parent` does: an object is
    /// written once into a pack, and once for every path into a checkout.
    async fn check_paths(&self, tree: &ObjectId, parent: &ObjectId, limits: Limits) -> Result<(), Error> {
        // Trees that name each other several times hold more paths than git can compare: it would take all memory first.
        let before = format!("{parent}^{{tree}}");
        let counted = paths::count(|verb| self.call(verb), [&before, tree.as_str()]).await;
        let [before, after] = counted.map_err(too_large)?;
        if after.saturating_sub(before) > limits.paths as u64 {
            return Err(too_many(limits.paths));
        }
        let raw = compare(self.call("diff-tree"), parent.as_str(), tree.as_str()).await;
        let raw = raw.map_err(too_large)?;
        let changes = parse(&raw, limits.paths)?;
        let blobs = Blobs::measure(self.call("cat-file"), &named(&changes)).await?;
        let size = |side: &Option<Entry>| side.as_ref().and_then(|entry| blobs.size(&entry.id));
        let sum = |total: u64, size: u64| total.saturating_add(size);
        let before = changes.iter().filter_map(|change| size(&change.old)).fold(0, sum);
        let after = changes.iter().filter_map(|change| size(&change.new)).fold(0, sum);
        // What goes makes room for what comes: a directory of large files may be renamed.
        if after.saturating_sub(before) > limits.content_bytes {
            return Err(Error::SnapshotTooLarge {
                limit: format!("{} bytes in all its files", limits.content_bytes),
            });
        }
        Ok(())
    }
}

/// Says of what git cannot even list that it is the snapshot that is too large.
fn too_large(error: Error) -> Error {
    if let Error::OutputTooLarge { limit, .. } = error {
        let limit = format!("{limit} bytes of paths");
        return Error::SnapshotTooLarge { limit };
    }
    error
}

/// Moves the files of a pack into place, its index last, because the index is what makes git see it.
fn settle(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).map_err(|e| Error::io("make", to, e))?;
    let listed = fs::read_dir(from).map_err(|e| Error::io("list", from, e))?;
    let mut names: Vec<OsString> = listed.flatten().map(|entry| entry.file_name()).collect();
    names.sort_by_key(|name| name.to_string_lossy().ends_with(".idx"));
    for name in names {
        let target = to.join(&name);
        fs::rename(from.join(&name), &target).map_err(|e| Error::io("move the pack to", &target, e))?;
    }
    sync_directory(to)
}
