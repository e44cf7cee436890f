//! Makes calls: finds or mints the token, keeps to the budget, sends once, learns GitHub's clock.
//!
//! A call ends with GitHub's answer or a fault. The one kindness: a token younger than 30 seconds that is not
//! known everywhere yet makes a transient fault instead of a permanent one. It does not know the operations.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use conductor_domain::fault::Fault;
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::clock::Clock;
use jsonwebtoken::EncodingKey;
use reqwest::header::LOCATION;
use reqwest::{Method, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::budget::{Budget, Identity};
use crate::classify::Reply;
use crate::config::{Address, Config, ConfigError};
use crate::credential::{self, Grant, Place, Token, Wallet};
use crate::model;
use crate::transport::Transport;

/// A difference below this is the network's, not the clock's.
const NOTABLE_SKEW_SECONDS: i64 = 5;
/// How long to leave a token that is not known everywhere yet.
const SPREADING: Millis = Millis::seconds(3);

/// A client of one GitHub, signed in as one App. Cheap to share; calls may be made at once.
pub struct Client {
    pub(crate) app_id: u64,
    pub(crate) address: Address,
    pub(crate) checks_begin_within: Duration,
    key: EncodingKey,
    clock: Arc<dyn Clock>,
    transport: Transport,
    budget: Budget,
    wallet: Wallet,
    /// GitHub's clock minus ours, in seconds.
    skew: AtomicI64,
    bot_login: OnceLock<String>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.address)
            .field("app_id", &self.app_id)
            .finish_non_exhaustive()
    }
}

/// One call to be made, and what it is for in words that complete "could not …".
pub(crate) struct Call<'a> {
    pub(crate) attempt: &'a str,
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) body: Option<Value>,
}

impl Client {
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Result<Self, ConfigError> {
        let address = Address::parse(&config.api_url)?;
        let key = EncodingKey::from_rsa_pem(config.private_key_pem.expose_secret().as_bytes())
            .map_err(ConfigError::Key)?;
        let transport = Transport::new(config.patience, address.is_loopback())?;
        Ok(Self {
            app_id: config.app_id,
            address,
            checks_begin_within: config.checks_begin_within,
            key,
            clock,
            transport,
            budget: Budget::new(config.writes),
            wallet: Wallet::default(),
            skew: AtomicI64::new(0),
            bot_login: OnceLock::new(),
        })
    }

    /// Calls with a token for a repository. The answer may be a refusal that means something to the caller.
    pub(crate) async fn ask(&self, place: &Place, grant: Grant, call: Call<'_>) -> Result<Reply, Fault> {
        let token = self.token(place, grant).await?;
        let attempt = call.attempt;
        let reply = self
            .send(Identity::Installation(token.installation), &token.text, call)
            .await?;
        let spreading = || {
            let what = format!("could not {attempt}: the token is fresh and not known everywhere yet");
            Fault::transient_for(SPREADING, what)
        };
        match reply.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if token.is_fresh(self.now()) => {
                Err(spreading())
            }
            StatusCode::UNAUTHORIZED => {
                self.wallet.forget_token(place, grant);
                Err(Fault::transient(format!(
                    "could not {attempt}: the token was refused; the next one is new"
                )))
            }
            // A repository that answers shows that the token has arrived, so the thing itself is missing.
            StatusCode::NOT_FOUND if token.is_fresh(self.now()) && !self.is_known(place, &token).await? => {
                Err(spreading())
            }
            _ if self.is_renamed(place, &reply) => Err(Fault::permanent(format!(
                "could not {attempt}: {place} has another name or owner now"
            ))),
            _ => Ok(reply),
        }
    }

    /// Whether a redirect, which is never followed, leads to this same repository under its numeric id.
    fn is_renamed(&self, place: &Place, reply: &Reply) -> bool {
        let location = reply.headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let target = location.and_then(|location| location.parse::<Url>().ok());
        reply.status.is_redirection()
            && target.is_some_and(|url| {
                let mut segments = url
                    .path_segments()
                    .into_iter()
                    .flatten()
                    .skip_while(|it| *it != "repositories");
                let id = segments.nth(1).and_then(|id| id.parse().ok());
                self.address.owns(&url) && id.is_some() && id == place.id.map(|id| id.0)
            })
    }

    /// Calls and reads the answer; everything but success is a fault.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        place: &Place,
        grant: Grant,
        call: Call<'_>,
    ) -> Result<T, Fault> {
        let attempt = call.attempt;
        let reply = self.ask(place, grant, call).await?;
        self.parse(attempt, &reply)
    }

    pub(crate) fn parse<T: DeserializeOwned>(&self, attempt: &str, reply: &Reply) -> Result<T, Fault> {
        if !reply.status.is_success() {
            return Err(reply.fault(attempt, self.server_now()));
        }
        serde_json::from_slice(&reply.body).map_err(|error| {
            Fault::permanent(format!(
                "could not {attempt}: GitHub's answer cannot be understood: {error}"
            ))
        })
    }

    /// Builds a call below a repository.
    pub(crate) fn call<'a>(
        &self,
        attempt: &'a str,
        method: Method,
        place: &Place,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Call<'a> {
        let segments: Vec<&str> = ["repos", place.owner.as_str(), place.name.as_str()]
            .into_iter()
            .chain(path.iter().copied())
            .collect();
        Call {
            attempt,
            method,
            url: self.address.endpoint(&segments, query),
            body: None,
        }
    }

    /// The installation of the App that covers a repository; `None` when there is none that we may see.
    pub(crate) async fn installation(&self, place: &Place) -> Result<Option<u64>, Fault> {
        if let Some(known) = self.wallet.installation(place) {
            return Ok(Some(known));
        }
        let attempt = format!("find the App's installation on {place}");
        let call = self.call(&attempt, Method::GET, place, &["installation"], &[]);
        let reply = self.ask_as_app(call).await?;
        if reply.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let found: model::Installation = self.parse(&attempt, &reply)?;
        self.wallet.keep_installation(place, found.id);
        Ok(Some(found.id))
    }

    /// Returns a token for a repository, minting one where none is good any more.
    pub(crate) async fn token(&self, place: &Place, grant: Grant) -> Result<Token, Fault> {
        if let Some(token) = self.wallet.token(place, grant, self.now()) {
            return Ok(token);
        }
        let Some(installation) = self.installation(place).await? else {
            return Err(Fault::permanent(format!(
                "the App is not installed on {place}, or there is no such repository"
            )));
        };
        let attempt = format!("mint a token for {place}");
        let id = installation.to_string();
        let url = self
            .address
            .endpoint(&["app", "installations", &id, "access_tokens"], &[]);
        let body = Some(place.mint_request(grant));
        let reply = self
            .ask_as_app(Call {
                attempt: &attempt,
                method: Method::POST,
                url,
                body,
            })
            .await?;
        if reply.status == StatusCode::NOT_FOUND {
            self.wallet.forget_installation(place);
        }
        let minted: model::MintedToken = self.parse(&attempt, &reply)?;
        let expires = minted
            .expires_at
            .and_then(|text| text.parse::<jiff::Timestamp>().ok());
        let life = expires.map_or(Millis::hours(1), |expires| {
            Millis::seconds(u64::try_from(expires.as_second().saturating_sub(self.server_now())).unwrap_or(0))
        });
        let token = Token::new(minted.token, installation, self.now(), life);
        self.wallet.keep_token(place, grant, &token);
        Ok(token)
    }

    /// The login under which the App's own comments appear.
    pub async fn bot_login(&self) -> Result<&str, Fault> {
        if let Some(known) = self.bot_login.get() {
            return Ok(known);
        }
        let attempt = "read who the App is";
        let url = self.address.endpoint(&["app"], &[]);
        let reply = self
            .ask_as_app(Call {
                attempt,
                method: Method::GET,
                url,
                body: None,
            })
            .await?;
        let app: model::App = self.parse(attempt, &reply)?;
        Ok(self
            .bot_login
            .get_or_init(|| format!("{}[bot]", app.slug.unwrap_or_default())))
    }

    /// Revokes every token that was minted and may still be good (BEY-7); returns those that could not be.
    pub async fn revoke_tokens(&self) -> Vec<Fault> {
        let attempt = "revoke a token";
        let mut failed = Vec::new();
        for token in self.wallet.empty() {
            let url = self.address.endpoint(&["installation", "token"], &[]);
            let call = Call {
                attempt,
                method: Method::DELETE,
                url,
                body: None,
            };
            match self
                .send(Identity::Installation(token.installation), &token.text, call)
                .await
            {
                Ok(reply) if reply.status.is_success() || reply.status == StatusCode::UNAUTHORIZED => {}
                Ok(reply) => failed.push(reply.fault(attempt, self.server_now())),
                Err(fault) => failed.push(fault),
            }
        }
        failed
    }

    async fn ask_as_app(&self, call: Call<'_>) -> Result<Reply, Fault> {
        let (attempt, skew) = (call.attempt, self.skew.load(Ordering::Relaxed));
        let jwt = credential::sign(&self.key, self.app_id, self.server_now())?;
        let reply = self.send(Identity::App, &jwt, call).await?;
        let learned = self.skew.load(Ordering::Relaxed);
        if reply.status == StatusCode::UNAUTHORIZED
            && learned.abs_diff(skew) > NOTABLE_SKEW_SECONDS.unsigned_abs()
        {
            let what = format!(
                "could not {attempt}: our clock is {learned} s off GitHub's; it is corrected for now"
            );
            return Err(Fault::transient_for(Millis::seconds(1), what));
        }
        Ok(reply)
    }

    /// Whether a token has reached the machine that answers for the repository.
    async fn is_known(&self, place: &Place, token: &Token) -> Result<bool, Fault> {
        let attempt = format!("see whether a fresh token for {place} has arrived");
        let call = self.call(&attempt, Method::GET, place, &[], &[]);
        let reply = self
            .send(Identity::Installation(token.installation), &token.text, call)
            .await?;
        Ok(reply.status.is_success())
    }

    async fn send(
        &self,
        identity: Identity,
        credential: &SecretString,
        call: Call<'_>,
    ) -> Result<Reply, Fault> {
        let Call {
            attempt,
            method,
            url,
            body,
        } = call;
        // Minting is a write by its method only; it is not among the writes that GitHub limits.
        let is_write = method != Method::GET && identity != Identity::App;
        self.budget
            .admit(identity, is_write, self.now())
            .map_err(|wait| {
                Fault::transient_for(
                    wait,
                    format!("did not {attempt} yet: GitHub's limit would be exceeded"),
                )
            })?;
        let reply = self
            .transport
            .send(attempt, method, url, credential, body.as_ref())
            .await?;
        if let Some(date) = reply.date() {
            let skew = date - second(self.now());
            let notable = if skew.abs() > NOTABLE_SKEW_SECONDS {
                skew
            } else {
                0
            };
            self.skew.store(notable, Ordering::Relaxed);
        }
        if let Some(wait) = reply.limit(self.server_now()) {
            self.budget.rest(identity, self.now().after(wait));
            return Err(reply.fault(attempt, self.server_now()));
        }
        Ok(reply)
    }

    pub(crate) fn server_now(&self) -> i64 {
        second(self.now()) + self.skew.load(Ordering::Relaxed)
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

fn second(timestamp: Timestamp) -> i64 {
    timestamp.0.div_euclid(1_000_000)
}
