//! The overrides of a run: those that it was granted, a form for another one, and a button that takes one back (SEC-1).
//!
//! This module does not know which policies there are.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use conductor_domain::id::RunId;
use conductor_domain::input::Action;
use conductor_domain::time::Timestamp;
use conductor_port::inbox::Seen;

use crate::actor::Actor;
use crate::api::{GrantOverride, OverrideView, RevokeOverride};
use crate::door::Door;
use crate::extract::{Filled, NamedRun};
use crate::handle;
use crate::page::trouble::Trouble;
use crate::visible;
use crate::words::time;

/// An override as a page shows it.
pub(crate) struct Override {
    pub(crate) number: u32,
    pub(crate) call: String,
    pub(crate) policy: String,
    pub(crate) by: String,
    pub(crate) why: String,
    pub(crate) until: String,
    pub(crate) state: &'static str,
    pub(crate) symbol: &'static str,
    pub(crate) class: &'static str,
}

impl Override {
    /// Puts an override into the words of a page.
    pub(crate) fn of(view: &OverrideView, now: Timestamp) -> Self {
        let (state, symbol, class) = match &view.revoked_by {
            Some(_) => ("taken back", "■", "quiet"),
            None if view.until <= now => ("ended", "■", "quiet"),
            None => ("in force", "▲", "loud"),
        };
        let role = view.role.to_string().to_lowercase();
        Self {
            number: view.number,
            call: visible::line(&format!("{role} {} {}", view.tool, view.target)),
            policy: visible::line(&view.policy),
            by: view.by.to_string(),
            why: visible::line(&view.justification),
            until: time::exact(view.until),
            state,
            symbol,
            class,
        }
    }

    /// Tells whether it can be taken back.
    pub(crate) fn is_in_force(&self) -> bool {
        self.state == "in force"
    }
}

/// Grants an override.
pub(crate) async fn grant(
    State(door): State<Arc<Door>>,
    actor: Actor,
    NamedRun(id): NamedRun,
    Filled(form): Filled<GrantOverride>,
) -> Result<Redirect, Trouble> {
    handle::overrides::give(&door, &actor, &id, form).await?;
    Ok(back(&id))
}

/// Takes an override back.
pub(crate) async fn revoke(
    State(door): State<Arc<Door>>,
    actor: Actor,
    NamedRun(id): NamedRun,
    Filled(form): Filled<RevokeOverride>,
) -> Result<Redirect, Trouble> {
    let number = form.number;
    handle::run::operate(
        &door,
        &actor,
        &id,
        Action::RevokeRelief { number },
        Seen::Anything,
    )
    .await?;
    Ok(back(&id))
}

fn back(id: &RunId) -> Redirect {
    Redirect::to(&format!("/runs/{id}#overrides"))
}
