//! Takes the channel away from standard input and output, and writes frames to it.
//!
//! Frames of several threads never mix. Whoever writes may wait for the host, which always reads: what it has not
//! asked for is not sent, and a command's output only as far as it was granted.
//! This module does not know what the frames say.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use conductor_guest::frame::{Frame, RequestId};
use conductor_guest::response::Response;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};

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

/// Moves standard input and output away and leaves `/dev/null` in their place. Every descriptor but 0, 1 and 2 is
/// closed on exec, also what whoever started this program forgot.
pub(crate) fn take() -> Result<Channel, String> {
    let attempt = |attempted: &'static str| move |errno: Errno| format!("{attempted}: {errno}");
    let input = moved(rustix::stdio::stdin()).map_err(attempt("moving standard input"))?;
    let output = moved(rustix::stdio::stdout()).map_err(attempt("moving standard output"))?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(attempt("opening /dev/null"))?;
    rustix::stdio::dup2_stdin(&null).map_err(attempt("replacing standard input"))?;
    rustix::stdio::dup2_stdout(&null).map_err(attempt("replacing standard output"))?;
    close_on_exec().map_err(|error| format!("closing descriptors on exec: {error}"))?;
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

#[allow(unsafe_code, reason = "rustix offers no close_range")]
fn close_on_exec() -> std::io::Result<()> {
    // SAFETY: marks descriptors close-on-exec and closes none.
    let result = unsafe { libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC.cast_signed()) };
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
    /// Sends a response.
    pub(crate) fn send(&self, id: RequestId, body: Response) -> rustix::io::Result<()> {
        let mut buffer = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.clear();
        let frame = Frame { id, body };
        if frame.encode(&mut buffer).is_err() {
            // Only a text of unforeseen length gets here; the request must still have its result.
            buffer.clear();
            let body = Response::Fault("the answer is too long for a frame".into());
            let _fits = Frame { id, body }.encode(&mut buffer);
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
