//! Answers about who works here: operators, their passwords, and the tokens that programs carry (SEC-7).
//!
//! The instance decides and keeps who may do what; a password's hash is the door's own and is written after the instance
//! has recorded that it changes, so that no change is without its record. This module does not know pages.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use conductor_domain::digest::Digest;
use conductor_domain::id::{OperatorName, TokenId};
use conductor_domain::instance::InstanceInput;
use conductor_domain::staff::{Rank, StaffChange, Token};
use conductor_domain::time::Millis;
use conductor_port::key::Holder;

use super::instance::submit;
use crate::actor::Actor;
use crate::api::{
    AcceptedView, AddOperator, ChangeRank, IssueToken, IssuedToken, Nothing, OperatorList, OperatorView,
    SetPassword, SignOut, TokenList, TokenView,
};
use crate::door::Door;
use crate::error::Error;
use crate::extract::{Named, Posted};
use crate::once::ToldOnce;

/// For how many days a token is good when nobody says.
const DAYS: u32 = 30;
/// For how many days at most.
const MOST_DAYS: u32 = 365;

/// Lists the operators.
pub(crate) async fn operators(State(door): State<Arc<Door>>) -> Result<Json<OperatorList>, Error> {
    let staff = door.reader.staff().await?;
    let operators = staff.operators.into_iter();
    Ok(Json(OperatorList {
        operators: operators
            .map(|(name, rank)| OperatorView { name, rank })
            .collect(),
    }))
}

/// Adds an operator.
pub(crate) async fn add_operator(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(wish): Posted<AddOperator>,
) -> Result<(StatusCode, Json<AcceptedView>), Error> {
    Ok((StatusCode::CREATED, Json(add(&door, &actor, wish).await?)))
}

/// Adds an operator, whichever door it came through.
pub(crate) async fn add(door: &Door, actor: &Actor, wish: AddOperator) -> Result<AcceptedView, Error> {
    let hash = door.hashing.hash(wish.password).await?;
    let change = StaffChange::Add {
        operator: wish.name.clone(),
        rank: wish.rank,
    };
    let accepted = tell(door, actor, change).await?;
    door.keys.set_password(&wish.name, Some(&hash)).await?;
    Ok(accepted)
}

/// Changes what an operator may do.
pub(crate) async fn change_rank(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Named(operator): Named<OperatorName>,
    Posted(wish): Posted<ChangeRank>,
) -> Result<Json<AcceptedView>, Error> {
    let rank = wish.rank;
    let change = StaffChange::Rank { operator, rank };
    Ok(Json(tell(&door, &actor, change).await?))
}

/// Sets an operator's password; whoever was signed in under that name is not any more.
pub(crate) async fn set_password(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Named(operator): Named<OperatorName>,
    Posted(wish): Posted<SetPassword>,
) -> Result<Json<AcceptedView>, Error> {
    Ok(Json(
        renew_password(&door, &actor, operator, wish.password).await?,
    ))
}

/// Sets an operator's password, whichever door it came through.
pub(crate) async fn renew_password(
    door: &Door,
    actor: &Actor,
    operator: OperatorName,
    password: String,
) -> Result<AcceptedView, Error> {
    let hash = door.hashing.hash(password).await?;
    let change = StaffChange::Password {
        operator: operator.clone(),
    };
    let accepted = tell(door, actor, change).await?;
    door.keys.set_password(&operator, Some(&hash)).await?;
    door.keys.take_all(&Holder::Operator(operator.clone())).await?;
    // Whoever was kept waiting for guesses at the old one has no reason to wait.
    door.attempts.forget(&operator);
    Ok(accepted)
}

/// Removes an operator.
pub(crate) async fn remove_operator(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Named(operator): Named<OperatorName>,
    Posted(Nothing {}): Posted<Nothing>,
) -> Result<Json<AcceptedView>, Error> {
    Ok(Json(remove(&door, &actor, operator).await?))
}

/// Removes an operator, whichever door it came through: tokens, sessions and password go, too.
pub(crate) async fn remove(
    door: &Door,
    actor: &Actor,
    operator: OperatorName,
) -> Result<AcceptedView, Error> {
    let change = StaffChange::Remove {
        operator: operator.clone(),
    };
    let accepted = tell(door, actor, change).await?;
    door.keys.take_all(&Holder::Operator(operator.clone())).await?;
    door.keys.set_password(&operator, None).await?;
    Ok(accepted)
}

/// Ends links and sessions.
pub(crate) async fn end_sessions(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(wish): Posted<SignOut>,
) -> Result<Json<AcceptedView>, Error> {
    Ok(Json(sign_out(&door, &actor, wish.operator).await?))
}

/// Ends all links and sessions of an operator, or of whoever asks, whichever door it came through; tokens stay.
pub(crate) async fn sign_out(
    door: &Door,
    actor: &Actor,
    operator: Option<OperatorName>,
) -> Result<AcceptedView, Error> {
    let holder = operator.map_or_else(|| actor.holder.clone(), Holder::Operator);
    if !holder.is_same(&actor.holder) {
        actor.must_be(Rank::Admin)?;
    }
    let change = StaffChange::SignOut {
        holder: holder.clone(),
    };
    let accepted = tell(door, actor, change).await?;
    door.keys.take_all(&holder).await?;
    Ok(accepted)
}

/// Lists tokens: one's own, and for admins everybody's.
pub(crate) async fn tokens(State(door): State<Arc<Door>>, actor: Actor) -> Result<Json<TokenList>, Error> {
    Ok(Json(TokenList {
        tokens: tokens_for(&door, &actor).await?,
    }))
}

/// Lists the tokens that somebody may see.
pub(crate) async fn tokens_for(door: &Door, actor: &Actor) -> Result<Vec<TokenView>, Error> {
    let staff = door.reader.staff().await?;
    let seen = staff
        .tokens
        .into_iter()
        .filter(|(_, token)| is_theirs(actor, &token.operator));
    let views = seen.map(|(id, token)| TokenView {
        id,
        operator: token.operator,
        rank: token.rank,
        expires_at: token.expires_at,
        project: token.project,
    });
    Ok(views.collect())
}

/// Issues a token.
pub(crate) async fn issue_token(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(wish): Posted<IssueToken>,
) -> Result<(StatusCode, Extension<ToldOnce>, Json<IssuedToken>), Error> {
    let issued = issue(&door, &actor, wish).await?;
    Ok((StatusCode::CREATED, Extension(ToldOnce), Json(issued)))
}

/// Issues a token, whichever door it came through. It may do no more than whoever asks: a token that only looks cannot
/// make one that acts.
pub(crate) async fn issue(door: &Door, actor: &Actor, wish: IssueToken) -> Result<IssuedToken, Error> {
    actor.must_be(wish.rank)?;
    let operator = match (wish.operator, &actor.holder) {
        (Some(operator), _) if is_theirs(actor, &operator) => operator,
        (Some(_), _) => {
            return Err(Error::Forbidden {
                needed: Rank::Admin,
                rank: actor.rank,
            });
        }
        (None, Holder::Operator(own)) => own.clone(),
        (None, Holder::Owner(_)) => {
            return Err(Error::Invalid {
                what:
                    "the owner of the data directory has a token already; say for which operator this one is"
                        .to_owned(),
            });
        }
    };
    let days = wish.days.unwrap_or(DAYS);
    if !(1..=MOST_DAYS).contains(&days) {
        return Err(Error::Invalid {
            what: format!("a token is good for 1 to {MOST_DAYS} days"),
        });
    }
    let secret = format!("cdr_{}", (door.settings.secret)());
    let token = Token {
        operator: operator.clone(),
        rank: wish.rank,
        hash: Digest::of(secret.as_bytes()),
        expires_at: door
            .settings
            .clock
            .now()
            .after(Millis::hours(24 * u64::from(days))),
        project: wish.project,
    };
    let view = TokenView {
        id: wish.id.clone(),
        operator,
        rank: token.rank,
        expires_at: token.expires_at,
        project: token.project.clone(),
    };
    tell(door, actor, StaffChange::Issue { id: wish.id, token }).await?;
    Ok(IssuedToken { token: view, secret })
}

/// Makes a token worth nothing.
pub(crate) async fn revoke_token(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Named(id): Named<TokenId>,
    Posted(Nothing {}): Posted<Nothing>,
) -> Result<Json<AcceptedView>, Error> {
    Ok(Json(revoke(&door, &actor, id).await?))
}

/// Makes a token worth nothing, whichever door it came through; somebody else's is as good as not there.
pub(crate) async fn revoke(door: &Door, actor: &Actor, id: TokenId) -> Result<AcceptedView, Error> {
    let staff = door.reader.staff().await?;
    if let Some(token) = staff.tokens.get(&id)
        && !is_theirs(actor, &token.operator)
    {
        return Err(Error::NotFound {
            what: format!("token `{id}` of yours"),
        });
    }
    tell(door, actor, StaffChange::Revoke { id }).await
}

fn is_theirs(actor: &Actor, operator: &OperatorName) -> bool {
    actor.rank == Rank::Admin || actor.holder == Holder::Operator(operator.clone())
}

/// Tells the instance of a change.
pub(crate) async fn tell(door: &Door, actor: &Actor, change: StaffChange) -> Result<AcceptedView, Error> {
    let by = actor.name();
    submit(door, actor, InstanceInput::ChangeStaff { by, change }).await
}
