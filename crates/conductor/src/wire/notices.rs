//! Puts the webhook out behind the engine's notices, with the database's marks to remember how far it was told.
//!
//! It does not know what is told.

use std::sync::Arc;

use conductor_engine::Telling;
use conductor_port::clock::Clock;

use super::Records;
use crate::exit::Failure;
use crate::hook::{Caller, Hook};

/// Prepares to tell notices where the settings name somebody who listens.
pub(super) fn telling(
    hook: Option<Hook>,
    clock: Arc<dyn Clock>,
    records: &Records,
) -> Result<Option<Telling>, Failure> {
    let Some(hook) = hook else { return Ok(None) };
    let caller =
        Caller::new(hook, clock).map_err(|error| Failure::because("preparing to tell notices", &error))?;
    Ok(Some(Telling {
        herald: Arc::new(caller),
        marks: records.database.clone(),
    }))
}
