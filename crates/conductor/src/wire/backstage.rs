//! What the door sees of the engine besides its inbox: what changes, what agents say, what is wrong, and the checks.
//!
//! It turns the engine's words into the door's and decides nothing. It does not know how anything is opened.

use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::skill::SkillLock;
use conductor_engine::{Committed, Engine, Live};
use conductor_port::ledger::StreamId;
use conductor_web::api::{AuditView, ReplayView, TroubleView};
use conductor_web::{Backstage, Change, Talk};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::{Records, RoleSkills};

/// What the door sees of the engine besides its inbox.
#[derive(Debug)]
pub(crate) struct BehindTheDoor {
    pub(crate) engine: Arc<Engine>,
    pub(crate) records: Records,
    pub(crate) skills: RoleSkills,
}

#[async_trait]
impl Backstage for BehindTheDoor {
    fn changes(&self) -> BoxStream<'static, Change> {
        let change = |committed: Committed| match committed.stream {
            StreamId::Run(run) => Some(Change { run: Some(run) }),
            StreamId::Instance => Some(Change { run: None }),
        };
        follow(self.engine.committed(), change, || Some(Change { run: None }))
    }

    fn talk(&self) -> BoxStream<'static, Talk> {
        let talk = |Live { run, effect, text }: Live| Some(Talk { run, effect, text });
        follow(self.engine.live(), talk, || None)
    }

    fn trouble(&self) -> Option<TroubleView> {
        let trouble = self.engine.trouble()?;
        let problem = conductor_web::Error::Fault(Fault::transient(trouble.what)).problem();
        Some(TroubleView {
            since: trouble.since,
            code: problem.code,
            what: problem.detail,
            hint: problem.hint,
        })
    }

    async fn skills(&self) -> Result<Vec<SkillLock>, Fault> {
        self.skills.lock(&self.records.blobs()).await
    }

    async fn verify(&self) -> Result<AuditView, Fault> {
        self.records.verify().await
    }

    async fn replay(&self, run: &RunId) -> Result<ReplayView, Fault> {
        self.records.replay(run).await
    }
}

/// Follows a broadcast; what a slow listener missed becomes `missed`.
fn follow<T: Clone + Send + 'static, U: Send + 'static>(
    receiver: Receiver<T>,
    heard: impl Fn(T) -> Option<U> + Send + Copy + 'static,
    missed: impl Fn() -> Option<U> + Send + Copy + 'static,
) -> BoxStream<'static, U> {
    stream::unfold(receiver, move |mut receiver| async move {
        match receiver.recv().await {
            Ok(value) => Some((heard(value), receiver)),
            Err(RecvError::Lagged(_)) => Some((missed(), receiver)),
            Err(RecvError::Closed) => None,
        }
    })
    .filter_map(std::future::ready)
    .boxed()
}
