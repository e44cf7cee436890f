//! Sandboxes over the fake disk; the test command is a function of the files.
//!
//! Remembers which sandboxes are open, and leaves those behind that are dropped while Conductor is dying, as real
//! processes would be. It does not know real commands.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::EffectId;
use conductor_domain::testing::Ending;
use conductor_domain::time::Millis;
use conductor_port::executor::{
    Command, CommandResult, Entry, EntryKind, Executor, FileRefusal, Found, Match, Pattern, Sandbox,
    SandboxSpec,
};

use crate::workspace::{Disk, Tree, lock};
use crate::world::World;

/// Runs a command on the files of a directory.
pub type Program = fn(&[String], &mut Tree) -> (Ending, Vec<u8>);

/// An executor over the fake disk.
#[derive(Debug)]
pub struct FakeExecutor {
    world: Arc<World>,
    disk: Arc<Mutex<Disk>>,
    program: Program,
    open: Arc<Mutex<BTreeSet<EffectId>>>,
}

impl FakeExecutor {
    /// Makes an executor whose commands are one function.
    pub fn new(world: Arc<World>, disk: Arc<Mutex<Disk>>, program: Program) -> Self {
        Self {
            world,
            disk,
            program,
            open: Arc::default(),
        }
    }

    /// The effects whose sandboxes are open, or were left behind.
    pub fn open_sandboxes(&self) -> BTreeSet<EffectId> {
        locked(&self.open).clone()
    }
}

fn locked(open: &Mutex<BTreeSet<EffectId>>) -> MutexGuard<'_, BTreeSet<EffectId>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Executor for FakeExecutor {
    async fn open(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>, Fault> {
        self.world.weather("open a sandbox").await.before()?;
        if !lock(&self.disk).dirs.contains_key(&spec.dir) {
            return Err(Fault::permanent("the sandbox's directory is not there"));
        }
        if !locked(&self.open).insert(spec.effect.clone()) {
            return Err(Fault::permanent("a sandbox of this effect is open already"));
        }
        Ok(Box::new(FakeSandbox {
            world: self.world.clone(),
            disk: self.disk.clone(),
            program: self.program,
            open: self.open.clone(),
            effect: spec.effect,
            dir: spec.dir,
        }))
    }

    async fn reap(&self, effect: &EffectId) -> Result<(), Fault> {
        self.world.weather("reap").await.before()?;
        locked(&self.open).remove(effect);
        Ok(())
    }
}

#[derive(Debug)]
struct FakeSandbox {
    world: Arc<World>,
    disk: Arc<Mutex<Disk>>,
    program: Program,
    open: Arc<Mutex<BTreeSet<EffectId>>>,
    effect: EffectId,
    dir: PathBuf,
}

impl FakeSandbox {
    fn with_files<T>(&self, act: impl FnOnce(&mut Tree) -> T) -> Result<T, Fault> {
        let mut disk = lock(&self.disk);
        let files = disk.dirs.get_mut(&self.dir);
        files
            .map(act)
            .ok_or_else(|| Fault::permanent("the working directory is gone"))
    }
}

impl Drop for FakeSandbox {
    fn drop(&mut self) {
        if !self.world.is_dying() {
            locked(&self.open).remove(&self.effect);
        }
    }
}

fn inside(path: &str) -> Result<(), FileRefusal> {
    if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        Err(FileRefusal::Outside(path.to_owned()))
    } else {
        Ok(())
    }
}

fn is_beneath(name: &str, directory: &str) -> bool {
    directory.is_empty()
        || name
            .strip_prefix(directory)
            .is_some_and(|rest| rest.starts_with('/'))
}

fn all_of<T>(findings: Vec<T>) -> Found<T> {
    Found {
        findings,
        is_complete: true,
        skipped: 0,
    }
}

#[async_trait]
impl Sandbox for FakeSandbox {
    async fn bash(&self, command: Command) -> Result<CommandResult, Fault> {
        self.world.weather("run a command").await.before()?;
        let (ending, output) = self.with_files(|files| (self.program)(&command.argv, files))?;
        Ok(CommandResult {
            ending,
            output,
            truncated: false,
            time: Millis(7),
        })
    }

    async fn view(&self, path: &str) -> Result<Result<Vec<u8>, FileRefusal>, Fault> {
        self.with_files(|files| {
            inside(path)?;
            files
                .get(path)
                .cloned()
                .ok_or_else(|| FileRefusal::NotFound(path.to_owned()))
        })
    }

    async fn create_file(&self, path: &str, content: &[u8]) -> Result<Result<(), FileRefusal>, Fault> {
        self.with_files(|files| {
            inside(path)?;
            if files.contains_key(path) {
                return Err(FileRefusal::Exists(path.to_owned()));
            }
            files.insert(path.to_owned(), content.to_vec());
            Ok(())
        })
    }

    async fn str_replace(&self, path: &str, old: &str, new: &str) -> Result<Result<(), FileRefusal>, Fault> {
        self.with_files(|files| {
            inside(path)?;
            let content = files
                .get(path)
                .ok_or_else(|| FileRefusal::NotFound(path.to_owned()))?;
            let text = String::from_utf8_lossy(content).into_owned();
            if !text.contains(old) {
                return Err(FileRefusal::NoMatch(path.to_owned()));
            }
            files.insert(path.to_owned(), text.replacen(old, new, 1).into_bytes());
            Ok(())
        })
    }

    async fn list(&self, path: &str) -> Result<Result<Found<Entry>, FileRefusal>, Fault> {
        self.with_files(|files| {
            inside(path)?;
            let entries = files.iter().filter(|(name, _)| is_beneath(name, path));
            Ok(all_of(
                entries
                    .map(|(name, content)| Entry {
                        path: name.clone(),
                        kind: EntryKind::File,
                        size: content.len() as u64,
                    })
                    .collect(),
            ))
        })
    }

    async fn search(
        &self,
        path: &str,
        pattern: &Pattern,
    ) -> Result<Result<Found<Match>, FileRefusal>, Fault> {
        let Pattern::Literal(wanted) = pattern else {
            return Ok(Err(FileRefusal::Other(
                "the fake knows plain texts only".to_owned(),
            )));
        };
        self.with_files(|files| {
            inside(path)?;
            let mut found = vec![];
            for (name, content) in files.iter().filter(|(name, _)| is_beneath(name, path)) {
                for (line, text) in (1..).zip(String::from_utf8_lossy(content).lines()) {
                    if text.contains(wanted.as_str()) {
                        let (path, text) = (name.clone(), text.as_bytes().to_vec());
                        found.push(Match { path, line, text });
                    }
                }
            }
            Ok(all_of(found))
        })
    }

    async fn close(self: Box<Self>) -> Result<(), Fault> {
        locked(&self.open).remove(&self.effect);
        Ok(())
    }
}
