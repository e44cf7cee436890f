//! Runs commands as plain processes of our own user: **no sandbox**, for the demo and tests only.
//!
//! It keeps the promises of the port that need no privileges: an environment of our making, a private HOME and TMPDIR,
//! file tools confined beneath the working directory, bounded output, whole trees killed. It keeps none of the others:
//! commands see the network, the operator's files and every other process, and a [`Profile`] changes nothing.
//!
//! [`Profile`]: conductor_port::executor::Profile
//! This module does not know which commands are wise.

mod command;
mod home;
mod output;
mod process;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::EffectId;
use conductor_port::executor::{Command, CommandResult, Executor, FileRefusal, Sandbox, SandboxSpec};

use crate::file::Beneath;
use crate::toolchain::Toolchain;
use command::Place;
use home::Home;
use process::Belonging;

/// Stands in the environment of every process of a sandbox; its value names the sandbox on this machine.
const SANDBOX: &str = "CONDUCTOR_SANDBOX";
/// Stands in the environment of every process of one command; its value counts the commands of the sandbox.
const CALL: &str = "CONDUCTOR_CALL";

/// Proof that someone decided to run an agent's commands on this machine without a sandbox.
///
/// There is no default and no conversion: whoever makes one has typed out what it means. The binary makes one for
/// `demo` and in its test build, and nowhere else.
#[derive(Debug)]
pub struct Consent {
    reason: Reason,
}

/// Why commands may run without a sandbox; there is no third reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The scenario is ours, word for word.
    Demo,
    /// It is a test of Conductor itself.
    Test,
}

impl Consent {
    /// States that an agent's commands may run as this user, with this user's files and network.
    pub fn to_run_commands_without_a_sandbox(reason: Reason) -> Self {
        Self { reason }
    }
}

/// The executor without a sandbox.
#[derive(Debug)]
pub struct UnsafePlain {
    root: PathBuf,
    toolchain: Toolchain,
    /// The sandboxes that this process has open; what is not among them was left behind.
    open: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl UnsafePlain {
    /// Makes the executor; `root` is a directory of its own, where it keeps the sandboxes' private directories.
    pub fn for_demo_and_tests(consent: Consent, root: PathBuf, toolchain: Toolchain) -> Self {
        tracing::warn!(reason = ?consent.reason, "commands run without a sandbox");
        Self {
            root,
            toolchain,
            open: Arc::default(),
        }
    }
}

#[async_trait]
impl Executor for UnsafePlain {
    async fn open(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>, Fault> {
        let files = Arc::new(Beneath::open(&spec.dir)?);
        let home = Home::make(&self.root, &spec.effect).map_err(|error| {
            Fault::transient(format!(
                "making a sandbox's directory in {}: {error}",
                self.root.display()
            ))
        })?;
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(home.path().to_owned());
        let calls = AtomicU64::new(0);
        Ok(Box::new(Plain {
            files,
            home,
            toolchain: self.toolchain.clone(),
            calls,
            open: Arc::clone(&self.open),
        }))
    }

    async fn reap(&self, effect: &EffectId) -> Result<(), Fault> {
        let attempt =
            |error| Fault::transient(format!("reaping {effect} in {}: {error}", self.root.display()));
        for path in Home::of_effect(&self.root, effect).map_err(attempt)? {
            if self
                .open
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .contains(&path)
            {
                continue;
            }
            let belonging = Belonging {
                marks: vec![mark(SANDBOX, &path.to_string_lossy())],
                noted: home::noted(&path),
            };
            command::until_gone(&belonging).await?;
            home::remove(&path).map_err(attempt)?;
        }
        Ok(())
    }
}

/// A directory with confined file tools, and commands that are only told to stay there.
#[derive(Debug)]
struct Plain {
    files: Arc<Beneath>,
    home: Home,
    toolchain: Toolchain,
    calls: AtomicU64,
    open: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Plain {
    fn belonging(&self) -> Belonging {
        let path = self.home.path();
        Belonging {
            marks: vec![mark(SANDBOX, &path.to_string_lossy())],
            noted: home::noted(path),
        }
    }

    fn place(&self) -> Result<Place<'_>, Fault> {
        let path = self.home.path();
        let name = path.to_string_lossy().into_owned();
        let call = self.calls.fetch_add(1, Ordering::Relaxed).to_string();
        let marks = vec![mark(SANDBOX, &name), mark(CALL, &call)];
        let environment = vec![
            ("PATH", self.toolchain.path()),
            ("HOME", path.join("home").into_os_string()),
            ("TMPDIR", path.join("tmp").into_os_string()),
            ("LANG", OsString::from("C.UTF-8")),
            (SANDBOX, OsString::from(name)),
            (CALL, OsString::from(call)),
        ];
        Ok(Place {
            home: &self.home,
            dir: self.files.descriptor()?,
            environment,
            marks,
        })
    }

    /// Runs a file tool where it may block.
    async fn on_files<T: Send + 'static>(
        &self,
        tool: impl FnOnce(&Beneath) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let files = Arc::clone(&self.files);
        tokio::task::spawn_blocking(move || tool(&files))
            .await
            .map_err(|error| Fault::transient(format!("running a file tool: {error}")))?
    }
}

#[async_trait]
impl Sandbox for Plain {
    async fn bash(&self, command: Command) -> Result<CommandResult, Fault> {
        command::run(self.place()?, command).await
    }

    async fn view(&self, path: &str) -> Result<Result<Vec<u8>, FileRefusal>, Fault> {
        let path = path.to_owned();
        self.on_files(move |files| files.view(&path)).await
    }

    async fn create_file(&self, path: &str, content: &[u8]) -> Result<Result<(), FileRefusal>, Fault> {
        let (path, content) = (path.to_owned(), content.to_owned());
        self.on_files(move |files| files.create(&path, &content)).await
    }

    async fn str_replace(&self, path: &str, old: &str, new: &str) -> Result<Result<(), FileRefusal>, Fault> {
        let (path, old, new) = (path.to_owned(), old.to_owned(), new.to_owned());
        self.on_files(move |files| files.replace(&path, &old, &new)).await
    }

    async fn close(self: Box<Self>) -> Result<(), Fault> {
        command::until_gone(&self.belonging()).await
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        let left = process::end_all(&self.belonging());
        // What still runs, or cannot be removed, keeps its directory: `reap` finds it by that.
        let removed = left.and_then(|left| {
            if left.is_empty() {
                home::remove(self.home.path())
            } else {
                Ok(())
            }
        });
        if let Err(error) = removed {
            tracing::warn!(path = %self.home.path().display(), %error, "a sandbox's directory stays behind");
        }
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(self.home.path());
    }
}

fn mark(key: &str, value: &str) -> String {
    format!("{key}={value}")
}
