//! Puts the embedded guest where sandboxes can start it, by content, so that an update never changes a running one.
//!
//! This module does not know how a sandbox starts it.

use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use conductor_domain::digest::Digest;

/// The guest, built beside this crate.
const GUEST: &[u8] = include_bytes!(env!("GUEST"));

/// Writes the guest below `root`, unless these very bytes are there. If repeated: the same path.
pub(crate) fn install(root: &Path) -> io::Result<PathBuf> {
    let directory = root.join("guests");
    std::fs::create_dir_all(&directory)?;
    let place = directory.join(Digest::of(GUEST).short());
    if std::fs::read(&place).is_ok_and(|found| found == GUEST) {
        return Ok(place);
    }
    let mut fresh = tempfile::NamedTempFile::new_in(&directory)?;
    fresh.write_all(GUEST)?;
    fresh
        .as_file()
        .set_permissions(std::fs::Permissions::from_mode(0o755))?;
    fresh.persist(&place)?;
    Ok(place)
}
