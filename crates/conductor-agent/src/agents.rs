//! Chooses the back end that an invocation names; the only place where back ends meet.
//!
//! This module does not know how any of them works.

use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::spec::AgentBackend;
use conductor_port::agent::{Agent, AgentEnd, Task, Tools};
use conductor_port::clock::Clock;

use crate::scripted::Scripted;

/// All back ends.
#[derive(Debug)]
pub struct Agents {
    scripted: Scripted,
}

impl Agents {
    /// Makes all back ends.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            scripted: Scripted::new(clock),
        }
    }

    fn of(&self, task: &Task) -> &dyn Agent {
        match task.invocation.agents.backend {
            AgentBackend::Scripted { .. } => &self.scripted,
        }
    }
}

#[async_trait]
impl Agent for Agents {
    fn prompt(&self, task: &Task) -> Result<String, Fault> {
        self.of(task).prompt(task)
    }

    async fn invoke(&self, task: Task, prompt: String, tools: &dyn Tools) -> Result<AgentEnd, Fault> {
        self.of(&task).invoke(task, prompt, tools).await
    }

    fn image_digest(&self, task: &Task) -> String {
        self.of(task).image_digest(task)
    }
}
