//! `conductor run replay`: recomputes every decision of a run from its stored inputs and says where it differs (RUN-2).
//!
//! It does not know how decisions are made.

use conductor_domain::id::RunId;

use crate::exit::{Exit, Failure};
use crate::session::Session;

/// Runs the command; a difference is a failure.
pub(crate) async fn replay(session: &Session, run: &RunId) -> Result<Exit, Failure> {
    let replay = session.source().await?.replay(run).await?;
    session.out.data(&replay, |replay| {
        let mut text = format!(
            "{} run {}: {} decisions with {} events recomputed, {} differences\n",
            if replay.same { "✔" } else { "✘" },
            replay.run,
            replay.decisions,
            replay.events,
            replay.differences.len()
        );
        for difference in &replay.differences {
            text.push_str(&format!(
                "  {}: {}\n",
                difference.seq,
                conductor_web::visible::line(&difference.what)
            ));
        }
        text
    })?;
    Ok(if replay.same { Exit::Ok } else { Exit::Failed })
}
