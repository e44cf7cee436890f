//! Hears what other processes commit to a database on a server (DEP-3).
//!
//! Every commit is told with its stream; who cannot hear for a while is told that something may have been missed, and
//! looks. To a file nobody else writes, so nothing is heard. It does not know what a commit is about.

use std::time::Duration;

use conductor_port::Fault;
use conductor_port::ledger::StreamId;
use sqlx::postgres::{PgListener, PgPoolOptions};

use super::conn::Db;
use super::{Database, fault::fault, sql};

/// How long to wait before the server is called again.
const PAUSE: Duration = Duration::from_secs(1);

/// What is heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Another process committed.
    Commit {
        /// To which stream.
        stream: StreamId,
        /// Where it ends now.
        seq: u64,
        /// How many records were added.
        records: u64,
    },
    /// Something may have been missed.
    Gap,
}

/// Listens to other processes.
#[derive(Debug)]
pub struct Ear {
    listener: Option<PgListener>,
    own_voice: String,
}

impl Database {
    /// Begins to listen. What is committed after this returns is heard, or a gap is.
    pub async fn listen(&self) -> Result<Ear, Fault> {
        let own_voice = self.voice.get().cloned().unwrap_or_default();
        let Db::Postgres { readers, .. } = &*self.db else {
            return Ok(Ear {
                listener: None,
                own_voice,
            });
        };
        let failed = |error| fault("listen to other processes", &error);
        #[allow(
            clippy::disallowed_methods,
            reason = "one session of its own, outside of the pools"
        )]
        let one = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .connect_lazy_with((*readers.connect_options()).clone());
        let mut listener = PgListener::connect_with(&one).await.map_err(failed)?;
        listener.listen(sql::CHANNEL).await.map_err(failed)?;
        Ok(Ear {
            listener: Some(listener),
            own_voice,
        })
    }
}

impl Ear {
    /// Returns what is heard next. Never ends; a server that is away is called again and again.
    pub async fn next(&mut self) -> Heard {
        let Some(listener) = &mut self.listener else {
            return std::future::pending().await;
        };
        loop {
            match listener.try_recv().await {
                Ok(Some(told)) => match read(told.payload()) {
                    Some((voice, _)) if voice == self.own_voice => {}
                    Some((_, heard)) => return heard,
                    None => return Heard::Gap,
                },
                Ok(None) => return Heard::Gap,
                Err(_away) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// The words in which a commit is told.
pub(super) fn words(voice: &str, stream: &str, seq: u64, records: usize) -> String {
    format!("{voice} {stream} {seq} {records}")
}

fn read(words: &str) -> Option<(&str, Heard)> {
    let mut words = words.split(' ');
    let (voice, stream, seq, records) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let heard = Heard::Commit {
        stream: StreamId::from_key(stream)?,
        seq: seq.parse().ok()?,
        records: records.parse().ok()?,
    };
    Some((voice, heard))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood_and_what_is_not_understood_is_a_gap() {
        let heard = Heard::Commit {
            stream: StreamId::Instance,
            seq: 7,
            records: 2,
        };
        assert_eq!(read(&words("w-1", "instance", 7, 2)), Some(("w-1", heard)));
        for strange in ["", "w-1", "w-1 nowhere 7 2", "w-1 instance x 2", "w-1 instance 7"] {
            assert_eq!(read(strange), None, "{strange}");
        }
    }
}
