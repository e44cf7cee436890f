//! A run's state as a symbol and a word.
//!
//! This module does not know colours.

use crate::api::RunView;
use crate::visible;

/// Tells whether a run stands still, whatever phase it is in.
pub fn is_paused(run: &RunView) -> bool {
    run.held && !run.ended
}

/// What a run waits for, as the rest of a line; one that is paused says so itself.
pub fn waits(run: &RunView, waits_for: &str) -> String {
    if is_paused(run) {
        waits_for.to_owned()
    } else {
        format!("waits for {waits_for}")
    }
}

/// Where a run stands, and for one that ended early also why.
pub fn outcome(run: &RunView) -> String {
    match &run.ended_because {
        Some(reason) => format!("{}: {}", state(run), visible::line(reason)),
        None => state(run),
    }
}

/// The symbol and the word for where a run stands.
pub fn state(run: &RunView) -> String {
    if let Some(damage) = &run.damaged {
        return format!("✘ damaged ({})", damage.code);
    }
    format!("{} {}", symbol(run), word(run))
}

/// The symbol for where a run stands.
pub fn symbol(run: &RunView) -> &'static str {
    match run.phase.as_str() {
        "completed" => "✔",
        "failed" => "✘",
        "cancelled" => "⊘",
        _ if run.needs_human => "◆",
        _ if run.held => "‖",
        "awaiting_merge" => "◇",
        _ => "▶",
    }
}

/// The word for where a run stands.
pub fn word(run: &RunView) -> String {
    let waits = match (run.needs_human, run.held) {
        (true, true) => " (paused, needs you)",
        (true, false) => " (needs you)",
        (false, true) => " (paused)",
        (false, false) => "",
    };
    format!("{}{waits}", run.phase.replace('_', " "))
}
