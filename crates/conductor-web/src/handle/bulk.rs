//! Asks several runs, each by an input of its own, one after the other, and tells what came of each (UI-3, SEC-6).
//!
//! One that refuses keeps none of the others from being asked. This module does not know what a run accepts.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use conductor_domain::gate::GateKind;
use conductor_domain::id::{ProjectId, RunId};
use conductor_domain::instance::InstanceRefusal;
use conductor_domain::phase::PhaseName;
use conductor_port::inbox::Seen;
use conductor_port::views::RunFilter;

use crate::actor::Actor;
use crate::api::{
    AcceptedView, ActionRequest, ApproveSeveral, BulkView, CancelAll, PlanRisks, Reprioritize, ResultView,
};
use crate::door::Door;
use crate::error::Error;
use crate::extract::Posted;
use crate::handle::run::submit;
use crate::risk;

/// The most runs that one request names.
const MOST: usize = 500;

/// Lists the plans that wait, with what speaks against each.
pub(crate) async fn plans(State(door): State<Arc<Door>>) -> Result<Json<PlanRisks>, Error> {
    Ok(Json(risk::plans(&door).await?))
}

/// Approves plans of low risk.
pub(crate) async fn approve(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(wish): Posted<ApproveSeveral>,
) -> Result<Json<BulkView>, Error> {
    Ok(Json(approve_all(&door, &actor, wish).await?))
}

/// Moves runs.
pub(crate) async fn reprioritize(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(wish): Posted<Reprioritize>,
) -> Result<Json<BulkView>, Error> {
    Ok(Json(reprioritize_all(&door, &actor, wish).await?))
}

/// Cancels the runs of a project.
pub(crate) async fn cancel(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(wish): Posted<CancelAll>,
) -> Result<Json<BulkView>, Error> {
    Ok(Json(cancel_all(&door, &actor, wish).await?))
}

/// Approves those of the plans that are of low risk, each by its digest; what is none says why.
pub(crate) async fn approve_all(door: &Door, actor: &Actor, wish: ApproveSeveral) -> Result<BulkView, Error> {
    check_count(wish.plans.len())?;
    let known = risk::plans(door).await?.plans;
    let mut results = Vec::new();
    for seen in wish.plans {
        // What was judged is what the digest stands for, so nothing can come between the judgement and the approval.
        let because = known
            .iter()
            .find(|plan| plan.run == seen.run && plan.subject == seen.subject)
            .map_or_else(
                || "it is not what waits now".to_owned(),
                |plan| plan.because.join("; "),
            );
        if !because.is_empty() {
            results.push(refused(seen.run, &Error::NotOfLowRisk { because }));
            continue;
        }
        let request = ActionRequest::Approve {
            gate: Some(GateKind::Plan),
            subject: seen.subject,
            comment: wish.comment.clone(),
        };
        let accepted = submit(
            door,
            actor,
            &seen.run,
            request,
            Seen::Phase(PhaseName::AwaitingPlanApproval),
        )
        .await;
        results.push(result(seen.run, accepted));
    }
    Ok(BulkView { results })
}

/// Moves runs, one after the other.
pub(crate) async fn reprioritize_all(
    door: &Door,
    actor: &Actor,
    wish: Reprioritize,
) -> Result<BulkView, Error> {
    check_count(wish.runs.len())?;
    let mut results = Vec::new();
    for run in wish.runs {
        let request = ActionRequest::Reprioritize {
            priority: wish.priority,
        };
        let accepted = submit(door, actor, &run, request, Seen::Anything).await;
        results.push(result(run, accepted));
    }
    Ok(BulkView { results })
}

/// Cancels every open run of a project, those included that begin meanwhile.
pub(crate) async fn cancel_all(door: &Door, actor: &Actor, wish: CancelAll) -> Result<BulkView, Error> {
    let project = ProjectId::parse(wish.project).map_err(|error| Error::Invalid {
        what: error.to_string(),
    })?;
    if !door.reader.instance().await?.projects.contains(&project) {
        return Err(InstanceRefusal::NoSuchProject(project).into());
    }
    let filter = RunFilter {
        project: Some(project.to_string()),
        open: true,
        limit: u32::try_from(MOST).unwrap_or(u32::MAX),
        ..RunFilter::default()
    };
    let mut results: Vec<ResultView> = Vec::new();
    let mut asked: BTreeSet<RunId> = BTreeSet::new();
    let mut page = filter.clone();
    let mut before = 0;
    loop {
        let rows = door.reader.next_rows(&mut page).await?;
        if rows.is_empty() {
            // What began meanwhile stands before the first page: it is gone through anew until nobody is left to ask.
            if asked.len() == before {
                return Ok(BulkView { results });
            }
            before = asked.len();
            page = filter.clone();
        }
        for row in rows {
            if !asked.insert(row.run.clone()) {
                continue;
            }
            let request = ActionRequest::Cancel {
                comment: wish.comment.clone(),
            };
            let accepted = submit(door, actor, &row.run, request, Seen::Anything).await;
            results.push(result(row.run, accepted));
        }
    }
}

fn check_count(count: usize) -> Result<(), Error> {
    if count <= MOST {
        return Ok(());
    }
    Err(Error::Invalid {
        what: format!("{count} runs are named, the limit is {MOST}"),
    })
}

fn result(run: RunId, asked: Result<AcceptedView, Error>) -> ResultView {
    match asked {
        Ok(_) => ResultView {
            run,
            accepted: true,
            code: None,
            why: None,
        },
        Err(error) => refused(run, &error),
    }
}

fn refused(run: RunId, error: &Error) -> ResultView {
    let problem = error.problem();
    ResultView {
        run,
        accepted: false,
        code: Some(problem.code),
        why: Some(problem.detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, request, row};

    /// SEC-6, UI-3: more runs than one page are all asked, also where those of the first page stay open. Here every one does.
    #[tokio::test]
    async fn those_that_refuse_keep_nobody_behind_them_from_being_called_off() {
        for down in [false, true] {
            let fake = Fake::with_repo();
            let many = MOST + 1;
            for (n, issue) in (0..many).zip(1..) {
                fake.world().rows.push(row(&format!("r-{n}"), issue, None));
            }
            fake.world().down = down;
            let (status, done) = fake
                .ask(request("POST", "/api/v1/bulk/cancel", r#"{"project":"p"}"#))
                .await;
            assert_eq!(status, 200, "{done}");
            let done: BulkView = serde_json::from_value(done).expect("results");
            let accepted = done.results.iter().filter(|result| result.accepted).count();
            let expected = if down { 0 } else { many };
            assert_eq!((done.results.len(), accepted), (many, expected));
            assert_eq!(fake.world().submitted.len(), expected);
        }
    }
}
