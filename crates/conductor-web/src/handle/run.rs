//! Answers about runs, and passes what operators ask of them on to the inbox.
//!
//! This module does not know what a run accepts.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use conductor_domain::artifact::ArtifactKind;
use conductor_domain::gate::GateKind;
use conductor_domain::id::{ProjectId, RunId};
use conductor_domain::input::{Action, Input};
use conductor_domain::refusal::Refusal;
use conductor_domain::run::Run;
use conductor_domain::spec::Priority;
use conductor_port::inbox::{Seen, Submission};
use conductor_port::views::RunFilter;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::actor::Actor;
use crate::api::{
    AcceptedView, ActionRequest, Approvals, EffectList, EventList, RunDetail, RunList, StartRun, Started,
    WriteList,
};
use crate::door::Door;
use crate::error::Error;
use crate::extract::{self, Asked, NamedRun, Posted};
use crate::guard::only;
use crate::reader::MAX_EVENTS;
use crate::{once, start};

/// Which runs to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// Only of this project.
    project: Option<String>,
    /// Only of this repository, `owner/name`.
    repo: Option<String>,
    /// Only in this phase.
    phase: Option<String>,
    /// Only those with this text in their title, repository, id or `#issue`.
    text: Option<String>,
    /// Only those that have not ended.
    #[serde(default)]
    open: bool,
    /// Only those that a person must act on.
    #[serde(default)]
    needs_human: bool,
    /// Only for this issue.
    #[serde(default, deserialize_with = "extract::countable_or_none")]
    issue: Option<u64>,
    /// Only runs listed after this one: the cursor, `next` of the answer before.
    #[schemars(with = "Option<String>")]
    after: Option<RunId>,
    /// At most so many, up to 500; 100 when absent.
    #[serde(default)]
    limit: u32,
}

/// Which records to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// Only records after this one: the cursor, `next` of the answer before.
    #[serde(default, deserialize_with = "extract::countable")]
    after: u64,
    /// At most so many, up to 1000.
    limit: Option<u32>,
}

/// Lists runs.
pub(crate) async fn list(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Asked(query): Asked<ListQuery>,
) -> Result<Json<RunList>, Error> {
    let nothing = || {
        Ok(Json(RunList {
            runs: vec![],
            next: None,
        }))
    };
    let asked = query.project.map(ProjectId::parse).transpose();
    // What is no project's name is no project's.
    let Ok(asked) = asked else { return nothing() };
    if asked.as_ref().is_some_and(|project| !actor.reaches(project)) {
        return nothing();
    }
    let repo = match &query.repo {
        None => None,
        Some(name) => match door.reader.registration(name).await? {
            None => return nothing(),
            Some(registration) => Some(registration.repo.id),
        },
    };
    let filter = RunFilter {
        project: asked.or(actor.project).map(|project| project.to_string()),
        repo,
        phase: query.phase,
        text: query.text,
        needs_human: query.needs_human,
        open: query.open,
        issue: query.issue,
        after: query.after,
        limit: query.limit,
        ..RunFilter::default()
    };
    Ok(Json(door.reader.runs(filter).await?))
}

/// Starts a run.
pub(crate) async fn start(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(wish): Posted<StartRun>,
) -> Result<(StatusCode, Json<Started>), Error> {
    Ok((
        StatusCode::CREATED,
        Json(start::start(&door, &actor, wish).await?),
    ))
}

/// Shows a run.
pub(crate) async fn show(
    State(door): State<Arc<Door>>,
    NamedRun(id): NamedRun,
) -> Result<Json<RunDetail>, Error> {
    Ok(Json(door.reader.run(&id).await?))
}

/// Lists what waits for a person, oldest first.
pub(crate) async fn approvals(State(door): State<Arc<Door>>, actor: Actor) -> Result<Json<Approvals>, Error> {
    Ok(Json(door.reader.approvals(actor.project.as_ref()).await?))
}

/// Lists records.
pub(crate) async fn events(
    State(door): State<Arc<Door>>,
    NamedRun(id): NamedRun,
    Asked(query): Asked<EventsQuery>,
) -> Result<Json<EventList>, Error> {
    Ok(Json(
        door.reader
            .events(&id, query.after, query.limit.unwrap_or(MAX_EVENTS))
            .await?,
    ))
}

/// Lists effects.
pub(crate) async fn effects(
    State(door): State<Arc<Door>>,
    NamedRun(id): NamedRun,
) -> Result<Json<EffectList>, Error> {
    Ok(Json(door.reader.effects(&id).await?))
}

/// Lists writes at the forge.
pub(crate) async fn writes(
    State(door): State<Arc<Door>>,
    NamedRun(id): NamedRun,
) -> Result<Json<WriteList>, Error> {
    Ok(Json(door.reader.writes(&id).await?))
}

/// Passes what an operator asks on to the run.
pub(crate) async fn act(
    State(door): State<Arc<Door>>,
    actor: Actor,
    NamedRun(id): NamedRun,
    headers: HeaderMap,
    Posted(request): Posted<ActionRequest>,
) -> Result<Json<AcceptedView>, Error> {
    let mut seen = Seen::Anything;
    if headers.contains_key(header::IF_MATCH) {
        let detail = door.reader.run(&id).await?;
        // What happens from here on is seen where it is decided.
        seen = Seen::Record(detail.run.events);
        let shown = serde_json::to_vec(&detail).expect("the words on the wire are plain data");
        let condition = only(&headers, &header::IF_MATCH).unwrap_or_default();
        if !once::names(condition, &once::tag(&shown)) {
            return Err(Error::Changed);
        }
    }
    Ok(Json(submit(&door, &actor, &id, request, seen).await?))
}

/// Submits what an operator asks of a run, whichever door it came through.
pub(crate) async fn submit(
    door: &Door,
    actor: &Actor,
    id: &RunId,
    request: ActionRequest,
    seen: Seen,
) -> Result<AcceptedView, Error> {
    let (_, run) = door.reader.state(id).await?;
    let action = action(door, &run, request).await?;
    operate(door, actor, id, action, seen).await
}

/// Submits an action of an operator.
pub(crate) async fn operate(
    door: &Door,
    actor: &Actor,
    id: &RunId,
    action: Action,
    seen: Seen,
) -> Result<AcceptedView, Error> {
    let input = Input::Operate {
        by: actor.name(),
        action,
    };
    let accepted = door
        .inbox
        .submit(Submission {
            run: id.clone(),
            input,
            // Also where the server dies between doing it and keeping the answer, it is done once.
            dedupe: actor.named.as_ref().map(|name| format!("named/{id}/{name}")),
            cause: actor.cause(),
            seen,
        })
        .await?;
    Ok(AcceptedView {
        seq: accepted.seq,
        duplicate: accepted.duplicate,
    })
}

async fn action(door: &Door, run: &Run, request: ActionRequest) -> Result<Action, Error> {
    // Without an open gate the machine itself says why there is nothing to answer.
    let open = |gate: Option<GateKind>| {
        gate.or(run.gate().map(|gate| gate.kind))
            .unwrap_or(GateKind::Plan)
    };
    Ok(match request {
        ActionRequest::Approve {
            gate,
            subject,
            comment,
        } => Action::Approve {
            gate: open(gate),
            subject,
            comment,
        },
        ActionRequest::Revise {
            gate,
            subject,
            comment,
        } => {
            if comment.trim().is_empty() {
                return Err(Refusal::CommentRequired.into());
            }
            let feedback = door.blobs.put(ArtifactKind::Feedback, comment.as_bytes()).await?;
            Action::Revise {
                gate: open(gate),
                subject,
                feedback,
            }
        }
        ActionRequest::Reject {
            gate,
            subject,
            comment,
        } => Action::Reject {
            gate: open(gate),
            subject,
            comment,
        },
        ActionRequest::Answer { question, text } => {
            if text.trim().is_empty() {
                return Err(Refusal::CommentRequired.into());
            }
            Action::Answer {
                question,
                answer: door.blobs.put(ArtifactKind::Feedback, text.as_bytes()).await?,
            }
        }
        ActionRequest::Pause => Action::Pause,
        ActionRequest::Resume => Action::Resume,
        ActionRequest::Cancel { comment } => Action::Cancel { comment },
        ActionRequest::Retry => Action::Retry,
        ActionRequest::Fail { comment } => Action::Fail { comment },
        ActionRequest::Reprioritize { priority } => Action::Reprioritize {
            priority: Priority::try_from(priority).map_err(|what| Error::Invalid { what })?,
        },
    })
}
