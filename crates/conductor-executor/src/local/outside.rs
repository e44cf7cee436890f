//! Ends a local sandbox from outside and makes sure that nothing of it is left (S-42, S-43).
//!
//! Killing bubblewrap kills PID 1 of the namespace, and with that everything in it; the cgroup tells when it is so.
//! This module does not know why a sandbox ends.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use conductor_domain::fault::Fault;

use super::cgroup::Cgroup;
use super::{LAST_MOMENTS, Switch};
use crate::home;
use crate::launcher::Process;
use crate::sandbox::{Counters, Outside};

/// How soon a dying sandbox is looked at again.
const SOON: Duration = Duration::from_millis(1);

type Open = Arc<Mutex<BTreeSet<PathBuf>>>;

#[derive(Debug)]
pub(super) struct LocalOutside {
    process: Process,
    cgroup: Cgroup,
    home: PathBuf,
    open: Open,
    /// Protections that a test left out.
    without: Vec<Switch>,
}

impl LocalOutside {
    pub(super) fn new(
        process: Process,
        cgroup: Cgroup,
        home: PathBuf,
        open: Open,
        without: Vec<Switch>,
    ) -> Self {
        Self {
            process,
            cgroup,
            home,
            open,
            without,
        }
    }

    fn has(&self, switch: Switch) -> bool {
        !self.without.contains(&switch)
    }
}

#[async_trait]
impl Outside for LocalOutside {
    fn counters(&self) -> Counters {
        if self.has(Switch::ToldLimits) {
            self.cgroup.counters()
        } else {
            Counters::default()
        }
    }

    fn said(&self) -> String {
        self.process.said()
    }

    fn guest_lost(&self) {
        if self.has(Switch::EndsWithGuest) {
            self.kill();
        }
    }

    fn kill(&self) {
        self.process.kill();
        if !self.has(Switch::KillsInside) {
            return;
        }
        // Whoever is still there is found again by `end`.
        let _ = self.cgroup.kill();
    }

    async fn end(&self) -> Result<(), Fault> {
        self.kill();
        tokio::time::timeout(LAST_MOMENTS, self.process.ended())
            .await
            .map_err(|_| Fault::transient("a sandbox does not end although killed"))?;
        if !self.has(Switch::KillsInside) {
            return Ok(());
        }
        forget(&self.open, &self.home, &self.cgroup).await
    }
}

/// Waits until nobody is left, and removes what the sandbox had. If repeated: nothing is left.
pub(super) async fn forget(open: &Open, home: &Path, cgroup: &Cgroup) -> Result<(), Fault> {
    until_gone(cgroup).await?;
    home::remove(home)
        .map_err(|error| Fault::transient(format!("removing the record of a sandbox: {error}")))?;
    open.lock().unwrap_or_else(PoisonError::into_inner).remove(home);
    Ok(())
}

/// Kills whoever is in the groups until the groups can be removed.
pub(super) async fn until_gone(cgroup: &Cgroup) -> Result<(), Fault> {
    let ended = async {
        loop {
            match cgroup.kill().and_then(|found| {
                if found {
                    Ok(false)
                } else {
                    cgroup.remove().map(|()| true)
                }
            }) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                Err(error) => {
                    return Err(Fault::transient(format!(
                        "ending the cgroup of a sandbox: {error}"
                    )));
                }
            }
            tokio::time::sleep(SOON).await;
        }
    };
    tokio::time::timeout(LAST_MOMENTS, ended)
        .await
        .unwrap_or_else(|_| {
            Err(Fault::transient(
                "processes of a sandbox do not end although killed",
            ))
        })
}
