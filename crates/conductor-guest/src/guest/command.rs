//! Starts commands, each in a session of its own, with nothing of this program but what it is given.
//!
//! A command adopts its own orphans, so that its tree can be found while it lives. What it leaves behind when it ends
//! by itself goes on until the sandbox ends, but nobody reads what it prints.
//! This module does not know what happens to the output, nor when a command must end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use conductor_guest::file::{Beneath, Error};
use conductor_guest::order::{Run, Streams};
use conductor_guest::response::{Ending, Limit, Refusal, Stream};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Resource, Rlimit};

use crate::{Protection, Settings, harden};

/// What a pipe may hold, if the kernel grants it: fewer turns for a command that prints much.
const PIPE: usize = 256 * 1024;

/// What a command runs under.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    open_files: Option<u64>,
    processes: Option<u64>,
    adopts: bool,
}

/// A command that was started.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: i32,
    /// The reading ends; they never block.
    pub(crate) pipes: Vec<(Stream, OwnedFd)>,
}

/// Why a command was not started.
#[derive(Debug)]
pub(crate) enum NotStarted {
    Ended(Ending),
    Refused(Refusal),
    Fault(String),
}

impl Limits {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            open_files: settings.open_files,
            processes: settings.processes,
            adopts: settings.has(Protection::Adoption),
        }
    }

    /// Applies them to this process. Makes system calls only: it runs between fork and exec.
    fn apply(self) -> io::Result<()> {
        if self.adopts {
            harden::adopt_orphans()?;
        }
        limit(Resource::Core, Some(0))?;
        limit(Resource::Nofile, self.open_files)?;
        limit(Resource::Nproc, self.processes)?;
        Ok(())
    }
}

fn limit(resource: Resource, value: Option<u64>) -> io::Result<()> {
    if value.is_some() {
        let both = Rlimit {
            current: value,
            maximum: value,
        };
        rustix::process::setrlimit(resource, both)?;
    }
    Ok(())
}

/// Starts a command.
#[allow(clippy::disallowed_methods, reason = "the one home of commands in a sandbox")]
pub(crate) fn start(run: &Run, root: &Beneath, limits: Limits) -> Result<Started, NotStarted> {
    let Some((program, arguments)) = run.argv.split_first() else {
        return Err(NotStarted::Refused(Refusal::Invalid(
            "the command is empty".into(),
        )));
    };
    let directory = root.directory(&run.directory).map_err(|error| match error {
        Error::Refused(refusal) => NotStarted::Refused(refusal),
        fault @ Error::Fault { .. } => NotStarted::Fault(fault.to_string()),
    })?;
    let streams = open(run.streams).map_err(|error| NotStarted::Fault(format!("making a pipe: {error}")))?;
    let mut command = std::process::Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(run.environment.iter().map(|(key, value)| (key, value)))
        .stdin(Stdio::null())
        .stdout(streams.out)
        .stderr(streams.error);
    // The descriptor leads to the very directory that was opened, whatever its name means by now.
    #[allow(unsafe_code, reason = "std offers none of these between fork and exec")]
    // SAFETY: between fork and exec the closure makes system calls and neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            rustix::process::fchdir(&directory)?;
            limits.apply()
        });
    }
    match command.spawn() {
        Ok(child) => Ok(Started {
            pid: i32::try_from(child.id()).expect("the kernel's process numbers are positive i32"),
            pipes: streams.pipes,
        }),
        Err(error) => Err(not_started(&error)),
    }
}

/// Both ends of a command's output.
struct Ends {
    out: OwnedFd,
    error: OwnedFd,
    pipes: Vec<(Stream, OwnedFd)>,
}

fn open(streams: Streams) -> io::Result<Ends> {
    let (reader, out) = pipe()?;
    Ok(match streams {
        Streams::Together => Ends {
            error: out.try_clone()?,
            out,
            pipes: vec![(Stream::Merged, reader)],
        },
        Streams::Apart => {
            let (error_reader, error) = pipe()?;
            Ends {
                out,
                error,
                pipes: vec![(Stream::Out, reader), (Stream::Error, error_reader)],
            }
        }
    })
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    // Only the reading end: a command whose output does not block would lose some.
    rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK)?;
    // A smaller pipe only takes more turns.
    let _ = rustix::pipe::fcntl_setpipe_size(&reader, PIPE);
    Ok((reader, writer))
}

/// Tells what the command is to blame for, what a limit is, and what the machine is.
fn not_started(error: &io::Error) -> NotStarted {
    match Errno::from_io_error(error) {
        Some(Errno::AGAIN) => NotStarted::Ended(Ending::Limit(Limit::Processes)),
        Some(Errno::NOMEM) => NotStarted::Ended(Ending::Limit(Limit::Memory)),
        Some(
            Errno::NOENT
            | Errno::ACCESS
            | Errno::PERM
            | Errno::TOOBIG
            | Errno::NOTDIR
            | Errno::ISDIR
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::NOEXEC
            | Errno::INVAL,
        )
        | None => NotStarted::Refused(Refusal::CannotStart(error.to_string())),
        Some(_) => NotStarted::Fault(format!("starting a command: {error}")),
    }
}
