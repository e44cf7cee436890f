//! Generates the `/etc` that sandboxes see: names for the one user, and what programs cannot start without (S-3).
//!
//! Nothing of the host's `/etc` is shown but three things that every system makes from its packages: the cache of shared
//! libraries, the links that choose between installed programs, and the public certificates.
//! This module does not know who reads it.

use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use tempfile::TempDir;

const FILES: [(&str, &str); 6] = [
    (
        "passwd",
        "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/bash\n",
    ),
    ("group", "root:x:0:\nagent:x:1000:\n"),
    ("hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"),
    ("hostname", "sandbox\n"),
    ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ("resolv.conf", ""),
];

const COPIES: [&str; 2] = ["ld.so.cache", "ssl/certs/ca-certificates.crt"];

/// A generated directory; gone when dropped.
#[derive(Debug)]
pub(super) struct Etc(TempDir);

impl Etc {
    pub(super) fn generate(root: &Path) -> io::Result<Self> {
        let etc = tempfile::Builder::new()
            .prefix("etc-")
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir_in(root)?;
        for (name, content) in FILES {
            std::fs::write(etc.path().join(name), content)?;
        }
        for name in COPIES {
            let (from, to) = (Path::new("/etc").join(name), etc.path().join(name));
            if from.is_file() {
                std::fs::create_dir_all(to.parent().unwrap_or(etc.path()))?;
                std::fs::copy(from, to)?;
            }
        }
        copy_alternatives(&etc.path().join("alternatives"))?;
        Ok(Self(etc))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

fn copy_alternatives(to: &Path) -> io::Result<()> {
    let Ok(entries) = std::fs::read_dir("/etc/alternatives") else {
        return Ok(());
    };
    std::fs::create_dir(to)?;
    for entry in entries {
        let entry = entry?;
        if let Ok(target) = std::fs::read_link(entry.path())
            && target.starts_with("/usr")
            && !is_page_of_a_manual(&target)
        {
            symlink(target, to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Most alternatives are those: no program needs them to start, and each would be a file to make at every start of ours.
fn is_page_of_a_manual(target: &Path) -> bool {
    target.components().any(|part| part.as_os_str() == "man")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-3: a sandbox finds the programs that were chosen, and nothing besides.
    #[test]
    fn alternatives_lead_to_programs_and_to_no_manual() {
        let root = TempDir::new().expect("a directory");
        let etc = Etc::generate(root.path()).expect("generated");
        let targets = |dir: &Path| -> Vec<_> {
            // Not every system has such a directory.
            let entries = std::fs::read_dir(dir).into_iter().flatten();
            let links = entries.map(|entry| std::fs::read_link(entry.expect("an entry").path()));
            links.filter_map(Result::ok).collect()
        };
        let shown = targets(&etc.path().join("alternatives"));
        for target in targets(Path::new("/etc/alternatives")) {
            let is_wanted = target.starts_with("/usr") && !target.to_string_lossy().contains("/man/");
            assert_eq!(shown.contains(&target), is_wanted, "{}", target.display());
        }
    }
}
