//! Passes the granting and the taking back of overrides on to their run (SEC-1).
//!
//! This module does not know what a policy says, nor which of them nobody may lift.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use conductor_domain::id::RunId;
use conductor_domain::input::Action;
use conductor_domain::relief::ReliefScope;
use conductor_domain::time::Millis;
use conductor_port::inbox::Seen;

use crate::actor::Actor;
use crate::api::{AcceptedView, GrantOverride, RevokeOverride};
use crate::door::Door;
use crate::error::Error;
use crate::extract::{NamedRun, Posted};
use crate::handle::run::operate;

/// Grants an override.
pub(crate) async fn grant(
    State(door): State<Arc<Door>>,
    actor: Actor,
    NamedRun(id): NamedRun,
    Posted(wish): Posted<GrantOverride>,
) -> Result<(StatusCode, Json<AcceptedView>), Error> {
    Ok((StatusCode::CREATED, Json(give(&door, &actor, &id, wish).await?)))
}

/// Grants an override, whichever door it came through.
pub(crate) async fn give(
    door: &Door,
    actor: &Actor,
    id: &RunId,
    wish: GrantOverride,
) -> Result<AcceptedView, Error> {
    let now = door.settings.clock.now();
    let action = Action::GrantRelief {
        scope: ReliefScope {
            policy: wish.policy,
            role: wish.role,
            tool: wish.tool,
            target: wish.target,
        },
        justification: wish.justification,
        until: now.after(Millis::minutes(u64::from(wish.minutes))),
    };
    operate(door, actor, id, action, Seen::Anything).await
}

/// Takes an override back.
pub(crate) async fn revoke(
    State(door): State<Arc<Door>>,
    actor: Actor,
    NamedRun(id): NamedRun,
    Posted(wish): Posted<RevokeOverride>,
) -> Result<Json<AcceptedView>, Error> {
    let number = wish.number;
    Ok(Json(
        operate(
            &door,
            &actor,
            &id,
            Action::RevokeRelief { number },
            Seen::Anything,
        )
        .await?,
    ))
}

#[cfg(test)]
mod tests {
    use conductor_domain::input::Input;
    use conductor_domain::role::Role;

    use super::*;
    use crate::fake::{Fake, request, row};

    /// SEC-1, SEC-7: an override is submitted in the admin's name with its end by the server's clock.
    #[tokio::test]
    async fn an_override_is_submitted_with_its_end() {
        let fake = Fake::with_repo();
        fake.world().rows.push(row("r-1", 1, None));
        let body = r#"{"policy":"forge-settings","role":"implementer","tool":"create_file",
            "target":"worktree:CODEOWNERS","justification":"the owner asked for it","minutes":5}"#;
        let path = "/api/v1/runs/r-1/overrides";
        let (status, _) = fake.ask(request("POST", path, body)).await;
        assert_eq!(status, StatusCode::CREATED);
        let revoke = r#"{"number":1}"#;
        let (status, _) = fake.ask(request("POST", &format!("{path}/revoke"), revoke)).await;
        assert_eq!(status, StatusCode::OK);
        let submitted: Vec<Input> = fake.world().submitted.drain(..).map(|it| it.input).collect();
        let [
            Input::Operate {
                by,
                action:
                    Action::GrantRelief {
                        scope,
                        justification,
                        until,
                    },
            },
            Input::Operate {
                action: Action::RevokeRelief { number: 1 },
                ..
            },
        ] = submitted.as_slice()
        else {
            panic!("{submitted:?}")
        };
        assert_eq!((by.as_str(), scope.role), ("ann", Role::Implementer));
        assert_eq!(
            scope.to_string(),
            "forge-settings for implementer create_file worktree:CODEOWNERS"
        );
        assert_eq!(justification, "the owner asked for it");
        assert!(until.0 > 0 && until.0 % 1_000 == 0);
        for bad in [
            r#"{"policy":"p","role":"king","tool":"t","target":"worktree","justification":"x","minutes":5}"#,
            r#"{"policy":"p","role":"planner","tool":"t","target":"worktree","justification":"x","minutes":-5}"#,
            r#"{"number":1}"#,
        ] {
            assert_eq!(fake.ask(request("POST", path, bad)).await.0, 422, "{bad}");
        }
        assert_eq!(fake.world().submitted, []);
    }
}
