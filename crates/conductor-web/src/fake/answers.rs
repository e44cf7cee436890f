//! Answers in memory; the store's own stand-in passes the contract, and this crate does not know the store.
//!
//! It does not know the door.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_port::answer::{Answers, Begun, KeptAnswer, NamedWrite};

/// Answers that were given.
#[derive(Debug, Default)]
pub(crate) struct FakeAnswers {
    kept: Mutex<BTreeMap<Digest, (NamedWrite, Option<KeptAnswer>)>>,
}

impl FakeAnswers {
    fn kept(&self) -> MutexGuard<'_, BTreeMap<Digest, (NamedWrite, Option<KeptAnswer>)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Answers for FakeAnswers {
    async fn begin(&self, write: &NamedWrite) -> Result<Begun, Fault> {
        let mut kept = self.kept();
        Ok(match kept.get(&write.name) {
            Some((known, _)) if known.request != write.request => Begun::Taken,
            Some((_, Some(answer))) => Begun::Answered(answer.clone()),
            Some((known, None)) if known.now >= write.lost_before => Begun::UnderWay,
            Some((_, None)) | None => {
                kept.insert(write.name.clone(), (write.clone(), None));
                Begun::New
            }
        })
    }

    async fn keep(&self, name: &Digest, answer: &KeptAnswer) -> Result<(), Fault> {
        if let Some((_, kept)) = self.kept().get_mut(name) {
            *kept = Some(answer.clone());
        }
        Ok(())
    }

    async fn forget(&self, name: &Digest) -> Result<(), Fault> {
        self.kept().remove(name);
        Ok(())
    }
}
