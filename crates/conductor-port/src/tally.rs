//! What many runs took, for whoever counts them.
//!
//! This port does not know what is counted.

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::figures::Figures;
use conductor_domain::id::RepoId;
use conductor_domain::time::Timestamp;

/// Which runs to tell of: those that began or ended from one time on until before another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// From this time on.
    pub from: Timestamp,
    /// Before this time.
    pub until: Timestamp,
    /// Only of this project.
    pub project: Option<String>,
    /// Only of this repository.
    pub repo: Option<RepoId>,
}

/// What one run took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Took {
    /// When it was started.
    pub started_at: Timestamp,
    /// The phase's name.
    pub phase: String,
    /// What it took; absent for a run that was begun before this was counted.
    pub figures: Option<Figures>,
}

/// Tells what runs took. Sees every batch that was kept before the call.
#[async_trait]
pub trait Tally: Send + Sync + std::fmt::Debug {
    /// Tells of all runs that began or ended in a span, in no order that matters.
    async fn took(&self, span: &Span) -> Result<Vec<Took>, Fault>;
}
