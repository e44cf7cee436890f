//! The back end that plays a scenario: same tools, same limits, same evidence as a real agent, no model behind it.
//!
//! Which part is played follows from the invocation's purpose and number alone. What the scenario expects and does not
//! get is a permanent fault, so that a broken story stops instead of playing on.
//! This module does not know whether what it plays is wise, honest or hostile.

mod play;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::invocation::Purpose;
use conductor_domain::spec::{AgentBackend, Mode};
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::agent::{Agent, AgentEnd, Task, Tools};
use conductor_port::clock::Clock;

use crate::prompt;
use crate::scenario::Scenario;

/// Plays scenarios.
#[derive(Debug)]
pub struct Scripted {
    clock: Arc<dyn Clock>,
    limits: Limits,
}

/// Where in a run a provider's limit was met: an invocation that met one keeps its number, so it comes again.
type Place = (RunId, Purpose, u32, usize);

/// When the limits that were announced end. Stands in for the provider, which remembers that too; forgotten when the
/// process ends, and then the same limit is met once more.
#[derive(Debug, Default)]
struct Limits(Mutex<BTreeMap<Place, Timestamp>>);

impl Limits {
    /// Returns until when the limit holds; `None` when it is over.
    fn meet(&self, place: Place, now: Timestamp, length: Millis) -> Option<Timestamp> {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let until = *ends.entry(place).or_insert_with(|| now.after(length));
        (now < until).then_some(until)
    }
}

impl Scripted {
    /// Makes the back end; the clock tells when a provider's limit ends.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            limits: Limits::default(),
        }
    }
}

#[async_trait]
impl Agent for Scripted {
    fn prompt(&self, task: &Task) -> Result<String, Fault> {
        prompt::assemble(task)
    }

    async fn invoke(&self, task: Task, prompt: String, tools: &dyn Tools) -> Result<AgentEnd, Fault> {
        let scenario = scenario_of(&task)?;
        let (purpose, attempt) = (task.invocation.purpose, task.invocation.attempt);
        let part = scenario.part(purpose, attempt).ok_or_else(|| {
            Fault::permanent(format!(
                "the scenario has no part for invocation {attempt} of {purpose:?}"
            ))
        })?;
        play::check_context(part, &task)?;
        play::check_prompt(part, &prompt)?;
        play::Player {
            task: &task,
            tools,
            part,
            clock: &*self.clock,
            limits: &self.limits,
        }
        .play()
        .await
    }

    fn image_digest(&self, task: &Task) -> String {
        let scenario = task.scenario.as_deref().unwrap_or_default();
        let program = concat!(
            env!("CARGO_PKG_NAME"),
            "/",
            env!("CARGO_PKG_VERSION"),
            " scripted\n"
        );
        Digest::of(&[program.as_bytes(), scenario].concat()).into()
    }
}

/// Reads the task's scenario and makes sure that it is the one the run was started with.
fn scenario_of(task: &Task) -> Result<Scenario, Fault> {
    let AgentBackend::Scripted { scenario: named } = &task.invocation.agents.backend;
    if task.invocation.agents.mode != Mode::Mock {
        return Err(Fault::permanent(
            "a scripted agent is `mock`; asking it in mode `real` is refused (INV-2)",
        ));
    }
    let bytes = task
        .scenario
        .as_deref()
        .ok_or_else(|| Fault::permanent("a scripted agent was given no scenario"))?;
    let digest = Digest::of(bytes);
    if digest != *named {
        return Err(Fault::permanent(format!(
            "the scenario is {digest}, the run was started with {named}"
        )));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Fault::permanent(format!("the scenario is not text: {error}")))?;
    Scenario::parse(text).map_err(|invalid| Fault::permanent(format!("reading the scenario: {invalid}")))
}
