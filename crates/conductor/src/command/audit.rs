//! `conductor audit`: proves that nothing in the log was changed, removed, reordered or cut off (SEC-8).
//!
//! It does not know how chains are made.

use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::show::words::count;

/// Proves that nothing was tampered with
#[derive(Debug, clap::Subcommand)]
pub(crate) enum AuditCommand {
    /// Checks every stream against its chain and the recorded heads
    Verify,
}

/// Runs the command; a finding is a failure.
pub(crate) async fn audit(session: &Session, command: AuditCommand) -> Result<Exit, Failure> {
    match command {
        AuditCommand::Verify => {
            let audit = session.source().await?.verify().await?;
            session.out.data(&audit, |audit| {
                let mut text = format!(
                    "{} {} in {}, {}\n",
                    if audit.holds { "✔" } else { "✘" },
                    count(audit.records, "record"),
                    count(audit.streams, "stream"),
                    count(audit.findings.len(), "finding")
                );
                for finding in &audit.findings {
                    text.push_str(&format!("  {}\n", conductor_web::visible::line(&finding.what)));
                }
                if audit.unanchored > 0 {
                    text.push_str(&format!(
                        "  the newest {} not anchored yet (a running server does it every minute); a cut there would not show\n",
                        match audit.unanchored {
                            1 => "record is".to_owned(),
                            many => format!("{many} records are"),
                        }
                    ));
                }
                text
            })?;
            if audit.holds {
                return Ok(Exit::Ok);
            }
            session.out.talk(
                "hint: something outside Conductor wrote to the database; keep it as evidence, and bring back a copy",
            );
            Ok(Exit::Failed)
        }
    }
}
