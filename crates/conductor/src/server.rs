//! Runs a server from start to end: claims the data directory, recovers, listens, publishes where, and on the way out
//! stops in the right order.
//!
//! Used by `serve` and by `demo`. This module does not know the command line.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::spec::{AgentBackend, AgentSpec, ExecutorName, Limits, Mode, PolicyVersion};
use conductor_domain::time::Millis;
use conductor_engine::Recovered;
use conductor_executor::{Consent, Toolchain};
use conductor_port::clock::Clock as _;
use conductor_web::{Door, RunDefaults, Settings, Token, router};
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::{SystemClock, mint_run, mint_secret};
use crate::data_dir::{Claim, DataDir};
use crate::environment;
use crate::exit::Failure;
use crate::server_file::{Published, ServerFile};
use crate::settings::DatabaseUrl;
use crate::wire::{self, BehindTheDoor, Machine, Parts, Records};

/// How long open requests may take to end at shutdown.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long an effect of a killed server waits, unless told otherwise.
pub(crate) const LEASE: Millis = Millis::seconds(10);

/// What a server is made of.
pub(crate) struct Setup {
    pub(crate) data_dir: DataDir,
    pub(crate) database_url: Option<DatabaseUrl>,
    pub(crate) listen: SocketAddr,
    pub(crate) forge: conductor_github::Config,
    pub(crate) webhook_secret: Option<SecretString>,
    pub(crate) public_url: Option<String>,
    pub(crate) executor: ExecutorName,
    pub(crate) consent: Consent,
    pub(crate) toolchain: Toolchain,
    pub(crate) scenario: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) lease: Millis,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    file: ServerFile,
    recovered: Recovered,
    shutdown: CancellationToken,
    http: JoinHandle<std::io::Result<()>>,
    engine: JoinHandle<()>,
    records: Records,
    database_claim: conductor_store::Claim,
    _published: Published,
    _claim: Claim,
}

impl Server {
    /// Starts a server.
    pub(crate) async fn start(setup: Setup) -> Result<Self, Failure> {
        setup.data_dir.create()?;
        let claim = setup.data_dir.claim()?;
        let (records, database_claim) = wire::open(&setup.data_dir, setup.database_url.as_ref()).await?;
        let clock = Arc::new(SystemClock::default());
        let token = mint_secret();
        let secrets = setup
            .webhook_secret
            .iter()
            .map(wire::words)
            .chain([token.clone()])
            .chain(setup.database_url.iter().map(|url| url.expose().to_owned()))
            .collect();
        let parts = Parts {
            forge: setup.forge,
            consent: setup.consent,
            toolchain: setup.toolchain,
            clock: clock.clone(),
            lease: setup.lease,
            secrets,
        };
        let Machine { engine, forge, keep } = wire::engine(&setup.data_dir, &records, parts).await?;
        let recovered = engine.recover().await?;

        let listener = TcpListener::bind(setup.listen).await.map_err(|error| {
            Failure::coded(
                "CDR0411",
                format!("listening on {}: {error}", setup.listen),
                "choose another address with --listen; port 0 takes a free one",
            )
        })?;
        let address = listener
            .local_addr()
            .map_err(|error| Failure::because("reading the own address", &error))?;
        let shutdown = CancellationToken::new();
        let url = format!("http://{address}");
        let public_url = setup.public_url.unwrap_or_else(|| url.clone());
        let agents = match setup.scenario {
            None => None,
            Some(text) => {
                let kept = records
                    .blobs()
                    .put(ArtifactKind::Scenario, text.as_bytes())
                    .await?;
                Some(AgentSpec {
                    backend: AgentBackend::Scripted {
                        scenario: kept.digest,
                    },
                    mode: Mode::Mock,
                })
            }
        };
        let file = ServerFile::of_this_process(url, token, clock.now());
        let settings = Settings {
            token: Token::new(&file.token),
            hosts: hosts(address, &public_url),
            origins: origins(address, &public_url),
            operator: environment::operator(),
            deliveries: setup.webhook_secret.map(wire::deliveries),
            run: RunDefaults {
                agents,
                executor: setup.executor,
                limits: setup.limits,
                policy: PolicyVersion("builtin-1".to_owned()),
                public_url,
            },
            mint: Arc::new(mint_run),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: file.pid,
            started_at: file.started_at,
            shutdown: shutdown.clone(),
        };
        let backstage = Arc::new(BehindTheDoor {
            engine: engine.clone(),
            records: records.clone(),
        });
        let door = Door::new(records.reader(), engine.clone(), keep, forge, backstage, settings);
        let app = router(Arc::new(door));
        let stop = shutdown.clone().cancelled_owned();
        let http = tokio::spawn(async move { axum::serve(listener, app).with_graceful_shutdown(stop).await });
        let engine = tokio::spawn(engine.run(shutdown.clone()));
        let published = file.publish(&setup.data_dir.server_file())?;
        Ok(Self {
            file,
            recovered,
            shutdown,
            http,
            engine,
            records,
            database_claim,
            _published: published,
            _claim: claim,
        })
    }

    /// Where it is and how to speak to it.
    pub(crate) fn file(&self) -> &ServerFile {
        &self.file
    }

    /// Returns when another server may work on the database; this one must not go on.
    pub(crate) async fn lost(&mut self) {
        self.database_claim.lost().await;
    }

    /// What the start put right.
    pub(crate) fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// Stops: nothing new is begun, what is under way may finish for a while, the heads are anchored, all is written.
    pub(crate) async fn stop(self) -> Result<(), Failure> {
        self.shutdown.cancel();
        let http = tokio::time::timeout(PATIENCE, self.http).await;
        let engine = self.engine.await;
        self.records.close().await;
        if let Ok(Ok(Err(error))) = http {
            return Err(Failure::because("serving requests", &error));
        }
        engine.map_err(|error| Failure::because("stopping the engine", &error))
    }
}

/// The names under which requests may arrive, exactly (S-55).
fn hosts(address: SocketAddr, public_url: &str) -> Vec<String> {
    let public = public_url
        .split_once("://")
        .map(|(_, rest)| rest.split('/').next().unwrap_or_default().to_owned());
    let mut hosts = vec![address.to_string(), format!("localhost:{}", address.port())];
    hosts.extend(public);
    hosts
}

fn origins(address: SocketAddr, public_url: &str) -> Vec<String> {
    let public = public_url
        .split_once("://")
        .map(|(scheme, rest)| format!("{scheme}://{}", rest.split('/').next().unwrap_or_default()));
    let mut origins = vec![
        format!("http://{address}"),
        format!("http://localhost:{}", address.port()),
    ];
    origins.extend(public);
    origins
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-55.
    #[test]
    fn hosts_and_origins_are_exact() {
        let address: SocketAddr = "127.0.0.1:4180".parse().expect("an address");
        let public = "https://conductor.example/base/";
        assert_eq!(
            hosts(address, public),
            ["127.0.0.1:4180", "localhost:4180", "conductor.example"]
        );
        assert_eq!(
            origins(address, public),
            [
                "http://127.0.0.1:4180",
                "http://localhost:4180",
                "https://conductor.example"
            ]
        );
    }
}
