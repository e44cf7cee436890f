//! Where an effect stands between being asked for and being done.
//!
//! The port and the tables speak of it as text; only here is it read and written. It does not know what an effect does.

use conductor_domain::id::EffectId;
use conductor_port::Fault;

/// Says that somebody else performs the effect by now.
pub(crate) fn lease_lost(effect: &EffectId) -> Fault {
    Fault::transient(format!(
        "the lease of {effect} is lost; whoever has it now goes on"
    ))
}

/// Where an effect stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Nobody performs it.
    Pending,
    /// Somebody performs it, or died doing so.
    Leased,
    /// It is over.
    Done,
}

impl Status {
    /// The name in records.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Leased => "leased",
            Self::Done => "done",
        }
    }

    /// Parses the name.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Leased, Self::Done]
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}
