//! Hears of children that ended, and buries them all: those that it started and those that it adopted.
//!
//! Only the thread that starts commands may call this, because starting one waits for a child that could not.
//! This module does not know which child is which.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};

use conductor_guest::response::{Ending, Usage};

/// Tells, as a descriptor that becomes readable, that a child ended.
#[derive(Debug)]
pub(crate) struct Deaths(OwnedFd);

/// A child that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dead {
    pub(crate) pid: i32,
    pub(crate) ending: Ending,
    /// Without the time by the clock.
    pub(crate) usage: Usage,
}

impl Deaths {
    /// Begins to listen; to be called before there is a second thread. Commands start with an empty signal mask all
    /// the same: the standard library sees to it.
    #[allow(unsafe_code, reason = "neither std nor rustix offers signalfd")]
    pub(crate) fn listen() -> io::Result<Self> {
        // SAFETY: the set lives on this stack and is initialised by `sigemptyset` before anything reads it; the
        // descriptor is new and owned by nobody else.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
            if libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => Err(io::Error::last_os_error()),
                descriptor => Ok(Self(OwnedFd::from_raw_fd(descriptor))),
            }
        }
    }

    /// Forgets what was told so far; call it before [`bury`], or a death between the two goes unheard.
    pub(crate) fn clear(&self) {
        let mut told = [0; 8 * size_of::<libc::signalfd_siginfo>()];
        while rustix::io::read(&self.0, &mut told).is_ok() {}
    }
}

impl AsFd for Deaths {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Buries one child that ended, if there is one.
#[allow(unsafe_code, reason = "neither std nor rustix tells what any child used")]
pub(crate) fn bury() -> Option<Dead> {
    let mut status = 0;
    // SAFETY: both are plain data that the kernel fills; zero is a valid value of each.
    let (pid, used) = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        let pid = libc::wait4(-1, &raw mut status, libc::WNOHANG | libc::__WALL, &raw mut used);
        (pid, used)
    };
    (pid > 0).then(|| Dead {
        pid,
        ending: ending(status),
        usage: Usage {
            elapsed_us: 0,
            user_us: microseconds(used.ru_utime),
            system_us: microseconds(used.ru_stime),
            max_rss_kib: u64::try_from(used.ru_maxrss).unwrap_or(0),
        },
    })
}

fn ending(status: i32) -> Ending {
    if libc::WIFEXITED(status) {
        Ending::Code(libc::WEXITSTATUS(status))
    } else {
        Ending::Signal(libc::WTERMSIG(status))
    }
}

fn microseconds(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
}
