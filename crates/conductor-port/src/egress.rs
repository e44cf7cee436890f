//! The way from a sandbox to the network: one outlet per sandbox, open for as long as it (EXEC-3, S-32).
//!
//! Whatever is not granted is denied, and the denial is kept before the sandbox hears of it. This port does not know who
//! grants, nor what is asked for.

use async_trait::async_trait;
use conductor_domain::egress::Grant;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};

use crate::executor::Way;

/// What an outlet is opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutletSpec {
    /// The effect that owns the sandbox.
    pub effect: EffectId,
    /// The run.
    pub run: RunId,
    /// What its project may reach; none is an outlet that only hears requests.
    pub grants: Vec<Grant>,
}

/// Opens outlets.
#[async_trait]
pub trait Egress: Send + Sync + std::fmt::Debug {
    /// Opens the outlet of one sandbox. It ends with [`Outlet::close`], with its drop, or with this process. If repeated
    /// for an effect whose process died: what that left is replaced.
    async fn open(&self, spec: OutletSpec) -> Result<Box<dyn Outlet>, Fault>;
}

/// The open outlet of one sandbox.
#[async_trait]
pub trait Outlet: Send + Sync + std::fmt::Debug {
    /// What the sandbox is opened with.
    fn way(&self) -> Way;

    /// What a command needs in its environment to find the outlet; the command's words stand beside what it is denied.
    fn environment(&self, command: &str) -> Vec<(String, String)>;

    /// Ends every connection and waits until they are over.
    async fn close(self: Box<Self>);
}
