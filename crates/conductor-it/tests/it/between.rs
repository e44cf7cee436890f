//! Stands between Conductor and its database server, and lets nothing pass when it is told to.
//!
//! It does not know what is said.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Somebody in between.
pub(crate) struct Between {
    /// Holds the socket.
    _dir: TempDir,
    rules: Arc<Rules>,
    accepting: JoinHandle<()>,
}

struct Rules {
    target: PathBuf,
    is_dark: watch::Sender<bool>,
}

impl Between {
    /// Stands in the way to the server at this address, which names the directory of its socket.
    pub(crate) fn stand(address: &str) -> Result<(Self, String)> {
        let (before, socket_dir) = address.split_once("?host=").context("a server on a socket")?;
        let dir = tempfile::Builder::new()
            .prefix("between-")
            .tempdir_in("/var/tmp")?;
        let rules = Arc::new(Rules {
            target: PathBuf::from(socket_dir).join(".s.PGSQL.5432"),
            is_dark: watch::Sender::new(false),
        });
        let listener = UnixListener::bind(dir.path().join(".s.PGSQL.5432"))?;
        let accepting = tokio::spawn({
            let rules = rules.clone();
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    tokio::spawn(carry(client, rules.clone()));
                }
            }
        });
        let address = format!("{before}?host={}", dir.path().display());
        Ok((
            Self {
                _dir: dir,
                rules,
                accepting,
            },
            address,
        ))
    }

    /// Lets nothing pass any more, in either direction, and cuts nothing; or lets all pass again.
    pub(crate) fn darken(&self, is_dark: bool) {
        self.rules.is_dark.send_replace(is_dark);
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(mut client: UnixStream, rules: Arc<Rules>) {
    let Ok(mut server) = UnixStream::connect(&rules.target).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let asking = async {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(read @ 1..) = from_client.read(&mut bytes).await {
            rules.light().await;
            if to_server.write_all(&bytes[..read]).await.is_err() {
                return;
            }
        }
    };
    let answering = async {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(read @ 1..) = from_server.read(&mut bytes).await {
            rules.light().await;
            if to_client.write_all(&bytes[..read]).await.is_err() {
                return;
            }
        }
    };
    // Whichever ends first ends the other: both streams are dropped.
    tokio::select! {
        () = asking => {}
        () = answering => {}
    }
}

impl Rules {
    async fn light(&self) {
        let mut dark = self.is_dark.subscribe();
        let waited = dark.wait_for(|is_dark| !is_dark).await;
        debug_assert!(waited.is_ok(), "the sender lives as long as the rules");
    }
}
