//! Runs a server from start to end: claims the data directory, recovers, listens, publishes where, and on the way out
//! stops in the right order.
//!
//! Used by `serve` and by `demo`. This module does not know the command line.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use conductor_domain::artifact::ArtifactKind;
use conductor_domain::egress::Grant;
use conductor_domain::spec::{AgentBackend, AgentSpec, Limits, Mode};
use conductor_domain::time::Millis;
use conductor_engine::{PortRange, Recovered};
use conductor_executor::Toolchain;
use conductor_gateway::egress::Outside;
use conductor_tools::listen::{self, Bounds};
use conductor_web::{Behind, Door, RunDefaults, Settings, Token, router};
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::{mint_run, mint_secret};
use crate::data_dir::{Claim, DataDir};
use crate::environment;
use crate::executors::Named;
use crate::exit::{Exit, Failure};
use crate::hook::Hook;
use crate::server_file::{Published, ServerFile};
use crate::settings::{DatabaseUrl, Listen, ToldInspection};
use crate::storage::Storage;
use crate::tls::{Identity, TlsListener};
use crate::wire::{self, BehindTheDoor, Listening, Machine, Parts, RoleSkills, Seat};

/// How long open requests may take to end at shutdown.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long an effect of a killed server waits, unless told otherwise.
pub(crate) const LEASE: Millis = Millis::seconds(10);

/// What a server is made of.
pub(crate) struct Setup {
    pub(crate) data_dir: DataDir,
    pub(crate) database_url: Option<DatabaseUrl>,
    pub(crate) listen: Listen,
    pub(crate) forge: conductor_github::Config,
    pub(crate) webhook_secret: Option<SecretString>,
    pub(crate) public_url: Option<String>,
    pub(crate) executor: Named,
    pub(crate) toolchain: Toolchain,
    pub(crate) scenario: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) lease: Millis,
    pub(crate) storage: Storage,
    /// By how much the machine's clock is wrong, in tests.
    pub(crate) clock_ahead: Millis,
    pub(crate) ports: PortRange,
    /// Which role has which skills.
    pub(crate) skills: RoleSkills,
    /// What the sandboxes of every project may reach.
    pub(crate) egress: Vec<Grant>,
    /// What an inspection of a change objects to.
    pub(crate) inspection: ToldInspection,
    /// Where notices go.
    pub(crate) notify: Option<Hook>,
    /// The world beyond the egress proxy.
    pub(crate) outside: Arc<dyn Outside>,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    file: ServerFile,
    open_at: Option<SocketAddr>,
    recovered: Recovered,
    shutdown: CancellationToken,
    http: Vec<JoinHandle<()>>,
    engine: JoinHandle<()>,
    seat: Seat,
    _listening: Listening,
    _published: Published,
    _claim: Claim,
}

impl Server {
    /// Starts a server.
    pub(crate) async fn start(setup: Setup) -> Result<Self, Failure> {
        setup.data_dir.create()?;
        let claim = setup.data_dir.claim()?;
        let url = setup.database_url.as_ref();
        let seat = wire::take_seat(&setup.data_dir, url, &setup.storage, setup.clock_ahead).await?;
        let (records, clock) = (seat.records.clone(), seat.clock.clone());
        records.check_instance().await?;
        let token = mint_secret();
        let hook = setup.notify.iter().map(|hook| &hook.secret);
        let words = setup.webhook_secret.iter().chain(hook).map(wire::words);
        let words = words.chain([token.clone()]);
        let secrets = secrets_of(words, &setup.forge, setup.database_url.as_ref());
        let executor = setup.executor.name();
        // Said now and not at the first run: what roles name must be there.
        setup.skills.lock(&records.blobs()).await.map_err(|fault| {
            let hint = "`conductor skills list --config FILE` shows the skills that there are; mend [skills] of the settings";
            Failure::coded("CDR0421", fault.what, hint).exiting(Exit::Usage)
        })?;
        let parts = Parts {
            forge: setup.forge,
            executor: setup.executor,
            toolchain: setup.toolchain,
            clock: clock.clone(),
            worker: seat.worker.clone(),
            lease: setup.lease,
            ports: setup.ports,
            egress: setup.egress,
            inspection: setup.inspection,
            notify: setup.notify,
            outside: setup.outside,
            doors: setup.data_dir.doors(),
            secrets,
        };
        let Machine { engine, forge, keep } = wire::engine(&setup.storage, &records, parts).await?;
        // Before the first look, so that nothing falls between the two.
        let listening = wire::listen(&records, &engine).await?;
        let recovered = engine.recover().await?;

        if setup.listen.is_open() {
            records.check_staff().await?;
        }
        let (listener, address) = bind(setup.listen.address).await?;
        // Commands on this machine need no certificate and no proxy.
        let beside = if setup.listen.is_open() {
            Some(bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?)
        } else {
            None
        };
        let open_at = beside.as_ref().map(|_| address);
        let shutdown = CancellationToken::new();
        let local = beside.as_ref().map_or(address, |(_, address)| *address);
        let url = format!("http://{local}");
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
            hosts: hosts(local, &public_url),
            origins: origins(local, &public_url),
            operator: environment::operator(),
            is_proxied: setup.listen.is_proxied,
            deliveries: setup.webhook_secret.map(wire::deliveries),
            run: RunDefaults {
                agents,
                executor,
                limits: setup.limits,
                public_url,
            },
            mint: Arc::new(mint_run),
            secret: Arc::new(mint_secret),
            clock: clock.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: file.pid,
            started_at: file.started_at,
            shutdown: shutdown.clone(),
        };
        let backstage = Arc::new(BehindTheDoor::new(engine.clone(), records.clone(), setup.skills));
        let (keys, answers) = records.door();
        let behind = Behind {
            inbox: engine.clone(),
            blobs: keep,
            forge,
            backstage,
            rules: Arc::new(records.rules()),
            keys,
            answers,
        };
        let door = Door::new(records.reader(), behind, settings);
        let app = router(Arc::new(door));
        let mut http = vec![serve(listener, setup.listen.identity, app.clone(), &shutdown)?];
        if let Some((beside, _)) = beside {
            http.push(serve(beside, None, app, &shutdown)?);
        }
        let engine = tokio::spawn(engine.run(shutdown.clone()));
        let published = file.publish(&setup.data_dir.server_file())?;
        Ok(Self {
            file,
            open_at,
            recovered,
            shutdown,
            http,
            engine,
            seat,
            _listening: listening,
            _published: published,
            _claim: claim,
        })
    }

    /// Where it is and how to speak to it.
    pub(crate) fn file(&self) -> &ServerFile {
        &self.file
    }

    /// Returns when this server must not go on: another has its name, or another version works on the database.
    pub(crate) async fn lost(&mut self) -> Failure {
        wire::cannot_open(self.seat.claim.lost().await)
    }

    /// Where others than this machine's people reach it.
    pub(crate) fn open_at(&self) -> Option<SocketAddr> {
        self.open_at
    }

    /// What the start put right.
    pub(crate) fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// Stops: nothing new is begun, what is under way may finish for a while, the heads are anchored, all is written.
    pub(crate) async fn stop(self) -> Result<(), Failure> {
        self.shutdown.cancel();
        for http in self.http {
            // Whoever is still being answered then is hung up on when the process ends.
            let _late = tokio::time::timeout(PATIENCE, http).await;
        }
        let engine = self.engine.await;
        self.seat.records.close().await;
        engine.map_err(|error| Failure::because("stopping the engine", &error))
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        Failure::coded(
            "CDR0411",
            format!("listening on {address}: {error}"),
            "choose another address with --listen; port 0 takes a free one",
        )
    })?;
    let bound = listener
        .local_addr()
        .map_err(|error| Failure::because("reading the own address", &error))?;
    Ok((listener, bound))
}

/// Answers what arrives at a listener until the server stops.
fn serve(
    listener: TcpListener,
    identity: Option<Identity>,
    app: Router,
    shutdown: &CancellationToken,
) -> Result<JoinHandle<()>, Failure> {
    let (bounds, stop) = (Bounds::default(), shutdown.clone());
    let Some(identity) = identity else {
        return Ok(tokio::spawn(listen::serve(listener, app, bounds, stop)));
    };
    let listener = TlsListener::new(listener, identity)
        .map_err(|error| Failure::because("reading the own address", &error))?;
    Ok(tokio::spawn(listen::serve(listener, app, bounds, stop)))
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

/// Lists what this instance must never show: words that it was told or made, its key at the forge, its database's password.
fn secrets_of(
    words: impl Iterator<Item = String>,
    forge: &conductor_github::Config,
    database: Option<&DatabaseUrl>,
) -> Vec<String> {
    words
        .chain([wire::words(&forge.private_key_pem)])
        .chain(database.into_iter().flat_map(DatabaseUrl::secrets))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-3: the key at the forge and the password of the database are secrets as the others are.
    #[test]
    fn an_instance_knows_its_own_secrets() {
        let forge = conductor_github::Config::new("https://forge.example", 1, SecretString::from("a-key"));
        let url = DatabaseUrl::new("postgres://me:hunter2@db/x");
        assert_eq!(
            secrets_of(["a-word".to_owned()].into_iter(), &forge, Some(&url)),
            [
                "a-word",
                "a-key",
                "postgres://me:hunter2@db/x",
                "hunter2",
                "hunter2"
            ]
        );
        assert_eq!(secrets_of(std::iter::empty(), &forge, None), ["a-key"]);
    }

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
