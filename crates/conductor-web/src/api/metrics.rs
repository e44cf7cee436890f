//! What runs took, counted.
//!
//! This module does not know how anything is counted.

use conductor_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the runs of some days took. Where it says "per run", it is per run that ended in these days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsView {
    /// From the beginning of this day on.
    #[schemars(with = "i64")]
    pub from: Timestamp,
    /// Until before this time.
    #[schemars(with = "i64")]
    pub until: Timestamp,
    /// How many began.
    pub started: u64,
    /// How many were merged.
    pub completed: u64,
    /// How many were given up.
    pub failed: u64,
    /// How many were called off.
    pub cancelled: u64,
    /// How many of a hundred that were not called off were merged; absent where there are none.
    pub success_percent: Option<u64>,
    /// Milliseconds from start to end, per run.
    pub duration_ms: SpreadView,
    /// Milliseconds that a person let it wait, here or at its pull request, per run.
    pub waited_ms: SpreadView,
    /// How often the Implementer tried, per run.
    pub attempts: SpreadView,
    /// How often an effect was repeated, a phase or an attempt started over, per run.
    pub retries: SpreadView,
    /// Each phase, in the order of a run's life.
    pub phases: Vec<PhaseFigures>,
    /// Each day, the oldest first.
    pub days: Vec<DayFigures>,
    /// Runs that began before runs were counted; only their start is in the figures.
    pub uncounted: u64,
}

/// The spread of a figure over runs; absent where there is no run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpreadView {
    /// How many runs.
    pub runs: u64,
    /// Half of them stay within it.
    pub median: Option<u64>,
    /// Nine of ten stay within it.
    pub p90: Option<u64>,
    /// All of them stay within it.
    pub most: Option<u64>,
    /// The sum over all.
    pub total: u64,
}

/// The time that runs were in a phase, all stays together; of the runs that were.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseFigures {
    /// The phase.
    pub phase: String,
    /// Milliseconds.
    pub ms: SpreadView,
}

/// What began and ended on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DayFigures {
    /// The day, in UTC: `2026-01-31`.
    pub day: String,
    /// How many began.
    pub started: u64,
    /// How many were merged.
    pub completed: u64,
    /// How many were given up.
    pub failed: u64,
    /// How many were called off.
    pub cancelled: u64,
}
