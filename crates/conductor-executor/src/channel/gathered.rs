//! Gathers the parts of an answer, each kind within the bounds that its request set.
//!
//! This module does not know which parts may come: the guest's `Calls` has checked them.

use conductor_guest::response::{Entry, Match, Response};
use conductor_port::executor::Listener;

use crate::output::Kept;

/// What came of a request so far.
#[derive(Debug)]
pub(crate) enum Gathered {
    /// A command's output.
    Output {
        /// What is kept of it.
        kept: Kept,
        /// Who hears all of it.
        listener: Option<Listener>,
    },
    /// A file's bytes.
    Bytes(Vec<u8>),
    /// What a list found.
    Entries(Vec<Entry>),
    /// What a search found.
    Matches(Vec<Match>),
    /// There are no parts.
    Nothing,
}

impl Gathered {
    /// Takes a part, and says how many bytes of a command's output it held.
    pub(super) fn take(&mut self, part: Response) -> u32 {
        match (self, part) {
            (Self::Output { kept, listener }, Response::Output { bytes, .. }) => {
                kept.push(&bytes);
                if let Some(Listener(hear)) = listener {
                    hear(&bytes);
                }
                return u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            }
            (Self::Bytes(gathered), Response::FileBytes(bytes)) => gathered.extend(bytes),
            (Self::Entries(gathered), Response::Entries(entries)) => gathered.extend(entries),
            (Self::Matches(gathered), Response::Matches(matches)) => gathered.extend(matches),
            (
                Self::Output { .. } | Self::Bytes(_) | Self::Entries(_) | Self::Matches(_) | Self::Nothing,
                _,
            ) => {}
        }
        0
    }
}
