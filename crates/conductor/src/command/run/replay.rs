//! `conductor run replay`: recomputes every decision of a run from its stored inputs and says where it differs (RUN-2).
//!
//! It does not know how decisions are made.

use conductor_domain::id::RunId;

use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::show::words::count;

/// Runs the command; a difference is a failure.
pub(crate) async fn replay(session: &Session, run: &RunId) -> Result<Exit, Failure> {
    let replay = session.source().await?.replay(run).await?;
    session.out.data(&replay, |replay| {
        let mut text = format!(
            "{} run {}: {} with {} recomputed, {}\n",
            if replay.same { "✔" } else { "✘" },
            replay.run,
            count(replay.decisions, "decision"),
            count(replay.events, "event"),
            count(replay.differences.len(), "difference")
        );
        if replay.other_rules > 0 {
            text.push_str(&format!(
                "  {} made by another version of the rules, which alone can recompute them\n",
                count(replay.other_rules, "decision")
            ));
        }
        for difference in &replay.differences {
            text.push_str(&format!(
                "  {}: {}\n",
                difference.seq,
                conductor_web::visible::line(&difference.what)
            ));
        }
        text
    })?;
    if replay.same {
        return Ok(Exit::Ok);
    }
    let verify = session.typed("conductor audit verify");
    session
        .out
        .talk(&format!("hint: `{verify}` tells whether the log was changed"));
    Ok(Exit::Failed)
}
