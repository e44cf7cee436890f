//! Fills a fresh directory from a commit, as fast as git can.
//!
//! The directory belongs to the host until it is filled. Conversions that need no program (line ends, encodings)
//! are applied as for any clone; filters need configuration, and there is none. Submodules stay empty (S-13).
//!
//! This module does not know what the directory is for.

use std::path::Path;

use conductor_domain::id::CommitId;

use crate::call::{Git, Place};
use crate::error::Error;

/// Writes every file of `commit` into `directory`, and the index that describes them to `index`.
pub(crate) async fn fill(
    git: &Git,
    repository: &Path,
    commit: &CommitId,
    directory: &Path,
    index: &Path,
) -> Result<(), Error> {
    git.call(
        Place::Filling {
            repository,
            directory,
            index,
        },
        "read-tree",
    )
    // Two workers even on one core: one writes while the other waits for the disk.
    .env("GIT_CONFIG_COUNT", "2")
    .env("GIT_CONFIG_KEY_0", "checkout.workers")
    .env("GIT_CONFIG_VALUE_0", workers())
    .env("GIT_CONFIG_KEY_1", "checkout.thresholdForParallelism")
    .env("GIT_CONFIG_VALUE_1", "1000")
    .args(["-m", "-u", "--no-recurse-submodules", commit.as_str()])
    .bytes()
    .await
    .map(drop)
}

fn workers() -> String {
    std::thread::available_parallelism()
        .map_or(2, |n| n.get().clamp(2, 16))
        .to_string()
}
