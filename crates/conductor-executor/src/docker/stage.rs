//! Writes the one call that starts a container: what it sees, what it may use up, and what it may not do.
//!
//! Every argument is fixed here or comes from the effect; nothing in it is secret, because arguments can be read by
//! everybody (S-44). This module does not start anything.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use conductor_domain::fault::Fault;
use conductor_port::executor::SandboxSpec;

use super::{Docker, Switch};
use crate::given::Laid;
use crate::identity::Who;

/// The one directory that a sandbox works in.
const WORK: &str = "/w";
/// HOME inside.
pub(super) const HOME: &str = "/home/agent";
/// The guest inside.
const GUEST: &str = "/.conductor/guest";
/// The guest itself is a process of the container.
const OVERHEAD: u64 = 1;

/// The socket of a way out, as it is seen inside.
pub(super) fn way(number: usize) -> PathBuf {
    PathBuf::from(format!("/.conductor/way-{number}"))
}

/// Writes the arguments of the call.
pub(super) fn arguments(
    docker: &Docker,
    spec: &SandboxSpec,
    laid: &[Laid],
    who: Who,
    name: &str,
) -> Result<Vec<OsString>, Fault> {
    let mut call = Call(Vec::new());
    call.add(["run", "--interactive", "--pull", "never", "--name", name]);
    call.add(["--hostname", "sandbox", "--workdir", WORK, "--entrypoint", GUEST]);
    labels(&mut call, docker, spec);
    confinement(&mut call, docker, who);
    limits(&mut call, docker);
    mounts(&mut call, docker, spec, laid)?;
    // The engine has installed the list of system calls by the time that the guest starts.
    call.add([docker.image.as_str(), "--root", WORK, "--filtered-outside"]);
    Ok(call.0)
}

/// What a janitor finds it by.
fn labels(call: &mut Call, docker: &Docker, spec: &SandboxSpec) {
    call.add(["--label", &format!("conductor.effect={}", spec.effect)]);
    call.add(["--label", &format!("conductor.run={}", spec.run)]);
    call.add(["--label", &format!("conductor.root={}", docker.root.display())]);
}

fn confinement(call: &mut Call, docker: &Docker, who: Who) {
    if docker.has(Switch::NoNetwork) {
        call.add(["--network", "none"]);
    }
    if docker.has(Switch::ReadOnlyRoot) {
        call.add(["--read-only"]);
    }
    if docker.has(Switch::NoCapabilities) {
        call.add(["--cap-drop", "ALL"]);
    }
    if docker.has(Switch::NoNewPrivileges) {
        call.add(["--security-opt", "no-new-privileges"]);
    }
    let profile = if docker.has(Switch::Seccomp) {
        format!("seccomp={}", docker.seccomp.display())
    } else {
        "seccomp=unconfined".to_owned()
    };
    call.add(["--security-opt", &profile]);
    let (uid, gid) = match who {
        Who::Own(uid) => (uid, uid),
        Who::Ourselves => (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        ),
        Who::Root => (0, 0),
    };
    call.add(["--user", &format!("{uid}:{gid}")]);
    if docker.has(Switch::NoLog) {
        // The engine would write every byte that the guest sends to a file of its own, without end.
        call.add(["--log-driver", "none"]);
    }
}

fn limits(call: &mut Call, docker: &Docker) {
    let limits = &docker.limits;
    if docker.has(Switch::ProcessLimit) {
        call.add(["--pids-limit", &(limits.processes + OVERHEAD).to_string()]);
    }
    if docker.has(Switch::MemoryLimit) {
        // The same number twice: memory and swap together, so there is no swap (S-42).
        let memory = limits.memory.to_string();
        call.add(["--memory", &memory, "--memory-swap", &memory]);
    }
    if docker.has(Switch::CpuLimit) {
        let (whole, rest) = (limits.milli_cpus / 1000, limits.milli_cpus % 1000);
        call.add(["--cpus", &format!("{whole}.{rest:03}")]);
    }
    if docker.has(Switch::OpenFiles) {
        let files = limits.open_files;
        call.add(["--ulimit", &format!("nofile={files}:{files}")]);
    }
    call.add(["--ulimit", "core=0:0"]);
    call.add(["--shm-size", &limits.shared_memory.to_string()]);
    for (place, mode) in [("/tmp", "1777"), (HOME, "1777")] {
        let mut options = format!("{place}:rw,exec,nosuid,nodev,mode={mode}");
        if docker.has(Switch::SizedTmpfs) {
            options.push_str(&format!(",size={}", limits.temporary));
        }
        call.add(["--tmpfs", &options]);
    }
    if docker.has(Switch::HiddenSys) {
        for place in ["/sys", "/sys/fs/cgroup"] {
            call.add([
                "--tmpfs",
                &format!("{place}:ro,nosuid,nodev,noexec,size=4k,mode=555"),
            ]);
        }
    }
}

fn mounts(call: &mut Call, docker: &Docker, spec: &SandboxSpec, laid: &[Laid]) -> Result<(), Fault> {
    call.mount(&spec.dir, Path::new(WORK), Rights::ReadWrite)?;
    let protected = |by: Switch| {
        if docker.has(by) {
            Rights::Read
        } else {
            Rights::ReadWrite
        }
    };
    call.mount(&docker.guest, Path::new(GUEST), protected(Switch::ReadOnlyGuest))?;
    for path in &spec.readable {
        call.mount(path, path, protected(Switch::ReadOnlyObjects))?;
    }
    for folder in laid {
        call.mount(&folder.source, &folder.inside, protected(Switch::ReadOnlyGiven))?;
    }
    for (number, spec) in spec.ways.iter().enumerate() {
        // Connecting takes the right to write, which belongs to the socket and not to the mount.
        call.mount(&spec.socket, &way(number), protected(Switch::ReadOnlyWays))?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Rights {
    Read,
    ReadWrite,
}

struct Call(Vec<OsString>);

impl Call {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(OsString::from));
    }

    /// `--mount` takes a line of comma-separated values; in quotes a path may hold anything but a carriage return,
    /// which the reader of such lines drops.
    fn mount(&mut self, source: &Path, inside: &Path, rights: Rights) -> Result<(), Fault> {
        let mut value = b"type=bind".to_vec();
        for (key, path) in [("src", source), ("dst", inside)] {
            let bytes = path.as_os_str().as_bytes();
            if bytes.contains(&b'\r') {
                return Err(Fault::permanent(format!(
                    "`{}` has a carriage return in its name, which containers cannot be given",
                    path.display().to_string().escape_debug()
                )));
            }
            value.extend_from_slice(b",\"");
            value.extend_from_slice(key.as_bytes());
            value.push(b'=');
            for byte in bytes {
                value.push(*byte);
                if *byte == b'"' {
                    value.push(b'"');
                }
            }
            value.push(b'"');
        }
        match rights {
            Rights::Read => value.extend_from_slice(b",readonly"),
            Rights::ReadWrite => {}
        }
        self.0.push("--mount".into());
        self.0.push(OsString::from_vec(value));
        Ok(())
    }
}
