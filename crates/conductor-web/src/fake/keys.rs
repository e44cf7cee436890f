//! Keys in memory; the store's own stand-in passes the contract, and this crate does not know the store.
//!
//! It does not know the door.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::OperatorName;
use conductor_domain::time::Timestamp;
use conductor_port::key::{Holder, Key, KeyKind, Keys};

/// Keys and passwords.
#[derive(Debug, Default)]
pub(crate) struct FakeKeys {
    kept: Mutex<Kept>,
}

/// What somebody else does just before the next session is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Meanwhile {
    AllKeysGo,
    ThePasswordChanges,
}

#[derive(Debug, Default)]
struct Kept {
    meanwhile: Option<Meanwhile>,
    keys: BTreeMap<Digest, Key>,
    passwords: BTreeMap<OperatorName, String>,
}

impl FakeKeys {
    pub(crate) fn count(&self) -> usize {
        self.kept().keys.len()
    }

    pub(crate) fn meanwhile(&self, what: Meanwhile) {
        self.kept().meanwhile = Some(what);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Keys for FakeKeys {
    async fn keep(&self, key: &Key, _: Timestamp) -> Result<(), Fault> {
        let mut kept = self.kept();
        if key.kind == KeyKind::Session {
            match kept.meanwhile.take() {
                Some(Meanwhile::AllKeysGo) => kept.keys.clear(),
                Some(Meanwhile::ThePasswordChanges) => {
                    kept.keys.clear();
                    kept.passwords.values_mut().for_each(|hash| hash.push('x'));
                }
                None => {}
            }
        }
        kept.keys.insert(key.hash.clone(), key.clone());
        Ok(())
    }

    async fn lengthen(&self, kind: KeyKind, hash: &Digest, ends_at: Timestamp) -> Result<bool, Fault> {
        let mut kept = self.kept();
        let Some(key) = kept.keys.get_mut(hash).filter(|key| key.kind == kind) else {
            return Ok(false);
        };
        key.ends_at = key.ends_at.max(ends_at);
        Ok(true)
    }

    async fn find(&self, kind: KeyKind, hash: &Digest, now: Timestamp) -> Result<Option<Key>, Fault> {
        let kept = self.kept();
        let found = kept.keys.get(hash);
        Ok(found.filter(|key| key.kind == kind && now < key.ends_at).cloned())
    }

    async fn take(&self, kind: KeyKind, hash: &Digest, now: Timestamp) -> Result<Option<Key>, Fault> {
        let found = self.find(kind, hash, now).await?;
        if found.is_some() {
            self.kept().keys.remove(hash);
        }
        Ok(found)
    }

    async fn take_all(&self, holder: &Holder) -> Result<(), Fault> {
        self.kept().keys.retain(|_, key| !key.holder.is_same(holder));
        Ok(())
    }

    async fn set_password(&self, operator: &OperatorName, hash: Option<&str>) -> Result<(), Fault> {
        let mut kept = self.kept();
        match hash {
            Some(hash) => kept.passwords.insert(operator.clone(), hash.to_owned()),
            None => kept.passwords.remove(operator),
        };
        Ok(())
    }

    async fn password(&self, operator: &OperatorName) -> Result<Option<String>, Fault> {
        Ok(self.kept().passwords.get(operator).cloned())
    }
}
