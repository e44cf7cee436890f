//! Lists the writes at the forge that a decision asks for or brings to an end (GH-6), now or anew from the records.
//!
//! This module does not know whether a write succeeded; it repeats what the report said.

use std::collections::BTreeMap;

use conductor_domain::digest::Digest;
use conductor_domain::effect::{CommentTarget, Effect, EffectKind};
use conductor_domain::event::Event;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::input::{Input, Report};
use conductor_domain::message::{Message, MessageKind};
use conductor_domain::role::Speaker;
use conductor_domain::time::Timestamp;
use conductor_domain::{EffectRequest, Run, evolve};
use conductor_port::ledger::{EffectRow, ForgeWrite, Record, WritesAfter};
use conductor_port::views::Views;

use crate::record::{self, FACT, Fact, canonical};

/// Lists the writes of one decision: the one that ended, then those that begin.
pub(super) async fn of(
    views: &dyn Views,
    run: &RunId,
    before: Option<&Run>,
    input: &Input,
    effects: &[EffectRequest],
    now: Timestamp,
) -> Result<Vec<ForgeWrite>, Fault> {
    let known = match ended(before, input) {
        Some((effect, _result)) => {
            let mut writes = views.writes(run).await?.into_iter();
            writes.find(|write| write.effect == *effect)
        }
        None => None,
    };
    Ok(listed(known, before, input, effects, now))
}

/// Lists the writes of a run anew, decision by decision, from its records and the effects that they asked for.
pub(crate) fn retell(records: &[Record], effects: &[EffectRow]) -> Result<Vec<WritesAfter>, Fault> {
    let effects: BTreeMap<&EffectId, &EffectRow> = effects.iter().map(|row| (&row.id, row)).collect();
    let mut known: BTreeMap<EffectId, ForgeWrite> = BTreeMap::new();
    let mut run = None;
    let mut told = vec![];
    for batch in batches(records) {
        let Some((fact, decisions)) = batch.split_first() else {
            continue;
        };
        let Fact { input, context, .. } = record::decode::<Fact<Input>>(fact)?;
        let before = run.take();
        run.clone_from(&before);
        let mut asked = vec![];
        for decision in decisions {
            let event = record::decode::<Event>(decision)?;
            if let Event::EffectRequested { effect, .. } = &event {
                asked.push(request(effect, effects.get(effect).copied())?);
            }
            run = evolve(run, &event);
        }
        let over = ended(before.as_ref(), &input).and_then(|(effect, _result)| known.get(effect).cloned());
        let writes = listed(over, before.as_ref(), &input, &asked, context.now);
        known.extend(writes.iter().map(|write| (write.effect.clone(), write.clone())));
        if !writes.is_empty() {
            let seq = fact.seq - 1;
            told.push(WritesAfter { seq, writes });
        }
    }
    Ok(told)
}

/// Splits a stream into its decisions, each behind its fact.
pub(crate) fn batches(records: &[Record]) -> impl Iterator<Item = &[Record]> {
    records.chunk_by(|_, next| next.class != FACT)
}

fn request(effect: &EffectId, row: Option<&EffectRow>) -> Result<EffectRequest, Fault> {
    let row =
        row.ok_or_else(|| Fault::permanent(format!("effect {effect} was asked for and is not kept")))?;
    row.parse()
}

fn listed(
    known: Option<ForgeWrite>,
    before: Option<&Run>,
    input: &Input,
    effects: &[EffectRequest],
    now: Timestamp,
) -> Vec<ForgeWrite> {
    let over = ended(before, input).zip(known);
    let over = over.map(|((_effect, result), write)| ForgeWrite {
        result,
        at: now,
        ..write
    });
    let asked = effects.iter().filter(|request| is_write(&request.effect));
    over.into_iter()
        .chain(asked.map(|request| begun(request, now)))
        .collect()
}

fn ended<'a>(before: Option<&Run>, input: &'a Input) -> Option<(&'a EffectId, String)> {
    let (effect, result) = match input {
        Input::Performed { effect, report } => {
            if let Report::MergeRefused { why } = report.as_ref() {
                (effect, why.clone())
            } else {
                (effect, "done".to_owned())
            }
        }
        Input::Faulted { effect, fault, .. } => (effect, fault.what.clone()),
        Input::StartRun { .. }
        | Input::Operate { .. }
        | Input::KillSwitchTurned { .. }
        | Input::RequestComment { .. }
        | Input::RequestFields { .. }
        | Input::EgressDenied { .. }
        | Input::ForgeNoticed { .. }
        | Input::DeadlinePassed { .. } => return None,
    };
    let kind = before?.in_flight.get(effect)?.kind;
    // Of a clean-up only its request tells whether it writes; where it does not, no write of it is known.
    (kind.writes_to_forge() || kind == EffectKind::CleanUp).then_some((effect, result))
}

/// Tells whether an effect writes at the forge; a clean-up does where the branch goes too.
fn is_write(effect: &Effect) -> bool {
    let deletes = matches!(
        effect,
        Effect::CleanUp {
            delete_branch: Some(_),
            ..
        }
    );
    deletes || effect.kind().writes_to_forge()
}

fn begun(request: &EffectRequest, now: Timestamp) -> ForgeWrite {
    ForgeWrite {
        effect: request.id.clone(),
        run: request.run.clone(),
        kind: request.effect.kind().as_str().to_owned(),
        actor_type: on_behalf_of(&request.effect).to_owned(),
        target: target(request),
        payload_hash: Digest::of(canonical(&request.effect).as_bytes()).into(),
        decision: "allow".to_owned(),
        reason: "builtin-1: a run writes to its own issue, branch, pull request and check".to_owned(),
        result: "pending".to_owned(),
        at: now,
    }
}

fn on_behalf_of(effect: &Effect) -> &'static str {
    match effect {
        Effect::PostComment { message, .. } => speaker(message),
        Effect::UpdateFields { .. } => "agent",
        Effect::ReadIssue { .. }
        | Effect::PrepareWorkspace { .. }
        | Effect::Invoke { .. }
        | Effect::CommitWork { .. }
        | Effect::RunTests { .. }
        | Effect::CheckRedFirst { .. }
        | Effect::Rebase { .. }
        | Effect::InspectDiff { .. }
        | Effect::Push { .. }
        | Effect::OpenPullRequest { .. }
        | Effect::PublishCheck { .. }
        | Effect::MergePullRequest { .. }
        | Effect::ReadPullRequest { .. }
        | Effect::ClosePullRequest { .. }
        | Effect::CleanUp { .. } => "system",
    }
}

fn speaker(message: &Message) -> &'static str {
    match (message.speaker, message.kind == MessageKind::OperatorAction) {
        (Speaker::Agent(_), _) => "agent",
        (Speaker::Orchestrator, true) => "operator",
        (Speaker::Orchestrator, false) => "system",
    }
}

fn target(request: &EffectRequest) -> String {
    let repo = &request.repo;
    match &request.effect {
        Effect::Push { branch, .. }
        | Effect::OpenPullRequest { branch, .. }
        | Effect::CleanUp {
            delete_branch: Some(branch),
            ..
        } => format!("{repo} {branch}"),
        Effect::MergePullRequest { number, head, .. } => format!("{repo}{number} at {head}"),
        Effect::PublishCheck { head, .. } => format!("{repo}@{head}"),
        Effect::PostComment {
            target: CommentTarget::Issue(number),
            ..
        } => format!("{repo}{number}"),
        Effect::ClosePullRequest { number }
        | Effect::ReadPullRequest { number }
        | Effect::PostComment {
            target: CommentTarget::PullRequest(number),
            ..
        } => format!("{repo}{number}"),
        Effect::UpdateFields { board, issue, .. } => format!("{repo}{issue} on board {}", board.0),
        Effect::ReadIssue { .. }
        | Effect::PrepareWorkspace { .. }
        | Effect::Invoke { .. }
        | Effect::CommitWork { .. }
        | Effect::RunTests { .. }
        | Effect::CheckRedFirst { .. }
        | Effect::Rebase { .. }
        | Effect::InspectDiff { .. }
        | Effect::CleanUp {
            delete_branch: None, ..
        } => repo.to_string(),
    }
}
