//! Agents played by a function: it gets the task and the tools, and says how it ended.
//!
//! This module does not know any scenario.

use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_port::agent::{Agent, AgentEnd, Task, Tools};
use futures_util::future::BoxFuture;

/// Plays an agent.
pub type Play = dyn for<'a> Fn(Task, &'a dyn Tools) -> BoxFuture<'a, Result<AgentEnd, Fault>> + Send + Sync;

/// An agent played by a function.
#[derive(Clone)]
pub struct FakeAgent(Arc<Play>);

impl FakeAgent {
    /// Makes an agent that plays this.
    pub fn new<F>(play: F) -> Self
    where
        F: for<'a> Fn(Task, &'a dyn Tools) -> BoxFuture<'a, Result<AgentEnd, Fault>> + Send + Sync + 'static,
    {
        Self(Arc::new(play))
    }
}

impl std::fmt::Debug for FakeAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FakeAgent")
    }
}

#[async_trait]
impl Agent for FakeAgent {
    /// The bare context: what a fake does depends on no words.
    fn prompt(&self, task: &Task) -> Result<String, Fault> {
        let texts: Vec<_> = task
            .context
            .iter()
            .map(|material| String::from_utf8_lossy(&material.bytes))
            .collect();
        Ok(texts.join("\n"))
    }

    async fn invoke(&self, task: Task, _prompt: String, tools: &dyn Tools) -> Result<AgentEnd, Fault> {
        (self.0)(task, tools).await
    }

    fn image_digest(&self, _task: &Task) -> String {
        "sha256:fake".to_owned()
    }
}
