//! An executor of a third party: hands every call to another executor and tells a log of its own about it.
//!
//! Nothing of Conductor but the port is needed to write one; `tests/contract.rs` shows how it is proved.
//! This crate does not know which executor does the work.

use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::EffectId;
use conductor_port::executor::{
    Command, CommandResult, Entry, Executor, FileRefusal, Found, Match, Pattern, Sandbox, SandboxSpec,
};

/// Who is told of every call.
pub trait Log: Send + Sync + std::fmt::Debug {
    /// Hears that something was asked.
    fn asked(&self, what: &str);
}

/// An executor that logs.
#[derive(Debug)]
pub struct Logged<E> {
    inner: E,
    log: Arc<dyn Log>,
}

impl<E: Executor> Logged<E> {
    /// Logs what `inner` is asked.
    pub fn new(inner: E, log: Arc<dyn Log>) -> Self {
        Self { inner, log }
    }
}

#[async_trait]
impl<E: Executor> Executor for Logged<E> {
    async fn open(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>, Fault> {
        self.log.asked(&format!("open {}", spec.effect));
        let inner = self.inner.open(spec).await?;
        let log = Arc::clone(&self.log);
        Ok(Box::new(LoggedSandbox { inner, log }))
    }

    async fn reap(&self, effect: &EffectId) -> Result<(), Fault> {
        self.log.asked(&format!("reap {effect}"));
        self.inner.reap(effect).await
    }
}

#[derive(Debug)]
struct LoggedSandbox {
    inner: Box<dyn Sandbox>,
    log: Arc<dyn Log>,
}

#[async_trait]
impl Sandbox for LoggedSandbox {
    async fn bash(&self, command: Command) -> Result<CommandResult, Fault> {
        self.log.asked(&format!("bash {:?}", command.argv));
        self.inner.bash(command).await
    }

    async fn view(&self, path: &str) -> Result<Result<Vec<u8>, FileRefusal>, Fault> {
        self.log.asked(&format!("view {path}"));
        self.inner.view(path).await
    }

    async fn create_file(&self, path: &str, content: &[u8]) -> Result<Result<(), FileRefusal>, Fault> {
        self.log.asked(&format!("create {path}"));
        self.inner.create_file(path, content).await
    }

    async fn str_replace(&self, path: &str, old: &str, new: &str) -> Result<Result<(), FileRefusal>, Fault> {
        self.log.asked(&format!("replace {path}"));
        self.inner.str_replace(path, old, new).await
    }

    async fn list(&self, path: &str) -> Result<Result<Found<Entry>, FileRefusal>, Fault> {
        self.log.asked(&format!("list {path}"));
        self.inner.list(path).await
    }

    async fn search(&self, path: &str, pattern: &Pattern) -> Result<Result<Found<Match>, FileRefusal>, Fault> {
        self.log.asked(&format!("search {path}"));
        self.inner.search(path, pattern).await
    }

    async fn close(self: Box<Self>) -> Result<(), Fault> {
        self.log.asked("close");
        self.inner.close().await
    }
}
