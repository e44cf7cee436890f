//! Sends signed webhook deliveries, one attempt each, and keeps them for the deliveries API.
//!
//! The queue is bounded: when the receiver cannot keep up, further deliveries are recorded as failed, as
//! GitHub does, and can be redelivered. It does not know what the payloads say.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;
use tokio::sync::{mpsc, watch};

use crate::chance;
use crate::change::Event;
use crate::moment::{Moment, Stopwatch};
use crate::refusal::Refusal;
use crate::site::{Site, write_whole};
use crate::state::State;

const QUEUE_LENGTH: usize = 1024;
/// GitHub gives a receiver ten seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// One delivery and what came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Delivery {
    pub id: u64,
    pub guid: String,
    pub event: String,
    pub action: Option<String>,
    pub delivered_at: Moment,
    pub redelivery: bool,
    pub duration: f64,
    /// `pending`, `OK`, or what went wrong.
    pub status: String,
    pub status_code: u16,
    pub installation_id: Option<u64>,
    pub repository_id: u64,
    pub url: String,
    /// The exact bytes that were signed and sent.
    pub body: String,
}

impl Delivery {
    fn is_pending(&self) -> bool {
        self.status == "pending"
    }
}

pub(crate) struct Hooks {
    dir: PathBuf,
    deliveries: Mutex<BTreeMap<u64, Delivery>>,
    queue: mpsc::Sender<u64>,
    outstanding: watch::Sender<usize>,
}

impl Hooks {
    /// Reads the kept deliveries; the receiver belongs to the task that sends them.
    pub(crate) fn open(dir: &Path) -> Result<(Self, mpsc::Receiver<u64>), Refusal> {
        let broken = |error: std::io::Error| Refusal::Broken(format!("cannot read deliveries: {error}"));
        fs::create_dir_all(dir).map_err(broken)?;
        let mut deliveries = BTreeMap::new();
        for entry in fs::read_dir(dir).map_err(broken)? {
            let path = entry.map_err(broken)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let bytes = fs::read(&path).map_err(broken)?;
                let delivery: Delivery = serde_json::from_slice(&bytes)
                    .map_err(|error| Refusal::Broken(format!("cannot read {}: {error}", path.display())))?;
                deliveries.insert(delivery.id, delivery);
            }
        }
        let (queue, receiver) = mpsc::channel(QUEUE_LENGTH);
        let hooks = Self {
            dir: dir.to_owned(),
            deliveries: Mutex::new(deliveries),
            queue,
            outstanding: watch::channel(0).0,
        };
        let unsent: Vec<u64> = hooks
            .lock()
            .values()
            .filter(|it| it.is_pending())
            .map(|it| it.id)
            .collect();
        for id in unsent {
            hooks.enqueue(id);
        }
        Ok((hooks, receiver))
    }

    /// Records an event and queues it; without a configured address nothing is recorded.
    pub(crate) fn accept(&self, state: &State, event: Event, now: Moment) {
        let Some(hook) = &state.hook else { return };
        let owner = state
            .repos
            .get(&event.repo)
            .map(|repo| repo.owner.as_str())
            .unwrap_or_default();
        self.record(Delivery {
            id: 0,
            guid: chance::guid(),
            event: event.name.to_owned(),
            action: event.action.map(str::to_owned),
            delivered_at: now,
            redelivery: false,
            duration: 0.0,
            status: "pending".into(),
            status_code: 0,
            installation_id: state.installation_of(owner).map(|installation| installation.id),
            repository_id: event.repo,
            url: hook.url.clone(),
            body: event.payload.to_string(),
        });
    }

    /// Sends an earlier delivery again, under the same GUID and a new id.
    pub(crate) fn redeliver(&self, id: u64, now: Moment) -> Result<(), Refusal> {
        let mut delivery = self.get(id).ok_or_else(Refusal::not_found)?;
        delivery.redelivery = true;
        delivery.delivered_at = now;
        delivery.status = "pending".into();
        delivery.status_code = 0;
        self.record(delivery);
        Ok(())
    }

    /// All deliveries, newest first.
    pub(crate) fn list(&self) -> Vec<Delivery> {
        self.lock().values().rev().cloned().collect()
    }

    pub(crate) fn get(&self, id: u64) -> Option<Delivery> {
        self.lock().get(&id).cloned()
    }

    /// Waits until nothing is queued or under way.
    pub(crate) async fn settled(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.outstanding.subscribe().wait_for(|count| *count == 0).await;
    }

    fn record(&self, mut delivery: Delivery) {
        let mut deliveries = self.lock();
        delivery.id = deliveries.last_key_value().map_or(1, |(id, _)| id + 1);
        let id = delivery.id;
        self.keep(&delivery);
        deliveries.insert(id, delivery);
        drop(deliveries);
        self.enqueue(id);
    }

    fn enqueue(&self, id: u64) {
        self.outstanding.send_modify(|count| *count += 1);
        if self.queue.try_send(id).is_err() {
            self.finish(id, "the delivery queue is full", 0, Duration::ZERO);
        }
    }

    fn finish(&self, id: u64, status: &str, status_code: u16, duration: Duration) {
        if let Some(delivery) = self.lock().get_mut(&id) {
            status.clone_into(&mut delivery.status);
            delivery.status_code = status_code;
            delivery.duration = duration.as_secs_f64();
            self.keep(delivery);
        }
        self.outstanding
            .send_modify(|count| *count = count.saturating_sub(1));
    }

    fn keep(&self, delivery: &Delivery) {
        let path = self.dir.join(format!("{}.json", delivery.id));
        if let Err(error) = write_whole(&path, delivery) {
            tracing::warn!(%error, delivery = delivery.id, "a webhook delivery could not be kept");
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Delivery>> {
        self.deliveries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends queued deliveries, one after the other, until the site goes.
pub(crate) async fn send_all(site: Arc<Site>, mut queue: mpsc::Receiver<u64>) {
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(PATIENCE)
        .user_agent("GitHub-Hookshot/forge")
        .build();
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            tracing::error!(%error, "webhooks cannot be sent");
            return;
        }
    };
    while let Some(id) = queue.recv().await {
        let Some(delivery) = site.hooks.get(id) else {
            continue;
        };
        let started = Stopwatch::start();
        let (status, code) = send(&site, &client, &delivery).await;
        site.hooks.finish(id, &status, code, started.elapsed());
    }
}

async fn send(site: &Site, client: &reqwest::Client, delivery: &Delivery) -> (String, u16) {
    let Some((hook, app)) = site.look(|state| state.hook.clone().map(|hook| (hook, state.app.id))) else {
        return ("no webhook is configured".into(), 0);
    };
    let request = client
        .post(&hook.url)
        .header("content-type", "application/json")
        .header("x-github-event", &delivery.event)
        .header("x-github-delivery", &delivery.guid)
        .header("x-github-hook-id", app)
        .header("x-github-hook-installation-target-type", "integration")
        .header("x-github-hook-installation-target-id", app)
        .header(
            "x-hub-signature-256",
            signature(&hook.secret, delivery.body.as_bytes()),
        )
        .body(delivery.body.clone());
    match request.send().await {
        Ok(answer) if answer.status().is_success() => ("OK".into(), answer.status().as_u16()),
        Ok(answer) => (
            format!("Invalid HTTP Response: {}", answer.status().as_u16()),
            answer.status().as_u16(),
        ),
        Err(error) if error.is_timeout() => ("timed out".into(), 504),
        Err(_) => ("failed to connect to host".into(), 502),
    }
}

/// The value of `X-Hub-Signature-256` for a body.
pub(crate) fn signature(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

/// The request as the deliveries API shows it.
pub(crate) fn shown_payload(delivery: &Delivery) -> Value {
    serde_json::from_str(&delivery.body).unwrap_or(Value::Null)
}
