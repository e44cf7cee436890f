//! What runs hold on the machine (ENV-2).
//!
//! It does not know how a resource is given back.

use conductor_domain::time::Timestamp;
use conductor_port::lease::{ResourceKind, ResourceLease, Taken};
use tokio::task::JoinSet;

use crate::Subject;
use crate::given::run_id;

fn lease(run: &str, kind: ResourceKind, name: &str, at: i64) -> ResourceLease {
    let at = Timestamp(at);
    ResourceLease {
        kind,
        name: name.to_owned(),
        run: run_id(run),
        taken_at: at,
        heartbeat: at,
    }
}

async fn take(subject: &Subject, lease: &ResourceLease) -> Taken {
    subject.leases.take(lease).await.expect("the store answers")
}

async fn held(subject: &Subject, run: Option<&str>) -> Vec<ResourceLease> {
    subject
        .leases
        .held(run.map(run_id).as_ref())
        .await
        .expect("the store answers")
}

/// ENV-2.
pub(crate) async fn a_taken_resource_is_nobody_elses(subject: &Subject) {
    let mine = lease("r-1", ResourceKind::Port, "4000", 1);
    assert_eq!(take(subject, &mine).await, Taken::Yes);
    assert_eq!(
        take(subject, &lease("r-2", ResourceKind::Port, "4000", 2)).await,
        Taken::No
    );
    assert_eq!(
        take(subject, &lease("r-2", ResourceKind::Worktree, "4000", 2)).await,
        Taken::Yes
    );
    assert_eq!(held(subject, Some("r-1")).await, [mine]);
}

/// ENV-3.
pub(crate) async fn of_many_runs_one_takes_the_resource(subject: &Subject) {
    let mut runs = JoinSet::new();
    for run in 0..16 {
        let leases = subject.leases.clone();
        let wish = lease(&format!("r-{run}"), ResourceKind::Port, "4000", 1);
        runs.spawn(async move { leases.take(&wish).await.expect("the store answers") });
    }
    let outcomes = runs.join_all().await;
    assert_eq!(
        outcomes.iter().filter(|outcome| **outcome == Taken::Yes).count(),
        1
    );
    assert_eq!(held(subject, None).await.len(), 1);
}

pub(crate) async fn taking_again_renews_the_heartbeat(subject: &Subject) {
    take(subject, &lease("r-1", ResourceKind::Worktree, "w", 1)).await;
    assert_eq!(
        take(subject, &lease("r-1", ResourceKind::Worktree, "w", 9)).await,
        Taken::Yes
    );
    let renewed = ResourceLease {
        heartbeat: Timestamp(9),
        ..lease("r-1", ResourceKind::Worktree, "w", 1)
    };
    assert_eq!(held(subject, None).await, [renewed]);
}

pub(crate) async fn only_the_holder_gives_back(subject: &Subject) {
    take(subject, &lease("r-1", ResourceKind::Branch, "b", 1)).await;
    let give_back = async |run: &str| {
        subject
            .leases
            .give_back(&run_id(run), ResourceKind::Branch, "b")
            .await
            .expect("the store answers");
    };
    give_back("r-2").await;
    assert_eq!(held(subject, None).await.len(), 1);
    give_back("r-1").await;
    give_back("r-1").await;
    assert_eq!(held(subject, None).await, []);
    assert_eq!(
        take(subject, &lease("r-2", ResourceKind::Branch, "b", 2)).await,
        Taken::Yes
    );
}

pub(crate) async fn held_resources_are_listed_by_run(subject: &Subject) {
    let all = [
        lease("r-1", ResourceKind::Branch, "b", 1),
        lease("r-1", ResourceKind::Container, "66", 1),
        lease("r-1", ResourceKind::Port, "4000", 1),
        lease("r-1", ResourceKind::Port, "4001", 1),
        lease("r-1", ResourceKind::ProcessGroup, "77", 1),
        lease("r-1", ResourceKind::Worktree, "w", 1),
        lease("r-2", ResourceKind::Branch, "a", 1),
    ];
    for lease in all.iter().rev() {
        take(subject, lease).await;
    }
    assert_eq!(held(subject, None).await, all);
    assert_eq!(held(subject, Some("r-2")).await, all[6..]);
    assert_eq!(held(subject, Some("r-3")).await, []);
}
