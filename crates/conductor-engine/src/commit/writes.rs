//! Lists the writes at the forge that a decision asks for or brings to an end (GH-6).
//!
//! This module does not know whether a write succeeded; it repeats what the report said.

use conductor_domain::digest::Digest;
use conductor_domain::effect::{CommentTarget, Effect};
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::input::Input;
use conductor_domain::message::{Message, MessageKind};
use conductor_domain::role::Speaker;
use conductor_domain::time::Timestamp;
use conductor_domain::{EffectRequest, Run};
use conductor_port::ledger::ForgeWrite;
use conductor_port::views::Views;

use crate::record::canonical;

/// Lists the writes of one decision: the one that ended, then those that begin.
pub(super) async fn of(
    views: &dyn Views,
    run: &RunId,
    before: Option<&Run>,
    input: &Input,
    effects: &[EffectRequest],
    now: Timestamp,
) -> Result<Vec<ForgeWrite>, Fault> {
    let mut writes = vec![];
    if let Some((effect, result)) = ended(before, input) {
        let known = views
            .writes(run)
            .await?
            .into_iter()
            .find(|write| write.effect == *effect);
        writes.extend(known.map(|write| ForgeWrite {
            result,
            at: now,
            ..write
        }));
    }
    writes.extend(
        effects
            .iter()
            .filter(|request| request.effect.kind().writes_to_forge())
            .map(|r| begun(r, now)),
    );
    Ok(writes)
}

fn ended<'a>(before: Option<&Run>, input: &'a Input) -> Option<(&'a EffectId, String)> {
    let (effect, result) = match input {
        Input::Performed { effect, .. } => (effect, "done".to_owned()),
        Input::Faulted { effect, fault, .. } => (effect, fault.what.clone()),
        Input::StartRun { .. }
        | Input::Operate { .. }
        | Input::KillSwitchTurned { .. }
        | Input::RequestComment { .. }
        | Input::ForgeNoticed { .. }
        | Input::DeadlinePassed { .. } => return None,
    };
    let in_flight = before?.in_flight.get(effect)?;
    in_flight.kind.writes_to_forge().then_some((effect, result))
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
        Effect::Push { branch, .. } | Effect::OpenPullRequest { branch, .. } => format!("{repo} {branch}"),
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
        Effect::ReadIssue { .. }
        | Effect::PrepareWorkspace { .. }
        | Effect::Invoke { .. }
        | Effect::CommitWork { .. }
        | Effect::RunTests { .. }
        | Effect::CheckRedFirst { .. }
        | Effect::Rebase { .. }
        | Effect::InspectDiff { .. }
        | Effect::CleanUp { .. } => repo.to_string(),
    }
}
