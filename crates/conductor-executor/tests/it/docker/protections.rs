//! Each protection of `docker`: what it stops with it, and that nothing else stops it without it.
//!
//! One row and one test per protection: an attack that says `open` when it succeeds, or what the engine says that it was
//! asked for where only the engine can tell. With everything in force no attack gets through; with the one protection
//! switched off its own does, so that no row proves less than it claims. The rows are a section of `docs/protections.md`.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;

use conductor_executor::docker::Switch;
use conductor_port::executor::{Executor as _, Way};

use super::kit::{Ground, containers, docker, engine};
use crate::kit::{PASSED, Watched, bash, skills, spec, stubborn_guest, text};
use crate::matrix::{self, Line};

struct Row {
    test: &'static str,
    requirement: &'static str,
    protection: Switch,
    attack: Attack,
    /// Others that would stop the attack as well, and are left out in both sandboxes.
    beside: &'static [Switch],
}

enum Attack {
    /// Says `open` when it gets through.
    Says(&'static str),
    /// The same, and is said to have passed.
    Passes(&'static str),
    /// What the engine says of the container has these words, and only with the protection.
    Asked(&'static str, &'static str),
    /// The guest breaks the protocol, and stays.
    Stays,
    /// The sandbox is closed, and its guest stays.
    Outlives,
}

use Attack::{Asked, Outlives, Passes, Says, Stays};

macro_rules! rows {
    ($( $test:ident: $requirement:literal $protection:ident $attack:expr $(, beside [$($beside:ident),+])?; )+) => {
        const ROWS: &[Row] = &[ $( Row {
            test: stringify!($test),
            requirement: $requirement,
            protection: Switch::$protection,
            attack: $attack,
            beside: &[ $( $(Switch::$beside),+ )? ],
        }, )+ ];

        mod each {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    super::check(stringify!($test)).await;
                }
            )+
        }
    };
}

rows! {
    no_network: "EXEC-3" NoNetwork Says("[ $(grep -c : /proc/net/dev) -gt 1 ] && echo open");
    read_only_root: "S-3" ReadOnlyRoot Says("touch /here 2>/dev/null && echo open"), beside [OwnUid];
    no_capabilities: "S-2" NoCapabilities Says("grep -q 'CapBnd:.*[1-9a-f]' /proc/self/status && echo open");
    // The guest gives them up as well, so that only the engine can tell.
    no_new_privileges: "S-14" NoNewPrivileges Asked("{{json .HostConfig.SecurityOpt}}", "no-new-privileges");
    seccomp: "S-40" Seccomp Says("grep -q 'Seccomp:.*2' /proc/self/status || echo open");
    seccomp_keeps_namespaces: "S-40" Seccomp Says("unshare --user true 2>/dev/null && echo open");
    process_limit: "EXEC-6" ProcessLimit
        Says("for i in $(seq 99); do sleep 9 & done; echo open; kill -9 $(jobs -p)");
    memory_limit: "EXEC-6, S-42" MemoryLimit
        Says("head -c 400000000 /dev/zero | tail -c 400000000 > /dev/null && echo open");
    no_swap: "S-42" MemoryLimit
        Asked("{{eq .HostConfig.Memory .HostConfig.MemorySwap}} {{gt .HostConfig.Memory 0}}", "true true");
    cpu_limit: "EXEC-6" CpuLimit Asked("{{json .HostConfig.NanoCpus}}", "2000000000");
    open_files: "EXEC-6" OpenFiles Says("[ $(ulimit -H -n) -gt 1024 ] && echo open");
    sized_tmpfs: "S-3" SizedTmpfs
        Says("for d in /tmp $HOME; do [ $(stat -f -c %b $d) -gt 17000 ] && echo open; done; true");
    hidden_sys: "S-3" HiddenSys
        Says("[ -n \"$(ls /sys/kernel /sys/fs/cgroup 2>/dev/null | grep -v :)\" ] && echo open");
    own_uid: "S-1, S-2" OwnUid Says("[ $(id -u) = 0 ] && echo open");
    no_log: "S-44" NoLog Asked("{{json .HostConfig.LogConfig.Type}}", "none");
    read_only_guest: "S-14" ReadOnlyGuest
        Asked("{{range .Mounts}}{{.Destination}} {{.RW}};{{end}}", "/.conductor/guest false");
    read_only_objects: "S-5" ReadOnlyObjects
        Asked("{{range .Mounts}}{{.Destination}} {{.RW}};{{end}}", "/objects false");
    read_only_given: "EXEC-4" ReadOnlyGiven
        Asked("{{range .Mounts}}{{.Destination}} {{.RW}};{{end}}", "/skills false");
    read_only_ways: "S-32" ReadOnlyWays
        Asked("{{range .Mounts}}{{.Destination}} {{.RW}};{{end}}", "/.conductor/way-0 false");
    lost_guest: "S-16" EndsWithGuest Stays;
    told_limits: "S-18, S-42" ToldLimits Passes("tail /dev/zero || echo open");
    kills_inside: "S-43" KillsInside Outlives;
}

/// S-1…S-3, S-5, S-14, S-16, S-18, S-32, S-40, S-42…S-44, EXEC-3, EXEC-4, EXEC-6: red with the protection switched off, and only then.
async fn check(test: &str) {
    let row = ROWS.iter().find(|row| row.test == test).unwrap();
    let switched = [row.beside, &[row.protection]].concat();
    let (with, without) = (holds(row, row.beside).await, holds(row, &switched).await);
    assert_eq!((with, without), (true, false), "in force, and left out");
}

async fn holds(row: &Row, without: &[Switch]) -> bool {
    let ground = Ground::without(without).await;
    match row.attack {
        Says(attack) => !ground.said(attack).await.contains("open"),
        Passes(attack) => {
            let sandbox = ground.open().await;
            let result = bash(sandbox.as_ref(), attack).await;
            sandbox.close().await.unwrap();
            result.ending != PASSED || !text(&result).contains("open")
        }
        Stays => {
            let ground = Ground::with_guest(stubborn_guest, without).await;
            let sandbox = ground.open().await;
            let first = first_inside(&ground);
            let fault = sandbox.view("f").await.unwrap_err();
            assert!(fault.what.contains("it broke the protocol"), "{fault}");
            let patience = if without.is_empty() { 60_000 } else { 500 };
            let is_ended = first.is_ended_within(patience).await;
            sandbox.close().await.unwrap();
            assert!(!first.is_alive(), "closing ends it all the same");
            is_ended
        }
        Outlives => {
            let ground = Ground::with_guest(stubborn_guest, without).await;
            let sandbox = ground.open().await;
            let first = first_inside(&ground);
            sandbox.close().await.unwrap();
            let is_ended = !first.is_alive();
            // Whoever comes later finds it by its record.
            let later = docker(ground.base.path()).await;
            later.reap(&spec("r1.1.0", ground.work()).effect).await.unwrap();
            assert_eq!(containers(ground.base.path()), Vec::<String>::new());
            is_ended
        }
        Asked(what, words) => {
            let objects = ground.base.path().join("objects");
            std::fs::create_dir(&objects).unwrap();
            let mut spec = spec("r1.1.0", ground.work());
            spec.readable.push(objects);
            spec.given.push(skills());
            let socket = ground.base.path().join("way.sock");
            let _listener = UnixListener::bind(&socket).unwrap();
            spec.ways.push(Way { port: 3128, socket });
            let sandbox = ground.executor.open(spec).await.unwrap();
            let name = containers(ground.base.path()).remove(0);
            let said = engine(&["inspect", "--format", what, &name]);
            sandbox.close().await.unwrap();
            said.contains(words)
        }
    }
}

/// The first process of the container, as the host sees it.
fn first_inside(ground: &Ground) -> Watched {
    let name = containers(ground.base.path()).remove(0);
    let pid = engine(&["inspect", "--format", "{{.State.Pid}}", &name]);
    Watched::new(pid.parse().unwrap())
}

/// S-1…S-3, S-5, S-14, S-40, S-42: every switch of the code has a row, and every row stands in the matrix.
#[test]
fn the_matrix_has_every_protection() {
    let mut lines = Vec::new();
    for switch in Switch::ALL {
        let rows: Vec<&Row> = ROWS.iter().filter(|row| row.protection == *switch).collect();
        let named = |row: &&Row| format!("conductor-executor::it docker::protections::each::{}", row.test);
        lines.push(Line {
            protection: format!("docker: {switch:?}"),
            requirement: rows
                .first()
                .map(|row| row.requirement.to_owned())
                .unwrap_or_default(),
            tests: rows.iter().map(named).collect::<BTreeSet<_>>(),
        });
    }
    matrix::check("docker", &lines);
}

/// S-1, S-2: what is written inside belongs to the run's own user outside, which is no login.
#[tokio::test]
async fn files_belong_to_a_user_of_the_runs_own() {
    let ground = Ground::new().await;
    ground.said("touch made").await;
    let uid = std::fs::metadata(ground.work().join("made")).unwrap().uid();
    if rustix::process::geteuid().is_root() {
        assert!(uid >= 0x7000_0000, "{uid}");
    } else {
        assert_eq!(uid, rustix::process::geteuid().as_raw());
    }
}

/// S-44: a variable of the run is seen by commands, and neither in an argument nor in the container's configuration.
#[tokio::test]
async fn a_secret_stands_in_no_argument_and_in_no_environment_outside() {
    let ground = Ground::new().await;
    let secret = format!("s3cr3t-{}", std::process::id());
    let mut with = spec("r1.1.0", ground.work());
    with.environment.push(("LEASE".into(), secret.clone()));
    let sandbox = ground.executor.open(with).await.unwrap();
    let seen = text(&bash(sandbox.as_ref(), "echo $LEASE").await);
    assert_eq!(seen.trim(), secret);
    let name = containers(ground.base.path()).remove(0);
    assert!(!engine(&["inspect", &name]).contains(&secret));
    let guest = text(
        &bash(
            sandbox.as_ref(),
            "cat /proc/1/cmdline /proc/1/environ 2>&1 | tr '\\0' ' '",
        )
        .await,
    );
    assert!(!guest.contains(&secret), "{guest}");
    for entry in std::fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        for file in ["cmdline", "environ"] {
            let bytes = std::fs::read(path.join(file)).unwrap_or_default();
            let has = String::from_utf8_lossy(&bytes).contains(&secret);
            assert!(!has, "{}", path.join(file).display());
        }
    }
    sandbox.close().await.unwrap();
}

/// EXEC-6, S-42 and the rest that only the engine can tell: what it was asked to enforce.
#[tokio::test]
async fn the_engine_was_asked_for_every_limit() {
    let ground = Ground::new().await;
    let sandbox = ground.open().await;
    let name = containers(ground.base.path()).remove(0);
    let asked = |what: &str| {
        engine(&[
            "inspect",
            "--format",
            &format!("{{{{json .HostConfig.{what}}}}}"),
            &name,
        ])
    };
    assert_eq!(asked("NanoCpus"), "2000000000");
    assert_eq!(asked("Memory"), asked("MemorySwap"));
    assert_eq!(asked("LogConfig.Type"), r#""none""#);
    assert_eq!(asked("NetworkMode"), r#""none""#);
    assert_eq!(asked("Privileged"), "false");
    assert!(asked("SecurityOpt").contains("no-new-privileges"));
    let mounts = engine(&[
        "inspect",
        "--format",
        "{{range .Mounts}}{{.Destination}} {{.RW}}\n{{end}}",
        &name,
    ]);
    let mut mounts: Vec<&str> = mounts.lines().collect();
    mounts.sort_unstable();
    assert_eq!(mounts, ["/.conductor/guest false", "/w true"]);
    sandbox.close().await.unwrap();
}
