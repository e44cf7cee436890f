//! Decides which GitHub is spoken to, and refuses addresses that a token must not be sent to.
//!
//! It does not know what is asked there.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;

use crate::budget::WriteBudget;

/// How the App signs in, and where.
#[derive(Debug, Clone)]
pub struct Config {
    /// `https://api.github.com`, `https://HOST/api/v3` (Enterprise), or the address of a forge.
    pub api_url: String,
    /// The App's numeric id.
    pub app_id: u64,
    /// The App's RSA private key as PEM.
    pub private_key_pem: SecretString,
    /// How many writes an installation is allowed.
    pub writes: WriteBudget,
    /// How long one call may take.
    pub patience: Duration,
    /// How long after our own check of a commit those of others may still be to come; zero where they begin with the push.
    pub checks_begin_within: Duration,
}

impl Config {
    /// Returns the usual settings for an App at an address.
    pub fn new(api_url: impl Into<String>, app_id: u64, private_key_pem: SecretString) -> Self {
        Self {
            api_url: api_url.into(),
            app_id,
            private_key_pem,
            writes: WriteBudget::default(),
            patience: Duration::from_secs(30),
            checks_begin_within: Duration::from_mins(2),
        }
    }

    /// Returns these settings for a forge that stands in for GitHub, without its limits and its delays.
    #[must_use]
    pub fn for_stand_in(self) -> Self {
        Self {
            writes: WriteBudget::UNLIMITED,
            checks_begin_within: Duration::ZERO,
            ..self
        }
    }
}

/// Why a client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The address is no URL that calls can be built on.
    #[error("`{0}` is not the address of a GitHub API")]
    Address(String),
    /// Tokens would travel in the clear.
    #[error("`{0}` is plain http; only loopback may be spoken to without TLS")]
    PlainHttp(String),
    /// The private key cannot sign.
    #[error("the App's private key cannot be used; it is the RSA key that the App's page gave, as PEM")]
    Key(#[source] jsonwebtoken::errors::Error),
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be set up")]
    Http(#[source] reqwest::Error),
}

/// The address of an API, checked.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    base: Url,
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigError> {
        let wrong = || ConfigError::Address(text.to_owned());
        let mut base = Url::parse(text).map_err(|_| wrong())?;
        let plain = !base.username().is_empty() || base.password().is_some() || base.query().is_some();
        if plain || base.host_str().is_none() {
            return Err(wrong());
        }
        match base.scheme() {
            "https" => {}
            "http" if is_loopback(&base) => {}
            "http" => return Err(ConfigError::PlainHttp(text.to_owned())),
            _ => return Err(wrong()),
        }
        base.path_segments_mut().map_err(|()| wrong())?.pop_if_empty();
        Ok(Self { base })
    }

    /// Builds the URL of an endpoint; each segment is encoded whole, so that none can become two.
    pub(crate) fn endpoint(&self, segments: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .expect("an address that parsed has path segments")
            .extend(segments);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// Whether a URL that the API handed out leads back to it.
    pub(crate) fn owns(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// Whether git may be sent to this URL: the site that belongs to this API, and no other.
    pub(crate) fn owns_git(&self, url: &Url) -> bool {
        if self.base.host_str() == Some("api.github.com") {
            return url.scheme() == "https" && url.host_str() == Some("github.com") && url.port().is_none();
        }
        self.owns(url)
    }

    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.base)
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{Address, ConfigError};

    /// GH-7.
    #[test]
    fn endpoints_are_built_on_github_enterprise_and_forge_alike() {
        let endpoint = |base: &str| {
            Address::parse(base)
                .unwrap()
                .endpoint(&["repos", "a b", "x/../y"], &[])
                .to_string()
        };
        assert_eq!(
            endpoint("https://api.github.com"),
            "https://api.github.com/repos/a%20b/x%2F..%2Fy"
        );
        assert_eq!(
            endpoint("https://ghe.example/api/v3/"),
            "https://ghe.example/api/v3/repos/a%20b/x%2F..%2Fy"
        );
        assert_eq!(
            endpoint("http://127.0.0.1:9"),
            "http://127.0.0.1:9/repos/a%20b/x%2F..%2Fy"
        );
    }

    /// GH-1: a token is never sent in the clear to another machine.
    #[test]
    fn plain_http_is_refused_except_on_loopback() {
        assert!(matches!(
            Address::parse("http://ghe.example/api/v3"),
            Err(ConfigError::PlainHttp(_))
        ));
        assert!(matches!(
            Address::parse("http://127.0.0.1.example"),
            Err(ConfigError::PlainHttp(_))
        ));
        assert!(matches!(
            Address::parse("ftp://127.0.0.1"),
            Err(ConfigError::Address(_))
        ));
        assert!(matches!(
            Address::parse("https://user:pass@ghe.example"),
            Err(ConfigError::Address(_))
        ));
        assert!(Address::parse("http://[::1]:3").is_ok());
    }

    /// S-12: git goes to the site of this API only.
    #[test]
    fn git_urls_of_other_hosts_are_not_ours() {
        let owns = |api: &str, git: &str| Address::parse(api).unwrap().owns_git(&git.parse().unwrap());
        assert!(owns("https://api.github.com", "https://github.com/a/b.git"));
        assert!(!owns(
            "https://api.github.com",
            "https://github.com.example/a/b.git"
        ));
        assert!(!owns("https://api.github.com", "http://github.com/a/b.git"));
        assert!(owns("https://ghe.example/api/v3", "https://ghe.example/a/b.git"));
        assert!(!owns(
            "https://ghe.example/api/v3",
            "https://ghe.example:8443/a/b.git"
        ));
    }
}
