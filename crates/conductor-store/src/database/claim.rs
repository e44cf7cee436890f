//! Claims a database on a server: for one of several processes under its own name, or for one process alone; and tells
//! when the claim cannot be had back.
//!
//! A claim is locks of a session: they end with the process, however that dies, and with the connection. One that is lost
//! with its connection is taken again as soon as the server answers; meanwhile leases decide who may act. To a file there
//! is none to take; who opens it has claimed its directory. It does not know what the process does.

use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tokio::task::JoinHandle;

use super::conn::Db;
use super::error::{OpenError, Place};
use super::fault::{Class, class};
use super::{Database, sql, version};

/// How often the session is looked at, and how long it may take to answer.
const PULSE: Duration = Duration::from_secs(1);

/// How often a name that another session seems to have is asked for again: the server may not have seen yet that our own
/// session is gone.
const PATIENCE: u32 = 6;

/// Proof that this process may work on the database. Given back when dropped.
#[derive(Debug)]
pub struct Claim {
    /// Ends when the claim is lost for good; absent for a file.
    watch: Option<JoinHandle<OpenError>>,
}

/// What a session claims.
#[derive(Debug, Clone)]
enum Wanted {
    /// To be the only process of this name.
    Named(String),
    /// To be the only process.
    Alone,
}

impl Database {
    /// Claims the database as one of several processes, under a name that no other has at the time. Waits as long as for
    /// any lock: the server may not have seen yet that the process before this one is dead.
    pub async fn claim(&self, worker: &str) -> Result<Claim, OpenError> {
        // Words of this process to the others bear its name, so that it can tell its own.
        self.voice.get_or_init(|| worker.to_owned());
        self.claim_as(Wanted::Named(worker.to_owned())).await
    }

    /// Claims the database for this process alone; refused while any other has claimed it.
    pub async fn claim_alone(&self) -> Result<Claim, OpenError> {
        self.claim_as(Wanted::Alone).await
    }

    async fn claim_as(&self, wanted: Wanted) -> Result<Claim, OpenError> {
        if matches!(*self.db, Db::Sqlite { .. }) {
            return Ok(Claim { watch: None });
        }
        let (db, place, rules) = (self.db.clone(), self.place.clone(), self.rules);
        let session = take(&db, &place, rules, &wanted).await?;
        let watch = async move { watch(session, &db, &place, rules, &wanted).await };
        Ok(Claim {
            watch: Some(tokio::spawn(watch)),
        })
    }
}

impl Claim {
    /// Returns when the claim is lost and cannot be had back: another process has the name, or another version works on
    /// the database. To a file it cannot be.
    pub async fn lost(&mut self) -> OpenError {
        match &mut self.watch {
            None => std::future::pending().await,
            Some(watch) => match watch.await {
                Ok(why) => why,
                Err(_aborted) => std::future::pending().await,
            },
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.abort();
        }
    }
}

async fn take(db: &Db, place: &Place, rules: u32, wanted: &Wanted) -> Result<PgConnection, OpenError> {
    let failed = |error| OpenError::of("claim", place, error);
    let Some(session) = db.session().await else {
        return Err(failed(sqlx::Error::PoolClosed));
    };
    let mut session = session.map_err(failed)?;
    version::settle_in(&mut session, place, rules, version::Schema::MustBeOurs).await?;
    let locked = match wanted {
        Wanted::Alone => sqlx::query(sql::CLAIM_ALONE).execute(&mut session).await,
        Wanted::Named(worker) => match sqlx::query(sql::CLAIM).execute(&mut session).await {
            Ok(_) => {
                sqlx::query(sql::CLAIM_NAME)
                    .bind(format!("worker {worker}"))
                    .execute(&mut session)
                    .await
            }
            error => error,
        },
    };
    match locked {
        Ok(_) => Ok(session),
        Err(error) if class(&error) == Class::Busy => Err(OpenError::Claimed { place: place.clone() }),
        Err(error) => Err(failed(error)),
    }
}

/// Looks after a claim; ends when it is lost for good.
async fn watch(mut session: PgConnection, db: &Db, place: &Place, rules: u32, wanted: &Wanted) -> OpenError {
    loop {
        while let Ok(Ok(())) = tokio::time::timeout(PULSE, session.ping()).await {
            tokio::time::sleep(PULSE).await;
        }
        // The session may still live behind a cut connection; who comes back is not to wait for it.
        drop(session);
        let mut left = PATIENCE;
        session = loop {
            match take(db, place, rules, wanted).await {
                Ok(session) => break session,
                Err(OpenError::Claimed { .. }) if left > 0 => left -= 1,
                Err(error) if error.is_passing() => {}
                Err(error) => return error,
            }
            tokio::time::sleep(PULSE).await;
        };
    }
}
