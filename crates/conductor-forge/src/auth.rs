//! Decides who is calling and what they may touch: App JWTs, installation tokens, personal tokens.
//!
//! What a caller may not see does not exist for them (404); what they may see but not do is forbidden
//! (403). It does not know the operations themselves.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jsonwebtoken::{Algorithm, Validation};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::chance;
use crate::moment::Moment;
use crate::refusal::Refusal;
use crate::site::Site;
use crate::state::{Holder, Level, Permissions, Repo, Role, Scope, State, Token};

/// GitHub's longest life of an App JWT.
const LONGEST_JWT_SECONDS: i64 = 600;
const TOKEN_SECONDS: i64 = 3600;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    Nobody,
    App,
    Installation {
        installation: u64,
        repos: BTreeSet<u64>,
        permissions: Permissions,
    },
    Person {
        login: String,
    },
}

impl Caller {
    /// The budget that this caller's requests are counted against.
    pub(crate) fn budget(&self) -> String {
        match self {
            Self::Nobody => "anonymous".into(),
            Self::App => "app".into(),
            Self::Installation { installation, .. } => format!("installation ID {installation}"),
            Self::Person { login } => format!("user {login}"),
        }
    }

    /// The login under which the caller's writes appear.
    pub(crate) fn login(&self, state: &State) -> String {
        match self {
            Self::Nobody => "ghost".into(),
            Self::App | Self::Installation { .. } => state.app.bot_login(),
            Self::Person { login } => login.clone(),
        }
    }

    pub(crate) fn require_app(&self) -> Result<(), Refusal> {
        match self {
            Self::App => Ok(()),
            Self::Nobody | Self::Installation { .. } | Self::Person { .. } => Err(Refusal::Unauthorized(
                "A JSON web token could not be decoded".into(),
            )),
        }
    }

    pub(crate) fn may(&self, repo: &Repo, scope: Scope, level: Level) -> Result<(), Refusal> {
        match self {
            Self::Nobody | Self::App => Err(Refusal::not_found()),
            Self::Installation {
                repos, permissions, ..
            } => {
                if !repos.contains(&repo.id) {
                    return Err(Refusal::not_found());
                }
                let granted = permissions.get(&scope).is_some_and(|granted| *granted >= level);
                if granted || (scope == Scope::Metadata && level == Level::Read) {
                    Ok(())
                } else {
                    Err(Refusal::inaccessible())
                }
            }
            Self::Person { login } => {
                let role = repo.role_of(login).ok_or_else(Refusal::not_found)?;
                // Everyone who can read a repository may write into its conversations.
                let conversation = matches!(scope, Scope::Issues | Scope::PullRequests);
                if level == Level::Read || conversation || role >= Role::Write {
                    Ok(())
                } else {
                    Err(Refusal::Forbidden("Must have push access to repository".into()))
                }
            }
        }
    }
}

impl Caller {
    /// Boards belong to an account and not to a repository: an installation may touch those of its own account.
    pub(crate) fn may_boards(&self, state: &State, owner: &str, level: Level) -> Result<(), Refusal> {
        match self {
            Self::Nobody => Err(Refusal::Unauthorized("Requires authentication".into())),
            Self::App | Self::Person { .. } => Err(Refusal::not_found()),
            Self::Installation {
                installation,
                permissions,
                ..
            } => {
                let account = state.installations.get(installation).map(|known| &known.account);
                if !account.is_some_and(|account| account.eq_ignore_ascii_case(owner)) {
                    return Err(Refusal::not_found());
                }
                let granted = permissions.get(&Scope::OrganizationProjects);
                if granted.is_some_and(|granted| *granted >= level) {
                    Ok(())
                } else {
                    Err(Refusal::inaccessible())
                }
            }
        }
    }
}

/// Works out the caller from an `Authorization` header; a use of a token counts towards its refusals.
pub(crate) fn identify(site: &Site, authorization: Option<&str>) -> Result<Caller, Refusal> {
    let Some(authorization) = authorization else {
        return Ok(Caller::Nobody);
    };
    let bad = || Refusal::Unauthorized("Bad credentials".into());
    let (scheme, credential) = authorization.split_once(' ').ok_or_else(bad)?;
    let credential = credential.trim();
    if scheme.eq_ignore_ascii_case("basic") {
        let decoded = STANDARD.decode(credential).map_err(|_| bad())?;
        let pair = String::from_utf8(decoded).map_err(|_| bad())?;
        let (_, password) = pair.split_once(':').ok_or_else(bad)?;
        return by_token(site, password);
    }
    if !scheme.eq_ignore_ascii_case("bearer") && !scheme.eq_ignore_ascii_case("token") {
        return Err(bad());
    }
    let is_jwt = !credential.starts_with("gh") && credential.split('.').count() == 3;
    if is_jwt {
        by_jwt(site, credential)
    } else {
        by_token(site, credential)
    }
}

#[derive(Deserialize)]
struct Claims {
    iss: Value,
    iat: i64,
    exp: i64,
}

fn by_jwt(site: &Site, jwt: &str) -> Result<Caller, Refusal> {
    let refused = |message: &str| Refusal::Unauthorized(message.into());
    let mut validation = Validation::new(Algorithm::RS256);
    // Times are compared below, with the site's own clock and GitHub's own words.
    validation.validate_exp = false;
    validation.required_spec_claims.clear();
    let claims = jsonwebtoken::decode::<Claims>(jwt, site.key.verifier(), &validation)
        .map_err(|_| refused("A JSON web token could not be decoded"))?
        .claims;
    let now = site.clock.now().as_second();
    if claims.iat > now {
        return Err(refused(
            "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
        ));
    }
    if claims.exp <= now {
        return Err(refused(
            "'Expiration time' claim ('exp') must be a numeric value representing the future time at which \
             the assertion expires",
        ));
    }
    if claims.exp > now + LONGEST_JWT_SECONDS {
        return Err(refused(
            "'Expiration time' claim ('exp') is too far in the future",
        ));
    }
    let issuer = claims
        .iss
        .as_str()
        .map_or_else(|| claims.iss.to_string(), str::to_owned);
    if issuer == site.look(|state| state.app.id).to_string() {
        Ok(Caller::App)
    } else {
        Err(Refusal::NotFound("Integration not found".into()))
    }
}

fn by_token(site: &Site, text: &str) -> Result<Caller, Refusal> {
    let bad = || Refusal::Unauthorized("Bad credentials".into());
    let fingerprint = fingerprint(text);
    let now = site.clock.now();
    let token = site
        .look(|state| state.tokens.get(&fingerprint).cloned())
        .ok_or_else(bad)?;
    if token.expires_at <= now {
        return Err(bad());
    }
    if token.refusals_left > 0 {
        site.change(|change| {
            if let Some(token) = change.state.tokens.get_mut(&fingerprint) {
                token.refusals_left = token.refusals_left.saturating_sub(1);
            }
            Ok(())
        })?;
        return Err(bad());
    }
    Ok(match token.holder {
        Holder::Installation {
            installation,
            repos,
            permissions,
        } => Caller::Installation {
            installation,
            repos,
            permissions,
        },
        Holder::Person { login } => Caller::Person { login },
    })
}

/// Mints a token, keeps its fingerprint, and hands its text out this once.
pub(crate) fn mint(site: &Site, holder: Holder) -> Result<(String, Moment), Refusal> {
    let text = match &holder {
        Holder::Installation { .. } if site.stateless_tokens => {
            let app = site.look(|state| state.app.id);
            format!(
                "ghs_{app}_{}.{}{}.{}",
                chance::digits(),
                chance::digits().repeat(8),
                chance::digits().repeat(6),
                chance::digits()
            )
        }
        Holder::Installation { .. } => format!("ghs_{}{}", chance::digits(), &chance::digits()[..4]),
        Holder::Person { .. } => format!("ghp_{}{}", chance::digits(), &chance::digits()[..4]),
    };
    let refusals_left = match &holder {
        Holder::Installation { .. } => site.faults.fresh_token_refusals(),
        Holder::Person { .. } => 0,
    };
    let expires_at = site.clock.now().plus_seconds(TOKEN_SECONDS);
    site.change(|change| {
        let now = change.now;
        change.state.tokens.retain(|_, token| token.expires_at > now);
        change.state.tokens.insert(
            fingerprint(&text),
            Token {
                holder,
                expires_at,
                refusals_left,
            },
        );
        Ok(())
    })?;
    Ok((text, expires_at))
}

pub(crate) fn revoke(site: &Site, text: &str) -> Result<(), Refusal> {
    site.change(|change| {
        change.state.tokens.remove(&fingerprint(text));
        Ok(())
    })
}

fn fingerprint(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// The hourly request budgets, one per identity; they begin anew when the site restarts.
#[derive(Debug)]
pub(crate) struct Rates {
    limit: u32,
    used: Mutex<HashMap<String, Window>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) limit: u32,
    pub(crate) used: u32,
    pub(crate) resets_at: Moment,
}

impl Window {
    pub(crate) fn remaining(&self) -> u32 {
        self.limit.saturating_sub(self.used)
    }
}

impl Rates {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            limit,
            used: Mutex::default(),
        }
    }

    pub(crate) fn window(&self, budget: &str, now: Moment) -> Window {
        let fresh = Window {
            limit: self.limit,
            used: 0,
            resets_at: now.plus_seconds(3600),
        };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let window = used.entry(budget.to_owned()).or_insert(fresh);
        if window.resets_at <= now {
            *window = fresh;
        }
        *window
    }

    pub(crate) fn spend(&self, budget: &str, now: Moment) -> Window {
        self.window(budget, now);
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let window = used.entry(budget.to_owned()).or_insert(Window {
            limit: self.limit,
            used: 0,
            resets_at: now.plus_seconds(3600),
        });
        window.used = window.used.saturating_add(1);
        *window
    }
}
