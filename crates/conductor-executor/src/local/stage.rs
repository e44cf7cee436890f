//! Writes the command that starts a sandbox, and what happens between fork and bubblewrap.
//!
//! As root the child first joins its cgroups, then, in a mount namespace of its own, lays everything that the sandbox is
//! to see onto a small stage that anybody may enter, then becomes the run's user for good. So bubblewrap, which is never
//! root (S-1), can show a directory whose parents are closed to it, and no permission on the host has to be loosened.
//! This module does not know what is shown, nor how much may be used.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use conductor_guest::seccomp;
use rustix::fs::{CWD, Gid, MemfdFlags, Mode, OFlags, Uid};
use rustix::io::FdFlags;
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags};
use rustix::thread::UnshareFlags;
use tokio::process::Command;

use super::cgroup::Cgroup;
use super::view::{self, Bind, Privilege, Rights, View};
use super::{Local, Switch};
use crate::identity::Who;
use crate::limits::Protection;

/// Directories that every system has and that nobody needs while a sandbox is being built.
const STAGES: [&str; 4] = ["/mnt", "/media", "/srv", "/opt"];

/// What the child does before it becomes bubblewrap.
struct Stage {
    cgroups: Vec<OwnedFd>,
    place: CString,
    /// What is laid onto the stage.
    props: Vec<Prop>,
    /// The same, taken up before the stage hides anything.
    trees: Vec<OwnedFd>,
    user: Option<(Uid, Gid)>,
    filter: OwnedFd,
}

/// Something that is laid onto the stage.
struct Prop {
    from: CString,
    to: CString,
    is_directory: bool,
}

/// Writes the command; nothing has happened yet.
pub(super) fn command(local: &Local, view: View, cgroup: &Cgroup, who: Who) -> io::Result<Command> {
    let filter = filter()?;
    let number = filter.as_raw_fd();
    let (view, props, place) = match who {
        Who::Own(_) => set(view, &local.bwrap)?,
        Who::Ourselves | Who::Root => (view, Vec::new(), CString::default()),
    };
    let mut stage = Stage {
        cgroups: cgroup.entrances()?,
        place,
        trees: Vec::with_capacity(props.len()),
        props,
        user: match who {
            Who::Own(uid) => Some((Uid::from_raw(uid), Gid::from_raw(uid))),
            Who::Ourselves | Who::Root => None,
        },
        filter,
    };
    #[allow(clippy::disallowed_methods, reason = "the one home of bubblewrap")]
    let mut command = Command::new(&local.bwrap);
    command
        .args(arguments(local, &view, number, cgroup))
        .env_clear()
        .current_dir("/");
    #[allow(unsafe_code, reason = "std offers none of these between fork and exec")]
    // SAFETY: between fork and exec the closure makes system calls on prepared strings, and neither allocates (the room
    // for the descriptors is reserved) nor takes a lock.
    unsafe {
        command.pre_exec(move || stage.enter());
    }
    Ok(command)
}

/// Names where each thing stands on the stage, and shows it from there.
fn set(view: View, bwrap: &Path) -> io::Result<(View, Vec<Prop>, CString)> {
    let place = STAGES
        .into_iter()
        .find(|place| Path::new(place).is_dir() && !bwrap.starts_with(place))
        .ok_or_else(|| io::Error::other("none of /mnt, /media, /srv and /opt is a directory"))?;
    let mut props = Vec::new();
    let mut binds = Vec::new();
    for (number, bind) in view.binds.into_iter().enumerate() {
        let from = PathBuf::from(format!("{place}/{number}"));
        let metadata = std::fs::metadata(&bind.source)
            .map_err(|error| io::Error::other(format!("{}: {error}", bind.source.display())))?;
        props.push(Prop {
            from: string(&bind.source)?,
            to: string(&from)?,
            is_directory: metadata.is_dir(),
        });
        binds.push(Bind { source: from, ..bind });
    }
    Ok((View { binds, ..view }, props, string(Path::new(place))?))
}

fn string(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// Puts the list of system calls where bubblewrap reads it from its beginning.
fn filter() -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("seccomp", MemfdFlags::CLOEXEC)?;
    let program = seccomp::bpf();
    let mut written = 0;
    while written < program.len() {
        written += rustix::io::write(&file, &program[written..])?;
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file)
}

impl Stage {
    fn enter(&mut self) -> io::Result<()> {
        for entrance in &self.cgroups {
            rustix::io::write(entrance, b"0")?;
        }
        rustix::process::umask(Mode::from_raw_mode(0o022));
        if let Some((uid, gid)) = self.user {
            self.lay()?;
            rustix::thread::set_thread_groups(&[])?;
            rustix::thread::set_thread_res_gid(gid, gid, gid)?;
            rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        }
        rustix::io::fcntl_setfd(&self.filter, FdFlags::empty())?;
        Ok(())
    }

    fn lay(&mut self) -> io::Result<()> {
        #[allow(unsafe_code, reason = "a child between fork and exec has one thread")]
        // SAFETY: no other thread of this process shares its file system information; there is none.
        unsafe {
            rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)?;
        }
        rustix::mount::mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        for prop in &self.props {
            self.trees
                .push(rustix::mount::open_tree(CWD, prop.from.as_c_str(), flags)?);
        }
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount(
            c"tmpfs",
            self.place.as_c_str(),
            c"tmpfs",
            flags,
            Some(c"mode=0755,size=1m"),
        )?;
        for (Prop { to, is_directory, .. }, tree) in self.props.iter().zip(&self.trees) {
            if *is_directory {
                rustix::fs::mkdirat(CWD, to.as_c_str(), Mode::from_raw_mode(0o755))?;
            } else {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
                rustix::fs::openat(CWD, to.as_c_str(), flags, Mode::from_raw_mode(0o644))?;
            }
            let empty = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            rustix::mount::move_mount(tree, c"", CWD, to.as_c_str(), empty)?;
        }
        Ok(())
    }
}

/// What takes nothing but words: each is a protection, and has a row in `docs/protections.md`.
const CONFINEMENT: &[(Switch, &[&str])] = &[
    (
        Switch::UserNamespace,
        &["--unshare-user", "--uid", "1000", "--gid", "1000"],
    ),
    (Switch::PidNamespace, &["--unshare-pid", "--as-pid-1"]),
    (Switch::NoNetwork, &["--unshare-net"]),
    (Switch::IpcNamespace, &["--unshare-ipc"]),
    (Switch::UtsNamespace, &["--unshare-uts", "--hostname", "sandbox"]),
    (Switch::CgroupNamespace, &["--unshare-cgroup"]),
    (Switch::DisabledUserns, &["--disable-userns"]),
    (Switch::NewSession, &["--new-session"]),
    (Switch::DieWithParent, &["--die-with-parent"]),
    (Switch::NoCapabilities, &["--cap-drop", "ALL"]),
];

fn arguments(local: &Local, view: &View, filter: i32, cgroup: &Cgroup) -> Vec<OsString> {
    let limits = &local.limits;
    let mut bwrap = Arguments::default();
    for (switch, words) in CONFINEMENT {
        if local.has(*switch) {
            bwrap.add(*words);
        }
    }
    bwrap.add(["--clearenv"]);
    bwrap.add_if(
        view.privilege == Privilege::ReadsOwn,
        ["--cap-add", "CAP_DAC_READ_SEARCH"],
    );
    if local.has(Switch::Seccomp) {
        bwrap.add(["--seccomp", &filter.to_string()]);
    }
    let is_late = |bind: &&Bind| {
        ["/dev", "/tmp", view::HOME]
            .iter()
            .any(|over| bind.inside.starts_with(over))
    };
    view.binds
        .iter()
        .filter(|bind| !is_late(bind))
        .for_each(|bind| bwrap.bind(bind));
    for (target, name) in &view.links {
        bwrap.add(["--symlink".as_ref(), target.as_os_str(), name.as_os_str()]);
    }
    bwrap.add(["--proc", "/proc"]);
    bwrap.add_if(
        local.has(Switch::ReadOnlyProcSys),
        ["--ro-bind", "/proc/sys", "/proc/sys"],
    );
    let dev: &[&str] = if local.has(Switch::OwnDev) {
        &["--dev", "/dev"]
    } else {
        &["--dev-bind", "/dev", "/dev"]
    };
    bwrap.add(dev);
    for (place, size) in [
        ("/dev/shm", limits.shared_memory),
        ("/tmp", limits.temporary),
        (view::HOME, limits.temporary),
    ] {
        if local.has(Switch::SizedTmpfs) {
            bwrap.add(["--size", &size.to_string()]);
        }
        bwrap.add(["--tmpfs", place]);
    }
    // What lies below one of those outside would be hidden by it inside.
    view.binds
        .iter()
        .filter(is_late)
        .for_each(|bind| bwrap.bind(bind));
    bwrap.add_if(
        local.has(Switch::ReadOnlyRoot),
        ["--remount-ro", "/dev", "--remount-ro", "/"],
    );
    bwrap.add(["--chdir", view::WORK, "--", view::GUEST, "--root", view::WORK]);
    if local.has(Switch::OpenFiles) {
        bwrap.add(["--open-files", &limits.open_files.to_string()]);
    }
    if !cgroup.enforces(Protection::Processes) {
        bwrap.add(["--processes", &limits.processes.to_string()]);
    }
    bwrap.add(["--filtered-outside"]);
    bwrap.0
}

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add<W: AsRef<std::ffi::OsStr>>(&mut self, words: impl IntoIterator<Item = W>) {
        self.0
            .extend(words.into_iter().map(|word| word.as_ref().to_owned()));
    }

    fn bind(&mut self, bind: &Bind) {
        let how = match bind.rights {
            Rights::Read => "--ro-bind",
            Rights::ReadWrite => "--bind",
        };
        self.add([how.as_ref(), bind.source.as_os_str(), bind.inside.as_os_str()]);
    }

    fn add_if<const N: usize>(&mut self, condition: bool, words: [&str; N]) {
        if condition {
            self.add(words);
        }
    }
}
