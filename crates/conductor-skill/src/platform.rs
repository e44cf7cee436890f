//! What differs between systems: executable bits, links, and swapping two names at once.
//!
//! Only Linux is tested; the others keep to what their manuals say. This module does not know what the files are.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Tells whether the owner may execute a file; where there is no such bit, nobody may.
#[cfg(unix)]
pub(crate) fn is_executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
pub(crate) fn is_executable(_: &Metadata) -> bool {
    false
}

/// Lets whoever may read a file execute it, as git has it.
#[cfg(unix)]
pub(crate) fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_mode(permissions.mode() | ((permissions.mode() & 0o444) >> 2));
    fs::set_permissions(path, permissions)
}

#[cfg(not(unix))]
pub(crate) fn make_executable(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes a link to a directory.
#[cfg(unix)]
pub(crate) fn symlink(to: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, link)
}

#[cfg(windows)]
pub(crate) fn symlink(to: &Path, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_dir(to, link)
}

/// What to do when links are refused; on Windows they need a privilege, and no other system has an error of that number.
pub(crate) fn symlink_hint(error: &io::Error) -> &'static str {
    const PRIVILEGE_NOT_HELD: i32 = 1314;
    if error.raw_os_error() == Some(PRIVILEGE_NOT_HELD) {
        "switch Developer Mode on or run as administrator, or set `install.mode = \"copy\"`"
    } else {
        "look at the permissions of the directory, or set `install.mode = \"copy\"`"
    }
}

/// Puts `fresh` where `place` is and the other way round, in one step where the system can.
pub(crate) fn exchange(fresh: &Path, place: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, fresh, CWD, place, RenameFlags::EXCHANGE) {
            Ok(()) => return Ok(()),
            // A file system that cannot do it says so; then in three steps.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let aside = aside(fresh);
    fs::rename(place, &aside)?;
    if let Err(error) = fs::rename(fresh, place) {
        fs::rename(&aside, place)?;
        return Err(error);
    }
    fs::rename(&aside, fresh)
}

fn aside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push("-aside");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SKILL-2: where a link needs a privilege, the hint says which, and that a copy needs none.
    #[test]
    fn a_refused_link_is_told_with_the_privilege_that_it_needs() {
        let hint = |number| symlink_hint(&io::Error::from_raw_os_error(number));
        assert!(hint(1314).contains("Developer Mode"), "{}", hint(1314));
        assert!(hint(13).contains("permissions"), "{}", hint(13));
        assert!([1314, 13].iter().all(|number| hint(*number).contains("copy")));
    }

    /// SKILL-2.
    #[test]
    fn names_change_places() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (fresh, place) = (dir.path().join("fresh"), dir.path().join("place"));
        fs::create_dir(&fresh).expect("made");
        fs::write(&place, "old").expect("written");
        exchange(&fresh, &place).expect("exchanged");
        assert!(place.is_dir());
        assert_eq!(fs::read_to_string(&fresh).expect("read"), "old");
        let names = fs::read_dir(dir.path()).expect("listed").count();
        assert_eq!(names, 2, "nothing else is left");
    }
}
