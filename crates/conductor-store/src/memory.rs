//! Keeps everything in memory: the reference for the contract suite, and the store of the simulator.
//!
//! Plain maps behind one lock, the same answers in the same order every time. It does not know files, and forgets
//! everything with its process.

mod ledger;
mod batch;
mod views;
mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::digest::Digest;
use conductor_domain::id::{EffectId, OperatorName, RepoId, RunId};
use conductor_domain::time::Timestamp;
use conductor_port::Fault;
use conductor_port::answer::{Answers, Begun, KeptAnswer, NamedWrite};
use conductor_port::blobs::{Blobs, CallPage, KeptBytes, ToolCall, ToolLog};
use conductor_port::duty::{Duties, Duty, DutyWish, Holder};
use conductor_port::herald::Marks;
use conductor_port::key::{self, Key, KeyKind, Keys};
use conductor_port::lease::{Leases, ResourceKind, ResourceLease, Taken};
use conductor_port::ledger::{
    EffectRow, EffectStatus, ForgeWrite, NewEffect, Record, RunRow, Settlement, StreamId,
};

use crate::cut::cut;
use crate::lost::lease_lost;

/// A store in memory.
#[derive(Debug, Default)]
pub struct Memory {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    streams: BTreeMap<StreamId, Vec<Record>>,
    /// Every record in the order in which it was kept.
    places: Vec<(StreamId, u64)>,
    event_ids: BTreeSet<String>,
    seen: BTreeSet<String>,
    effects: BTreeMap<EffectId, Kept>,
    slots: BTreeMap<RunId, RepoId>,
    open_issues: BTreeMap<(RepoId, u64), RunId>,
    runs: BTreeMap<RunId, RunRow>,
    instance: Option<InstanceRow>,
    writes: BTreeMap<EffectId, (Place, ForgeWrite)>,
    blobs: BTreeMap<Digest, Vec<u8>>,
    calls: BTreeMap<(EffectId, u64), ToolCall>,
    resources: BTreeMap<(ResourceKind, String), ResourceLease>,
    duties: BTreeMap<Duty, (String, Timestamp)>,
    keys: BTreeMap<Digest, Key>,
    passwords: BTreeMap<OperatorName, String>,
    marks: BTreeMap<String, String>,
    answers: BTreeMap<Digest, (NamedWrite, Option<KeptAnswer>)>,
}

/// State, last sequence number and last hash of the instance.
type InstanceRow = (String, u64, String);

/// Where in its stream something was asked for: sequence number of the batch, ordinal within it.
type Place = (u64, usize);

#[derive(Debug, Clone)]
struct Kept {
    asked: NewEffect,
    created_at: Timestamp,
    place: Place,
    status: EffectStatus,
    /// How often it was leased; also the fencing token, which only grows, and by one with each lease.
    attempts: u32,
    stop: bool,
    worker: String,
    lease_until: Option<Timestamp>,
}

impl Kept {
    fn row(&self) -> EffectRow {
        EffectRow {
            id: self.asked.id.clone(),
            run: self.asked.run.clone(),
            repo: self.asked.repo,
            kind: self.asked.kind,
            payload: self.asked.payload.clone(),
            status: self.status,
            attempts: self.attempts,
            stop: self.stop,
            created_at: self.created_at,
        }
    }
}

impl Memory {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// A panic of another holder leaves the maps usable: every change is made after all checks.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Blobs for Memory {
    async fn put(&self, kind: ArtifactKind, bytes: &[u8]) -> Result<Artifact, Fault> {
        let (artifact, kept) = cut(kind, bytes);
        self.state()
            .blobs
            .entry(artifact.digest.clone())
            .or_insert_with(|| kept.into_owned());
        Ok(artifact)
    }

    async fn get(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.state().blobs.get(digest).cloned())
    }

    async fn list(&self, after: &str, limit: u32) -> Result<Vec<KeptBytes>, Fault> {
        let state = self.state();
        let later = state.blobs.iter().filter(|(digest, _)| digest.as_str() > after);
        let kept = later.map(|(digest, bytes)| KeptBytes {
            address: digest.to_string(),
            bytes: bytes.clone(),
        });
        Ok(kept.take(limit as usize).collect())
    }
}

#[async_trait]
impl ToolLog for Memory {
    async fn append(&self, lease: Option<&Settlement>, calls: &[ToolCall]) -> Result<(), Fault> {
        let mut state = self.state();
        let holds = |lease: &Settlement| {
            let kept = state.effects.get(&lease.id);
            kept.is_some_and(|kept| kept.is_leased_by(lease))
        };
        if let Some(lost) = lease.filter(|lease| !holds(lease)) {
            return Err(lease_lost(&lost.id));
        }
        for call in calls {
            state
                .calls
                .entry((call.invocation.clone(), call.n))
                .or_insert_with(|| call.clone());
        }
        Ok(())
    }

    async fn read(&self, invocation: &EffectId) -> Result<Vec<ToolCall>, Fault> {
        let from = (invocation.clone(), 0)..=(invocation.clone(), u64::MAX);
        Ok(self
            .state()
            .calls
            .range(from)
            .map(|(_, call)| call.clone())
            .collect())
    }

    async fn page(&self, invocation: &EffectId, part: &CallPage) -> Result<Vec<ToolCall>, Fault> {
        let calls = self.read(invocation).await?.into_iter().rev();
        Ok(calls
            .filter(|call| part.before.is_none_or(|before| call.n < before))
            .filter(|call| !part.stopped || call.decision != "allow")
            .take(part.limit as usize)
            .collect())
    }
}

#[async_trait]
impl Leases for Memory {
    async fn take(&self, lease: &ResourceLease) -> Result<Taken, Fault> {
        let mut state = self.state();
        let held = state
            .resources
            .entry((lease.kind, lease.name.clone()))
            .or_insert_with(|| lease.clone());
        if held.run != lease.run {
            return Ok(Taken::No);
        }
        held.heartbeat = lease.heartbeat;
        Ok(Taken::Yes)
    }

    async fn give_back(&self, run: &RunId, kind: ResourceKind, name: &str) -> Result<(), Fault> {
        let mut state = self.state();
        let key = (kind, name.to_owned());
        if state.resources.get(&key).is_some_and(|held| held.run == *run) {
            state.resources.remove(&key);
        }
        Ok(())
    }

    async fn held(&self, run: Option<&RunId>) -> Result<Vec<ResourceLease>, Fault> {
        let state = self.state();
        let wanted = state
            .resources
            .values()
            .filter(|held| run.is_none_or(|run| held.run == *run));
        let mut held: Vec<ResourceLease> = wanted.cloned().collect();
        held.sort_by(|a, b| (&a.run, a.kind.as_str(), &a.name).cmp(&(&b.run, b.kind.as_str(), &b.name)));
        Ok(held)
    }
}

#[async_trait]
impl Marks for Memory {
    async fn marks(&self, beginning: &str) -> Result<Vec<(String, String)>, Fault> {
        let state = self.state();
        let found = state.marks.iter().filter(|(name, _)| name.starts_with(beginning));
        Ok(found.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    async fn mark(&self, name: &str, value: &str) -> Result<(), Fault> {
        self.state().marks.insert(name.to_owned(), value.to_owned());
        Ok(())
    }
}

#[async_trait]
impl Duties for Memory {
    async fn hold(&self, wish: &DutyWish) -> Result<Holder, Fault> {
        let mut state = self.state();
        if let Some((worker, until)) = state.duties.get(&wish.duty)
            && *worker != wish.worker
            && *until >= wish.now
        {
            return Ok(Holder::Another);
        }
        state.duties.insert(wish.duty, (wish.worker.clone(), wish.until));
        Ok(Holder::Us)
    }

    async fn lay_down(&self, duty: Duty, worker: &str) -> Result<(), Fault> {
        let mut state = self.state();
        if state
            .duties
            .get(&duty)
            .is_some_and(|(holder, _)| holder == worker)
        {
            state.duties.remove(&duty);
        }
        Ok(())
    }
}

#[async_trait]
impl Answers for Memory {
    async fn begin(&self, write: &NamedWrite) -> Result<Begun, Fault> {
        let mut state = self.state();
        let answers = &mut state.answers;
        answers.retain(|_name, (kept, _)| write.now < kept.ends_at);
        match answers.get(&write.name) {
            Some((kept, _)) if kept.request != write.request => return Ok(Begun::Taken),
            Some((_, Some(answer))) => return Ok(Begun::Answered(answer.clone())),
            Some((kept, None)) if kept.now >= write.lost_before => return Ok(Begun::UnderWay),
            Some((_, None)) | None => {}
        }
        answers.insert(write.name.clone(), (write.clone(), None));
        while answers.len() > usize::try_from(write.most).unwrap_or(usize::MAX) {
            let first = answers.iter().min_by_key(|(_, (kept, _))| kept.ends_at);
            let Some(first) = first.map(|(name, _)| name.clone()) else {
                break;
            };
            answers.remove(&first);
        }
        Ok(Begun::New)
    }

    async fn keep(&self, name: &Digest, answer: &KeptAnswer) -> Result<(), Fault> {
        if let Some((_, kept)) = self.state().answers.get_mut(name) {
            *kept = Some(answer.clone());
        }
        Ok(())
    }

    async fn forget(&self, name: &Digest) -> Result<(), Fault> {
        let mut state = self.state();
        if state
            .answers
            .get(name)
            .is_some_and(|(_, answer)| answer.is_none())
        {
            state.answers.remove(name);
        }
        Ok(())
    }
}

#[async_trait]
impl Keys for Memory {
    async fn keep(&self, key: &Key, now: Timestamp) -> Result<(), Fault> {
        let mut state = self.state();
        state.keys.retain(|_hash, kept| now < kept.ends_at);
        let kept = state.keys.entry(key.hash.clone()).or_insert_with(|| key.clone());
        kept.ends_at = kept.ends_at.max(key.ends_at);
        Ok(())
    }

    async fn lengthen(&self, kind: KeyKind, hash: &Digest, ends_at: Timestamp) -> Result<bool, Fault> {
        let mut state = self.state();
        let Some(key) = state.keys.get_mut(hash).filter(|key| key.kind == kind) else {
            return Ok(false);
        };
        key.ends_at = key.ends_at.max(ends_at);
        Ok(true)
    }

    async fn find(&self, kind: KeyKind, hash: &Digest, now: Timestamp) -> Result<Option<Key>, Fault> {
        let state = self.state();
        let found = state.keys.get(hash);
        Ok(found.filter(|key| key.kind == kind && now < key.ends_at).cloned())
    }

    async fn take(&self, kind: KeyKind, hash: &Digest, now: Timestamp) -> Result<Option<Key>, Fault> {
        let mut state = self.state();
        if state.keys.get(hash).is_none_or(|key| key.kind != kind) {
            return Ok(None);
        }
        Ok(state.keys.remove(hash).filter(|key| now < key.ends_at))
    }

    async fn take_all(&self, holder: &key::Holder) -> Result<(), Fault> {
        self.state().keys.retain(|_hash, key| !key.holder.is_same(holder));
        Ok(())
    }

    async fn set_password(&self, operator: &OperatorName, hash: Option<&str>) -> Result<(), Fault> {
        let mut state = self.state();
        match hash {
            Some(hash) => state.passwords.insert(operator.clone(), hash.to_owned()),
            None => state.passwords.remove(operator),
        };
        Ok(())
    }

    async fn password(&self, operator: &OperatorName) -> Result<Option<String>, Fault> {
        Ok(self.state().passwords.get(operator).cloned())
    }
}
