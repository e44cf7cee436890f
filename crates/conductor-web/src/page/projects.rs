//! Projects and the repositories registered in them.
//!
//! This module does not know what is worked on.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{Html, Redirect};
use conductor_domain::instance::TestEgress;
use serde::Deserialize;

use crate::actor::Actor;
use crate::api::{AddProject, RegisterRepo};
use crate::door::Door;
use crate::error::Error;
use crate::extract::{self, Filled};
use crate::handle;
use crate::page::frame::{Frame, Section, page};
use crate::page::trouble::Trouble;
use crate::visible;

#[derive(Template)]
#[template(path = "projects.html")]
struct ProjectsPage {
    frame: Frame,
    projects: Vec<Project>,
}

struct Project {
    name: String,
    repos: Vec<Repo>,
    /// What its sandboxes may reach, each with its risk.
    grants: Vec<String>,
}

struct Repo {
    name: String,
    branch: String,
    test: String,
    slots: u32,
}

/// The fields of the form for a project.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectForm {
    name: String,
}

/// The fields of the form for a repository.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepoForm {
    project: String,
    repo: String,
    test: String,
    #[serde(default, deserialize_with = "extract::or_empty")]
    slots: Option<u32>,
    /// Empty where there is none.
    #[serde(default)]
    board: String,
}

/// Shows the projects.
pub(crate) async fn show(State(door): State<Arc<Door>>, actor: Actor) -> Result<Html<String>, Trouble> {
    let instance = door.reader.instance().await?;
    let projects = instance
        .projects
        .iter()
        .map(|project| Project {
            name: project.to_string(),
            repos: instance
                .repos
                .iter()
                .filter(|known| known.project == *project)
                .map(|known| Repo {
                    name: known.repo.clone(),
                    branch: visible::line(&known.base_branch),
                    test: visible::line(&known.test_command.join(" ")),
                    slots: known.slots,
                })
                .collect(),
            grants: instance
                .egress
                .iter()
                .filter(|known| known.project == *project)
                .map(|known| format!("{} ({})", known.grant, known.risk))
                .collect(),
        })
        .collect();
    Ok(page(&ProjectsPage {
        frame: Frame::of(&door, &actor, Section::Projects, "Projects").await?,
        projects,
    }))
}

/// Adds a project.
pub(crate) async fn add(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(form): Filled<ProjectForm>,
) -> Result<Redirect, Trouble> {
    handle::instance::add(&door, &actor, AddProject { name: form.name }).await?;
    Ok(Redirect::to("/projects"))
}

/// Registers a repository.
pub(crate) async fn register(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(form): Filled<RepoForm>,
) -> Result<Redirect, Trouble> {
    // Words apart by blanks, as in a terminal without quotes; whoever needs more has the command line.
    let test_command: Vec<String> = form.test.split_whitespace().map(str::to_owned).collect();
    if form
        .test
        .contains(['"', '\'', '\\', '$', '|', '&', ';', '<', '>', '`'])
    {
        return Err(Error::Invalid {
            what: "the test command is started without a shell; write the words alone, or a script's name"
                .to_owned(),
        }
        .into());
    }
    let board = match form.board.trim() {
        "" => None,
        number => Some(number.parse().map_err(|_| Error::Invalid {
            what: format!("`{number}` is not the number of a board"),
        })?),
    };
    let wish = RegisterRepo {
        project: form.project,
        repo: form.repo,
        test_command,
        slots: form.slots,
        base_branch: None,
        test_egress: TestEgress::None,
        board,
    };
    handle::instance::register(&door, &actor, wish).await?;
    Ok(Redirect::to("/projects"))
}
