//! Settings: who works here, and the tokens that programs carry.
//!
//! A new token's secret is shown on the page that answers its form, and never again. This module does not know who may do
//! what: the ranks of the forms and the handlers behind them say so.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{Html, Redirect};
use conductor_domain::id::{OperatorName, ProjectId, TokenId};
use conductor_domain::staff::{Rank, StaffChange};
use conductor_port::key::Holder;
use serde::Deserialize;

use crate::actor::Actor;
use crate::api::{AddOperator, IssueToken, IssuedToken, Nothing};
use crate::door::Door;
use crate::error::Error;
use crate::extract::Filled;
use crate::handle::staff;
use crate::page::frame::{Frame, Section, page};
use crate::page::line::Moment;
use crate::page::trouble::Trouble;

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    frame: Frame,
    operators: Vec<Operator>,
    tokens: Vec<Token>,
    ranks: [Rank; 3],
    /// What a token may be issued for.
    lesser: Vec<Rank>,
    projects: Vec<ProjectId>,
    /// Whether whoever looks has a password, and may have tokens without saying whose.
    is_operator: bool,
    issued: Option<IssuedToken>,
}

struct Operator {
    name: String,
    rank: Rank,
    choices: Vec<Choice>,
}

struct Choice {
    rank: Rank,
    is_theirs: bool,
}

struct Token {
    id: String,
    operator: String,
    rank: Rank,
    project: Option<ProjectId>,
    ends: Moment,
    is_over: bool,
}

/// Shows the settings.
pub(crate) async fn show(State(door): State<Arc<Door>>, actor: Actor) -> Result<Html<String>, Trouble> {
    shown(&door, &actor, None).await
}

async fn shown(door: &Door, actor: &Actor, issued: Option<IssuedToken>) -> Result<Html<String>, Trouble> {
    let now = door.settings.clock.now();
    let operators = door.reader.staff().await?.operators.into_iter();
    let tokens = staff::tokens_for(door, actor).await?.into_iter();
    let frame = Frame::of(door, actor, Section::Settings, "Settings").await?;
    Ok(page(&SettingsPage {
        frame: frame.answering(issued.is_some().then_some("/settings")),
        operators: operators
            .map(|(name, rank)| Operator {
                name: name.to_string(),
                rank,
                choices: Rank::ALL
                    .map(|choice| Choice {
                        rank: choice,
                        is_theirs: choice == rank,
                    })
                    .into(),
            })
            .collect(),
        tokens: tokens
            .map(|token| Token {
                id: token.id.to_string(),
                operator: token.operator.to_string(),
                rank: token.rank,
                project: token.project,
                ends: Moment::of(token.expires_at, now),
                is_over: token.expires_at <= now,
            })
            .collect(),
        ranks: Rank::ALL,
        lesser: Rank::ALL.into_iter().filter(|rank| *rank <= actor.rank).collect(),
        projects: door.reader.instance().await?.projects,
        is_operator: matches!(actor.holder, Holder::Operator(_)),
        issued,
    }))
}

/// The fields of the form for a new operator.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddForm {
    name: OperatorName,
    rank: Rank,
    password: String,
}

/// Adds an operator.
pub(crate) async fn add(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(form): Filled<AddForm>,
) -> Result<Redirect, Trouble> {
    let wish = AddOperator {
        name: form.name,
        rank: form.rank,
        password: form.password,
    };
    staff::add(&door, &actor, wish).await?;
    Ok(Redirect::to("/settings"))
}

/// The fields of the forms beside an operator.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeForm {
    name: OperatorName,
    action: Wish,
    rank: Option<Rank>,
    #[serde(default)]
    confirm: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wish {
    Rank,
    SignOut,
    Remove,
}

/// Changes what an operator may do, signs them out everywhere, or removes them.
pub(crate) async fn change(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(form): Filled<ChangeForm>,
) -> Result<Redirect, Trouble> {
    match form.action {
        Wish::Rank => {
            let rank = form.rank.ok_or_else(|| Error::Invalid {
                what: "the form lacks its rank; load the page again".to_owned(),
            })?;
            let change = StaffChange::Rank {
                operator: form.name,
                rank,
            };
            staff::tell(&door, &actor, change).await?;
        }
        Wish::SignOut => {
            staff::sign_out(&door, &actor, Some(form.name)).await?;
        }
        Wish::Remove => {
            if form.confirm.trim() != form.name.as_str() {
                let expected = form.name.to_string();
                return Err(Error::Unconfirmed { expected }.into());
            }
            staff::remove(&door, &actor, form.name).await?;
        }
    }
    Ok(Redirect::to("/settings"))
}

/// Ends all of one's own sessions, this one, too.
pub(crate) async fn sign_out(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(Nothing {}): Filled<Nothing>,
) -> Result<Redirect, Trouble> {
    staff::sign_out(&door, &actor, None).await?;
    Ok(Redirect::to("/login"))
}

/// The fields of the form for one's own password.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PasswordForm {
    current: String,
    password: String,
}

/// Sets one's own password; all sessions end, this one, too.
pub(crate) async fn password(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(form): Filled<PasswordForm>,
) -> Result<Redirect, Trouble> {
    let Holder::Operator(name) = &actor.holder else {
        return Err(Error::Invalid {
            what: "whoever owns the data directory comes in by links and has no password".to_owned(),
        }
        .into());
    };
    // A session that somebody left open does not let others take the account.
    let now = door.settings.clock.now();
    door.attempts
        .begin(name.as_str(), actor.address, now)
        .map_err(|retry_after| Error::TooMany { retry_after })?;
    let hash = door.keys.password(name).await?;
    if !door.hashing.is(form.current, hash).await? {
        return Err(Error::Invalid {
            what: "that is not your present password".to_owned(),
        }
        .into());
    }
    door.attempts.succeeded(name.as_str(), actor.address);
    staff::renew_password(&door, &actor, name.clone(), form.password).await?;
    Ok(Redirect::to("/login"))
}

/// The fields of the form for a token.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IssueForm {
    id: TokenId,
    rank: Rank,
    days: u32,
    #[serde(default)]
    operator: String,
    #[serde(default)]
    project: String,
}

/// Issues a token, and shows its secret this once.
pub(crate) async fn issue(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(form): Filled<IssueForm>,
) -> Result<Html<String>, Trouble> {
    let operator = Some(form.operator).filter(|name| !name.is_empty());
    let operator = operator.map(OperatorName::parse).transpose();
    let project = Some(form.project).filter(|name| !name.is_empty());
    let project = project.map(ProjectId::parse).transpose();
    let wish = IssueToken {
        id: form.id,
        rank: form.rank,
        days: Some(form.days),
        operator: operator.map_err(|error| Error::Invalid {
            what: error.to_string(),
        })?,
        project: project.map_err(|error| Error::Invalid {
            what: error.to_string(),
        })?,
    };
    let issued = staff::issue(&door, &actor, wish).await?;
    shown(&door, &actor, Some(issued)).await
}

/// The field of the form beside a token.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RevokeForm {
    id: TokenId,
}

/// Makes a token worth nothing.
pub(crate) async fn revoke(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(form): Filled<RevokeForm>,
) -> Result<Redirect, Trouble> {
    staff::revoke(&door, &actor, form.id).await?;
    Ok(Redirect::to("/settings"))
}
