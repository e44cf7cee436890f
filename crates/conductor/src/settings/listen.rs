//! Where a server listens, and how: for this machine alone, or over HTTPS for others (SEC-7).
//!
//! It does not know who may come in.

use std::net::SocketAddr;

use super::{Told, usage};
use crate::exit::Failure;
use crate::tls::Identity;

/// Where a server listens unless told otherwise.
const LISTEN: &str = "127.0.0.1:4180";

/// Where a server listens, and how.
#[derive(Debug, Clone)]
pub(crate) struct Listen {
    pub(crate) address: SocketAddr,
    /// What it shows of itself; absent where it does no HTTPS itself.
    pub(crate) identity: Option<Identity>,
    /// Whether a proxy stands before it.
    pub(crate) is_proxied: bool,
}

impl Listen {
    /// A place that only this machine reaches.
    pub(crate) fn local(address: SocketAddr) -> Self {
        Self {
            address,
            identity: None,
            is_proxied: false,
        }
    }

    /// Tells whether others than this machine's people reach it, themselves or by a proxy.
    pub(crate) fn is_open(&self) -> bool {
        self.is_proxied || self.identity.is_some() || !self.address.ip().is_loopback()
    }
}

/// Tells whether links can begin with it, and requests arrive under its name.
fn is_web_address(text: &str) -> bool {
    reqwest::Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && text.starts_with(&format!("{}://", url.scheme()))
            && url.username().is_empty()
            && url.query().is_none()
            && url.fragment().is_none()
    })
}

impl Told {
    /// Where to listen and how; where others could reach it, not without HTTPS, be it by a proxy (SEC-7).
    pub(crate) fn listen(&self) -> Result<Listen, Failure> {
        let text = self.listen.as_deref().unwrap_or(LISTEN);
        let address: SocketAddr = text.parse().map_err(|_| {
            usage(
                "CDR0404",
                format!("`{text}` is not an address with a port"),
                "write for example 127.0.0.1:4180",
            )
        })?;
        let identity = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(Identity::read(certificate, key)?),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(usage(
                    "CDR0431",
                    "a certificate without its key, or a key without its certificate".to_owned(),
                    "give both, --tls-cert and --tls-key",
                ));
            }
        };
        if let Some(url) = self.public_url.as_deref().filter(|url| !is_web_address(url)) {
            return Err(usage(
                "CDR0404",
                format!("public-url `{url}` is no address of a web server"),
                "write for example https://conductor.example",
            ));
        }
        let is_https = self
            .public_url
            .as_ref()
            .is_some_and(|url| url.starts_with("https://"));
        if self.behind_proxy && !is_https {
            return Err(usage(
                "CDR0404",
                "people reach a server behind a proxy under the proxy's address".to_owned(),
                "name it with --public-url https://…",
            ));
        }
        if identity.is_some() && !is_https {
            return Err(usage(
                "CDR0404",
                "people reach a server with a certificate under the name in the certificate".to_owned(),
                "name it with --public-url https://…",
            ));
        }
        let is_open = !address.ip().is_loopback();
        if is_open && identity.is_none() && !self.behind_proxy {
            return Err(usage(
                "CDR0404",
                format!("{address} is not loopback, and others could reach it"),
                "listen on 127.0.0.1 or [::1], or give --tls-cert and --tls-key, or --behind-proxy",
            ));
        }
        Ok(Listen {
            address,
            identity,
            is_proxied: self.behind_proxy,
        })
    }
}
