//! The engine's port over the proxy: an outlet is a door with a token of its own, and names for the commands behind it.
//!
//! A command is known by the user name in its proxy address, which only its own environment holds; whoever lies about it
//! names at most another command of the same sandbox. This module does not know what is granted, nor why.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use conductor_domain::egress::Grant;
use conductor_domain::fault::Fault;
use conductor_port::egress::{Outlet, OutletSpec};
use conductor_port::executor::Way;
use secrecy::{ExposeSecret as _, SecretString};

use super::{Egress, Visitor};
use crate::door::{Door, Doors, Token};

/// Where the proxy is found inside a sandbox, whose loopback is its own.
pub const PORT: u16 = 3128;
/// What never goes through the proxy: a command's own servers inside.
const INSIDE: &str = "localhost,127.0.0.1,::1";
/// How many commands are known by their words; of more, the oldest are known by their name only.
const MOST_COMMANDS: usize = 1000;
/// How much of a command's words is kept.
const MAX_WORDS: usize = 200;

/// Draws a token.
pub type Mint = dyn Fn() -> SecretString + Send + Sync;

/// Opens outlets: the proxy, where its doors are, and what every sandbox of this server may reach.
#[derive(Clone)]
pub struct Outlets {
    egress: Egress,
    doors: Doors,
    /// Granted to all projects, by the server's settings.
    always: Vec<Grant>,
    mint: Arc<Mint>,
}

impl Outlets {
    /// Puts it together.
    pub fn new(egress: Egress, doors: Doors, always: Vec<Grant>, mint: Arc<Mint>) -> Self {
        Self {
            egress,
            doors,
            always,
            mint,
        }
    }
}

impl fmt::Debug for Outlets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outlets")
            .field("egress", &self.egress)
            .field("always", &self.always)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl conductor_port::egress::Egress for Outlets {
    async fn open(&self, spec: OutletSpec) -> Result<Box<dyn Outlet>, Fault> {
        let token = (self.mint)();
        let commands = Arc::new(Commands::default());
        let effect = spec.effect.clone();
        let visitor = Visitor {
            run: spec.run,
            effect: spec.effect,
            token: Token::new(token.clone()),
            grants: self.always.iter().cloned().chain(spec.grants).collect(),
            commands: Arc::clone(&commands),
        };
        let door = self
            .egress
            .open(&self.doors, visitor)
            .map_err(|error| Fault::transient(format!("opening the way out of {effect}: {error}")))?;
        Ok(Box::new(Opened {
            door,
            token,
            commands,
        }))
    }
}

#[derive(Debug)]
struct Opened {
    door: Door,
    token: SecretString,
    commands: Arc<Commands>,
}

#[async_trait]
impl Outlet for Opened {
    fn way(&self) -> Way {
        Way {
            port: PORT,
            socket: self.door.directory().join(self.door.socket()),
        }
    }

    fn environment(&self, command: &str) -> Vec<(String, String)> {
        let user = self.commands.name(command);
        let proxy = format!("http://{user}:{}@127.0.0.1:{PORT}", self.token.expose_secret());
        // Both cases, because programs agree on neither.
        [
            ("HTTP_PROXY", proxy.as_str()),
            ("http_proxy", &proxy),
            ("HTTPS_PROXY", &proxy),
            ("https_proxy", &proxy),
            ("NO_PROXY", INSIDE),
            ("no_proxy", INSIDE),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
    }

    async fn close(self: Box<Self>) {
        self.door.close().await;
    }
}

/// The commands of one sandbox, by the names that they were given.
#[derive(Debug, Default)]
pub struct Commands(Mutex<Named>);

#[derive(Debug, Default)]
struct Named {
    count: u64,
    words: BTreeMap<u64, String>,
}

impl Commands {
    /// Gives a command its name.
    fn name(&self, command: &str) -> String {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        named.count += 1;
        let count = named.count;
        named
            .words
            .insert(count, command.chars().take(MAX_WORDS).collect());
        if named.words.len() > MOST_COMMANDS {
            named.words.pop_first();
        }
        format!("command-{count}")
    }

    /// The words of a command; a name that was not given stays what it is.
    pub(super) fn words(&self, name: String) -> String {
        let named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = name
            .strip_prefix("command-")
            .and_then(|count| count.parse::<u64>().ok());
        count
            .and_then(|count| named.words.get(&count).cloned())
            .unwrap_or(name)
    }
}
