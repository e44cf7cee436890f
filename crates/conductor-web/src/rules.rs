//! What the door asks of policies: to lock them for a run, and to answer questions.
//!
//! The binary's `wire` implements it, so that this crate knows no policy language.

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::policy::{LockedPolicy, PolicyLayer};
use conductor_domain::spec::PolicyVersion;

use crate::api::{ExpectedView, FlawView, PolicyText, RulingView};

/// The policies that a run is held to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyLock {
    /// The address of all texts together.
    pub version: PolicyVersion,
    /// The texts.
    pub policies: Vec<LockedPolicy>,
}

/// Answers for policies. Where Conductor's own text is not among the texts given, the one of this program counts below.
#[async_trait]
pub trait Rules: Send + Sync + std::fmt::Debug {
    /// Locks these texts, Conductor's own, and the run's own for a run that starts; or says what is wrong with them.
    async fn lock(
        &self,
        stored: Vec<LockedPolicy>,
        own: Option<&str>,
    ) -> Result<Result<PolicyLock, Vec<String>>, Fault>;

    /// Reads the texts.
    async fn texts(&self, of: &[LockedPolicy]) -> Result<Vec<PolicyText>, Fault>;

    /// Answers a question; or says why it cannot be understood.
    async fn judge(&self, of: &[LockedPolicy], question: &str) -> Result<Result<RulingView, String>, Fault>;

    /// Says what is wrong with a text that would count over these; keeps nothing.
    async fn flaws(
        &self,
        below: &[LockedPolicy],
        layer: PolicyLayer,
        text: &str,
    ) -> Result<Vec<FlawView>, Fault>;

    /// Says what makes a change of this path more than an ordinary one, whatever stands in it; nothing for most paths.
    fn concern(&self, path: &str) -> Option<String>;

    /// Checks a file of expectations.
    async fn expect(&self, of: &[LockedPolicy], expectations: &str) -> Result<ExpectedView, Fault>;
}
