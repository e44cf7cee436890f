//! Sends one request and reads one answer: pinned API version, no redirect, no proxy, bounded, never twice.
//!
//! It does not know credentials beyond the one it is handed, nor what the answer means.

use std::time::Duration;

use conductor_domain::fault::Fault;
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::classify::Reply;
use crate::config::ConfigError;

/// The version whose fields `model` reads; later ones remove some.
const API_VERSION: &str = "2022-11-28";
const USER_AGENT: &str = concat!("conductor/", env!("CARGO_PKG_VERSION"));
const LARGEST_ANSWER: usize = 16 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Transport {
    http: reqwest::Client,
}

impl Transport {
    pub(crate) fn new(patience: Duration, plain_http_allowed: bool) -> Result<Self, ConfigError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/vnd.github+json"));
        headers.insert(
            HeaderName::from_static("x-github-api-version"),
            HeaderValue::from_static(API_VERSION),
        );
        let http = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .default_headers(headers)
            .redirect(Policy::none())
            .no_proxy()
            .https_only(!plain_http_allowed)
            .connect_timeout(patience.min(Duration::from_secs(10)))
            .timeout(patience)
            .build()
            .map_err(ConfigError::Http)?;
        Ok(Self { http })
    }

    /// Asks once. Whatever goes wrong on the way leaves open whether GitHub did it.
    pub(crate) async fn send(
        &self,
        attempt: &str,
        method: Method,
        url: Url,
        credential: &SecretString,
        body: Option<&Value>,
    ) -> Result<Reply, Fault> {
        let lost =
            |error: reqwest::Error| Fault::transient(format!("could not {attempt}: {}", causes(&error)));
        let mut request = self
            .http
            .request(method, url)
            .bearer_auth(credential.expose_secret());
        if let Some(body) = body {
            request = request.json(body);
        }
        let mut response = request.send().await.map_err(lost)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            if bytes.len() + chunk.len() > LARGEST_ANSWER {
                return Err(Fault::permanent(format!(
                    "could not {attempt}: the answer is too large"
                )));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Reply {
            status,
            headers,
            body: bytes,
        })
    }
}

/// An error with all its causes on one line; the URL is left out, the attempt says what it was.
fn causes(error: &reqwest::Error) -> String {
    let mut words = vec![if error.is_timeout() {
        "no answer in time".to_owned()
    } else {
        "no answer".to_owned()
    }];
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        words.push(cause.to_string());
        source = cause.source();
    }
    words.join(": ")
}
