//! Takes the channel away from standard input and output, and writes frames to it.
//!
//! Frames of several threads never mix. Whoever writes may wait for the host, which always reads: what it has not
//! asked for is not sent, and a command's output only as far as it was granted.
//! This module does not know what the frames say.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use conductor_guest::frame::{Frame, RequestId};
use conductor_guest::response::Response;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};

/// What the channel to the host may hold, if the kernel grants it: fewer turns for a command that prints much.
const PIPE: usize = 256 * 1024;

/// Both directions of the channel.
#[derive(Debug)]
pub(crate) struct Channel {
    /// Where orders come from.
    pub(crate) input: OwnedFd,
    /// Where responses go.
    pub(crate) outlet: Outlet,
}

/// Where responses go; shared by all threads.
#[derive(Debug, Clone)]
pub(crate) struct Outlet(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    descriptor: OwnedFd,
    /// Held while one frame is written; keeps the buffer that it is made in.
    writing: Mutex<Vec<u8>>,
}

/// Moves standard input and output away and leaves `/dev/null` in their place; they are closed on exec. What whoever
/// started this program left open is closed.
pub(crate) fn take() -> Result<Channel, String> {
    let attempt = |attempted: &'static str| move |errno: Errno| format!("{attempted}: {errno}");
    let input = moved(rustix::stdio::stdin()).map_err(attempt("moving standard input"))?;
    let output = moved(rustix::stdio::stdout()).map_err(attempt("moving standard output"))?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(attempt("opening /dev/null"))?;
    rustix::stdio::dup2_stdin(&null).map_err(attempt("replacing standard input"))?;
    rustix::stdio::dup2_stdout(&null).map_err(attempt("replacing standard output"))?;
    drop(null);
    close_others([&input, &output]).map_err(|error| format!("closing descriptors: {error}"))?;
    // A host that made no pipe, or a kernel that grants no more, only takes more turns.
    let _ = rustix::pipe::fcntl_setpipe_size(&output, PIPE);
    let shared = Shared {
        descriptor: output,
        writing: Mutex::new(Vec::new()),
    };
    Ok(Channel {
        input,
        outlet: Outlet(Arc::new(shared)),
    })
}

fn moved(descriptor: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(descriptor, 3)
}

/// Closes every descriptor but these two and 0, 1 and 2.
fn close_others(kept: [&OwnedFd; 2]) -> std::io::Result<()> {
    let mut kept = kept.map(|descriptor| descriptor.as_raw_fd().cast_unsigned());
    kept.sort_unstable();
    close_range(3, kept[0].saturating_sub(1))?;
    close_range(kept[0] + 1, kept[1].saturating_sub(1))?;
    close_range(kept[1] + 1, u32::MAX)
}

#[allow(unsafe_code, reason = "rustix offers no close_range")]
fn close_range(first: u32, last: u32) -> std::io::Result<()> {
    if first > last {
        return Ok(());
    }
    // SAFETY: called before anything but the channel is opened; nobody here owns what is closed.
    let result = unsafe { libc::close_range(first, last, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

impl Channel {
    /// Undoes the protection of the channel, for the test that shows what it is good for.
    pub(crate) fn expose(&self) -> rustix::io::Result<()> {
        rustix::io::fcntl_setfd(&self.outlet, FdFlags::empty())
    }
}

impl AsFd for Outlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.descriptor.as_fd()
    }
}

impl Outlet {
    /// Sends responses, in one piece.
    pub(crate) fn send<const N: usize>(
        &self,
        id: RequestId,
        bodies: [Response; N],
    ) -> rustix::io::Result<()> {
        let mut buffer = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.clear();
        for body in bodies {
            if (Frame { id, body }).encode(&mut buffer).is_err() {
                // Only a text of unforeseen length gets here; the request must still have its result.
                let body = Response::Fault("the answer is too long for a frame".into());
                let _fits = Frame { id, body }.encode(&mut buffer);
            }
        }
        write_all(self.as_fd(), &buffer)
    }

    /// Sends a frame that is framed already.
    pub(crate) fn send_framed(&self, frame: &[u8]) -> rustix::io::Result<()> {
        let _one_at_a_time = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        write_all(self.as_fd(), frame)
    }
}

fn write_all(descriptor: BorrowedFd<'_>, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(descriptor, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                rustix::event::poll(&mut [PollFd::new(&descriptor, PollFlags::OUT)], None)?;
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
