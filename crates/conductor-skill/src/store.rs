//! The store: staged skills by content, to which links lead and from which copies are made.
//!
//! A tree lies at `trees/<digest>/<name>` and never changes; a new version is another tree. This module does not know
//! where a tree came from.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use conductor_domain::digest::Digest;

use crate::name::SkillName;
use crate::tree::{Error, Listing, Tree};

/// Where staged skills lie.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// Names a store; it need not exist.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the index of a registry lies.
    pub fn registry(&self, name: &str) -> PathBuf {
        self.root.join("registries").join(name)
    }

    /// Where a tree lies, or would.
    pub fn place(&self, name: &SkillName, digest: &Digest) -> PathBuf {
        self.trees().join(hex_of(digest)).join(name.as_str())
    }

    fn trees(&self) -> PathBuf {
        self.root.join("trees")
    }

    /// Reads a staged tree; one that somebody changed through a link counts as absent.
    pub fn get(&self, name: &SkillName, digest: &Digest) -> Option<Tree> {
        let tree = Tree::read(&self.place(name, digest)).ok()?;
        (tree.listing().digest() == *digest).then_some(tree)
    }

    /// Stages a tree that has this digest, whole or not at all. If repeated: the same lies there.
    pub fn put(&self, name: &SkillName, tree: &Tree, digest: &Digest) -> Result<PathBuf, Error> {
        let place = self.place(name, digest);
        if Listing::of(&place).is_ok_and(|listing| listing.digest() == *digest) {
            return Ok(place);
        }
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| Error::Io {
                attempt: "staging",
                path,
                source,
            }
        };
        let parent = place.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).map_err(failed(parent))?;
        let fresh = tempfile::tempdir_in(&self.root).map_err(failed(&self.root))?;
        let staged = fresh.path().join("tree");
        tree.write(&staged)?;
        if place.exists() {
            // Somebody changed it through a link, and may want to have it back.
            let kept = self.place_for_changed(name)?;
            fs::rename(&place, &kept).map_err(failed(&place))?;
        }
        fs::rename(&staged, &place).map_err(failed(&place))?;
        Ok(place)
    }

    /// A new place for what somebody changed through a link; it is never removed by us.
    fn place_for_changed(&self, name: &SkillName) -> Result<PathBuf, Error> {
        let changed = self.root.join("changed");
        fs::create_dir_all(&changed)
            .and_then(|()| {
                tempfile::Builder::new()
                    .prefix(&format!("{name}-"))
                    .tempdir_in(&changed)
            })
            .map(|place| place.keep().join(name.as_str()))
            .map_err(|source| Error::Io {
                attempt: "keeping what was changed below",
                path: changed.clone(),
                source,
            })
    }

    /// Lists what nobody needs any more: trees that are not in use, and indexes of registries that are not configured.
    pub fn unused(&self, used: &BTreeSet<Digest>, registries: &BTreeSet<&str>) -> Vec<PathBuf> {
        let used: BTreeSet<&str> = used.iter().map(hex_of).collect();
        let mut unused = children(&self.trees(), |name| !used.contains(name));
        unused.extend(children(&self.root.join("registries"), |name| {
            !registries.contains(name)
        }));
        unused
    }

    /// Removes something that `unused` listed.
    pub fn discard(&self, path: &Path) -> io::Result<()> {
        debug_assert!(
            path.starts_with(&self.root),
            "only what lies in the store is discarded"
        );
        fs::remove_dir_all(path)
    }
}

fn children(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(&is_wanted))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

fn hex_of(digest: &Digest) -> &str {
    digest.as_str().trim_start_matches("sha256:")
}
