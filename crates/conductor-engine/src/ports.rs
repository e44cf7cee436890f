//! What the engine is given: one value per port, built once where everything meets.
//!
//! This module does not know which adapter stands behind a port.

use std::collections::BTreeMap;
use std::sync::Arc;

use conductor_domain::fault::Fault;
use conductor_domain::spec::ExecutorName;
use conductor_port::agent::Agent;
use conductor_port::blobs::{Blobs, ToolLog};
use conductor_port::clock::Clock;
use conductor_port::duty::Duties;
use conductor_port::egress::Egress;
use conductor_port::executor::Executor;
use conductor_port::forge::{Forge, Merges};
use conductor_port::lease::Leases;
use conductor_port::ledger::Ledger;
use conductor_port::views::Views;
use conductor_port::workspace::Workspace;

/// What the engine is given.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "each field is documented at its trait")]
pub struct Ports {
    pub ledger: Arc<dyn Ledger>,
    pub views: Arc<dyn Views>,
    pub blobs: Arc<dyn Blobs>,
    pub tool_log: Arc<dyn ToolLog>,
    pub leases: Arc<dyn Leases>,
    pub duties: Arc<dyn Duties>,
    pub workspace: Arc<dyn Workspace>,
    pub executors: Executors,
    pub egress: Arc<dyn Egress>,
    pub agent: Arc<dyn Agent>,
    pub forge: Arc<dyn Forge>,
    pub merges: Arc<dyn Merges>,
    pub clock: Arc<dyn Clock>,
}

/// The executors by name; an effect always names its own (EXEC-1).
#[derive(Debug, Clone, Default)]
pub struct Executors(BTreeMap<&'static str, Arc<dyn Executor>>);

impl Executors {
    /// Adds an executor; a later one of the same name replaces the earlier.
    #[must_use]
    pub fn with(mut self, name: ExecutorName, executor: Arc<dyn Executor>) -> Self {
        self.0.insert(name.as_str(), executor);
        self
    }

    /// Returns the executor of this name; there is no default to fall back to.
    pub fn get(&self, name: ExecutorName) -> Result<&Arc<dyn Executor>, Fault> {
        self.0.get(name.as_str()).ok_or_else(|| {
            let choices: Vec<&str> = self.0.keys().copied().collect();
            let choices = if choices.is_empty() {
                "none".to_owned()
            } else {
                choices.join(", ")
            };
            Fault::permanent(format!(
                "there is no executor `{}` here; there are: {choices}",
                name.as_str()
            ))
        })
    }

    /// Goes through all of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Executor>> {
        self.0.values()
    }
}
