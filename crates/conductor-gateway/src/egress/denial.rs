//! Tells of denials: each one once per sandbox, and no more than a person could read.
//!
//! What is told is durable before the client hears its refusal (TOOL-4), so an invocation cannot end without its
//! denials. This module does not know what becomes of them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use conductor_domain::egress::{EgressDenial, EgressReason, EgressWay};
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::input::Input;
use conductor_port::inbox::{Inbox, Seen, Submission};

use super::{Asked, Visitor};

/// How many different denials of one sandbox are told.
pub const MOST_TOLD: usize = 64;
const MAX_HOST: usize = 253;

/// Hears of denials.
#[async_trait]
pub trait Denials: Send + Sync {
    /// Keeps a denial. May be called at once from several connections; the same one comes once per door.
    async fn denied(&self, run: &RunId, effect: &EffectId, denial: EgressDenial);
}

/// Makes every denial an input of its run.
pub struct ToInbox(pub Arc<dyn Inbox>);

impl fmt::Debug for ToInbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToInbox")
    }
}

#[async_trait]
impl Denials for ToInbox {
    async fn denied(&self, run: &RunId, effect: &EffectId, denial: EgressDenial) {
        let (host, port) = (denial.host.clone(), denial.port);
        // A door that is opened anew after a crash tells again; the key keeps that from being kept twice.
        let dedupe = format!(
            "egress:{effect}:{:?}:{:?}:{port}:{host}",
            denial.way, denial.reason
        );
        let submission = Submission {
            run: run.clone(),
            input: Input::EgressDenied {
                effect: effect.clone(),
                denial: Box::new(denial),
            },
            dedupe: Some(dedupe),
            cause: "the egress proxy".to_owned(),
            seen: Seen::Anything,
        };
        if let Err(error) = self.0.submit(submission).await {
            tracing::warn!(%run, %effect, %host, port, %error, "a network denial could not be kept");
        }
    }
}

/// What has been told through one door.
pub(super) struct Told {
    denials: Arc<dyn Denials>,
    seen: Mutex<BTreeSet<(String, u16, EgressWay, EgressReason)>>,
}

impl Told {
    pub(super) fn new(denials: Arc<dyn Denials>) -> Self {
        Self {
            denials,
            seen: Mutex::default(),
        }
    }

    pub(super) async fn tell(&self, visitor: &Visitor, asked: &Asked, reason: EgressReason) {
        let host: String = asked
            .host
            .chars()
            .filter(char::is_ascii_graphic)
            .take(MAX_HOST)
            .collect();
        tracing::info!(run = %visitor.run, effect = %visitor.effect, host, port = asked.port, %reason, "denied");
        let denial = EgressDenial {
            host,
            port: asked.port,
            way: asked.way,
            reason,
            command: asked.command.clone(),
        };
        if let Some(denial) = self.if_new(denial) {
            self.denials.denied(&visitor.run, &visitor.effect, denial).await;
        }
    }

    /// Lets a denial through if it is new; the last of too many says that there are more.
    fn if_new(&self, denial: EgressDenial) -> Option<EgressDenial> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST_TOLD.saturating_sub(seen.len());
        let denial = match room {
            0 => return None,
            1 => EgressDenial {
                host: String::new(),
                port: 0,
                reason: EgressReason::LimitReached,
                ..denial
            },
            _ => denial,
        };
        seen.insert((denial.host.clone(), denial.port, denial.way, denial.reason))
            .then_some(denial)
    }
}
