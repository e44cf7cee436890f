//! Decides what a sandbox sees: which files from outside stand where inside, and with what rights (EXEC-4, S-3).
//!
//! This module does not know how the files are brought there.

use std::path::{Path, PathBuf};

use conductor_port::executor::{Profile, SandboxSpec};

use super::{Local, Switch};
use crate::given::Laid;

/// The one directory that a sandbox works in.
pub(super) const WORK: &str = "/w";
/// HOME inside.
pub(super) const HOME: &str = "/home/agent";
/// The guest inside.
pub(super) const GUEST: &str = "/.conductor/guest";

/// The socket of a way out, as it is seen inside.
pub(super) fn way(number: usize) -> PathBuf {
    PathBuf::from(format!("/.conductor/way-{number}"))
}

/// Directories that are links into `/usr` on a merged system.
const MERGED: [&str; 4] = ["/bin", "/sbin", "/lib", "/lib64"];

/// Something from outside that stands inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bind {
    pub(super) source: PathBuf,
    pub(super) inside: PathBuf,
    pub(super) rights: Rights,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rights {
    Read,
    ReadWrite,
}

/// What a sandbox sees.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) binds: Vec<Bind>,
    /// Links inside: target, then name.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    /// The one thing that its user may do beyond what the files themselves allow.
    pub(super) privilege: Privilege,
}

/// What the user of a sandbox may do beyond what files allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Privilege {
    None,
    /// Reads what belongs to the same user though its mode says no; a capability in the sandbox's own user namespace.
    ReadsOwn,
}

impl View {
    pub(super) fn new(local: &Local, spec: &SandboxSpec, laid: &[Laid]) -> Self {
        let protected = |by: Switch| {
            if local.has(by) {
                Rights::Read
            } else {
                Rights::ReadWrite
            }
        };
        let system = protected(Switch::ReadOnlySystem);
        let mut view = Self {
            binds: vec![bind("/usr", "/usr", system)],
            links: Vec::new(),
            privilege: match spec.profile {
                Profile::Agent | Profile::Tool | Profile::Test => Privilege::None,
                Profile::Snapshot => Privilege::ReadsOwn,
            },
        };
        for name in MERGED {
            match std::fs::read_link(name) {
                Ok(target) => view.links.push((target, name.into())),
                Err(_) if Path::new(name).is_dir() => view.binds.push(bind(name, name, system)),
                Err(_) => {}
            }
        }
        let etc = if local.has(Switch::GeneratedEtc) {
            local.etc.path()
        } else {
            Path::new("/etc")
        };
        view.binds.push(bind(etc, "/etc", Rights::Read));
        for root in local.toolchain.roots() {
            view.binds.push(bind(root, root, system));
        }
        for path in &spec.readable {
            view.binds
                .push(bind(path, path, protected(Switch::ReadOnlyObjects)));
        }
        let rights = match spec.profile {
            Profile::Agent | Profile::Tool | Profile::Test => Rights::ReadWrite,
            Profile::Snapshot => protected(Switch::ReadOnlySnapshot),
        };
        for folder in laid {
            view.binds.push(bind(
                &folder.source,
                &folder.inside,
                protected(Switch::ReadOnlyGiven),
            ));
        }
        view.binds.push(bind(&spec.dir, WORK, rights));
        view.binds
            .push(bind(&local.guest, GUEST, protected(Switch::ReadOnlyGuest)));
        for (number, spec) in spec.ways.iter().enumerate() {
            // Connecting takes the right to write, which belongs to the socket and not to the mount.
            view.binds
                .push(bind(&spec.socket, way(number), protected(Switch::ReadOnlyWays)));
        }
        view
    }
}

fn bind(source: impl AsRef<Path>, inside: impl AsRef<Path>, rights: Rights) -> Bind {
    Bind {
        source: source.as_ref().to_owned(),
        inside: inside.as_ref().to_owned(),
        rights,
    }
}
