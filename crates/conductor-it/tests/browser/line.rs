//! A line between browser and server that can be cut, as networks are.
//!
//! This module does not know what is said on it.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A line with two ends.
pub(crate) struct Line {
    /// Where the browser finds it.
    pub(crate) address: SocketAddr,
    is_cut: watch::Sender<bool>,
}

impl Line {
    /// Lays a line to a server.
    pub(crate) async fn to(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("laying a line")?;
        let address = listener.local_addr().context("its near end")?;
        let (is_cut, seen) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                if !*seen.borrow() {
                    tokio::spawn(carry(near, server, seen.clone()));
                }
            }
        });
        Ok(Self { address, is_cut })
    }

    /// Ends every connection, and lets none begin.
    pub(crate) fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    /// Lets connections begin again.
    pub(crate) fn heal(&self) {
        self.is_cut.send_replace(false);
    }
}

async fn carry(mut near: TcpStream, server: SocketAddr, mut seen: watch::Receiver<bool>) {
    let Ok(mut far) = TcpStream::connect(server).await else {
        return;
    };
    tokio::select! {
        _over = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
        _cut = seen.wait_for(|is_cut| *is_cut) => {}
    }
}
