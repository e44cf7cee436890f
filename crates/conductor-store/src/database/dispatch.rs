//! Leases effects, with their slots, and renews leases; replaces projections.
//!
//! It does not know what an effect does.

use async_trait::async_trait;
use conductor_domain::id::{RepoId, RunId};
use conductor_domain::time::Timestamp;
use conductor_port::Fault;
use conductor_port::ledger::{LeaseWish, Leased, Projections, Renewal, Settlement};

use super::append::{project, upsert_writes};
use super::conn::{Arg, Conn, Lock};
use super::rows::{number, run_id};
use super::writer::{Failed, Write};
use super::{search, sql};

use Arg::{Int, Text};

/// Leases one effect.
pub(super) struct Lease(pub(super) LeaseWish);

#[async_trait]
impl Write for Lease {
    type Done = Leased;
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("lease effect {}", self.0.id)
    }

    async fn apply(&self, conn: &mut Conn) -> Result<Leased, Failed<Fault>> {
        let Self(wish) = self;
        conn.hold(Lock::Effect(wish.id.as_str())).await?;
        let Some(row) = conn
            .first(sql::READY_EFFECT, &[Int(wish.now.0), Text(wish.id.as_str())])
            .await?
        else {
            return Ok(Leased::Gone);
        };
        let (run, attempts): (RunId, u32) = (run_id(&row, 0)?, row.count(1)?);
        if let Some((repo, _)) = wish.slot {
            conn.hold(Lock::Slots(number(repo.0)?)).await?;
        }
        if let Some((repo, limit)) = wish.slot
            && !self.has_slot(conn, &run, repo).await?
            && !take_slot(conn, &run, repo, limit).await?
        {
            return Ok(Leased::NoSlot);
        }
        let args = [
            Text(wish.id.as_str()),
            Int(i64::from(attempts)),
            Text(&wish.worker),
            Int(wish.until.0),
        ];
        match conn.execute(sql::LEASE, &args).await? {
            0 => Ok(Leased::Gone),
            _ => Ok(Leased::Granted {
                token: u64::from(attempts) + 1,
                attempt: attempts + 1,
            }),
        }
    }
}

impl Lease {
    async fn has_slot(&self, conn: &mut Conn, run: &RunId, repo: RepoId) -> Result<bool, Failed<Fault>> {
        let Some(row) = conn.first(sql::SLOT_OF_RUN, &[Text(run.as_str())]).await? else {
            return Ok(false);
        };
        let held = RepoId(row.count(0)?);
        if held == repo {
            return Ok(true);
        }
        let why = format!(
            "{}: run {run} holds a slot of repository {held}, not of {repo}",
            self.attempted()
        );
        Err(Failed::Refused(Fault::permanent(why)))
    }
}

/// Takes the lowest free slot. The limit may have been lowered while higher slots are taken, so what counts is how many
/// are, and not their numbers.
async fn take_slot(conn: &mut Conn, run: &RunId, repo: RepoId, limit: u32) -> Result<bool, sqlx::Error> {
    let repo = Int(number(repo.0)?);
    let rows = conn.fetch(sql::SLOTS_OF_REPO, &[repo]).await?;
    if rows.len() >= limit as usize {
        return Ok(false);
    }
    let mut free = 1;
    for row in &rows {
        if row.int(0)? == free {
            free += 1;
        }
    }
    conn.execute(sql::TAKE_SLOT, &[repo, Int(free), Text(run.as_str())])
        .await?;
    Ok(true)
}

/// Extends one lease.
pub(super) struct Renew {
    pub(super) settlement: Settlement,
    pub(super) until: Timestamp,
}

#[async_trait]
impl Write for Renew {
    type Done = Renewal;
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("renew the lease of effect {}", self.settlement.id)
    }

    async fn apply(&self, conn: &mut Conn) -> Result<Renewal, Failed<Fault>> {
        let Self { settlement, until } = self;
        let args = [
            Text(settlement.id.as_str()),
            Int(number(settlement.token)?),
            Int(until.0),
        ];
        Ok(match conn.first(sql::RENEW, &args).await? {
            None => Renewal::Lost,
            Some(row) if row.flag(0)? => Renewal::Stop,
            Some(_) => Renewal::Holds,
        })
    }
}

/// Ends every lease of a worker.
pub(super) struct EndLeases(pub(super) String);

#[async_trait]
impl Write for EndLeases {
    type Done = u32;
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("end the leases that {} left", self.0)
    }

    async fn apply(&self, conn: &mut Conn) -> Result<u32, Failed<Fault>> {
        let ended = conn.execute(sql::END_LEASES, &[Text(&self.0)]).await?;
        Ok(u32::try_from(ended).unwrap_or(u32::MAX))
    }
}

/// Replaces all projections.
pub(super) struct ReplaceProjections(pub(super) Projections);

#[async_trait]
impl Write for ReplaceProjections {
    type Done = ();
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("replace the projections by {} new ones", self.0.rows.len())
    }

    async fn apply(&self, conn: &mut Conn) -> Result<(), Failed<Fault>> {
        conn.execute(sql::CLEAR_RUNS, &[]).await?;
        conn.execute(sql::CLEAR_INSTANCE, &[]).await?;
        conn.execute(sql::CLEAR_WRITES, &[]).await?;
        for row in &self.0.rows {
            project(conn, row).await?;
        }
        for after in &self.0.writes {
            upsert_writes(conn, after.seq, &after.writes).await?;
        }
        search::keep_all_words(conn).await?;
        Ok(())
    }
}
