//! `conductor audit`: proves that nothing in the log was changed, removed, reordered or cut off (SEC-8).
//!
//! It does not know how chains are made.

use crate::exit::{Exit, Failure};
use crate::session::Session;

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
                    "{} {} records in {} streams, {} findings\n",
                    if audit.holds { "✔" } else { "✘" },
                    audit.records,
                    audit.streams,
                    audit.findings.len()
                );
                for finding in &audit.findings {
                    text.push_str(&format!("  {}\n", conductor_web::visible::line(&finding.what)));
                }
                if audit.unanchored > 0 {
                    let count = audit.unanchored;
                    text.push_str(&format!(
                        "  {count} records are not anchored yet: their loss could not be told\n"
                    ));
                }
                text
            })?;
            Ok(if audit.holds { Exit::Ok } else { Exit::Failed })
        }
    }
}
