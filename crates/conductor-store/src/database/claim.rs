//! Claims a database on a server for one process, and tells when the claim is lost.
//!
//! The claim is a lock of a session: it ends with the process, however that dies, and with the connection. To a file
//! there is none to take; who opens it has claimed its directory. It does not know what the process does.

use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tokio::task::JoinHandle;

use super::error::OpenError;
use super::fault::{Class, class};
use super::{Database, sql};

/// How often the session is looked at, and how long it may take to answer; both together are well below a lease.
const PULSE: Duration = Duration::from_secs(1);

/// Proof that no other process has claimed the database. Given back when dropped.
#[derive(Debug)]
pub struct Claim {
    /// Ends when the session does; absent for a file.
    session: Option<JoinHandle<()>>,
}

impl Database {
    /// Claims the database; refused while another process has it. Waits as long as for any lock: the server may not
    /// have seen yet that the process before this one is dead.
    pub async fn claim(&self) -> Result<Claim, OpenError> {
        let failed = |error| OpenError::of("claim", &self.place, error);
        let Some(session) = self.db.session().await else {
            return Ok(Claim { session: None });
        };
        let mut session = session.map_err(failed)?;
        match sqlx::query(sql::CLAIM).execute(&mut session).await {
            Ok(_) => Ok(Claim {
                session: Some(tokio::spawn(watch(session))),
            }),
            Err(error) if class(&error) == Class::Busy => Err(OpenError::Claimed {
                place: self.place.clone(),
            }),
            Err(error) => Err(failed(error)),
        }
    }
}

impl Claim {
    /// Returns when the claim is lost: from then on another process may have it. To a file it cannot be.
    pub async fn lost(&mut self) {
        match &mut self.session {
            None => std::future::pending().await,
            Some(session) => {
                // However the watch ended, nobody looks after the claim any more.
                let _ = session.await;
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.abort();
        }
    }
}

/// Ends when the session does not answer any more.
async fn watch(mut session: PgConnection) {
    while let Ok(Ok(())) = tokio::time::timeout(PULSE, session.ping()).await {
        tokio::time::sleep(PULSE).await;
    }
}
