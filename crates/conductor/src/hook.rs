//! The webhook out: tells notices to an operator's address, each signed with a secret that both know.
//!
//! The signature covers a moment, the delivery's id and the body, so that none of them can be exchanged and an old delivery
//! shows its age. A redirect is never followed, no proxy is asked, and the address leads to public hosts only, unless the
//! settings say otherwise. What a repeat may mend is told from what the listener will always refuse. This module does not
//! know what a notice is about.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_gateway::egress::address::is_public;
use conductor_port::clock::Clock;
use conductor_port::herald::{Herald, Notice};
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;

/// How long a listener may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where notices go, as the settings say.
#[derive(Debug, Clone)]
pub(crate) struct Hook {
    pub(crate) url: Url,
    pub(crate) secret: SecretString,
    pub(crate) reach: Reach,
}

/// Which hosts an address may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Public ones, over HTTPS.
    Public,
    /// Any, because the settings say so.
    Any,
}

impl Reach {
    fn includes(self, address: IpAddr) -> bool {
        match self {
            Self::Public => is_public(address),
            Self::Any => true,
        }
    }
}

impl Hook {
    /// Checks what can be checked before anything is told.
    pub(crate) fn check(&self) -> Result<(), String> {
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        if !matches!(self.url.scheme(), "https" | "http") || host.is_empty() {
            return Err("the address is none of the web's".to_owned());
        }
        if !self.url.username().is_empty() || self.url.password().is_some() {
            return Err("the address holds a password; listeners check the signature".to_owned());
        }
        if self.reach == Reach::Public {
            if self.url.scheme() != "https" {
                return Err("the address is not HTTPS".to_owned());
            }
            // A name is resolved and checked every time; an address is never resolved.
            if host.parse().is_ok_and(|address: IpAddr| !is_public(address)) {
                return Err("the address is not a public one".to_owned());
            }
        }
        Ok(())
    }
}

/// Tells notices over HTTP.
#[derive(Debug)]
pub(crate) struct Caller {
    http: reqwest::Client,
    hook: Hook,
    clock: Arc<dyn Clock>,
}

impl Caller {
    /// Prepares to call.
    pub(crate) fn new(hook: Hook, clock: Arc<dyn Clock>) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .dns_resolver(Arc::new(Names(hook.reach)))
            .build()?;
        Ok(Self { http, hook, clock })
    }
}

/// Resolves names to addresses within reach; a name that leads elsewhere leads nowhere.
#[derive(Debug)]
struct Names(Reach);

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.filter(|address| reach.includes(address.ip())).collect();
            if found.is_empty() {
                return Err(format!("{} has no public address", name.as_str()).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Signs a body: `t=<seconds>,v1=<HMAC-SHA256 over "seconds.delivery.body" in hex>`.
fn signature(secret: &SecretString, seconds: i64, delivery: &str, body: &str) -> String {
    let key = secret.expose_secret().as_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any key length will do");
    mac.update(format!("{seconds}.{delivery}.{body}").as_bytes());
    format!("t={seconds},v1={}", hex::encode(mac.finalize().into_bytes()))
}

/// Says what an answer means; `None` when the notice was taken.
fn judged(delivery: &str, status: StatusCode) -> Option<Fault> {
    if status.is_success() {
        return None;
    }
    let what = format!("telling {delivery}: the listener answered {status}");
    // Too slow, too early and too many pass; any other 4xx is about this notice, which stays what it is.
    let is_refusal = status.is_client_error() && !matches!(status.as_u16(), 408 | 425 | 429);
    Some(if is_refusal {
        Fault::permanent(what)
    } else {
        Fault::transient(what)
    })
}

#[async_trait]
impl Herald for Caller {
    async fn tell(&self, notice: &Notice) -> Result<(), Fault> {
        let body = serde_json::to_string(notice).expect("a notice is plain data");
        let seconds = self.clock.now().0.div_euclid(1_000_000);
        let signed = signature(&self.hook.secret, seconds, &notice.delivery, &body);
        let sent = self
            .http
            .post(self.hook.url.clone())
            .header("content-type", "application/json")
            .header("x-conductor-event", notice.event.as_str())
            .header("x-conductor-delivery", &notice.delivery)
            .header("x-conductor-signature", signed)
            .body(body)
            .send()
            .await;
        // The address may hold what its owner keeps to himself; what went wrong is said without it.
        let answer = sent.map_err(|error| {
            let what = crate::exit::chain(&error.without_url());
            Fault::transient(format!("telling {}: {what}", notice.delivery))
        })?;
        judged(&notice.delivery, answer.status()).map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use conductor_domain::fault::FaultKind;

    use super::*;

    fn hook(url: &str, reach: Reach) -> Hook {
        Hook {
            url: Url::parse(url).expect("an address"),
            secret: SecretString::from("It's a secret".to_owned()),
            reach,
        }
    }

    /// S-36: notices go to public hosts over HTTPS, unless somebody wrote down that they may go elsewhere.
    #[test]
    fn an_address_that_leads_inside_is_refused() {
        for inside in [
            "http://hooks.example/x",
            "https://127.0.0.1/x",
            "https://[::1]/x",
            "https://169.254.169.254/latest",
            "https://[::ffff:10.0.0.1]/x",
            "https://me:password@hooks.example/x",
            "file:///etc/passwd",
        ] {
            assert!(hook(inside, Reach::Public).check().is_err(), "{inside}");
        }
        assert_eq!(hook("https://hooks.example/x", Reach::Public).check(), Ok(()));
        assert_eq!(hook("http://127.0.0.1:9/x", Reach::Any).check(), Ok(()));
        assert!(
            hook("https://me:password@hooks.example/x", Reach::Any)
                .check()
                .is_err()
        );
    }

    /// A name is checked when it is used: what it leads to may be another one by then.
    #[tokio::test]
    async fn a_name_that_leads_inside_leads_nowhere() {
        let name = |name: &str| name.parse::<Name>().expect("a name");
        assert!(Names(Reach::Public).resolve(name("localhost")).await.is_err());
        assert!(Names(Reach::Any).resolve(name("localhost")).await.is_ok());
    }

    /// UI-3: what a listener refuses for good is told from what it takes later.
    #[test]
    fn a_no_is_told_from_not_now() {
        let kind = |status: u16| {
            let status = StatusCode::from_u16(status).expect("a status");
            judged("d-1", status).map(|fault| fault.kind)
        };
        for taken in [200, 202, 204] {
            assert_eq!(kind(taken), None, "{taken}");
        }
        for refused in [400, 401, 404, 409, 410, 413, 422] {
            assert_eq!(kind(refused), Some(FaultKind::Permanent), "{refused}");
        }
        for later in [302, 408, 425, 429, 500, 502, 503] {
            let later_on = FaultKind::Transient { retry_after: None };
            assert_eq!(kind(later), Some(later_on), "{later}");
        }
        let no = judged("d-1", StatusCode::UNPROCESSABLE_ENTITY).expect("refused");
        assert_eq!(
            no.what,
            "telling d-1: the listener answered 422 Unprocessable Entity"
        );
    }

    /// The signature covers moment, delivery and body.
    #[test]
    fn nothing_of_a_delivery_can_be_exchanged() {
        let secret = SecretString::from("s".to_owned());
        let signed = signature(&secret, 1, "d", "b");
        assert!(
            signed.starts_with("t=1,v1=") && signed.len() == "t=1,v1=".len() + 64,
            "{signed}"
        );
        for (seconds, delivery, body) in [(2, "d", "b"), (1, "e", "b"), (1, "d", "c")] {
            assert_ne!(signature(&secret, seconds, delivery, body), signed);
        }
        assert_ne!(
            signature(&SecretString::from("t".to_owned()), 1, "d", "b"),
            signed
        );
    }
}
