//! Takes away, from this process and all that it starts, what nothing in a sandbox needs.
//!
//! Runs while there is one thread and no child, so that nobody escapes it.
//! This module does not know of namespaces, mounts and cgroups: those are made outside.

use conductor_guest::seccomp;
use rustix::process::{DumpableBehavior, Pid};

use crate::{Protection, Settings};

/// Hardens this process, or says what could not be done.
pub(crate) fn harden(settings: &Settings) -> Result<(), String> {
    let attempt = |attempted: &'static str| move |error| format!("{attempted}: {error}");
    if settings.has(Protection::Undumpable) {
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .map_err(attempt("hiding this process's memory"))?;
    }
    if settings.has(Protection::NoNewPrivileges) {
        rustix::thread::set_no_new_privs(true).map_err(attempt("giving up new privileges"))?;
    }
    hear_signals();
    adopt_orphans().map_err(attempt("adopting orphans"))?;
    if settings.has(Protection::Filter) && !settings.is_filtered {
        install(&seccomp::bpf()).map_err(|error| format!("installing the system call list: {error}"))?;
    }
    Ok(())
}

/// Undoes what whoever started this program ignores: commands would inherit it, and children whose death is ignored
/// cannot be buried. The standard library keeps SIGPIPE, SIGSEGV and SIGBUS for itself and gives them back to commands.
#[allow(unsafe_code, reason = "std does not set signal dispositions")]
fn hear_signals() {
    for signal in 1..32 {
        if !matches!(signal, libc::SIGPIPE | libc::SIGSEGV | libc::SIGBUS) {
            // SAFETY: no handler is installed; the default action is. It fails for SIGKILL and SIGSTOP, which is right.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// Makes this process the parent of what its descendants leave behind. PID 1 is that already.
pub(crate) fn adopt_orphans() -> rustix::io::Result<()> {
    // The kernel asks only whether the number is zero.
    rustix::process::set_child_subreaper(Some(Pid::INIT))
}

#[allow(unsafe_code, reason = "no crate here offers seccomp filters")]
fn install(program: &[u8]) -> std::io::Result<()> {
    let mut filter: Vec<libc::sock_filter> = program
        .chunks_exact(size_of::<libc::sock_filter>())
        .map(|bytes| {
            let [c0, c1, jt, jf, k0, k1, k2, k3] = *bytes else {
                unreachable!("chunks of exactly eight bytes");
            };
            libc::sock_filter {
                code: u16::from_ne_bytes([c0, c1]),
                jt,
                jf,
                k: u32::from_ne_bytes([k0, k1, k2, k3]),
            }
        })
        .collect();
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(std::io::Error::other)?,
        filter: filter.as_mut_ptr(),
    };
    let mode = libc::c_ulong::from(libc::SECCOMP_SET_MODE_FILTER);
    // SAFETY: `program` points to `len` instructions that outlive the call; the kernel copies and checks them.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program) };
    if result == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}
