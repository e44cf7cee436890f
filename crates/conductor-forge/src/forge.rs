//! Starts and stops a forge.
//!
//! It does not know what the site holds or how it answers.

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::act::push;
use crate::arrange::found_user;
use crate::auth::Rates;
use crate::hook::{self, Hooks};
use crate::key::AppKey;
use crate::refusal::Refusal;
use crate::server;
use crate::site::Site;
use crate::state::{AccountKind, App, Hook, State};
use crate::view::Root;

/// How long shutdown waits for requests that are being handled.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a forge is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where records, repositories and the App key are kept; used again, it continues where it stopped.
    pub data_dir: PathBuf,
    /// A loopback address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The App's RSA key as PEM; generated and kept in the data directory when absent.
    pub app_key_pem: Option<String>,
    pub webhook: Option<Webhook>,
    /// Requests per hour and identity.
    pub hourly_limit: u32,
    /// Mints installation tokens in the long form with dots that GitHub has begun to hand out.
    pub stateless_tokens: bool,
}

impl Options {
    pub fn in_dir(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            app_key_pem: None,
            webhook: None,
            hourly_limit: 5000,
            stateless_tokens: false,
        }
    }
}

/// Where the App's deliveries go, and the secret that signs them.
#[derive(Clone)]
pub struct Webhook {
    pub url: String,
    pub secret: String,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// A running forge. Dropping it stops it at once; [`Forge::shutdown`] lets requests under way finish.
pub struct Forge {
    pub(crate) site: Arc<Site>,
    address: SocketAddr,
    stop: CancellationToken,
    server: JoinHandle<()>,
    sender: JoinHandle<()>,
}

impl fmt::Debug for Forge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forge")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Drop for Forge {
    fn drop(&mut self) {
        self.stop.cancel();
        self.server.abort();
        self.sender.abort();
    }
}

impl Forge {
    pub async fn start(options: Options) -> Result<Self, Refusal> {
        let broken = |what: &str, error: std::io::Error| Refusal::Broken(format!("cannot {what}: {error}"));
        if !options.listen.ip().is_loopback() {
            return Err(Refusal::Forbidden(format!(
                "the forge listens on loopback only, not {}",
                options.listen
            )));
        }
        let dir = &options.data_dir;
        fs::create_dir_all(dir.join("repos")).map_err(|error| broken("create the data directory", error))?;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
            .map_err(|error| broken("protect the data directory", error))?;
        let key = match &options.app_key_pem {
            Some(pem) => AppKey::from_pem(pem)?,
            None => AppKey::kept_in(dir)?,
        };
        let (hooks, queue) = Hooks::open(&dir.join("deliveries"))?;
        let rates = Rates::new(options.hourly_limit);
        let site = Arc::new(Site::open(dir, key, hooks, rates, options.stateless_tokens)?);
        let listener = TcpListener::bind(options.listen)
            .await
            .map_err(|error| broken("listen on loopback", error))?;
        let address = listener
            .local_addr()
            .map_err(|error| broken("read the own address", error))?;
        site.settle_root(Root::new(&format!("http://{address}")));
        site.change(|change| {
            found_app(&mut change.state);
            if let Some(Webhook { url, secret }) = options.webhook {
                change.state.hook = Some(Hook { url, secret });
            }
            Ok(())
        })?;
        for repo in site.look(|state| state.repos.keys().copied().collect::<Vec<_>>()) {
            push::notice(&site, repo, "ghost").await?;
        }
        let stop = CancellationToken::new();
        let server = tokio::spawn(server::serve(Arc::clone(&site), listener, stop.clone()));
        let sender = tokio::spawn(hook::send_all(Arc::clone(&site), queue));
        Ok(Self {
            site,
            address,
            stop,
            server,
            sender,
        })
    }

    /// Stops accepting, lets requests under way finish, and closes what is still open after a while.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        let _ = (&mut self.server).await;
        self.site.tasks.close();
        let _ = tokio::time::timeout(PATIENCE, self.site.tasks.wait()).await;
    }

    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn clone_url(&self, repo: &str) -> String {
        format!("{}/{repo}.git", self.base_url())
    }

    pub fn app_id(&self) -> u64 {
        self.site.look(|state| state.app.id)
    }

    pub fn app_key_pem(&self) -> &str {
        self.site.key.private_pem()
    }

    pub fn bot_login(&self) -> String {
        self.site.look(|state| state.app.bot_login())
    }
}

fn found_app(state: &mut State) {
    if state.app.id == 0 {
        let id = state.mint_id();
        state.app = App {
            id,
            slug: "conductor".into(),
            name: "Conductor".into(),
        };
        let bot = state.app.bot_login();
        found_user(state, &bot, AccountKind::Bot);
    }
}
