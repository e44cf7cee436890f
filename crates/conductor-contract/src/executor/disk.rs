//! A disk with little room, and what is mounted anywhere on this machine.
//!
//! It does not know what is examined.

use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags};

/// A small file system of its own; gone when dropped.
pub(super) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one below a directory. Only root can; for anybody else the case fails, because it shows nothing.
    pub(super) fn mount(place: &Path) -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "needs root: nobody else can mount a disk"
        );
        let point = place.join("small");
        std::fs::create_dir(&point).expect("the subject's place is writable");
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("small", &point, "tmpfs", flags, c"size=1m,mode=755").expect("root may mount");
        Self(point)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lets go even if a case failed with a sandbox on it.
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// Lists what is mounted of a directory, in whatever process's view.
pub(super) fn mounts_of(dir: &Path) -> Vec<String> {
    let name = dir.display().to_string();
    let entries = std::fs::read_dir("/proc").expect("/proc is there");
    entries
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("mountinfo")).ok())
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.split(' ').any(|word| word.ends_with(&name)))
        .collect()
}
