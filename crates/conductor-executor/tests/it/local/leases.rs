//! Every sandbox is on record before it exists, and nothing of it outlives its end (ENV-2, RUN-12a).

use conductor_executor::Toolchain;
use conductor_port::executor::{Executor as _, Profile};

use super::kit::{Ground, local, members, records};
use crate::kit::{Watched, bash, spec};

/// ENV-2, EXEC-6: while it is open there is a record and a cgroup of its name; afterwards neither.
#[tokio::test]
async fn a_sandbox_is_on_record_from_before_it_opens_until_it_is_gone() {
    let ground = Ground::new();
    let sandbox = ground.open().await;
    let standing = records(ground.base.path());
    assert_eq!(standing.len(), 1);
    let first = members(&standing[0]);
    assert!(!first.is_empty(), "its processes stand in its cgroup");
    sandbox.close().await.unwrap();
    assert_eq!(records(ground.base.path()), Vec::<String>::new());
    assert_eq!(members(&standing[0]), Vec::<i32>::new());
    for controller in ["memory", "pids", "cpu"] {
        let left = find(&format!("/sys/fs/cgroup/{controller}"), &standing[0]);
        assert!(!left, "a cgroup of {controller} is left");
    }
}

fn find(directory: &str, name: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return false;
    };
    entries.flatten().any(|entry| {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        entry.file_name().to_str() == Some(name)
            || is_directory && find(entry.path().to_str().unwrap_or_default(), name)
    })
}

/// RUN-12a, S-41: what a process that died left open is ended by the next one, by its record.
#[tokio::test]
async fn what_an_earlier_process_left_is_reaped() {
    let ground = Ground::new();
    let sandbox = ground.open().await;
    bash(sandbox.as_ref(), "(setsid sleep 1000 > /dev/null 2>&1 &); true").await;
    let record = records(ground.base.path()).remove(0);
    let watched: Vec<Watched> = members(&record).into_iter().map(Watched::new).collect();
    assert!(watched.len() >= 2);

    let later = local(ground.base.path(), Toolchain::system());
    let effect = spec("r1.1.0", ground.work()).effect;
    later.reap(&effect).await.unwrap();
    assert!(watched.iter().all(|process| !process.is_alive()));
    assert_eq!(records(ground.base.path()), Vec::<String>::new());
    assert!(sandbox.view("f").await.is_err(), "its guest is lost");
    later.reap(&effect).await.unwrap();
}

/// ENV-2, EXEC-3a: whatever an effect has open, its agent's program, its tools, its tests, goes by the effect's one lease.
#[tokio::test]
async fn the_sandboxes_of_every_profile_are_reaped_by_their_effect() {
    let ground = Ground::new();
    let mut open = Vec::new();
    for profile in [Profile::Agent, Profile::Tool, Profile::Test] {
        let dir = ground.base.path().join(format!("{profile:?}"));
        std::fs::create_dir(&dir).unwrap();
        let mut spec = spec("r1.1.0", dir);
        spec.profile = profile;
        open.push(ground.executor.open(spec).await.unwrap());
    }
    let mut other = spec("r1.2.0", ground.work());
    other.profile = Profile::Agent;
    let other = ground.executor.open(other).await.unwrap();
    assert_eq!(records(ground.base.path()).len(), 4);

    let later = local(ground.base.path(), Toolchain::system());
    later.reap(&spec("r1.1.0", ground.work()).effect).await.unwrap();
    let left = records(ground.base.path());
    assert!(left.len() == 1 && left[0].starts_with("r1.2.0-"), "{left:?}");
    for sandbox in &open {
        assert!(sandbox.view("f").await.is_err(), "its guest is lost");
    }
    bash(other.as_ref(), "true").await;
    other.close().await.unwrap();
    assert_eq!(records(ground.base.path()), Vec::<String>::new());
}
