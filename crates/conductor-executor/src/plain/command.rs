//! Runs one command to its end: a session of its own, an environment of our making, bounded output, a killed tree.
//!
//! Both streams share one pipe, so their order is the order in which they came. A process that outlives the command
//! and keeps the pipe open is not waited for: everything the command itself printed is in the pipe when it ends.
//! This module does not know what the command is for.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use conductor_domain::fault::Fault;
use conductor_domain::testing::Ending;
use conductor_domain::time::Millis;
use conductor_port::executor::{Command, CommandResult};
use rustix::io::Errno;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;

use crate::home::Home;
use crate::output::Kept;
use crate::process::{self, Belonging, Identity};

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// The most that a pipe can hold for an unprivileged writer; what is left in it when a command ends is no more.
const PIPE: usize = 1024 * 1024;

/// How long killed processes may take to be gone.
pub(super) const LAST_MOMENTS: Duration = Duration::from_secs(5);

/// Where and with what a command is started.
pub(super) struct Place<'a> {
    pub(super) home: &'a Home,
    /// The directory it starts in.
    pub(super) dir: OwnedFd,
    /// The whole environment.
    pub(super) environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// The marks among it that tell this command's processes from all others.
    pub(super) marks: Vec<String>,
}

/// The processes of one command; ends them when dropped before the command ended.
struct Tree {
    belonging: Belonging,
    has_ended: bool,
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.has_ended {
            // Without /proc there is nothing more to be done here; closing the sandbox reports it.
            let _ = process::end_all(&self.belonging);
        }
    }
}

/// Runs a command to its end. If dropped: its whole tree is killed.
pub(super) async fn run(place: Place<'_>, command: Command) -> Result<CommandResult, Fault> {
    let begun = now();
    let mut kept = Kept::new(command.output);
    let home = place.home;
    let marks = place.marks.clone();
    let (mut child, pipe) = match spawn(place, &command.argv)? {
        Spawned::Running(child, pipe) => (child, pipe),
        Spawned::Not(reason) => {
            let ending = Ending::NotRun { reason };
            return Ok(CommandResult {
                ending,
                output: Vec::new(),
                truncated: false,
                time: since(begun),
            });
        }
    };
    let mut tree = Tree {
        belonging: Belonging {
            marks,
            noted: Vec::new(),
        },
        has_ended: false,
    };
    let leader = leader(&child)?;
    tree.belonging.noted.push(leader);
    home.note(leader)
        .map_err(|error| attempt("noting a process", &error))?;

    let mut pipe =
        Receiver::from_owned_fd(pipe).map_err(|error| attempt("reading a command's output", &error))?;
    let ended = wait(
        &mut child,
        &mut pipe,
        &mut kept,
        Duration::from_millis(command.time.0),
    )
    .await?;
    let ending = if let Some(status) = ended {
        for survivor in look(move || process::in_session(leader.pid)).await? {
            home.note(survivor)
                .map_err(|error| attempt("noting a process", &error))?;
        }
        ending(status)
    } else {
        until_gone(&tree.belonging).await?;
        child
            .wait()
            .await
            .map_err(|error| attempt("waiting for a killed command", &error))?;
        Ending::TimedOut
    };
    tree.has_ended = true;
    let pipe = pipe
        .into_nonblocking_fd()
        .map_err(|error| attempt("reading a command's output", &error))?;
    drain(&pipe, &mut kept).map_err(|error| attempt("reading a command's output", &error))?;
    let (output, truncated) = kept.finish();
    Ok(CommandResult {
        ending,
        output,
        truncated,
        time: since(begun),
    })
}

/// Kills what belongs until nothing of it is left. Two empty looks count: a process in the middle of `exec` shows no
/// environment for a moment.
pub(super) async fn until_gone(belonging: &Belonging) -> Result<(), Fault> {
    let begun = now();
    let mut empty_looks = 0;
    while empty_looks < 2 {
        let belonging = belonging.clone();
        let killed = look(move || process::end_all(&belonging)).await?;
        empty_looks = if killed.is_empty() { empty_looks + 1 } else { 0 };
        if begun.elapsed() > LAST_MOMENTS {
            let left: Vec<String> = killed.iter().map(|process| process.pid.to_string()).collect();
            return Err(Fault::transient(format!(
                "processes do not end although killed: {}",
                left.join(", ")
            )));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// Looks at processes where it may block: hundreds of small files are read.
async fn look<T: Send + 'static>(at: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, Fault> {
    let looked = tokio::task::spawn_blocking(at).await;
    looked
        .unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(|error| attempt("reading /proc", &error))
}

enum Spawned {
    Running(Child, OwnedFd),
    Not(String),
}

#[allow(
    clippy::disallowed_methods,
    reason = "the one home of commands that agents and tests run"
)]
fn spawn(place: Place<'_>, argv: &[String]) -> Result<Spawned, Fault> {
    let Some((program, arguments)) = argv.split_first() else {
        return Ok(Spawned::Not("the command is empty".into()));
    };
    let (reader, writer) = io::pipe().map_err(|error| attempt("making a pipe", &error))?;
    let second = writer
        .try_clone()
        .map_err(|error| attempt("making a pipe", &error))?;
    let mut command = tokio::process::Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(place.environment)
        .stdin(Stdio::null())
        .stdout(Stdio::from(writer))
        .stderr(Stdio::from(second));
    let dir = place.dir;
    // A session of its own takes the operator's terminal away; the descriptor leads to the very directory that was
    // opened, whatever its name means by now.
    #[allow(
        unsafe_code,
        reason = "std offers neither setsid nor fchdir between fork and exec"
    )]
    // SAFETY: between fork and exec the closure makes two system calls and neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            rustix::process::fchdir(&dir)?;
            Ok(())
        });
    }
    match command.spawn() {
        Ok(child) => Ok(Spawned::Running(child, reader.into())),
        Err(error) => not_run(program, &error).map(Spawned::Not),
    }
}

/// Tells what the command itself is to blame for from what the machine is.
fn not_run(program: &str, error: &io::Error) -> Result<String, Fault> {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => Ok(format!("program `{program}` was not found")),
        Some(Errno::ACCESS | Errno::PERM) => Ok(format!("program `{program}` may not be executed")),
        Some(Errno::TOOBIG | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) | None => {
            Ok(format!("program `{program}` cannot be started: {error}"))
        }
        Some(_) => Err(Fault::transient(format!("starting `{program}`: {error}"))),
    }
}

fn leader(child: &Child) -> Result<Identity, Fault> {
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    let pid = pid.ok_or_else(|| Fault::transient("a command ended before it was named"))?;
    process::identify(pid).map_err(|error| attempt("reading /proc", &error))
}

/// Reads output until the command ends, or `None` when its time is up first.
async fn wait(
    child: &mut Child,
    pipe: &mut Receiver,
    kept: &mut Kept,
    time: Duration,
) -> Result<Option<ExitStatus>, Fault> {
    let mut chunk = vec![0; CHUNK];
    let mut is_open = true;
    let deadline = tokio::time::sleep(time);
    tokio::pin!(deadline);
    loop {
        // In this order: endless output must delay neither the deadline nor the end.
        tokio::select! {
            biased;
            () = &mut deadline => return Ok(None),
            status = child.wait() => {
                return status.map(Some).map_err(|error| attempt("waiting for a command", &error));
            }
            read = pipe.read(&mut chunk), if is_open => {
                let count = read.map_err(|error| attempt("reading a command's output", &error))?;
                kept.push(&chunk[..count]);
                is_open = count > 0;
            }
        }
    }
}

/// Reads what is in the pipe now, without waiting for more.
fn drain(pipe: &OwnedFd, kept: &mut Kept) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut drained = 0;
    while drained < PIPE {
        match rustix::io::read(pipe, &mut chunk) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(count) => {
                kept.push(&chunk[..count]);
                drained += count;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited { code },
        (None, Some(signal)) => Ending::Signalled { signal },
        (None, None) => Ending::Lost,
    }
}

fn attempt(attempted: &str, error: &io::Error) -> Fault {
    Fault::transient(format!("{attempted}: {error}"))
}

#[allow(
    clippy::disallowed_methods,
    reason = "measures how long a command took; decides nothing"
)]
fn now() -> Instant {
    Instant::now()
}

fn since(begun: Instant) -> Millis {
    Millis(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EXEC-7: whoever prints faster than we read, after the command has ended, keeps nobody waiting.
    #[test]
    fn a_pipe_that_never_runs_dry_is_left_after_one_pipes_worth() {
        let mut kept = Kept::new(2 * PIPE);
        let endless = std::fs::File::open("/dev/zero").unwrap();
        drain(&endless.into(), &mut kept).unwrap();
        assert_eq!(kept.finish(), (vec![0; PIPE], false));
    }
}
