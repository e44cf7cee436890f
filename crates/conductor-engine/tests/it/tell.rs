//! What a person should know of is told outside, at least once and in order, and keeps nothing waiting.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::hold::HoldKind;
use conductor_domain::id::RunId;
use conductor_domain::instance::InstanceInput;
use conductor_engine::Telling;
use conductor_port::herald::{Herald, Marks, Notice, NoticeKind};
use conductor_port::inbox::Inbox as _;
use conductor_testkit::rig::Rig;
use tokio::sync::Notify;

/// Somebody who listens, and does not always answer well.
#[derive(Debug, Default)]
struct Listener {
    heard: Mutex<Vec<Notice>>,
    /// How often it will still not answer.
    deaf: AtomicU32,
    /// The run of which it wants to hear nothing.
    unwanted: Mutex<Option<RunId>>,
    refused: Mutex<Vec<Notice>>,
    asked: Notify,
}

#[async_trait]
impl Herald for Listener {
    async fn tell(&self, notice: &Notice) -> Result<(), Fault> {
        let unwanted = self.unwanted.lock().expect("nobody panics").clone();
        if unwanted.is_some() && notice.run.as_ref().map(|run| &run.id) == unwanted.as_ref() {
            self.refused.lock().expect("nobody panics").push(notice.clone());
            return Err(Fault::permanent("the listener answered 422"));
        }
        let is_deaf = self.deaf.load(Ordering::Relaxed) > 0;
        if is_deaf {
            self.deaf.fetch_sub(1, Ordering::Relaxed);
        } else {
            self.heard.lock().expect("nobody panics").push(notice.clone());
        }
        self.asked.notify_one();
        if is_deaf {
            return Err(Fault::transient("nobody is at home"));
        }
        Ok(())
    }
}

impl Listener {
    /// Waits until so many notices were heard.
    async fn until(&self, count: usize) -> Vec<Notice> {
        loop {
            let heard = self.heard.lock().expect("nobody panics").clone();
            if heard.len() >= count {
                return heard;
            }
            let asked = tokio::time::timeout(Duration::from_hours(1), self.asked.notified()).await;
            assert!(asked.is_ok(), "{count} notices were expected: {heard:?}");
        }
    }
}

/// Marks in memory.
#[derive(Debug, Default)]
struct Shelf(Mutex<BTreeMap<String, String>>);

#[async_trait]
impl Marks for Shelf {
    async fn marks(&self, beginning: &str) -> Result<Vec<(String, String)>, Fault> {
        let marks = self.0.lock().expect("nobody panics");
        let found = marks.iter().filter(|(name, _)| name.starts_with(beginning));
        Ok(found.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    async fn mark(&self, name: &str, value: &str) -> Result<(), Fault> {
        self.0
            .lock()
            .expect("nobody panics")
            .insert(name.to_owned(), value.to_owned());
        Ok(())
    }
}

async fn start(listener: &Arc<Listener>, shelf: &Arc<Shelf>) -> Rig {
    let telling = Telling {
        herald: listener.clone(),
        marks: shelf.clone(),
    };
    Rig::start_with(
        |stage| stage.ports(stage.agents()),
        |options| options.telling = Some(telling),
    )
    .await
}

fn told(notices: &[Notice]) -> Vec<(NoticeKind, Option<String>)> {
    let told = notices.iter();
    told.map(|notice| (notice.event, notice.run.as_ref().map(|run| run.id.to_string())))
        .collect()
}

fn needs(run: &RunId) -> (NoticeKind, Option<String>) {
    (NoticeKind::NeedsHuman, Some(run.to_string()))
}

/// UI-3: a listener that is away hears everything when it is back, in order, each under its own id; no run waits for it.
#[tokio::test(start_paused = true)]
async fn a_listener_that_was_away_hears_everything_and_holds_nobody_up() {
    let (listener, shelf) = (Arc::new(Listener::default()), Arc::new(Shelf::default()));
    listener.deaf.store(5, Ordering::Relaxed);
    let rig = start(&listener, &shelf).await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.gate().is_some()).await;
    let by = rig.stage.specs[0].started_by.clone();
    for on in [true, false] {
        let turn = InstanceInput::TurnKillSwitch { by: by.clone(), on };
        rig.engine
            .submit_to_instance(turn, "")
            .await
            .expect("calm weather");
        rig.until(&run, |run| run.holds.get(HoldKind::KillSwitch).is_some() == on)
            .await;
    }
    let heard = listener.until(3).await;
    let id = run.to_string();
    let mut kinds = told(&heard);
    kinds.sort_by_key(|(kind, _)| kind.as_str());
    assert_eq!(
        kinds,
        [
            (NoticeKind::KillSwitchOff, None),
            (NoticeKind::KillSwitchOn, None),
            (NoticeKind::NeedsHuman, Some(id)),
        ]
    );
    let body = serde_json::to_string(&heard).expect("plain data");
    assert!(!body.contains("Make thing"), "no words of an issue: {body}");
    let ids: std::collections::BTreeSet<&str> = heard.iter().map(|notice| notice.delivery.as_str()).collect();
    assert_eq!(ids.len(), 3);
    rig.end().await;
}

/// UI-3: what was not taken before a process died is told by the next; what was taken is not told again.
#[tokio::test(start_paused = true)]
async fn what_was_not_taken_is_told_after_a_restart_and_nothing_twice() {
    let (listener, shelf) = (Arc::new(Listener::default()), Arc::new(Shelf::default()));
    let rig = start(&listener, &shelf).await;
    let first = rig.start_run(1).await;
    rig.until(&first, |run| run.gate().is_some()).await;
    listener.until(1).await;
    listener.deaf.store(u32::MAX, Ordering::Relaxed);
    let second = rig.start_run(2).await;
    rig.until(&second, |run| run.gate().is_some()).await;
    listener.asked.notified().await;
    let stage = rig.die().await;

    listener.deaf.store(0, Ordering::Relaxed);
    let telling = Telling {
        herald: listener.clone(),
        marks: shelf.clone(),
    };
    let rig = Rig::resume_with(
        stage,
        |stage| stage.ports(stage.agents()),
        |options| options.telling = Some(telling),
    )
    .await;
    let third = rig.start_run(3).await;
    rig.until(&third, |run| run.gate().is_some()).await;
    let heard = listener.until(3).await;
    assert_eq!(told(&heard), [needs(&first), needs(&second), needs(&third)]);
    rig.end().await;
}

/// UI-3: a notice that is refused for good is told once; those of other runs and those that follow are told as ever.
#[tokio::test(start_paused = true)]
async fn a_notice_that_is_refused_keeps_no_other_waiting() {
    let (listener, shelf) = (Arc::new(Listener::default()), Arc::new(Shelf::default()));
    let rig = start(&listener, &shelf).await;
    let unwanted = rig.stage.specs[0].run.clone();
    *listener.unwanted.lock().expect("nobody panics") = Some(unwanted.clone());
    for n in [1, 2] {
        let run = rig.start_run(n).await;
        rig.until(&run, |run| run.gate().is_some()).await;
    }
    let second = rig.stage.specs[1].run.clone();
    assert_eq!(told(&listener.until(1).await), [needs(&second)]);
    let third = rig.start_run(3).await;
    rig.until(&third, |run| run.gate().is_some()).await;
    assert_eq!(told(&listener.until(2).await), [needs(&second), needs(&third)]);
    let refused = listener.refused.lock().expect("nobody panics").clone();
    assert_eq!(told(&refused), [needs(&unwanted)]);
    rig.end().await;
}
