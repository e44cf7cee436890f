//! The marker in every copy that Conductor made: which skill, and what was put there.
//!
//! What lies in a target without one is somebody else's and is never touched. This module does not know who reads it.

use conductor_domain::digest::Digest;
use conductor_port::target::{Found, Mode, Placement};
use serde::{Deserialize, Serialize};

use crate::tree::Listing;

const VERSION: u32 = 1;

/// What stands in a marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    version: u32,
    skill: String,
    digest: Digest,
}

impl Marker {
    /// Marks a copy.
    pub(crate) fn new(skill: &str, digest: &Digest) -> Self {
        Self {
            version: VERSION,
            skill: skill.to_owned(),
            digest: digest.clone(),
        }
    }

    /// The marker as the one line of a file.
    pub(crate) fn line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("a marker holds nothing that JSON cannot");
        line.push('\n');
        line
    }

    /// Judges a copy by the text of its marker and by what it holds.
    pub(crate) fn judge(text: Option<&str>, place: &Placement, listing: &Listing) -> Found {
        let foreign = |what: &str| Found::Foreign {
            what: what.to_owned(),
        };
        let Some(text) = text else {
            return foreign("a directory");
        };
        match serde_json::from_str::<Self>(text) {
            Ok(marker) if marker.version == VERSION && marker.skill == place.name() => Found::Managed {
                mode: Mode::Copy,
                recorded: marker.digest,
                actual: listing.digest(),
            },
            Ok(marker) if marker.version == VERSION => foreign("a copy of another skill"),
            Ok(_) | Err(_) => foreign("a directory with a marker of another program"),
        }
    }
}
