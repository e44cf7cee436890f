//! `conductor tools`: serves the tools of one directory over the Model Context Protocol, for people who want only this.
//!
//! The same sandbox, policies and log as in a run, and no server: what was called stands in `--log FILE`, one JSON
//! object per line, hash-chained. On stdio, stdout belongs to the protocol and talk goes to stderr.
//! This module does not know what a tool does.

use std::io::{ErrorKind, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::EffectId;
use conductor_domain::role::Role;
use conductor_domain::time::Millis;
use conductor_engine::redact::KnownForms;
use conductor_engine::{Alone, Without};
use conductor_policy::authority::Authority;
use conductor_port::blobs::{CallPage, ToolCall, ToolLog};
use conductor_port::ledger::Settlement;
use conductor_tools::{Lease, Offers, Server, door};
use conductor_web::words::text::count;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::net::{TcpListener, UnixListener};

use crate::clock::SystemClock;
use crate::exit::{Exit, Failure};
use crate::place::{Place, PlaceArgs};
use crate::session::Session;
use crate::signals;

/// What can be done with tools.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ToolsCommand {
    /// Serves view, edit, search, git and bash of one directory, confined to a sandbox
    Serve(Box<ServeArgs>),
}

/// How tools are served.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    door: DoorArgs,
    /// In whose place calls are judged: planner, implementer, reviewer or tester
    #[arg(long, value_name = "ROLE", default_value = "implementer", value_parser = role)]
    role: Role,
    /// How long one command may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Appends every call to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// Where the client comes in.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct DoorArgs {
    /// Speaks over stdin and stdout
    #[arg(long)]
    stdio: bool,
    /// Speaks HTTP on this loopback port, at /mcp; 0 chooses one. The address and the token are printed
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Speaks HTTP on this unix socket, at /mcp. The token is printed
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

fn role(word: &str) -> Result<Role, String> {
    let found = Role::ALL
        .into_iter()
        .find(|role| role.to_string().eq_ignore_ascii_case(word));
    found.ok_or_else(|| "it is one of planner, implementer, reviewer, tester".to_owned())
}

/// Runs the command.
pub(crate) async fn tools(session: &Session, command: ToolsCommand) -> Result<Exit, Failure> {
    let ToolsCommand::Serve(args) = command;
    let log = Lines::open(args.log.as_ref())?;
    let is_logged = args.log.is_some();
    let mut signals = signals::listen()?;
    let place = Place::open(&args.place).await?;
    let (run, effect) = (place.run.clone(), place.effect.clone());
    let (sandbox, rest) = place.part();
    let with = Without {
        sandbox,
        authority: Authority::shipped(),
        redactor: Arc::new(KnownForms::default()),
        tool_log: Arc::new(log),
        clock: Arc::new(SystemClock::default()),
        role: args.role,
        time: Millis::seconds(args.seconds),
    };
    let alone = Arc::new(Alone::open(with, &effect, &run).await?);
    let lease = Lease::grant().map_err(|error| Failure::because("granting a lease", &error))?;
    let served = tokio::select! {
        served = serve(session, &args.door, Server::new(Offers::of_worktree(args.role, alone.clone())), &lease) => served,
        () = signals.told() => Ok(()),
    };
    lease.end();
    let closed = alone.close().await;
    rest.give_back()?;
    served?;
    if let (Some(head), true) = (closed?, is_logged) {
        session.out.talk(&format!(
            "{} in the tool log, head {}",
            count(head.calls, "line"),
            head.head
        ));
    }
    Ok(Exit::Ok)
}

async fn serve(
    session: &Session,
    args: &DoorArgs,
    server: Server<Offers>,
    lease: &Lease,
) -> Result<(), Failure> {
    let serving = |error: std::io::Error| Failure::because("serving tools", &error);
    if let Some(port) = args.port {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(serving)?;
        let address = listener.local_addr().map_err(serving)?;
        announce(session, &format!("http://{address}/mcp"), lease)?;
        return door::over_loopback(server, lease.clone(), listener)
            .await
            .map_err(serving);
    }
    if let Some(path) = &args.socket {
        let listener = listen(path).map_err(serving)?;
        let _left = Left(path);
        announce(session, &format!("unix:{}", path.display()), lease)?;
        return door::over_socket(server, lease.clone(), listener)
            .await
            .map_err(serving);
    }
    let (read, write) = stdio().map_err(serving)?;
    door::over_pipes(server, lease, read, write)
        .await
        .map_err(serving)
}

/// The name of a socket, gone when serving ends in whatever way.
struct Left<'a>(&'a Path);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        // Somebody may have removed it already.
        let _ = std::fs::remove_file(self.0);
    }
}

/// Listens on a socket; one that a killed process left behind makes room.
fn listen(path: &Path) -> std::io::Result<UnixListener> {
    let is_left = || {
        let is_socket = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
        let heard = std::os::unix::net::UnixStream::connect(path);
        is_socket && heard.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    };
    match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_left() => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

type Read = Box<dyn AsyncRead + Send + Unpin>;
type Write = Box<dyn AsyncWrite + Send + Unpin>;

/// Stdin and stdout. Pipes are opened anew, so that they can be waited for without a thread each and without changing what
/// whoever gave them to us sees; anything else is read and written by threads.
fn stdio() -> std::io::Result<(Read, Write)> {
    let mut pipes = pipe::OpenOptions::new();
    let read: Read = match pipes.open_receiver("/proc/self/fd/0") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(file(std::io::stdin().as_fd())?),
    };
    let write: Write = match pipes.read_write(false).open_sender("/proc/self/fd/1") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(file(std::io::stdout().as_fd())?),
    };
    Ok((read, write))
}

fn file(fd: BorrowedFd<'_>) -> std::io::Result<tokio::fs::File> {
    let owned = fd.try_clone_to_owned()?;
    Ok(tokio::fs::File::from_std(owned.into()))
}

fn announce(session: &Session, address: &str, lease: &Lease) -> Result<(), Failure> {
    let value = json!({ "address": address, "token": lease.token() });
    session.out.data(&value, |_| {
        format!("address  {address}\ntoken    {}\n", lease.token())
    })
}

/// The tool log as lines of a file, or nowhere.
#[derive(Debug)]
struct Lines(Option<Arc<Mutex<std::fs::File>>>);

impl Lines {
    fn open(path: Option<&PathBuf>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self(None)) };
        let file = std::fs::File::options().create(true).append(true).open(path);
        let file =
            file.map_err(|error| Failure::because(format!("opening the log {}", path.display()), &error))?;
        Ok(Self(Some(Arc::new(Mutex::new(file)))))
    }
}

#[async_trait]
impl ToolLog for Lines {
    async fn append(&self, _lease: Option<&Settlement>, calls: &[ToolCall]) -> Result<(), Fault> {
        let Some(file) = self.0.clone() else { return Ok(()) };
        let lines: String = calls.iter().map(line).collect();
        // Whoever calls a tool meanwhile does not wait for the disk.
        let written = tokio::task::spawn_blocking(move || {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(lines.as_bytes()).and_then(|()| file.sync_data())
        });
        written
            .await
            .map_err(std::io::Error::other)
            .flatten()
            .map_err(|error| Fault::transient(format!("writing the tool log: {error}")))
    }

    /// Every serving has a log of its own, under a name that was just made.
    async fn read(&self, _invocation: &EffectId) -> Result<Vec<ToolCall>, Fault> {
        Ok(Vec::new())
    }

    async fn page(&self, _invocation: &EffectId, _part: &CallPage) -> Result<Vec<ToolCall>, Fault> {
        Ok(Vec::new())
    }
}

fn line(call: &ToolCall) -> String {
    let value = json!({
        "invocation": call.invocation,
        "n": call.n,
        "at": call.at,
        "tool": call.tool,
        "target": call.target,
        "payload": call.payload_hash,
        "decision": call.decision,
        "reason": call.reason,
        "result": call.result,
        "hash": call.hash,
    });
    format!("{value}\n")
}
