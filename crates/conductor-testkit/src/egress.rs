//! Outlets that lead nowhere, and remember with what they were opened and that they were closed.
//!
//! It does not know requests.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::EffectId;
use conductor_port::egress::{Egress, Outlet, OutletSpec};
use conductor_port::executor::Way;

/// Opens outlets that lead nowhere.
#[derive(Debug, Clone, Default)]
pub struct FakeEgress {
    opened: Arc<Mutex<Vec<OutletSpec>>>,
    open: Arc<Mutex<BTreeSet<EffectId>>>,
}

impl FakeEgress {
    /// All that were opened, in order.
    pub fn opened(&self) -> Vec<OutletSpec> {
        locked(&self.opened).clone()
    }

    /// The effects whose outlets are open.
    pub fn open_outlets(&self) -> BTreeSet<EffectId> {
        locked(&self.open).clone()
    }
}

fn locked<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Egress for FakeEgress {
    async fn open(&self, spec: OutletSpec) -> Result<Box<dyn Outlet>, Fault> {
        let effect = spec.effect.clone();
        locked(&self.opened).push(spec);
        locked(&self.open).insert(effect.clone());
        Ok(Box::new(FakeOutlet {
            effect,
            open: Arc::clone(&self.open),
        }))
    }
}

#[derive(Debug)]
struct FakeOutlet {
    effect: EffectId,
    open: Arc<Mutex<BTreeSet<EffectId>>>,
}

#[async_trait]
impl Outlet for FakeOutlet {
    fn way(&self) -> Way {
        Way {
            port: 3128,
            socket: PathBuf::from(format!("/nowhere/{}", self.effect)),
        }
    }

    fn environment(&self, command: &str) -> Vec<(String, String)> {
        vec![("FAKE_PROXY".to_owned(), format!("{}/{command}", self.effect))]
    }

    async fn close(self: Box<Self>) {}
}

impl Drop for FakeOutlet {
    fn drop(&mut self) {
        locked(&self.open).remove(&self.effect);
    }
}
