//! `conductor exec`: runs one command or one file tool in a sandbox, for people who want only this.
//!
//! No server and no database: what was done is told on stdout, and in `--log FILE` one JSON object per line. The sandbox
//! ends with the command. This module does not know how a sandbox is built.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use conductor_domain::digest::Digest;
use conductor_domain::spec::ExecutorName;
use conductor_domain::testing::Ending;
use conductor_domain::time::Millis;
use conductor_port::executor::{Command, CommandResult, FileRefusal, Listener, Sandbox};
use serde_json::json;
use tokio::sync::Notify;

use crate::clock::machine_now;
use crate::exit::{Exit, Failure};
use crate::place::{Place, PlaceArgs};
use crate::session::Session;
use crate::signals;

/// The most output kept for `--json`; what is streamed is never cut.
const OUTPUT: usize = 1024 * 1024;

/// Runs one command or file tool in a sandbox
#[derive(Debug, clap::Args)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Appends what was done to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    #[command(subcommand)]
    tool: Tool,
}

/// What is done.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Tool {
    /// Runs a command line with bash; ends with 0 only if it exited 0
    Bash {
        /// The command line
        command: String,
        /// How long it may take
        #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
        seconds: u64,
    },
    /// Prints a file
    View {
        /// The file, below the worktree
        path: String,
    },
    /// Writes a new file from stdin
    CreateFile {
        /// The file, below the worktree
        path: String,
    },
    /// Replaces the one occurrence of a text in a file
    StrReplace {
        /// The file, below the worktree
        path: String,
        /// What must occur exactly once
        #[arg(long, value_name = "TEXT")]
        old: String,
        /// What stands there instead
        #[arg(long, value_name = "TEXT")]
        new: String,
    },
}

/// What came of it.
enum Done {
    Ran(CommandResult),
    Viewed(Result<Vec<u8>, FileRefusal>),
    Changed(Result<(), FileRefusal>),
}

/// Runs the command.
pub(crate) async fn exec(session: &Session, args: ExecArgs) -> Result<Exit, Failure> {
    let content = match &args.tool {
        Tool::CreateFile { .. } => stdin()?,
        Tool::Bash { .. } | Tool::View { .. } | Tool::StrReplace { .. } => Vec::new(),
    };
    let log = args.log.as_ref().map(|path| Log::open(path)).transpose()?;
    let mut signals = signals::listen()?;
    let place = Place::open(&args.place).await?;
    let executor = place.executor;
    let done = tokio::select! {
        done = apply(session, place.sandbox.as_ref(), &args.tool, &content) => done,
        () = signals.told() => Err(Failure::new("interrupted")),
    };
    place.close().await?;
    let done = done?;
    if let Some(log) = log {
        log.add(executor, &args.tool, &content, &done)?;
    }
    tell(session, done)
}

async fn apply(
    session: &Session,
    sandbox: &dyn Sandbox,
    tool: &Tool,
    content: &[u8],
) -> Result<Done, Failure> {
    Ok(match tool {
        Tool::Bash { command, seconds } => {
            let streamed = Arc::new(Streamed::default());
            let to = streamed.clone();
            let listener = Listener(Arc::new(move |bytes: &[u8]| to.write(bytes)));
            let command = Command {
                argv: vec!["bash".into(), "-c".into(), command.clone()],
                environment: vec![],
                time: Millis::seconds(*seconds),
                output: OUTPUT,
                listener: (!session.out.is_json()).then_some(listener),
            };
            let ran = tokio::select! {
                ran = sandbox.bash(command) => ran?,
                () = streamed.is_lost.notified() => return Err(streamed.failure("the command was ended")),
            };
            if streamed
                .lost
                .get()
                .is_some_and(|error| error.kind() != io::ErrorKind::BrokenPipe)
            {
                return Err(streamed.failure("the command ended by itself"));
            }
            Done::Ran(ran)
        }
        Tool::View { path } => Done::Viewed(sandbox.view(path).await?),
        Tool::CreateFile { path } => Done::Changed(sandbox.create_file(path, content).await?),
        Tool::StrReplace { path, old, new } => Done::Changed(sandbox.str_replace(path, old, new).await?),
    })
}

/// What a command says, on its way to stdout.
#[derive(Debug, Default)]
struct Streamed {
    /// Why nothing more of it gets there.
    lost: OnceLock<io::Error>,
    is_lost: Notify,
}

impl Streamed {
    fn write(&self, bytes: &[u8]) {
        let mut stdout = io::stdout().lock();
        if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush())
            && self.lost.set(error).is_ok()
        {
            self.is_lost.notify_one();
        }
    }

    fn failure(&self, so: &str) -> Failure {
        match self.lost.get() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Failure::because(format!("{so}; writing to stdout"), error)
            }
            Some(_) | None => Failure::new(format!("nobody reads its output any more; {so}")),
        }
    }
}

fn tell(session: &Session, done: Done) -> Result<Exit, Failure> {
    match done {
        Done::Ran(result) => {
            let ending = result.ending.to_string();
            let value = json!({
                "ending": ending,
                "output": String::from_utf8_lossy(&result.output),
                "truncated": result.truncated,
                "time_ms": result.time.0,
            });
            session.out.data(&value, |_| String::new())?;
            if result.ending == (Ending::Exited { code: 0 }) {
                return Ok(Exit::Ok);
            }
            session.out.talk(&ending);
            Ok(Exit::Failed)
        }
        Done::Viewed(Ok(bytes)) if session.out.is_json() => {
            let value = json!({ "content": String::from_utf8_lossy(&bytes) });
            session.out.data(&value, |_| String::new())?;
            Ok(Exit::Ok)
        }
        Done::Viewed(Ok(bytes)) => {
            let mut stdout = io::stdout().lock();
            let written = stdout.write_all(&bytes).and_then(|()| stdout.flush());
            match written {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    Err(Failure::because("writing to stdout", &error))
                }
                Ok(()) | Err(_) => Ok(Exit::Ok),
            }
        }
        Done::Changed(Ok(())) => {
            session.out.data(&json!({ "changed": true }), |_| String::new())?;
            Ok(Exit::Ok)
        }
        Done::Viewed(Err(refusal)) | Done::Changed(Err(refusal)) => {
            let hint =
                "paths count from the worktree; `bash 'ls -A'` in place of the tool shows what is there";
            Err(Failure {
                hint: Some(hint.to_owned()),
                ..Failure::new(refusal.to_string()).exiting(Exit::Refused)
            })
        }
    }
}

/// Where it is told what was done.
struct Log<'a> {
    path: &'a Path,
    file: std::fs::File,
}

impl<'a> Log<'a> {
    /// Opens the file, before anything is done that could not be told.
    fn open(path: &'a Path) -> Result<Self, Failure> {
        let file = std::fs::File::options().create(true).append(true).open(path);
        let file =
            file.map_err(|error| Failure::because(format!("opening the log {}", path.display()), &error))?;
        Ok(Self { path, file })
    }

    /// Appends one line; it is on disk before the command ends.
    fn add(
        mut self,
        executor: ExecutorName,
        tool: &Tool,
        content: &[u8],
        done: &Done,
    ) -> Result<(), Failure> {
        let line = line(executor, tool, content, done);
        let written = self.file.write_all(line.as_bytes());
        written
            .and_then(|()| self.file.sync_data())
            .map_err(|error| Failure::because(format!("writing the log {}", self.path.display()), &error))
    }
}

fn line(executor: ExecutorName, tool: &Tool, content: &[u8], done: &Done) -> String {
    let (name, target, payload): (&str, &str, Vec<u8>) = match tool {
        Tool::Bash { command, .. } => ("bash", "", command.clone().into_bytes()),
        Tool::View { path } => ("view", path, Vec::new()),
        Tool::CreateFile { path } => ("create-file", path, content.to_vec()),
        Tool::StrReplace { path, old, new } => ("str-replace", path, format!("{old}\0{new}").into_bytes()),
    };
    let result = match done {
        Done::Ran(result) => result.ending.to_string(),
        Done::Viewed(Ok(_)) | Done::Changed(Ok(())) => "done".to_owned(),
        Done::Viewed(Err(refusal)) | Done::Changed(Err(refusal)) => refusal.to_string(),
    };
    let line = json!({
        "at": machine_now(),
        "executor": executor.as_str(),
        "tool": name,
        "target": target,
        "payload": Digest::of(&payload),
        "result": result,
    });
    format!("{line}\n")
}

fn stdin() -> Result<Vec<u8>, Failure> {
    let mut content = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut content)
        .map_err(|error| Failure::because("reading the content from stdin", &error))?;
    Ok(content)
}
