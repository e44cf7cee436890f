//! Several runs at once: plans of low risk, places in the queue, and all runs of a project (UI-3, SEC-6).
//!
//! Every run is asked by itself, and what came of each is shown. What cannot be taken back is confirmed by typing. This
//! module does not know what a run accepts.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use conductor_domain::digest::Digest;
use conductor_domain::id::RunId;
use conductor_port::views::RunFilter;
use serde::Deserialize;

use crate::actor::Actor;
use crate::api::{ApproveSeveral, BulkView, CancelAll, Reprioritize, SeenPlan};
use crate::door::Door;
use crate::error::Error;
use crate::extract::Filled;
use crate::handle::bulk;
use crate::page::frame::{Frame, Section, page};
use crate::page::line::Line;
use crate::page::run::Text;
use crate::page::trouble::Trouble;
use crate::risk;
use crate::visible;

/// So many open runs can be ticked at once.
const SHOWN: u32 = 200;

#[derive(Template)]
#[template(path = "bulk.html")]
struct BulkPage {
    frame: Frame,
    low: Vec<Plan>,
    others: Vec<Plan>,
    open: Vec<Line>,
    projects: Vec<Project>,
    done: Option<Done>,
}

/// A plan that waits.
struct Plan {
    run: String,
    title: String,
    repo: String,
    subject: String,
    summary: String,
    files: Vec<String>,
    because: Vec<String>,
    /// What would be approved, whole; only where it can be from here.
    texts: Vec<Text>,
}

struct Project {
    name: String,
    open: String,
}

/// What came of a form.
struct Done {
    accepted: usize,
    results: Vec<Outcome>,
}

struct Outcome {
    run: String,
    is_accepted: bool,
    why: String,
}

/// Which project is called off.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelForm {
    project: String,
    #[serde(default)]
    comment: String,
    #[serde(default)]
    confirm: String,
}

/// Shows what can be asked of several runs.
pub(crate) async fn show(State(door): State<Arc<Door>>, actor: Actor) -> Result<Html<String>, Trouble> {
    render(&door, &actor, None).await
}

/// Approves the ticked plans; each box says which run and what was looked at.
pub(crate) async fn approve(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(fields): Filled<Vec<(String, String)>>,
) -> Result<Html<String>, Trouble> {
    let mut wish = ApproveSeveral {
        plans: vec![],
        comment: None,
    };
    for (name, value) in fields {
        match name.as_str() {
            "comment" => wish.comment = Some(value).filter(|said| !said.trim().is_empty()),
            "plan" => wish.plans.push(seen(&value)?),
            _ => return Err(unexpected(&name).into()),
        }
    }
    let done = bulk::approve_all(&door, &actor, wish).await?;
    render(&door, &actor, Some(done)).await
}

/// Moves the ticked runs.
pub(crate) async fn reprioritize(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(fields): Filled<Vec<(String, String)>>,
) -> Result<Html<String>, Trouble> {
    let mut wish = Reprioritize {
        runs: vec![],
        priority: 0,
    };
    for (name, value) in fields {
        match name.as_str() {
            "priority" => wish.priority = value.parse().map_err(|_| unexpected("priority"))?,
            "run" => wish
                .runs
                .push(RunId::parse(value).map_err(|error| Error::Invalid {
                    what: error.to_string(),
                })?),
            _ => return Err(unexpected(&name).into()),
        }
    }
    let done = bulk::reprioritize_all(&door, &actor, wish).await?;
    render(&door, &actor, Some(done)).await
}

/// Cancels all runs of a project.
pub(crate) async fn cancel(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(form): Filled<CancelForm>,
) -> Result<Html<String>, Trouble> {
    if form.project.is_empty() || form.confirm.trim() != form.project {
        return Err(Error::Unconfirmed {
            expected: form.project,
        }
        .into());
    }
    let wish = CancelAll {
        project: form.project,
        comment: Some(form.comment).filter(|comment| !comment.trim().is_empty()),
    };
    let done = bulk::cancel_all(&door, &actor, wish).await?;
    render(&door, &actor, Some(done)).await
}

fn seen(ticked: &str) -> Result<SeenPlan, Error> {
    let parts = ticked.split_once(' ');
    let parts = parts.and_then(|(run, subject)| {
        let run = RunId::parse(run.to_owned()).ok()?;
        let subject = Digest::parse(subject.to_owned()).ok()?;
        Some(SeenPlan { run, subject })
    });
    parts.ok_or_else(|| unexpected("plan"))
}

fn unexpected(field: &str) -> Error {
    Error::Invalid {
        what: format!("the field `{field}` of the form is not what is expected here"),
    }
}

async fn render(door: &Door, actor: &Actor, done: Option<BulkView>) -> Result<Html<String>, Trouble> {
    let now = door.settings.clock.now();
    let frame = Frame::of(door, actor, Section::Runs, "Several at once").await?;
    let frame = frame.answering(done.is_some().then_some("/bulk"));
    let (mut low, mut others) = (Vec::new(), Vec::new());
    for plan in risk::plans(door).await?.plans {
        let is_low = plan.because.is_empty();
        let gate = if is_low {
            door.reader.run(&plan.run).await?.gate
        } else {
            None
        };
        let shown = Plan {
            run: plan.run.to_string(),
            title: visible::line(&plan.title),
            repo: visible::line(&plan.repo),
            subject: plan.subject.to_string(),
            summary: visible::line(&plan.summary),
            files: plan.files.iter().map(|file| visible::line(file)).collect(),
            because: plan.because.iter().map(|why| visible::line(why)).collect(),
            texts: gate.iter().flat_map(|gate| &gate.shown).map(Text::of).collect(),
        };
        // A plan that was answered or replaced since it was judged is not the one that would be shown.
        match gate {
            Some(gate) if gate.subject == plan.subject => low.push(shown),
            None if !is_low => others.push(shown),
            Some(_) | None => {}
        }
    }
    let open = |project: Option<String>| RunFilter {
        project,
        open: true,
        limit: SHOWN,
        ..RunFilter::default()
    };
    let mut projects = Vec::new();
    for project in door.reader.instance().await?.projects {
        let count = door.reader.count(&open(Some(project.to_string()))).await?;
        let more = if count == SHOWN { "+" } else { "" };
        projects.push(Project {
            name: project.to_string(),
            open: format!("{count}{more} open"),
        });
    }
    Ok(page(&BulkPage {
        low,
        others,
        open: Line::all(&door.reader.runs(open(None)).await?.runs, now),
        projects,
        done: done.map(|done| Done {
            accepted: done.results.iter().filter(|result| result.accepted).count(),
            results: done
                .results
                .into_iter()
                .map(|result| Outcome {
                    run: result.run.to_string(),
                    is_accepted: result.accepted,
                    why: result.why.as_deref().map(visible::line).unwrap_or_default(),
                })
                .collect(),
        }),
        frame,
    }))
}
