//! Bytes by content address, the log of tool calls, and the records of held resources, on the database.
//!
//! It does not know what the bytes mean.

use async_trait::async_trait;
use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::digest::Digest;
use conductor_domain::id::{EffectId, RunId};
use conductor_port::blobs::{Blobs, CallPage, KeptBytes, ToolCall, ToolLog};
use conductor_port::lease::{Leases, ResourceKind, ResourceLease, Taken};
use conductor_port::ledger::Settlement;
use conductor_port::{Fault, known};

use super::conn::Arg::{Bytes, Int, OptInt, OptText, Text};
use super::conn::{Conn, Lock};
use super::fault::fault;
use super::rows::{self, number};
use super::writer::{Failed, Write};
use super::{Database, sql};
use crate::cut::cut;
use crate::lost::lease_lost;

struct Put {
    artifact: Artifact,
    bytes: Vec<u8>,
}

#[async_trait]
impl Write for Put {
    type Done = Artifact;
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("keep {} {}", self.artifact.kind.as_str(), self.artifact.digest)
    }

    async fn apply(&self, conn: &mut Conn) -> Result<Artifact, Failed<Fault>> {
        let Artifact { digest, kind, .. } = &self.artifact;
        conn.execute(
            sql::PUT_BLOB,
            &[Text(digest.as_str()), Text(kind.as_str()), Bytes(&self.bytes)],
        )
        .await?;
        Ok(self.artifact.clone())
    }
}

#[async_trait]
impl Blobs for Database {
    async fn put(&self, kind: ArtifactKind, bytes: &[u8]) -> Result<Artifact, Fault> {
        let (artifact, kept) = cut(kind, bytes);
        self.writer
            .write(Put {
                artifact,
                bytes: kept.into_owned(),
            })
            .await
    }

    async fn get(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Fault> {
        let attempted = format!("read bytes {digest}");
        let kept = self
            .look(
                &attempted,
                sql::GET_BLOB,
                &[Text(digest.as_str())],
                rows::only_bytes,
            )
            .await?
            .pop();
        match kept {
            Some(bytes) if Digest::of(&bytes) != *digest => Err(Fault::permanent(format!(
                "{attempted}: the kept bytes are not those, {}",
                known::DAMAGED
            ))),
            kept => Ok(kept),
        }
    }

    async fn list(&self, after: &str, limit: u32) -> Result<Vec<KeptBytes>, Fault> {
        let args = [Text(after), Int(i64::from(limit))];
        self.look("list the kept bytes", sql::LIST_BLOBS, &args, rows::kept_bytes)
            .await
    }
}

struct AppendCalls {
    lease: Option<Settlement>,
    calls: Vec<ToolCall>,
}

#[async_trait]
impl Write for AppendCalls {
    type Done = ();
    type Refused = Fault;

    fn attempted(&self) -> String {
        match self.calls.first() {
            Some(call) => format!(
                "keep {} tool calls of invocation {}",
                self.calls.len(),
                call.invocation
            ),
            None => "keep no tool call".to_owned(),
        }
    }

    async fn apply(&self, conn: &mut Conn) -> Result<(), Failed<Fault>> {
        if let Some(lease) = &self.lease {
            let id = lease.id.as_str();
            conn.hold(Lock::Effect(id)).await?;
            let held = [Text(id), Int(number(lease.token)?)];
            if conn.first(sql::HELD_EFFECT, &held).await?.is_none() {
                return Err(Failed::Refused(lease_lost(&lease.id)));
            }
        }
        for call in &self.calls {
            let args = [
                Text(call.invocation.as_str()),
                Text(call.run.as_str()),
                Int(number(call.n)?),
                Text(&call.tool),
                Text(&call.target),
                Text(&call.payload_hash),
                Text(&call.decision),
                Text(&call.reason),
                Text(&call.result),
                Int(call.at.0),
                Text(&call.hash),
            ];
            conn.execute(sql::INSERT_CALL, &args).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl ToolLog for Database {
    async fn append(&self, lease: Option<&Settlement>, calls: &[ToolCall]) -> Result<(), Fault> {
        let (lease, calls) = (lease.cloned(), calls.to_vec());
        self.writer.write(AppendCalls { lease, calls }).await
    }

    async fn read(&self, invocation: &EffectId) -> Result<Vec<ToolCall>, Fault> {
        let attempted = format!("read the tool calls of invocation {invocation}");
        self.look(&attempted, sql::CALLS, &[Text(invocation.as_str())], rows::call)
            .await
    }

    async fn page(&self, invocation: &EffectId, part: &CallPage) -> Result<Vec<ToolCall>, Fault> {
        let attempted = format!("read some tool calls of invocation {invocation}");
        let before = part.before.map(number).transpose();
        let args = [
            Text(invocation.as_str()),
            OptInt(before.map_err(|error| fault(&attempted, &error))?),
            Int(i64::from(part.stopped)),
            Int(i64::from(part.limit)),
        ];
        self.look(&attempted, sql::PAGE_OF_CALLS, &args, rows::call).await
    }
}

struct Take(ResourceLease);

#[async_trait]
impl Write for Take {
    type Done = Taken;
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!(
            "take {} `{}` for run {}",
            self.0.kind.as_str(),
            self.0.name,
            self.0.run
        )
    }

    async fn apply(&self, conn: &mut Conn) -> Result<Taken, Failed<Fault>> {
        let Self(lease) = self;
        let args = [
            Text(lease.kind.as_str()),
            Text(&lease.name),
            Text(lease.run.as_str()),
            Int(lease.taken_at.0),
            Int(lease.heartbeat.0),
        ];
        Ok(if conn.execute(sql::TAKE_RESOURCE, &args).await? == 0 {
            Taken::No
        } else {
            Taken::Yes
        })
    }
}

struct GiveBack {
    run: RunId,
    kind: ResourceKind,
    name: String,
}

#[async_trait]
impl Write for GiveBack {
    type Done = ();
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!(
            "give back {} `{}` of run {}",
            self.kind.as_str(),
            self.name,
            self.run
        )
    }

    async fn apply(&self, conn: &mut Conn) -> Result<(), Failed<Fault>> {
        let args = [
            Text(self.run.as_str()),
            Text(self.kind.as_str()),
            Text(&self.name),
        ];
        conn.execute(sql::GIVE_BACK_RESOURCE, &args).await?;
        Ok(())
    }
}

#[async_trait]
impl Leases for Database {
    async fn take(&self, lease: &ResourceLease) -> Result<Taken, Fault> {
        self.writer.write(Take(lease.clone())).await
    }

    async fn give_back(&self, run: &RunId, kind: ResourceKind, name: &str) -> Result<(), Fault> {
        self.writer
            .write(GiveBack {
                run: run.clone(),
                kind,
                name: name.to_owned(),
            })
            .await
    }

    async fn held(&self, run: Option<&RunId>) -> Result<Vec<ResourceLease>, Fault> {
        let args = [OptText(run.map(RunId::as_str))];
        self.look("list held resources", sql::HELD_RESOURCES, &args, rows::resource)
            .await
    }
}
