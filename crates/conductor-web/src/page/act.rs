//! A form on a run's page becomes what the API takes, and goes the same way.
//!
//! What cannot be taken back is confirmed by typing the run's id. This module does not know what a run accepts.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use conductor_domain::digest::Digest;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::phase::PhaseName;
use conductor_port::inbox::Seen;
use serde::Deserialize;

use crate::actor::Actor;
use crate::api::{ActionRequest, GrantEgress};
use crate::door::Door;
use crate::error::Error;
use crate::extract::{Filled, NamedRun};
use crate::handle;
use crate::page::trouble::Trouble;

/// The fields of every form on a run's page; each form uses some.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActForm {
    action: Wish,
    subject: Option<Digest>,
    question: Option<EffectId>,
    #[serde(default)]
    comment: String,
    priority: Option<u8>,
    #[serde(default)]
    confirm: String,
    /// The phase that the page showed.
    phase: Option<String>,
    /// How many records the page was made of.
    seen: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wish {
    Approve,
    Revise,
    Reject,
    Answer,
    Pause,
    Resume,
    Retry,
    Cancel,
    Fail,
    Reprioritize,
}

/// Passes a form on to its run.
pub(crate) async fn act(
    State(door): State<Arc<Door>>,
    actor: Actor,
    NamedRun(id): NamedRun,
    Filled(form): Filled<ActForm>,
) -> Result<Redirect, Trouble> {
    let seen = form.seen;
    match pass_on(&door, &actor, &id, form).await {
        Ok(()) => Ok(Redirect::to(&format!("/runs/{id}"))),
        Err(error) => Err(Trouble::on_a_page(&door, &id, seen, error).await),
    }
}

async fn pass_on(door: &Door, actor: &Actor, id: &RunId, form: ActForm) -> Result<(), Error> {
    // Pausing is never meant for another phase, and whoever pauses is in a hurry.
    let shown = form.phase.as_deref().filter(|_| form.action != Wish::Pause);
    let seen = match (shown, form.seen) {
        // Starting over lets go of every hold; it is meant for those that the page showed.
        (_, Some(seen)) if form.action == Wish::Retry => Seen::Record(seen),
        (None, _) => Seen::Anything,
        (Some(shown), _) => Seen::Phase(PhaseName::parse(shown).ok_or_else(|| Error::Invalid {
            what: format!("`{shown}` is no phase"),
        })?),
    };
    let request = request(id, form)?;
    handle::run::submit(door, actor, id, request, seen)
        .await
        .map(drop)
}

/// The field of the form beside a denied request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllowForm {
    grant: String,
}

/// Grants the run's project what one of its sandboxes asked for (BEY-6).
pub(crate) async fn allow(
    State(door): State<Arc<Door>>,
    actor: Actor,
    NamedRun(id): NamedRun,
    Filled(form): Filled<AllowForm>,
) -> Result<Redirect, Trouble> {
    let wish = GrantEgress {
        project: door.reader.run(&id).await?.run.project,
        grant: form.grant,
    };
    handle::instance::allow(&door, &actor, &wish).await?;
    Ok(Redirect::to(&format!("/runs/{id}")))
}

fn request(id: &RunId, form: ActForm) -> Result<ActionRequest, Error> {
    let missing = |what: &str| Error::Invalid {
        what: format!("the form lacks its {what}; load the page again"),
    };
    // Whoever typed the id wants an end; a browser presses a form's first button when Enter is.
    let ends = matches!(form.action, Wish::Reject | Wish::Cancel | Wish::Fail);
    if !ends && !form.confirm.trim().is_empty() {
        return Err(Error::Invalid {
            what: "the run's id was typed, which only ends a run, and another button was pressed".to_owned(),
        });
    }
    let said = Some(form.comment.clone()).filter(|comment| !comment.trim().is_empty());
    let subject = || form.subject.clone().ok_or_else(|| missing("subject"));
    Ok(match form.action {
        Wish::Approve => ActionRequest::Approve {
            gate: None,
            subject: subject()?,
            comment: said,
        },
        Wish::Revise => ActionRequest::Revise {
            gate: None,
            subject: subject()?,
            comment: form.comment,
        },
        Wish::Reject => {
            confirmed(id, &form.confirm)?;
            ActionRequest::Reject {
                gate: None,
                subject: subject()?,
                comment: said,
            }
        }
        Wish::Answer => ActionRequest::Answer {
            question: form.question.ok_or_else(|| missing("question"))?,
            text: form.comment,
        },
        Wish::Pause => ActionRequest::Pause,
        Wish::Resume => ActionRequest::Resume,
        Wish::Retry => ActionRequest::Retry,
        Wish::Cancel => {
            confirmed(id, &form.confirm)?;
            ActionRequest::Cancel { comment: said }
        }
        Wish::Fail => {
            confirmed(id, &form.confirm)?;
            ActionRequest::Fail { comment: said }
        }
        Wish::Reprioritize => ActionRequest::Reprioritize {
            priority: form.priority.ok_or_else(|| missing("priority"))?,
        },
    })
}

fn confirmed(id: &RunId, typed: &str) -> Result<(), Error> {
    if typed.trim() == id.as_str() {
        return Ok(());
    }
    Err(Error::Unconfirmed {
        expected: id.to_string(),
    })
}
