//! Shows records as GitHub's JSON, with URLs that lead back to the host the client called.
//!
//! Views read; they decide nothing and know no HTTP.

mod board;
mod check;
mod event;
mod issue;
mod pull;
mod repo;

pub(crate) use event::Happening;
pub(crate) use pull::Mergeable;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::state::{AccountKind, State, User};

/// The two addresses that all URLs of an answer begin with.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    /// Where people look: pages and git.
    pub(crate) web: String,
    /// Where programs ask: `web` itself, or `web/api/v3` as on GitHub Enterprise.
    pub(crate) api: String,
}

impl Root {
    pub(crate) fn new(web: &str) -> Self {
        Self {
            web: web.to_owned(),
            api: web.to_owned(),
        }
    }

    pub(crate) fn enterprise(web: &str) -> Self {
        Self {
            web: web.to_owned(),
            api: format!("{web}/api/v3"),
        }
    }
}

/// Records seen from one address.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) state: &'a State,
    pub(crate) root: &'a Root,
}

impl<'a> View<'a> {
    pub(crate) fn new(state: &'a State, root: &'a Root) -> Self {
        Self { state, root }
    }

    /// A complete simple-user object; strict clients reject one with a key missing.
    pub(crate) fn user(&self, login: &str) -> Value {
        let ghost = User {
            id: 10137,
            login: "ghost".into(),
            kind: AccountKind::User,
        };
        let user = self.state.users.get(login).unwrap_or(&ghost);
        let (web, api) = (&self.root.web, format!("{}/users/{}", self.root.api, user.login));
        json!({
            "login": user.login,
            "id": user.id,
            "node_id": node_id("User", user.id),
            "avatar_url": format!("{web}/avatars/{}", user.id),
            "gravatar_id": "",
            "url": api,
            "html_url": format!("{web}/{}", user.login),
            "followers_url": format!("{api}/followers"),
            "following_url": format!("{api}/following{{/other_user}}"),
            "gists_url": format!("{api}/gists{{/gist_id}}"),
            "starred_url": format!("{api}/starred{{/owner}}{{/repo}}"),
            "subscriptions_url": format!("{api}/subscriptions"),
            "organizations_url": format!("{api}/orgs"),
            "repos_url": format!("{api}/repos"),
            "events_url": format!("{api}/events{{/privacy}}"),
            "received_events_url": format!("{api}/received_events"),
            "type": match user.kind {
                AccountKind::User => "User",
                AccountKind::Bot => "Bot",
                AccountKind::Organization => "Organization",
            },
            "site_admin": false,
        })
    }

    fn user_or_null(&self, login: Option<&str>) -> Value {
        login.map_or(Value::Null, |login| self.user(login))
    }
}

/// An opaque global id, as stable as the record it names.
pub(crate) fn node_id(kind: &str, id: u64) -> String {
    STANDARD.encode(format!("{kind}:{id}"))
}
