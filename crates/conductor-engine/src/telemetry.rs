//! Names every span and field that the engine writes; dashboards and tests read these, so they change on purpose only.
//!
//! This module does not know where telemetry goes.

/// An input comes in.
pub const INTAKE: &str = "intake";
/// The machine is asked.
pub const DECIDE: &str = "decide";
/// A decision is kept.
pub const COMMIT: &str = "commit";
/// Effects are leased.
pub const DISPATCH: &str = "dispatch";
/// An effect is performed.
pub const PERFORM: &str = "perform";
/// What came of it is reported.
pub const REPORT: &str = "report";
/// Deadlines are looked for.
pub const TIMER: &str = "timer";
/// What runs wait for at the forge is looked at.
pub const LOOK: &str = "look";
/// What an earlier process left is put right.
pub const RECOVER: &str = "recover";
/// A write that a process made after it had lost its lease was found at the forge and removed; `removed` counts.
pub const REPEATS_REMOVED: &str = "repeated comments were removed";
/// The heads of all chains are recorded.
pub const ANCHOR: &str = "anchor";
