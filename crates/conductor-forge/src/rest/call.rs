//! One REST call as a handler sees it: the caller, the repository it may touch, the address it came by.
//!
//! It does not know the operations.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::{FromRequestParts, OriginalUri, Query};
use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::http::request::Parts;

use crate::auth::Caller;
use crate::refusal::Refusal;
use crate::site::Site;
use crate::state::{Level, Repo, Scope};
use crate::view::Root;

/// One REST call: who makes it, and under which address.
pub(crate) struct Call {
    pub(crate) site: Arc<Site>,
    pub(crate) caller: Caller,
    pub(crate) root: Root,
    path: String,
    query: BTreeMap<String, String>,
}

impl Call {
    pub(crate) fn query(&self, key: &str) -> Option<&str> {
        self.query.get(key).map(String::as_str)
    }

    pub(crate) fn login(&self) -> String {
        self.site.look(|state| self.caller.login(state))
    }

    /// Finds the repository that the path names, for a caller that may do this with it.
    pub(crate) fn repo(
        &self,
        owner: &str,
        name: &str,
        scope: Scope,
        level: Level,
    ) -> Result<Arc<Repo>, Refusal> {
        self.repo_by_any(owner, name, &[scope], level)
    }

    /// Some operations are open to holders of any of several permissions.
    pub(crate) fn repo_by_any(
        &self,
        owner: &str,
        name: &str,
        scopes: &[Scope],
        level: Level,
    ) -> Result<Arc<Repo>, Refusal> {
        if self.caller == Caller::Nobody {
            return Err(Refusal::Unauthorized("Requires authentication".into()));
        }
        let found = self.site.look(|state| {
            let moved = state.repo_formerly_named(owner, name).map(|repo| repo.id);
            (state.repo_named(owner, name).cloned(), moved)
        });
        let repo = match found {
            (Some(repo), _) => repo,
            (None, Some(id)) => {
                let old = format!("/repos/{owner}/{name}");
                let rest = self
                    .path
                    .find(&old)
                    .map_or("", |start| &self.path[start + old.len()..]);
                return Err(Refusal::Moved {
                    location: format!("/repositories/{id}{rest}"),
                });
            }
            (None, None) => return Err(Refusal::not_found()),
        };
        let mut refusal = Refusal::not_found();
        for scope in scopes {
            match self.caller.may(&repo, *scope, level) {
                Ok(()) => return Ok(repo),
                Err(reason) => refusal = reason,
            }
        }
        Err(refusal)
    }

    /// The URL of this call with some query parameters replaced.
    pub(crate) fn url_with(&self, replaced: &[(&str, &str)]) -> String {
        let mut query = self.query.clone();
        for (key, value) in replaced {
            query.insert((*key).to_owned(), (*value).to_owned());
        }
        let pairs: Vec<String> = query
            .iter()
            .map(|(k, v)| format!("{}={}", encode(k), encode(v)))
            .collect();
        format!("{}{}?{}", self.root.web, self.path, pairs.join("&"))
    }
}

fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

impl FromRequestParts<Arc<Site>> for Call {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<Site>) -> Result<Self, Refusal> {
        let OriginalUri(uri) = OriginalUri::from_request_parts(parts, site)
            .await
            .unwrap_or_else(|never| match never {});
        let Query(query) = Query::from_request_parts(parts, site)
            .await
            .map_err(|_| Refusal::BadRequest("Problems parsing the query".into()))?;
        let caller = parts
            .extensions
            .get::<Caller>()
            .cloned()
            .unwrap_or(Caller::Nobody);
        let root = root_of(&parts.headers, uri.path(), site);
        Ok(Self {
            site: Arc::clone(site),
            caller,
            root,
            path: uri.path().to_owned(),
            query,
        })
    }
}

/// URLs in an answer lead back to the host that was asked; clients assert that.
pub(crate) fn root_of(headers: &HeaderMap, path: &str, site: &Site) -> Root {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let web = host.map_or_else(|| site.root().web.clone(), |host| format!("http://{host}"));
    if path.starts_with("/api/v3") {
        Root::enterprise(&web)
    } else {
        Root::new(&web)
    }
}
