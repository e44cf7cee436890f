//! `conductor projections`: throws away what is derived from the log and makes it anew.
//!
//! Works on the database itself, so no server may run. It does not know what projections hold.

use conductor_domain::id::RunId;
use conductor_engine::rebuild::Rebuilt;

use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::settings::Told;
use crate::show::words::count;
use crate::wire;

/// Looks after what is derived from the log
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ProjectionsCommand {
    /// Makes all projections anew from the log; no server may run meanwhile
    Rebuild,
}

/// Runs the command.
pub(crate) async fn projections(session: &Session, command: ProjectionsCommand) -> Result<Exit, Failure> {
    match command {
        ProjectionsCommand::Rebuild => {
            let told = Told::default().or_file(&session.data_dir.settings_file())?;
            if told.database_url.is_none() && !session.data_dir.database().exists() {
                // Opening for writing would make an empty database where a typo points.
                wire::open_for_reading(&session.data_dir).await?;
            }
            let _claim = session.data_dir.claim()?;
            let (records, _alone) = wire::open_alone(&session.data_dir, told.database_url.as_ref()).await?;
            let Rebuilt { streams, damaged } = records.rebuild().await?;
            records.close().await;
            let runs: Vec<&RunId> = damaged.iter().map(|(run, _why)| run).collect();
            let rebuilt = serde_json::json!({ "streams": streams, "damaged": runs });
            session.out.data(&rebuilt, |_| {
                format!("✔ projections of {} made anew\n", count(streams, "stream"))
            })?;
            match damaged.first() {
                None => Ok(Exit::Ok),
                Some((run, why)) => Err(Failure::coded(
                    "CDR0621",
                    format!(
                        "{} cannot be told anew and stays as it is; the first is {run}: {why}",
                        count(damaged.len(), "run")
                    ),
                    "`conductor audit verify` names the damaged record; bring back a copy of the database",
                )),
            }
        }
    }
}
