//! Carries out the steps of one part through the invocation's tools and holds every answer against what was expected.
//!
//! This module does not know which part of which scenario it plays.

use std::time::Duration;

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::fault::Fault;
use conductor_port::agent::{AgentEnd, Task, ToolAnswer, ToolRequest, Tools};
use conductor_port::clock::Clock;

use super::Limits;
use crate::scenario::{Action, Call, Expect, Part, Step};

/// The most that a fault quotes of an answer.
const QUOTE: usize = 400;

/// Plays one part.
pub(super) struct Player<'a> {
    pub(super) task: &'a Task,
    pub(super) tools: &'a dyn Tools,
    pub(super) part: &'a Part,
    pub(super) clock: &'a dyn Clock,
    pub(super) limits: &'a Limits,
}

/// Whether an agent goes on after a step.
enum Next {
    GoOn,
    End(AgentEnd),
}

/// Holds what the agent was given to read against what the part expects.
pub(super) fn check_context(part: &Part, task: &Task) -> Result<(), Fault> {
    let Some(expected) = &part.context else {
        return Ok(());
    };
    let given: Vec<ArtifactKind> = task
        .context
        .iter()
        .map(|material| material.artifact.kind)
        .collect();
    if given == *expected {
        return Ok(());
    }
    let names = |kinds: &[ArtifactKind]| {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        names.join(", ")
    };
    Err(Fault::permanent(format!(
        "the scenario was not met: the context is [{}], not [{}]",
        names(&given),
        names(expected)
    )))
}

/// Holds the prompt against what the part expects of it.
pub(super) fn check_prompt(part: &Part, prompt: &str) -> Result<(), Fault> {
    let missing = part.prompt_contains.iter().find(|text| !prompt.contains(*text));
    let unwanted = part.prompt_lacks.iter().find(|text| prompt.contains(*text));
    let problem = match (missing, unwanted) {
        (None, None) => return Ok(()),
        (Some(text), _) => format!("lacks {text:?}"),
        (None, Some(text)) => format!("contains {text:?}"),
    };
    Err(Fault::permanent(format!(
        "the scenario was not met: the prompt {problem}: {}",
        quote(prompt)
    )))
}

impl Player<'_> {
    /// Carries out the steps in order. If dropped: nothing more is done.
    pub(super) async fn play(&self) -> Result<AgentEnd, Fault> {
        for (index, step) in self.part.steps.iter().enumerate() {
            for _ in 0..step.times {
                if let Next::End(end) = self.step(index, step).await? {
                    return Ok(end);
                }
            }
        }
        Ok(self.finished())
    }

    async fn step(&self, index: usize, step: &Step) -> Result<Next, Fault> {
        match &step.action {
            Action::Call { call, expect } => return self.call(step.line, call, expect).await,
            Action::Say(text) => self.tools.say(text).await,
            Action::Sleep(length) => tokio::time::sleep(Duration::from_millis(length.0)).await,
            Action::Crash(reason) => {
                let tokens = self.part.tokens;
                return Ok(Next::End(AgentEnd::Crashed {
                    reason: reason.clone(),
                    tokens,
                }));
            }
            Action::Hang => std::future::pending().await,
            Action::Exit => return Ok(Next::End(self.finished())),
            Action::ProviderLimit { account, length } => {
                let invocation = &self.task.invocation;
                let place = (
                    self.task.run.clone(),
                    invocation.purpose,
                    invocation.attempt,
                    index,
                );
                if let Some(until) = self.limits.meet(place, self.clock.now(), *length) {
                    return Ok(Next::End(AgentEnd::ProviderLimited {
                        account: account.clone(),
                        until,
                    }));
                }
            }
            Action::Fault { kind, what } => {
                return Err(Fault {
                    kind: *kind,
                    what: what.clone(),
                });
            }
        }
        Ok(Next::GoOn)
    }

    async fn call(&self, line: usize, call: &Call, expect: &Expect) -> Result<Next, Fault> {
        let answer = match call {
            Call::Write { path, content } => self.write(path, content).await?,
            Call::View { path } => self.tools.call(ToolRequest::View { path: path.clone() }).await?,
            Call::ListFiles { path } => {
                self.tools
                    .call(ToolRequest::ListFiles { path: path.clone() })
                    .await?
            }
            Call::CreateFile { path, content } => self.create(path, content).await?,
            Call::StrReplace { path, old, new } => self.replace(path, old, new).await?,
            Call::Bash { command } => {
                self.tools
                    .call(ToolRequest::Bash {
                        command: command.clone(),
                    })
                    .await?
            }
            Call::Github(call) => self.tools.call(ToolRequest::Github(call.clone())).await?,
            Call::SubmitPlan(draft) => self.tools.call(ToolRequest::SubmitPlan(draft.clone())).await?,
            Call::SubmitReview(draft) => self.tools.call(ToolRequest::SubmitReview(draft.clone())).await?,
            Call::SubmitTestReport(draft) => {
                self.tools
                    .call(ToolRequest::SubmitTestReport(draft.clone()))
                    .await?
            }
            Call::AskHuman { question } => {
                self.tools
                    .call(ToolRequest::AskHuman {
                        question: question.clone(),
                    })
                    .await?
            }
        };
        if !meets(&answer, expect) {
            return Err(Fault::permanent(format!(
                "the scenario was not met at line {line}: expected {expect:?}, {}",
                told(&answer)
            )));
        }
        match answer {
            ToolAnswer::Stop if !self.part.ignores_stop => Ok(Next::End(self.finished())),
            ToolAnswer::Stop | ToolAnswer::Done { .. } | ToolAnswer::Refused { .. } => Ok(Next::GoOn),
        }
    }

    /// Creates the file, or makes it hold `content`, by the tools that every agent has.
    async fn write(&self, path: &str, content: &str) -> Result<ToolAnswer, Fault> {
        let seen = self
            .tools
            .call(ToolRequest::View {
                path: path.to_owned(),
            })
            .await?;
        match seen {
            ToolAnswer::Refused { .. } => self.create(path, content).await,
            ToolAnswer::Done { output } if output == content.as_bytes() => {
                Ok(ToolAnswer::Done { output: Vec::new() })
            }
            ToolAnswer::Done { output } => match String::from_utf8(output) {
                Ok(old) => self.replace(path, &old, content).await,
                Err(_) => Ok(ToolAnswer::Refused {
                    reason: format!("`{path}` is not text"),
                }),
            },
            ToolAnswer::Stop => Ok(ToolAnswer::Stop),
        }
    }

    async fn create(&self, path: &str, content: &str) -> Result<ToolAnswer, Fault> {
        let content = content.as_bytes().to_owned();
        self.tools
            .call(ToolRequest::CreateFile {
                path: path.to_owned(),
                content,
            })
            .await
    }

    async fn replace(&self, path: &str, old: &str, new: &str) -> Result<ToolAnswer, Fault> {
        let (path, old, new) = (path.to_owned(), old.to_owned(), new.to_owned());
        self.tools.call(ToolRequest::StrReplace { path, old, new }).await
    }

    fn finished(&self) -> AgentEnd {
        AgentEnd::Finished {
            tokens: self.part.tokens,
        }
    }
}

fn meets(answer: &ToolAnswer, expect: &Expect) -> bool {
    match (answer, expect) {
        (_, Expect::Anything)
        | (ToolAnswer::Done { .. }, Expect::Done)
        | (ToolAnswer::Stop, Expect::Stop) => true,
        (ToolAnswer::Done { output }, Expect::Output(text)) => String::from_utf8_lossy(output).contains(text),
        (ToolAnswer::Done { output }, Expect::OutputLacks(text)) => {
            !String::from_utf8_lossy(output).contains(text)
        }
        (ToolAnswer::Refused { reason }, Expect::Refused(text)) => reason.contains(text),
        (ToolAnswer::Done { .. }, Expect::Refused(_) | Expect::Stop)
        | (
            ToolAnswer::Refused { .. } | ToolAnswer::Stop,
            Expect::Done | Expect::Output(_) | Expect::OutputLacks(_),
        )
        | (ToolAnswer::Refused { .. }, Expect::Stop)
        | (ToolAnswer::Stop, Expect::Refused(_)) => false,
    }
}

fn told(answer: &ToolAnswer) -> String {
    match answer {
        ToolAnswer::Done { output } => format!("was done: {}", quote(&String::from_utf8_lossy(output))),
        ToolAnswer::Refused { reason } => format!("was refused: {}", quote(reason)),
        ToolAnswer::Stop => "was told to stop".to_owned(),
    }
}

fn quote(text: &str) -> String {
    let cut = if text.chars().count() > QUOTE { "…" } else { "" };
    format!("{:?}{cut}", text.chars().take(QUOTE).collect::<String>())
}
