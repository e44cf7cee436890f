//! Runs commands as plain processes of our own user: **no sandbox**, for the demo and tests only.
//!
//! It keeps the promises of the port that need no privileges: an environment of our making, a private HOME and TMPDIR,
//! file tools confined beneath the working directory, bounded output, whole trees killed. It keeps none of the others:
//! commands see the network, the operator's files and every other process, and a [`Profile`] changes nothing.
//!
//! [`Profile`]: conductor_port::executor::Profile
//! This module does not know which commands are wise.

mod command;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::EffectId;
use conductor_guest::file::{Beneath, Error};
use conductor_guest::order::Range;
use conductor_port::executor::{
    Command, CommandResult, Entry, Executor, FileRefusal, Found, Match, Pattern, Sandbox, SandboxSpec,
};

use crate::home::{self, Home};
use crate::process::{self, Belonging};
use crate::sandbox::refusal_of;
use crate::toolchain::Toolchain;
use crate::walk;
use command::Place;

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
        if !spec.given.is_empty() {
            // Whoever runs as this user could write them, and they would stand where this user's own files are.
            return Err(Fault::permanent(
                "executor `unsafe-plain` cannot give files that are only read, such as skills; use another",
            ));
        }
        let files = Beneath::open(&spec.dir).map_err(|error| {
            Fault::permanent(format!(
                "opening the working directory {}: {error}",
                spec.dir.display()
            ))
        })?;
        let files = Arc::new(files);
        let made = Home::make(&self.root, &spec.effect).and_then(|home| {
            for part in ["home", "tmp"] {
                std::fs::create_dir(home.path().join(part))?;
            }
            Ok(home)
        });
        let home = made.map_err(|error| {
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
            environment: spec.environment,
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
    /// What the spec gave to every command.
    environment: Vec<(String, String)>,
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

    fn place(&self, own: &[(String, String)]) -> Result<Place<'_>, Fault> {
        let path = self.home.path();
        let name = path.to_string_lossy().into_owned();
        let call = self.calls.fetch_add(1, Ordering::Relaxed).to_string();
        let marks = vec![mark(SANDBOX, &name), mark(CALL, &call)];
        let mut environment: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), self.toolchain.path()),
            ("HOME".into(), path.join("home").into_os_string()),
            ("TMPDIR".into(), path.join("tmp").into_os_string()),
            ("LANG".into(), "C.UTF-8".into()),
            (SANDBOX.into(), name.into()),
            (CALL.into(), call.into()),
        ];
        let given = self.environment.iter().chain(own);
        environment.extend(given.map(|(name, value)| (name.into(), value.into())));
        Ok(Place {
            home: &self.home,
            dir: self
                .files
                .directory(Path::new(""))
                .map_err(|error| Fault::transient(format!("entering a working directory: {error}")))?,
            environment,
            marks,
        })
    }

    /// Runs a file tool where it may block, and says in the port's words what came of it.
    async fn on_file<T: Send + 'static>(
        &self,
        path: &str,
        tool: impl FnOnce(&Beneath, &Path) -> Result<T, Error> + Send + 'static,
    ) -> Result<Result<T, FileRefusal>, Fault> {
        let (files, name) = (Arc::clone(&self.files), path.to_owned());
        let done = tokio::task::spawn_blocking(move || tool(&files, Path::new(&name)))
            .await
            .map_err(|error| Fault::transient(format!("running a file tool: {error}")))?;
        match done {
            Ok(value) => Ok(Ok(value)),
            Err(Error::Refused(refusal)) => Ok(Err(refusal_of(path, refusal))),
            Err(error @ Error::Fault { .. }) => Err(Fault::transient(format!("`{path}`: {error}"))),
        }
    }
}

#[async_trait]
impl Sandbox for Plain {
    async fn bash(&self, command: Command) -> Result<CommandResult, Fault> {
        let place = self.place(&command.environment)?;
        command::run(place, command).await
    }

    async fn view(&self, path: &str) -> Result<Result<Vec<u8>, FileRefusal>, Fault> {
        self.on_file(path, |files, path| files.view(path, Range::Whole))
            .await
    }

    async fn create_file(&self, path: &str, content: &[u8]) -> Result<Result<(), FileRefusal>, Fault> {
        let content = content.to_owned();
        self.on_file(path, move |files, path| files.create(path, &content))
            .await
    }

    async fn str_replace(&self, path: &str, old: &str, new: &str) -> Result<Result<(), FileRefusal>, Fault> {
        let (old, new) = (old.to_owned(), new.to_owned());
        self.on_file(path, move |files, path| {
            files.replace(path, old.as_bytes(), new.as_bytes()).map(drop)
        })
        .await
    }

    async fn list(&self, path: &str) -> Result<Result<Found<Entry>, FileRefusal>, Fault> {
        let order = walk::order(path);
        self.on_file(path, move |files, _| {
            let mut gathered = walk::Gathered::default();
            let walked = files.list(&order, &mut gathered)?;
            Ok(walk::found(walked, gathered.entries, walk::entry))
        })
        .await
    }

    async fn search(
        &self,
        path: &str,
        pattern: &Pattern,
    ) -> Result<Result<Found<Match>, FileRefusal>, Fault> {
        let (order, pattern) = (walk::order(path), walk::pattern(pattern));
        self.on_file(path, move |files, _| {
            let mut gathered = walk::Gathered::default();
            let walked = files.search(&order, &pattern, &mut gathered)?;
            Ok(walk::found(walked, gathered.matches, walk::line))
        })
        .await
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
