//! `conductor egress`: what the sandboxes of a project may reach at the network.
//!
//! A grant holds from the next sandbox on, also of runs under way; who gave it stands in the audit. It does not know what
//! was asked for: `conductor run show` does.

use conductor_web::api::{AcceptedView, GrantEgress, GrantList};

use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::show::table::Table;

/// Controls which hosts sandboxes may reach
#[derive(Debug, clap::Subcommand)]
pub(crate) enum EgressCommand {
    /// Lets the sandboxes of a project reach a host, from the next one on
    Allow(GrantArgs),
    /// Takes such a grant back, from the next sandbox on
    Revoke(GrantArgs),
    /// Lists what was granted
    List,
}

/// A grant to a project.
#[derive(Debug, clap::Args)]
pub(crate) struct GrantArgs {
    /// The host: files.example, *.files.example, files.example:8443, or http://files.example without TLS
    grant: String,
    /// The project
    #[arg(long)]
    project: String,
}

impl GrantArgs {
    fn wish(&self) -> GrantEgress {
        GrantEgress {
            project: self.project.clone(),
            grant: self.grant.clone(),
        }
    }
}

/// Runs the command.
pub(crate) async fn egress(session: &Session, command: EgressCommand) -> Result<Exit, Failure> {
    match command {
        EgressCommand::Allow(args) => {
            let client = session.client().await?;
            let accepted: AcceptedView = client.post("/egress", &args.wish()).await?;
            session.out.talk(&format!(
                "✔ sandboxes of {} may reach {} from the next one on; whatever may be reached can exfiltrate",
                args.project, args.grant
            ));
            session.out.data(&accepted, |_| String::new())?;
        }
        EgressCommand::Revoke(args) => {
            let client = session.client().await?;
            let accepted: AcceptedView = client.post("/egress/revoke", &args.wish()).await?;
            session.out.talk(&format!(
                "✔ sandboxes of {} may not reach {} any more, from the next one on",
                args.project, args.grant
            ));
            session.out.data(&accepted, |_| String::new())?;
        }
        EgressCommand::List => {
            let grants = GrantList {
                grants: session.source().await?.instance().await?.egress,
            };
            session.out.data(&grants, |list| {
                let mut table = Table::new(["PROJECT", "MAY REACH", "RISK"]);
                for known in &list.grants {
                    table.row([known.project.to_string(), known.grant.clone(), known.risk.clone()]);
                }
                table.render("nothing; sandboxes reach nothing but what `[egress]` of the settings allows")
            })?;
        }
    }
    Ok(Exit::Ok)
}
