//! Listens on loopback inside the sandbox and carries every connection to a unix socket: the only ways out (EXEC-3).
//!
//! One thread per port serves all its connections without blocking and holds one chunk per direction, so memory is
//! bounded and no connection can stop another. Further connections wait in the kernel's queue.
//! This module does not know what travels, nor who answers at the socket.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// The most connections of one port at once.
const MAX_CONNECTIONS: usize = 128;

/// What one direction of a connection holds.
const CHUNK: usize = 32 * 1024;

/// Begins to listen, and says on which port.
pub(crate) fn listen(port: u16, socket: PathBuf) -> io::Result<u16> {
    let address = SocketAddrUnix::new(socket.as_path())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    std::thread::Builder::new()
        .name("forward".into())
        .spawn(move || serve(&listener, &address))?;
    Ok(port)
}

fn serve(listener: &TcpListener, address: &SocketAddrUnix) {
    let mut connections: Vec<Connection> = Vec::new();
    while let Ok(has_caller) = wait(listener, &connections) {
        connections.retain_mut(|connection| connection.carry().is_ok_and(|is_open| is_open));
        if has_caller && let Ok((caller, _)) = listener.accept() {
            // Nobody at the socket, or too many: the caller sees its connection closed.
            connections.extend(Connection::open(caller, address).ok());
        }
    }
}

/// Waits until something can move; true when somebody calls.
fn wait(listener: &TcpListener, connections: &[Connection]) -> rustix::io::Result<bool> {
    let has_room = connections.len() < MAX_CONNECTIONS;
    let mut awaited = vec![PollFd::new(
        listener,
        if has_room {
            PollFlags::IN
        } else {
            PollFlags::empty()
        },
    )];
    for connection in connections {
        let (inner, outer) = connection.awaited();
        awaited.push(PollFd::new(&connection.caller, inner));
        awaited.push(PollFd::new(&connection.answerer, outer));
    }
    match rustix::event::poll(&mut awaited, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(awaited[0].revents().contains(PollFlags::IN)),
        Err(errno) => Err(errno),
    }
}

#[derive(Debug)]
struct Connection {
    caller: TcpStream,
    answerer: UnixStream,
    out: Direction,
    back: Direction,
}

impl Connection {
    fn open(caller: TcpStream, address: &SocketAddrUnix) -> io::Result<Self> {
        caller.set_nonblocking(true)?;
        caller.set_nodelay(true)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let answerer = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&answerer, address)?;
        Ok(Self {
            caller,
            answerer: answerer.into(),
            out: Direction::default(),
            back: Direction::default(),
        })
    }

    /// What to wait for at the caller and at the answerer.
    fn awaited(&self) -> (PollFlags, PollFlags) {
        let flags = |reads: &Direction, writes: &Direction| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, reads.wants_to_read());
            flags.set(PollFlags::OUT, writes.wants_to_write());
            flags
        };
        (flags(&self.out, &self.back), flags(&self.back, &self.out))
    }

    /// Moves what can be moved; false when both directions are over.
    fn carry(&mut self) -> io::Result<bool> {
        self.out
            .carry(&self.caller, &self.answerer, |end| end.shutdown(Shutdown::Write))?;
        self.back
            .carry(&self.answerer, &self.caller, |end| end.shutdown(Shutdown::Write))?;
        Ok(!(self.out.is_over && self.back.is_over))
    }
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Direction {
    /// What was read and not yet written.
    held: Vec<u8>,
    written: usize,
    has_ended: bool,
    is_over: bool,
}

impl Direction {
    fn wants_to_read(&self) -> bool {
        self.held.is_empty() && !self.has_ended
    }

    fn wants_to_write(&self) -> bool {
        !self.held.is_empty()
    }

    fn carry<R, W>(&mut self, mut from: &R, mut to: &W, end: impl Fn(&W) -> io::Result<()>) -> io::Result<()>
    where
        for<'a> &'a R: Read,
        for<'a> &'a W: Write,
    {
        if self.wants_to_read() {
            self.held.resize(CHUNK, 0);
            let read = from.read(&mut self.held);
            self.held.truncate(*read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => self.has_ended = true,
                Ok(_) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if self.wants_to_write() {
            match to.write(&self.held[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
            if self.written == self.held.len() {
                self.held.clear();
                self.written = 0;
            }
        }
        if self.has_ended && self.held.is_empty() && !self.is_over {
            self.is_over = true;
            end(to)?;
        }
        Ok(())
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
