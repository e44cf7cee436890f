//! Listens for HTTPS: reads certificate and key, and lets connections in once they have shaken hands (SEC-7).
//!
//! Handshakes are made side by side, so many at a time and each in its time, so that a slow client keeps nobody waiting.
//! This module does not know what is asked.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use crate::exit::{Exit, Failure};

/// How many handshakes are made at once.
const AT_ONCE: usize = 256;
/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait after the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// What a server shows of itself.
#[derive(Debug, Clone)]
pub(crate) struct Identity(Arc<ServerConfig>);

impl Identity {
    /// Reads a certificate with its chain, and its key, both PEM.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Self, Failure> {
        let unusable = |path: &Path, why: String| {
            Failure::coded(
                "CDR0431",
                format!("{} cannot be used for HTTPS: {why}", path.display()),
                "give --tls-cert the certificate with its chain and --tls-key its private key, both PEM",
            )
            .exiting(Exit::Usage)
        };
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| unusable(certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(unusable(certificate, "there is no certificate in it".to_owned()));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, error.to_string()))?;
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|error| unusable(key, error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

/// Listens for HTTPS until it is dropped.
#[derive(Debug)]
pub(crate) struct TlsListener {
    address: SocketAddr,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    shaking: JoinHandle<()>,
}

impl TlsListener {
    /// Begins to listen.
    pub(crate) fn new(listener: TcpListener, identity: Identity) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (found, ready) = mpsc::channel(AT_ONCE);
        let shaking = tokio::spawn(shake_hands(listener, TlsAcceptor::from(identity.0), found));
        Ok(Self {
            address,
            ready,
            shaking,
        })
    }
}

impl Drop for TlsListener {
    fn drop(&mut self) {
        self.shaking.abort();
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            // The task lives as long as this listener.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

async fn shake_hands(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    found: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut hands = JoinSet::new();
    loop {
        while hands.try_join_next().is_some() {}
        let Ok(permit) = room.clone().acquire_owned().await else {
            return;
        };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "could not take a connection");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let (acceptor, found) = (acceptor.clone(), found.clone());
        hands.spawn(async move {
            let _permit = permit;
            if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
                // Whoever listened is gone where this fails, and so is the server.
                let _gone = found.send((stream, peer)).await;
            }
        });
    }
}
