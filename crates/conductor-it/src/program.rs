//! The program under test: one server process, and its command line.
//!
//! This module does not know what is asked of it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// How long anything may take before a story is hopeless; the machine may be very busy.
pub const HOPELESS: Duration = Duration::from_mins(2);

/// How long a story waits before it asks the program again: each question is a process, which what it waits for needs the
/// processor for.
pub const BETWEEN_LOOKS: Duration = Duration::from_millis(150);

/// The program and where it keeps everything.
#[derive(Debug)]
pub struct Program {
    binary: PathBuf,
    data_dir: PathBuf,
    serve: Vec<String>,
    /// Hosts outside that a story plays, as the program under test reads them.
    stage: String,
    server: Option<Child>,
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    /// Its exit code.
    pub code: i32,
    /// Its data, where it was JSON.
    pub data: Value,
    /// Its data as text.
    pub stdout: String,
    /// Its talk.
    pub stderr: String,
}

impl Said {
    /// Insists that the command succeeded.
    pub fn done(self) -> Result<Self> {
        ensure!(
            self.code == 0,
            "exit {}: {}{}",
            self.code,
            self.stdout,
            self.stderr
        );
        Ok(self)
    }

    /// Insists that the command did not succeed, with this code of the catalogue and a hint what to do.
    pub fn refused(self, code: &str) -> Result<Self> {
        ensure!(
            self.code > 0 && self.stderr.contains(code) && self.stderr.contains("hint: "),
            "not {code}: exit {}: {}{}",
            self.code,
            self.stdout,
            self.stderr
        );
        Ok(self)
    }
}

impl Program {
    /// Names the program, its data directory and what its server is started with.
    pub fn new(binary: impl Into<PathBuf>, data_dir: impl Into<PathBuf>, serve: Vec<String>) -> Self {
        Self {
            binary: binary.into(),
            data_dir: data_dir.into(),
            serve,
            stage: String::new(),
            server: None,
        }
    }

    /// Starts the server with this flag, too, from now on; one that is there already gets another value.
    pub fn also(&mut self, flag: &str, value: &str) {
        match self.serve.iter().position(|argument| argument == flag) {
            Some(place) => value.clone_into(&mut self.serve[place + 1]),
            None => self.serve.extend([flag.to_owned(), value.to_owned()]),
        }
    }

    /// Where its server listens.
    pub fn address(&self) -> Result<std::net::SocketAddr> {
        let place = self.serve.iter().position(|argument| argument == "--listen");
        let address = place.and_then(|place| self.serve.get(place + 1));
        address
            .context("no address to listen on")?
            .parse()
            .context("an address to listen on")
    }

    /// Plays a host outside by a server on loopback, from the next start on.
    pub fn plays(&mut self, host: &str, port: u16) {
        let comma = if self.stage.is_empty() { "" } else { "," };
        self.stage = format!("{}{comma}{host}={port}", self.stage);
    }

    /// The same program with a data directory of its own, at a port of its own.
    pub fn beside(&self, data_dir: PathBuf, port: u16) -> Self {
        let mut beside = Self::new(self.binary.clone(), data_dir, self.serve.clone());
        beside.also("--listen", &format!("127.0.0.1:{port}"));
        beside
    }

    /// Freezes the server, or lets it go on.
    pub fn signal(&self, signal: nix::sys::signal::Signal) -> Result<()> {
        let pid = self.pid().context("no server was started")?;
        let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).context("a process id")?);
        nix::sys::signal::kill(pid, signal).with_context(|| format!("sending {signal} to the server"))
    }

    /// Where it keeps everything.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Starts the server and waits until it answers; `crash_at` ends it by itself later.
    pub fn start(&mut self, crash_at: Option<&str>) -> Result<()> {
        self.spawn(crash_at)?;
        let begun = Instant::now();
        loop {
            if self.has_ended()? {
                bail!("the server ended while it was starting\n{}", self.log());
            }
            if self.is_published() && self.say(&["run", "list"])?.code == 0 {
                return Ok(());
            }
            ensure!(begun.elapsed() < HOPELESS, "the server does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Tells whether this server has said where it is; a killed one leaves its own word behind.
    fn is_published(&self) -> bool {
        let text = std::fs::read_to_string(self.data_dir.join("server.json")).unwrap_or_default();
        let said: Value = serde_json::from_str(&text).unwrap_or_default();
        self.pid().is_some_and(|pid| said["pid"] == pid)
    }

    /// Starts the server without waiting for it.
    pub fn spawn(&mut self, crash_at: Option<&str>) -> Result<()> {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.data_dir.with_extension("log"))
            .context("opening the server's log")?;
        let mut command = self.command();
        command
            .arg("serve")
            .args(&self.serve)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if let Some(point) = crash_at {
            command.env("CONDUCTOR_CRASH_AT", point);
        }
        self.server = Some(command.spawn().context("starting the server")?);
        Ok(())
    }

    /// Tells whether the server process is gone.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.server.is_none() || self.how_it_ended()?.is_some())
    }

    /// How the server process ended; nothing while it runs, and nothing when none was started.
    pub fn how_it_ended(&mut self) -> Result<Option<ExitStatus>> {
        let Some(child) = &mut self.server else {
            return Ok(None);
        };
        child.try_wait().context("looking at the server")
    }

    /// Starts a server that must end by itself, and tells what it said.
    pub fn start_in_vain(&mut self) -> Result<Said> {
        let before = self.log().len();
        self.spawn(None)?;
        let begun = Instant::now();
        let ended = loop {
            if let Some(ended) = self.how_it_ended()? {
                break ended;
            }
            ensure!(begun.elapsed() < HOPELESS, "the server runs although it must not");
            std::thread::sleep(Duration::from_millis(20));
        };
        Ok(Said {
            code: ended.code().unwrap_or(-1),
            data: Value::Null,
            stdout: String::new(),
            stderr: self.log().split_off(before),
        })
    }

    /// Everything that its servers have logged.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.data_dir.with_extension("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Kills the server as a power cut would.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.server.take() {
            child.kill().context("killing the server")?;
            child.wait().context("waiting for the killed server")?;
        }
        Ok(())
    }

    /// Tells the server to stop and waits for it.
    pub fn stop(&mut self) -> Result<()> {
        let Some(mut child) = self.server.take() else {
            return Ok(());
        };
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).context("a process id")?);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).context("stopping the server")?;
        let ended = child.wait().context("waiting for the server")?;
        ensure!(ended.success(), "the server ended with {ended}");
        Ok(())
    }

    /// The id of the server's process.
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    /// Runs a command of the CLI with `--json`.
    pub fn say(&self, arguments: &[&str]) -> Result<Said> {
        let output = self
            .command()
            .arg("--json")
            .args(arguments)
            .stdin(Stdio::null())
            .output();
        Ok(said(output.with_context(|| format!("running {arguments:?}"))?))
    }

    /// Runs a command of the CLI as a person sees it.
    pub fn say_plainly(&self, arguments: &[&str]) -> Result<Said> {
        let output = self.command().args(arguments).stdin(Stdio::null()).output();
        Ok(said(output.with_context(|| format!("running {arguments:?}"))?))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env("CONDUCTOR_DATA_DIR", &self.data_dir)
            .env("CONDUCTOR_STAGE", &self.stage)
            .env_remove("CONDUCTOR_CRASH_AT");
        command
    }
}

fn said(output: Output) -> Said {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    Said {
        code: output.status.code().unwrap_or(-1),
        data: serde_json::from_str(&stdout).unwrap_or(Value::Null),
        stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _gone_already = self.kill();
    }
}
