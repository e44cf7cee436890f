//! `conductor project`: groups of repositories with common rules.
//!
//! It does not know repositories.

use conductor_web::api::{AcceptedView, AddProject, ProjectList};

use crate::exit::{Exit, Failure};
use crate::out::Shown;
use crate::session::Session;

/// Groups repositories
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ProjectCommand {
    /// Adds a project
    Add {
        /// Its name: lowercase letters, digits and hyphens
        name: String,
    },
    /// Lists the projects
    List,
}

/// Runs the command.
pub(crate) async fn project(session: &Session, command: ProjectCommand) -> Result<Exit, Failure> {
    match command {
        ProjectCommand::Add { name } => {
            let client = session.client().await?;
            let accepted: AcceptedView = client
                .post("/projects", &AddProject { name: name.clone() })
                .await?;
            session.out.talk(&format!("✔ project {name} added"));
            session.out.data(&accepted, |_| String::new())?;
        }
        ProjectCommand::List => {
            let projects = ProjectList {
                projects: session.source().await?.instance().await?.projects,
            };
            session.out.data(&projects, |list| {
                let names: Vec<String> = list.projects.iter().map(|name| format!("{name}\n")).collect();
                Shown::or(
                    names.concat(),
                    "no projects; `conductor project add <name>` makes one",
                )
            })?;
        }
    }
    Ok(Exit::Ok)
}
