//! Reads what a run's agents did: the calls of their tools, what their work changes, and what is new since a person was
//! last asked about it.
//!
//! This module does not know what a tool does.

use conductor_domain::effect::{Effect, EffectKind};
use conductor_domain::gate::Gate;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::role::Role;
use conductor_port::blobs::{CallPage, ToolCall};
use conductor_port::ledger::EffectRow;

use super::Reader;
use crate::api::{CallList, CallView, ChangeView, ChangedFile, SinceView, TextView};
use crate::change;
use crate::error::Error;
use crate::history::History;

/// The most calls that one call returns.
pub(crate) const MAX_CALLS: u32 = 500;

/// Which calls of a run to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallsWanted {
    /// Only those that were not plainly allowed.
    pub stopped: bool,
    /// Only older ones than this: the cursor, `next` of the answer before.
    pub after: Option<String>,
    /// At most so many; 100 where it is zero.
    pub limit: u32,
}

impl Reader {
    /// Lists calls of tools, newest first.
    pub async fn calls(&self, run: &RunId, wanted: &CallsWanted) -> Result<CallList, Error> {
        self.state(run).await?;
        let limit = match wanted.limit {
            0 => 100,
            limit => limit.min(MAX_CALLS),
        };
        let effects = self.views.effects(run).await?.into_iter().rev();
        let mut invocations: Vec<EffectRow> = effects
            .filter(|effect| effect.kind == EffectKind::Invoke)
            .collect();
        let mut before = None;
        if let Some(cursor) = &wanted.after {
            let (effect, n) = place(cursor)?;
            let at = invocations.iter().position(|invocation| invocation.id == effect);
            let at = at.ok_or_else(|| Error::NotFound {
                what: format!("call {cursor} of run {run}"),
            })?;
            invocations.drain(..at);
            before = Some(n);
        }
        let mut calls = Vec::new();
        for invocation in &invocations {
            let room = limit - u32::try_from(calls.len()).unwrap_or(limit);
            if room == 0 {
                break;
            }
            let part = CallPage {
                before: before.take(),
                stopped: wanted.stopped,
                limit: room,
            };
            let role = role(invocation);
            let page = self.calls.page(&invocation.id, &part).await?;
            calls.extend(page.into_iter().map(|call| view(call, role)));
        }
        let is_full = u32::try_from(calls.len()).is_ok_and(|count| count == limit);
        let last = calls.last().filter(|_| is_full);
        Ok(CallList {
            next: last.map(|call| format!("{}/{}", call.invocation, call.n)),
            calls,
        })
    }

    /// Tells what a run's newest commit changes: all of it, or the lines of one file only, by its place from 0. Before
    /// there is a commit, there is nothing to tell.
    pub async fn change(&self, run: &RunId, file: Option<usize>) -> Result<Option<ChangeView>, Error> {
        self.state(run).await?;
        let Some(change) = self.history(run).await?.change else {
            return Ok(None);
        };
        let text = self.text(&change.text).await?.text;
        let files = change::files(&text).into_iter().enumerate();
        let files: Vec<ChangedFile> = files
            .map(|(at, found)| ChangedFile {
                says: found.says.to_owned(),
                path: found.path.to_owned(),
                added: found.added,
                removed: found.removed,
                text: file
                    .is_none_or(|wanted| wanted == at)
                    .then(|| found.text.to_owned()),
            })
            .collect();
        if let Some(missing) = file.filter(|wanted| *wanted >= files.len()) {
            return Err(Error::NotFound {
                what: format!("file {missing} in the change of run {run}"),
            });
        }
        Ok(Some(ChangeView {
            base: change.base.to_string(),
            head: change.head.to_string(),
            digest: change.text.digest,
            bytes: change.text.bytes,
            truncated: change.text.truncated,
            files,
        }))
    }

    /// Compares what a gate shows with what it showed the last time that a person was asked the same.
    pub(super) async fn since(
        &self,
        gate: &Gate,
        history: &History,
        shown: &[TextView],
    ) -> Result<Option<SinceView>, Error> {
        let Some(before) = history.asked_before(gate) else {
            return Ok(None);
        };
        let mut changes = Vec::new();
        for text in shown {
            let earlier = before
                .shown
                .iter()
                .find(|artifact| artifact.kind.as_str() == text.kind);
            let earlier = match earlier {
                Some(artifact) if artifact.digest == text.digest => continue,
                Some(artifact) => self.text(artifact).await?.text,
                None => String::new(),
            };
            changes.push(TextView {
                kind: text.kind.clone(),
                digest: text.digest.clone(),
                truncated: false,
                text: change::between(&earlier, &text.text),
            });
        }
        Ok(Some(SinceView {
            asked_at: before.gate.opened_at,
            changes,
        }))
    }
}

fn place(cursor: &str) -> Result<(EffectId, u64), Error> {
    let parts = cursor.rsplit_once('/');
    let parts = parts.and_then(|(effect, n)| Some((EffectId::parse(effect).ok()?, n.parse().ok()?)));
    parts.ok_or_else(|| Error::Invalid {
        what: format!("`{cursor}` is no place among calls"),
    })
}

fn role(invocation: &EffectRow) -> Option<Role> {
    let Effect::Invoke { invocation } = invocation.parse().ok()?.effect else {
        return None;
    };
    Some(invocation.role)
}

/// Shows a call; the policy that decided stands before its reason.
fn view(call: ToolCall, role: Option<Role>) -> CallView {
    let (policy, reason) = call.reason.split_once(": ").unwrap_or(("", &call.reason));
    CallView {
        policy: policy.to_owned(),
        reason: reason.to_owned(),
        role,
        invocation: call.invocation,
        n: call.n,
        at: call.at,
        tool: call.tool,
        target: call.target,
        decision: call.decision,
        result: call.result,
        payload_hash: call.payload_hash,
    }
}
