//! stub
use crate::{Event, Run};
/// Folds.
pub fn evolve(run: Option<Run>, _event: &Event) -> Option<Run> { run }
