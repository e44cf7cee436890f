//! Signs in as the App and mints installation tokens, each for one repository and the least permissions (GH-1).
//!
//! Tokens are cached for at most 55 of their 60 minutes, by installation, repository and grant, and cannot
//! be printed. It does not know what they are used for.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use conductor_domain::fault::Fault;
use conductor_domain::id::RepoId;
use conductor_domain::spec::RepoRef;
use conductor_domain::time::{Millis, Timestamp};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};

/// GitHub refuses JWTs from the future; a minute of age covers a clock that runs a little ahead.
const JWT_BACKDATED_SECONDS: i64 = 60;
/// GitHub's limit is ten minutes from its own now.
const JWT_SECONDS: i64 = 540;
const LONGEST_USE: Millis = Millis::minutes(55);
/// A token is not used in its last minutes; a push must not lose it half-way.
const SPARE: Millis = Millis::minutes(5);
/// For so long a fresh token may be unknown to some of GitHub's machines.
pub(crate) const FRESH: Millis = Millis::seconds(30);

/// What a token is minted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Grant {
    ReadMetadata,
    ReadIssues,
    WriteIssues,
    ReadPullRequests,
    WritePullRequests,
    WriteChecks,
    WriteContents,
    WriteBoards,
    Merge,
}

impl Grant {
    fn permissions(self) -> Value {
        match self {
            Self::ReadMetadata => json!({ "metadata": "read" }),
            Self::ReadIssues => json!({ "issues": "read" }),
            Self::WriteIssues => json!({ "issues": "write" }),
            Self::ReadPullRequests => {
                json!({ "pull_requests": "read", "checks": "read", "contents": "read" })
            }
            Self::WritePullRequests => json!({ "pull_requests": "write" }),
            Self::WriteChecks => json!({ "checks": "write" }),
            Self::WriteContents => json!({ "contents": "write" }),
            // Putting an issue on a board reads it.
            Self::WriteBoards => json!({ "organization_projects": "write", "issues": "read" }),
            Self::Merge => json!({ "pull_requests": "write", "contents": "write" }),
        }
    }
}

/// A repository as a call names it; the numeric id, where known, is what tokens are scoped to (S-53).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) owner: String,
    pub(crate) name: String,
    pub(crate) id: Option<RepoId>,
}

impl Place {
    /// Refuses names that GitHub could not have given out; some would change the path they stand in.
    pub(crate) fn named(owner: &str, name: &str) -> Result<Self, Fault> {
        let is_name = |text: &str| {
            !text.is_empty()
                && text.len() <= 100
                && !text.starts_with('.')
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        if is_name(owner) && is_name(name) {
            Ok(Self {
                owner: owner.to_owned(),
                name: name.to_owned(),
                id: None,
            })
        } else {
            Err(Fault::permanent(format!(
                "{owner:?}/{name:?} cannot be the name of a repository"
            )))
        }
    }

    pub(crate) fn of(repo: &RepoRef) -> Result<Self, Fault> {
        Ok(Self {
            id: Some(repo.id),
            ..Self::named(&repo.owner, &repo.name)?
        })
    }

    pub(crate) fn mint_request(&self, grant: Grant) -> Value {
        match self.id {
            Some(id) => json!({ "repository_ids": [id.0], "permissions": grant.permissions() }),
            None => json!({ "repositories": [self.name], "permissions": grant.permissions() }),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// An installation token in use.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) text: SecretString,
    pub(crate) installation: u64,
    pub(crate) minted_at: Timestamp,
    usable_until: Timestamp,
}

impl Token {
    pub(crate) fn new(text: String, installation: u64, minted_at: Timestamp, life: Millis) -> Self {
        let usable = Millis(life.0.saturating_sub(SPARE.0)).min(LONGEST_USE);
        Self {
            text: SecretString::from(text),
            installation,
            minted_at,
            usable_until: minted_at.after(usable),
        }
    }

    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        now < self.minted_at.after(FRESH)
    }
}

/// Tokens and installations that are known already.
#[derive(Debug, Default)]
pub(crate) struct Wallet {
    tokens: Mutex<HashMap<(Place, Grant), Token>>,
    installations: Mutex<HashMap<(String, String), u64>>,
}

impl Wallet {
    pub(crate) fn token(&self, place: &Place, grant: Grant, now: Timestamp) -> Option<Token> {
        let mut tokens = lock(&self.tokens);
        tokens.retain(|_, token| now < token.usable_until);
        tokens.get(&(place.clone(), grant)).cloned()
    }

    pub(crate) fn keep_token(&self, place: &Place, grant: Grant, token: &Token) {
        lock(&self.tokens).insert((place.clone(), grant), token.clone());
    }

    pub(crate) fn forget_token(&self, place: &Place, grant: Grant) {
        lock(&self.tokens).remove(&(place.clone(), grant));
    }

    /// Takes all tokens out, so that they can be revoked (BEY-7).
    pub(crate) fn empty(&self) -> Vec<Token> {
        lock(&self.tokens).drain().map(|(_, token)| token).collect()
    }

    pub(crate) fn installation(&self, place: &Place) -> Option<u64> {
        lock(&self.installations).get(&key(place)).copied()
    }

    pub(crate) fn keep_installation(&self, place: &Place, installation: u64) {
        lock(&self.installations).insert(key(place), installation);
    }

    pub(crate) fn forget_installation(&self, place: &Place) {
        lock(&self.installations).remove(&key(place));
    }
}

fn key(place: &Place) -> (String, String) {
    (place.owner.to_ascii_lowercase(), place.name.to_ascii_lowercase())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Serialize)]
struct Claims {
    iat: i64,
    exp: i64,
    iss: String,
}

/// Signs the App's JWT for GitHub's present second.
pub(crate) fn sign(key: &EncodingKey, app_id: u64, server_now: i64) -> Result<SecretString, Fault> {
    let claims = Claims {
        iat: server_now - JWT_BACKDATED_SECONDS,
        exp: server_now + JWT_SECONDS,
        iss: app_id.to_string(),
    };
    jsonwebtoken::encode(&Header::new(Algorithm::RS256), &claims, key)
        .map(SecretString::from)
        .map_err(|error| Fault::permanent(format!("could not sign in as the App: {error}")))
}

#[cfg(test)]
mod tests {
    use conductor_domain::time::{Millis, Timestamp};

    use super::{Grant, Place, Token, Wallet};

    fn at(minute: u64) -> Timestamp {
        Timestamp(0).after(Millis::minutes(minute))
    }

    /// GH-1.
    #[test]
    fn a_token_is_used_for_55_minutes_at_most_and_never_for_another_repository_or_grant() {
        let (wallet, place) = (Wallet::default(), Place::named("acme", "widgets").unwrap());
        let token = Token::new("ghs_secret".into(), 7, at(0), Millis::hours(1));
        wallet.keep_token(&place, Grant::ReadIssues, &token);
        let other = Place::named("acme", "gadgets").unwrap();
        assert!(wallet.token(&place, Grant::ReadIssues, at(54)).is_some());
        assert!(wallet.token(&place, Grant::WriteIssues, at(54)).is_none());
        assert!(wallet.token(&other, Grant::ReadIssues, at(54)).is_none());
        assert!(wallet.token(&place, Grant::ReadIssues, at(55)).is_none());
    }

    /// GH-1: nothing that holds a token can print it.
    #[test]
    fn a_token_cannot_be_printed() {
        let wallet = Wallet::default();
        let token = Token::new("ghs_secret".into(), 7, at(0), Millis::hours(1));
        wallet.keep_token(&Place::named("a", "b").unwrap(), Grant::ReadIssues, &token);
        assert!(!format!("{token:?} {wallet:?}").contains("ghs_secret"));
    }

    #[test]
    fn names_that_would_change_the_path_are_refused() {
        for (owner, name) in [
            ("..", "x"),
            ("a", ".."),
            ("a/b", "c"),
            ("", "x"),
            ("a", "b?c"),
            ("a", "b%2f"),
        ] {
            assert!(Place::named(owner, name).is_err(), "{owner:?}/{name:?}");
        }
    }
}
