//! Starts the `docker` command; the only place that does.
//!
//! It runs with an environment and a configuration of our own, because a person's configuration can put proxies, with
//! their passwords, into every container. This module does not know what the arguments mean.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use conductor_domain::fault::Fault;
use tokio::process::Command;

/// How long the engine may take for anything but a container's own life.
const TIME: Duration = Duration::from_secs(30);

/// How soon a removal that is under way is asked for again.
const SOON: Duration = Duration::from_millis(50);

/// The command, and what it is started with.
#[derive(Debug, Clone)]
pub(super) struct Cli {
    program: PathBuf,
    config: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

/// Why the engine did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failed {
    #[error("{0}")]
    Said(String),
    #[error("no answer within {} s", TIME.as_secs())]
    Silent,
}

/// Makes a directory the configuration of a client that has nothing configured; Podman wants to find the file.
pub(super) fn configure(config: &Path) -> std::io::Result<()> {
    std::fs::write(config.join("config.json"), "{}\n")
}

impl Cli {
    pub(super) fn new(program: PathBuf, config: PathBuf, environment: Vec<(OsString, OsString)>) -> Self {
        Self {
            program,
            config,
            environment,
        }
    }

    /// The program's name, for people.
    pub(super) fn program(&self) -> String {
        self.program.display().to_string()
    }

    /// Prepares a call.
    #[allow(
        clippy::disallowed_methods,
        reason = "the one home of calls to the container engine"
    )]
    pub(super) fn command(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("DOCKER_CONFIG", &self.config)
            .env("HOME", &self.config)
            .envs(self.environment.iter().cloned())
            .current_dir(&self.config)
            .args(arguments.into_iter().map(Into::into));
        command
    }

    /// Calls and waits; gives what was printed.
    pub(super) async fn call(&self, arguments: &[&str]) -> Result<String, Failed> {
        let mut command = self.command(arguments.iter().copied());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let output = match tokio::time::timeout(TIME, command.output()).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => return Err(Failed::Said(error.to_string())),
            Err(_) => return Err(Failed::Silent),
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        Err(Failed::Said(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ))
    }

    /// Ends a container with everything in it and removes it (S-43). If repeated: there is none.
    pub(super) async fn remove(&self, name: &str) -> Result<(), Fault> {
        let removing = async {
            loop {
                let said = match self.call(&["rm", "--force", "--volumes", name]).await {
                    Ok(_) => return Ok(()),
                    Err(Failed::Said(said)) => said.to_lowercase(),
                    Err(failed) => return Err(failed),
                };
                if said.contains("no such container") || said.contains("no container with") {
                    return Ok(());
                }
                if !said.contains("already in progress") {
                    return Err(Failed::Said(said));
                }
                tokio::time::sleep(SOON).await;
            }
        };
        match tokio::time::timeout(TIME, removing).await {
            Ok(removed) => removed,
            Err(_) => Err(Failed::Silent),
        }
        .map_err(|failed| Fault::transient(format!("removing the container {name}: {failed}")))
    }
}
