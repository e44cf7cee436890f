//! Tasks, a clock that is set by hand, and tools that answer from a list and remember what they were asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use conductor_agent::Agents;
use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::{CommitId, EffectId, RunId};
use conductor_domain::invocation::{Invocation, Purpose};
use conductor_domain::spec::{AgentBackend, AgentSpec, ExecutorName, Limits, Mode};
use conductor_domain::time::Timestamp;
use conductor_port::agent::{Agent as _, AgentEnd, Material, Misfit, Task, ToolAnswer, ToolRequest, Tools};
use conductor_port::clock::Clock;

#[derive(Debug, Default)]
pub(crate) struct SetClock(Mutex<Timestamp>);

impl SetClock {
    pub(crate) fn set(&self, seconds: i64) {
        *self.0.lock().unwrap() = Timestamp(seconds * 1_000_000);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

pub(crate) fn agents() -> (Agents, Arc<SetClock>) {
    let clock = Arc::new(SetClock::default());
    (Agents::new(Arc::<SetClock>::clone(&clock)), clock)
}

pub(crate) fn task(
    scenario: &str,
    purpose: Purpose,
    attempt: u32,
    context: &[(ArtifactKind, &[u8])],
) -> Task {
    Task {
        effect: EffectId::parse("r1.5.0").unwrap(),
        run: RunId::parse("r1").unwrap(),
        invocation: Invocation {
            role: purpose.role(),
            purpose,
            attempt,
            start: CommitId::parse("a".repeat(40)).unwrap(),
            context: context
                .iter()
                .map(|(kind, bytes)| Artifact::of(*kind, bytes))
                .collect(),
            sources: vec![],
            agents: AgentSpec {
                backend: AgentBackend::Scripted {
                    scenario: Digest::of(scenario.as_bytes()),
                },
                mode: Mode::Mock,
            },
            executor: ExecutorName::UnsafePlain,
            limits: Limits::default().invocation,
            approved: vec![],
        },
        context: context
            .iter()
            .map(|(kind, bytes)| Material {
                artifact: Artifact::of(*kind, bytes),
                bytes: bytes.to_vec(),
            })
            .collect(),
        scenario: Some(scenario.as_bytes().to_vec()),
    }
}

/// Answers from a list, then with an empty "done".
#[derive(Debug, Default)]
pub(crate) struct ListedTools {
    answers: Mutex<VecDeque<ToolAnswer>>,
    asked: Mutex<Vec<ToolRequest>>,
    said: Mutex<Vec<String>>,
}

impl ListedTools {
    pub(crate) fn answering(answers: impl IntoIterator<Item = ToolAnswer>) -> Self {
        Self {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Self::default()
        }
    }

    pub(crate) fn asked(&self) -> Vec<ToolRequest> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }
}

#[async_trait]
impl Tools for ListedTools {
    async fn call(&self, request: ToolRequest) -> Result<ToolAnswer, Fault> {
        self.asked.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front();
        Ok(answer.unwrap_or(ToolAnswer::Done { output: Vec::new() }))
    }

    async fn misfit(&self, call: Misfit) -> Result<ToolAnswer, Fault> {
        Ok(refused(&call.reason))
    }

    async fn say(&self, text: &str) {
        self.said.lock().unwrap().push(text.to_owned());
    }
}

pub(crate) fn done(output: &str) -> ToolAnswer {
    ToolAnswer::Done {
        output: output.as_bytes().to_vec(),
    }
}

pub(crate) fn refused(reason: &str) -> ToolAnswer {
    ToolAnswer::Refused {
        reason: reason.to_owned(),
    }
}

/// Puts the task into words and lets an agent play, as the engine does.
pub(crate) async fn invoke(agents: &Agents, task: Task, tools: &dyn Tools) -> Result<AgentEnd, Fault> {
    let prompt = agents.prompt(&task)?;
    agents.invoke(task, prompt, tools).await
}

/// Plays the first `[[implement]]` part of a scenario against tools.
pub(crate) async fn play(steps: &str, tools: &ListedTools) -> Result<AgentEnd, Fault> {
    let scenario = format!("schema = 1\n[[implement]]\n{steps}");
    invoke(&agents().0, task(&scenario, Purpose::Implement, 1, &[]), tools).await
}
