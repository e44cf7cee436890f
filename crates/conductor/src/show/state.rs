//! A run's state as a symbol and a word.
//!
//! This module does not know colours.

use conductor_web::api::RunView;
use conductor_web::visible;

/// Where a run stands, and for one that ended early also why.
pub(crate) fn outcome(run: &RunView) -> String {
    match &run.ended_because {
        Some(reason) => format!("{}: {}", state(run), visible::line(reason)),
        None => state(run),
    }
}

/// The symbol and the word for where a run stands.
pub(crate) fn state(run: &RunView) -> String {
    let phase = run.phase.replace('_', " ");
    let symbol = match run.phase.as_str() {
        "completed" => "✔",
        "failed" => "✘",
        "cancelled" => "⊘",
        _ if run.needs_human => "◆",
        _ if run.held => "‖",
        "awaiting_merge" => "◇",
        _ => "▶",
    };
    let waits = match (run.needs_human, run.held) {
        (true, _) => " (needs you)",
        (false, true) => " (paused)",
        (false, false) => "",
    };
    format!("{symbol} {phase}{waits}")
}
