//! Searching the records of all streams, by their words and by what stands beside them; the newest come first.
//!
//! What a word is, every implementation understands alike: a run of letters and digits, whatever their case. Two words
//! with one other character between them (`main.rs`, `192.0`, `plan_approved`) belong together. A record has the words of
//! its kind, its actor, its cause, its stream, and of every text and number in its payload, but not the names of fields.
//! This port does not know who searches, nor what a record means.

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::RepoId;
use conductor_domain::time::Timestamp;

use crate::ledger::{Record, StreamId};

/// Which records to find; all that is given must fit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordFilter {
    /// Words that a record must have, all of them, in any order; words that belong together here must do so there. A
    /// word of three letters or more that ends in `*` stands for all that begin so. A text without any word finds
    /// nothing; an empty one does not matter.
    pub words: String,
    /// Only of this stream.
    pub stream: Option<StreamId>,
    /// Only of runs of this project.
    pub project: Option<String>,
    /// Only of runs of this repository.
    pub repo: Option<RepoId>,
    /// Only by this actor.
    pub actor: Option<String>,
    /// Only by this type of actor: `agent`, `operator` or `system`.
    pub actor_type: Option<String>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only of this class: `fact` or `decision`.
    pub class: Option<String>,
    /// Only at this time or later.
    pub from: Option<Timestamp>,
    /// Only before this time.
    pub until: Option<Timestamp>,
    /// None of these kinds.
    pub hidden: Vec<&'static str>,
    /// Only records that were kept before the one with this place.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: u32,
}

/// A record that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it stands among all records, in the order in which they were kept; a rebuild may number them anew.
    pub place: u64,
    /// The record.
    pub record: Record,
}

/// Finds records. Sees every batch that was kept before the call.
#[async_trait]
pub trait Search: Send + Sync + std::fmt::Debug {
    /// Finds records, the last that was kept first; so many as the limit says unless there are no more. Records that
    /// cannot be read are left out and do not count.
    async fn records(&self, filter: &RecordFilter) -> Result<Vec<Found>, Fault>;
}
