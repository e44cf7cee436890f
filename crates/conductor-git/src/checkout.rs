//! Puts the exact tree of a commit into an empty directory, without any `.git`, for tests (S-17).
//!
//! This module does not know which tests run there.

use std::fs;
use std::path::Path;

use conductor_domain::id::CommitId;

use crate::call::Git;
use crate::error::Error;
use crate::fill::fill;
use crate::layout::{Layout, make_temporary};
use crate::run_repo::RunRepo;

/// Fills `directory`, which must exist, be no symbolic link and hold nothing.
pub(crate) async fn checkout(
    git: &Git,
    layout: &Layout,
    repo: &RunRepo,
    commit: &CommitId,
    directory: &Path,
) -> Result<(), Error> {
    let kind = fs::symlink_metadata(directory).map_err(|e| Error::io("look at", directory, e))?;
    if !kind.is_dir() {
        return Err(Error::NotEmpty {
            path: directory.to_owned(),
        });
    }
    let mut entries = fs::read_dir(directory).map_err(|e| Error::io("list", directory, e))?;
    if entries.next().is_some() {
        return Err(Error::NotEmpty {
            path: directory.to_owned(),
        });
    }
    repo.require(git, commit).await?;
    let aside = make_temporary(layout.staging(), "index-")?;
    fill(git, repo.path(), commit, directory, &aside.path().join("index")).await
}
