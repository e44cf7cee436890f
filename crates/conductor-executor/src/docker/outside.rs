//! Ends a container from outside and makes sure that nothing of it is left (S-42, S-43).
//!
//! The engine is told to kill; killing the held client would leave the container. This module does not know why a
//! sandbox ends.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use tokio::runtime::Handle;

use super::Switch;
use super::cli::Cli;
use super::counters::Opened;
use crate::home;
use crate::launcher::Process;
use crate::sandbox::{Counters, Outside};

/// How long a client may take to end after it was killed.
const LAST_MOMENTS: Duration = Duration::from_secs(10);

type Open = Arc<Mutex<BTreeSet<PathBuf>>>;

/// A container, seen from outside.
#[derive(Debug, Clone)]
pub(super) struct DockerOutside(Arc<Container>);

#[derive(Debug)]
struct Container {
    cli: Cli,
    name: String,
    client: Process,
    record: PathBuf,
    open: Open,
    counters: OnceLock<Opened>,
    is_gone: AtomicBool,
    /// Protections that a test left out.
    without: Vec<Switch>,
}

impl DockerOutside {
    pub(super) fn new(
        (cli, name, client): (Cli, String, Process),
        record: PathBuf,
        open: Open,
        without: Vec<Switch>,
    ) -> Self {
        Self(Arc::new(Container {
            cli,
            name,
            client,
            record,
            open,
            counters: OnceLock::new(),
            is_gone: AtomicBool::new(false),
            without,
        }))
    }

    fn has(&self, switch: Switch) -> bool {
        !self.0.without.contains(&switch)
    }

    /// Opens the counters of the running container; without them a breached limit could not be told (S-42).
    pub(super) async fn find_counters(&self) -> Result<(), Fault> {
        let Container { cli, name, .. } = &*self.0;
        let attempt =
            |error: String| Fault::permanent(format!("finding the limits of the container {name}: {error}"));
        let pid = cli
            .call(&["inspect", "--format", "{{.State.Pid}}", name])
            .await
            .map_err(|failed| Fault::transient(format!("asking for the container {name}: {failed}")))?;
        let pid = pid
            .parse()
            .map_err(|_| attempt(format!("`{pid}` is no process")))?;
        let opened = Opened::of(pid).map_err(|error| attempt(error.to_string()))?;
        // Nobody else sets it.
        let _ = self.0.counters.set(opened);
        Ok(())
    }
}

#[async_trait]
impl Outside for DockerOutside {
    fn counters(&self) -> Counters {
        let counters = self.0.counters.get().filter(|_| self.has(Switch::ToldLimits));
        counters.map(Opened::read).unwrap_or_default()
    }

    fn said(&self) -> String {
        self.0.client.said()
    }

    fn guest_lost(&self) {
        if self.has(Switch::EndsWithGuest) {
            self.kill();
        }
    }

    fn kill(&self) {
        if self.0.is_gone.load(Ordering::Acquire) {
            return;
        }
        if !self.has(Switch::KillsInside) {
            return self.0.client.kill();
        }
        let container = Arc::clone(&self.0);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // Whatever it says, `end` looks again.
                let _ = container.cli.call(&["kill", &container.name]).await;
            });
        }
        // Without its client the guest has no channel, and ends by itself as well.
        self.0.client.kill();
    }

    async fn end(&self) -> Result<(), Fault> {
        let container = &*self.0;
        if container.is_gone.load(Ordering::Acquire) {
            return Ok(());
        }
        if !self.has(Switch::KillsInside) {
            container.client.kill();
            return Ok(());
        }
        if let Err(fault) = container.remove().await {
            // Nobody here holds it any more; its record stays, so that `reap` finds it.
            opened(&container.open).remove(&container.record);
            return Err(fault);
        }
        container.is_gone.store(true, Ordering::Release);
        forget(&container.open, &container.record)
    }
}

impl Container {
    async fn remove(&self) -> Result<(), Fault> {
        // First the client, so that it does not start now what is removed next.
        self.client.kill();
        tokio::time::timeout(LAST_MOMENTS, self.client.ended())
            .await
            .map_err(|_| Fault::transient("the client of a container does not end although killed"))?;
        self.cli.remove(&self.name).await
    }
}

/// Removes the record of a container that is gone. If repeated: nothing is left.
pub(super) fn forget(open: &Open, record: &Path) -> Result<(), Fault> {
    home::remove(record)
        .map_err(|error| Fault::transient(format!("removing the record of a container: {error}")))?;
    opened(open).remove(record);
    Ok(())
}

fn opened(open: &Open) -> MutexGuard<'_, BTreeSet<PathBuf>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
