//! Serves the tools of a sandbox without a run: the same policies, the same doing, the same log.
//!
//! What leaves the sandbox has nowhere to go here and is refused. This module does not know how tools reach an agent.

use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::invocation::ToolLogHead;
use conductor_domain::role::Role;
use conductor_domain::time::Millis;
use conductor_policy::authority::{Authority, Ruling};
use conductor_port::agent::{Misfit, ToolAnswer, ToolRequest, Tools};
use conductor_port::blobs::ToolLog;
use conductor_port::clock::Clock;
use conductor_port::executor::Sandbox;
use tokio::sync::RwLock;
use tokio::task::JoinHandle;

use super::log::{Entry, Log, open};
use super::rules::{Judge, Whose};
use super::{bounds, rules, worktree};
use crate::redact::Redact;

/// What tools without a run are made of.
#[derive(Debug)]
#[expect(missing_docs, reason = "each is documented at its type")]
pub struct Without {
    pub sandbox: Box<dyn Sandbox>,
    pub authority: Arc<Authority>,
    pub redactor: Arc<dyn Redact>,
    pub tool_log: Arc<dyn ToolLog>,
    pub clock: Arc<dyn Clock>,
    /// In whose place calls are judged.
    pub role: Role,
    /// How long one command may take.
    pub time: Millis,
}

/// The tools of a sandbox without a run.
#[derive(Debug)]
pub struct Alone {
    judge: Judge,
    redactor: Arc<dyn Redact>,
    role: Role,
    time: Millis,
    /// Gone once it is over.
    open: RwLock<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    sandbox: Box<dyn Sandbox>,
    log: Log,
    writer: JoinHandle<Result<ToolLogHead, Fault>>,
}

impl Alone {
    /// Begins to serve, and to log under this name.
    pub async fn open(with: Without, invocation: &EffectId, run: &RunId) -> Result<Self, Fault> {
        let (log, writer) = open(with.tool_log, with.clock, invocation, run, None).await?;
        Ok(Self {
            judge: Judge::new(with.authority, with.role),
            redactor: with.redactor,
            role: with.role,
            time: with.time,
            open: RwLock::new(Some(Open {
                sandbox: with.sandbox,
                log,
                writer: tokio::spawn(writer.write()),
            })),
        })
    }

    /// Waits for calls under way, then ends the sandbox and the log; returns where the log ends.
    /// If repeated: there is nothing left to end.
    pub async fn close(&self) -> Result<Option<ToolLogHead>, Fault> {
        let Some(Open { sandbox, log, writer }) = self.open.write().await.take() else {
            return Ok(None);
        };
        drop(log);
        let written = writer.await;
        sandbox.close().await?;
        written
            .map_err(|error| Fault::transient(format!("writing the tool log: {error}")))?
            .map(Some)
    }

    fn redact(&self, text: &str) -> String {
        self.redactor.redact(text)
    }
}

#[async_trait]
impl Tools for Alone {
    async fn call(&self, request: ToolRequest) -> Result<ToolAnswer, Fault> {
        if let Some(unfit) = bounds::unfit(&request) {
            return self.misfit(unfit).await;
        }
        let open = self.open.read().await;
        let Some(Open { sandbox, log, .. }) = &*open else {
            return Ok(ToolAnswer::Stop);
        };
        let role = self.role;
        let verdict = self.judge.judge(&request, Whose::Own);
        let entry = rules::entry(&request, &verdict, &|text| self.redact(text));
        if verdict.ruling != Ruling::Allow {
            let result = "not done".to_owned();
            log.add_durably(Entry { result, ..entry }).await?;
            let reason = rules::refusal(role, &request, &verdict);
            return Ok(ToolAnswer::Refused { reason });
        }
        let begun = log.begin(entry, worktree::reach(&request)).await?;
        let may_see = |path: &str| self.judge.may_see(path);
        let acted = worktree::act(sandbox.as_ref(), self.time, &request, &may_see).await;
        let entry = begun.ended();
        let (answer, result) = match acted {
            Ok(Some(acted)) => (Ok(acted.answer), acted.result),
            Ok(None) => {
                let reason = format!("{} needs a run, and there is none", request.name());
                (
                    Ok(ToolAnswer::Refused {
                        reason: reason.clone(),
                    }),
                    reason,
                )
            }
            Err(fault) => {
                let what = fault.what.clone();
                (Err(fault), what)
            }
        };
        let result = self.redact(&result);
        log.add(Entry { result, ..entry }).await?;
        answer
    }

    async fn misfit(&self, call: Misfit) -> Result<ToolAnswer, Fault> {
        let open = self.open.read().await;
        let Some(Open { log, .. }) = &*open else {
            return Ok(ToolAnswer::Stop);
        };
        log.add_durably(rules::misfit(&call, &|text| self.redact(text)))
            .await?;
        Ok(ToolAnswer::Refused { reason: call.reason })
    }

    async fn say(&self, _text: &str) {}
}
