//! Every container is on record before it exists, and nothing of it outlives its end (ENV-2, RUN-12a, S-43).

use std::os::unix::fs::PermissionsExt as _;

use conductor_domain::fault::FaultKind;
use conductor_executor::Docker;
use conductor_port::executor::{Executor as _, Profile};

use super::kit::{Ground, containers, docker, engine, records, settings};
use crate::kit::{Watched, bash, spec};

/// ENV-2, S-43: on record and labelled while it is open, gone afterwards with all its processes.
#[tokio::test]
async fn a_container_is_named_by_its_effect_and_gone_when_closed() {
    let ground = Ground::new().await;
    let sandbox = ground.open().await;
    bash(sandbox.as_ref(), "(setsid sleep 1000 > /dev/null 2>&1 &); true").await;
    let (records_, names) = (records(ground.base.path()), containers(ground.base.path()));
    assert_eq!(names, [format!("conductor-{}", records_[0])]);
    assert!(names[0].starts_with("conductor-r1.1.0-"), "{names:?}");
    let labels = engine(&["inspect", "--format", "{{json .Config.Labels}}", &names[0]]);
    for label in [r#""conductor.effect":"r1.1.0""#, r#""conductor.run":"r1""#] {
        assert!(labels.contains(label), "{labels}");
    }
    let watched = processes(&names[0]);
    assert!(watched.len() >= 2, "the guest and the daemon");
    sandbox.close().await.unwrap();
    assert!(watched.iter().all(|process| !process.is_alive()));
    assert_eq!(containers(ground.base.path()), Vec::<String>::new());
    assert_eq!(records(ground.base.path()), Vec::<String>::new());
}

/// The host's processes of a container.
fn processes(name: &str) -> Vec<Watched> {
    engine(&["top", name, "-o", "pid"])
        .lines()
        .filter_map(|line| line.trim().parse().ok())
        .map(Watched::new)
        .collect()
}

/// RUN-12a: what a process that died left open is ended by the next one, by its record.
#[tokio::test]
async fn what_an_earlier_process_left_is_reaped() {
    let ground = Ground::new().await;
    let sandbox = ground.open().await;
    bash(sandbox.as_ref(), "(setsid sleep 1000 > /dev/null 2>&1 &); true").await;
    let watched = processes(&containers(ground.base.path())[0]);

    let later = docker(ground.base.path()).await;
    let effect = spec("r1.1.0", ground.work()).effect;
    later.reap(&effect).await.unwrap();
    assert!(watched.iter().all(|process| !process.is_alive()));
    assert_eq!(containers(ground.base.path()), Vec::<String>::new());
    assert_eq!(records(ground.base.path()), Vec::<String>::new());
    assert!(sandbox.view("f").await.is_err(), "its guest is lost");
    later.reap(&effect).await.unwrap();
}

/// A client that tells the version, and on `run` keeps what it sees and fails.
fn witness(ground: &Ground) -> std::path::PathBuf {
    let script = ground.base.path().join("witness");
    let base = ground.base.path().display();
    let text = format!(
        "#!/bin/sh\ncase $1 in\n\
         run) ls {base}/executor/open > {base}/seen; echo 'no luck' >&2; exit 125 ;;\n\
         *) exec docker \"$@\" ;;\nesac\n"
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script
}

/// ENV-2: the record is there before the engine hears anything; a start that fails leaves nothing.
#[tokio::test]
async fn a_container_is_on_record_before_it_starts() {
    let ground = Ground::new().await;
    let mut settings = settings(ground.base.path());
    settings.program = witness(&ground);
    let executor = Docker::new(settings).await.unwrap();
    let fault = executor.open(spec("r1.1.0", ground.work())).await.unwrap_err();
    assert!(fault.what.contains("no luck"), "{fault}");
    let seen = std::fs::read_to_string(ground.base.path().join("seen")).unwrap();
    assert!(seen.starts_with("r1.1.0-"), "{seen}");
    assert_eq!(records(ground.base.path()), Vec::<String>::new());
}

/// Images are never pulled; what to do is said, and nothing is left.
#[tokio::test]
async fn an_image_that_is_not_there_is_named_and_leaves_nothing() {
    let ground = Ground::new().await;
    let mut settings = settings(ground.base.path());
    settings.image = "conductor-no-such-image:1".to_owned();
    let executor = Docker::new(settings).await.unwrap();
    let fault = executor.open(spec("r1.1.0", ground.work())).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Permanent, "{fault}");
    assert!(
        fault.what.contains("docker pull conductor-no-such-image:1"),
        "{fault}"
    );
    assert_eq!(containers(ground.base.path()), Vec::<String>::new());
    assert_eq!(records(ground.base.path()), Vec::<String>::new());
}

/// A name that a mount cannot carry is refused before anything is started.
#[tokio::test]
async fn a_directory_that_cannot_be_mounted_is_refused() {
    let ground = Ground::new().await;
    let dir = ground.base.path().join("a\rb");
    std::fs::create_dir(&dir).unwrap();
    let fault = ground.executor.open(spec("r1.1.0", dir)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Permanent, "{fault}");
    assert_eq!(records(ground.base.path()), Vec::<String>::new());
}

/// ENV-2, EXEC-3a: whatever an effect has open, its agent's program, its tools, its tests, goes by the effect's one lease.
#[tokio::test]
async fn the_sandboxes_of_every_profile_are_reaped_by_their_effect() {
    let ground = Ground::new().await;
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

    let later = docker(ground.base.path()).await;
    later.reap(&spec("r1.1.0", ground.work()).effect).await.unwrap();
    let left = records(ground.base.path());
    assert!(left.len() == 1 && left[0].starts_with("r1.2.0-"), "{left:?}");
    for sandbox in &open {
        assert!(sandbox.view("f").await.is_err(), "its guest is lost");
    }
    bash(other.as_ref(), "true").await;
    other.close().await.unwrap();
    assert_eq!(containers(ground.base.path()), Vec::<String>::new());
    assert_eq!(records(ground.base.path()), Vec::<String>::new());
}
