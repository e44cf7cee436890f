//! Says that a lease is lost, in the same words whichever store noticed it.
//!
//! It does not know what was to be written under the lease.

use conductor_domain::id::EffectId;
use conductor_port::Fault;

/// Says that somebody else performs the effect by now.
pub(crate) fn lease_lost(effect: &EffectId) -> Fault {
    Fault::transient(format!(
        "the lease of {effect} is lost; whoever has it now goes on"
    ))
}
