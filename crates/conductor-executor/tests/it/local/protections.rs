//! Each protection of `local`: what it stops with it, and that nothing else stops it without it.
//!
//! One row and one test per protection: an attack that says `open` when it succeeds. With everything in force no attack
//! does; with the one protection switched off its own does, so that no row proves less than it claims. The rows are a
//! section of `docs/protections.md`, which is checked against the list of switches in the code.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use conductor_domain::testing::Ending;
use conductor_executor::Toolchain;
use conductor_executor::local::{Limits, Switch};
use conductor_port::executor::{Executor as _, Profile, Way};
use rustix::process::{Pid, Signal};

use super::kit::{Ground, members, needs_root, records};
use crate::kit::{PASSED, Watched, argv, bash, executor, script, skills, spec, stubborn_guest, text};
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
    /// Says `open` when it gets through. `{NAME}` stands for the host's namespace of that name, `{objects}` for a
    /// directory that anybody may write outside.
    Says(&'static str),
    /// The same, with the host's reader of worktrees instead of a command of the agent's.
    Reader(&'static str),
    /// Without the protection there is no sandbox at all: something else notices.
    Opens,
    /// Both sides are told in a story of their own.
    Told(Story),
}

enum Story {
    Uid,
    Processor,
    Parent,
    LostGuest,
    Kill,
}

use Attack::{Opens, Reader, Says, Told};

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
                #[tokio::test]
                async fn $test() {
                    super::check(stringify!($test)).await;
                }
            )+
        }
    };
}

rows! {
    own_uid: "S-1" OwnUid Told(Story::Uid);
    user_namespace: "S-1, S-41" UserNamespace
        Says("read first outside count < /proc/self/uid_map; [ $count -gt 1 ] && echo open"),
        beside [OwnUid, DisabledUserns];
    pid_namespace: "S-14" PidNamespace Opens;
    network_namespace: "EXEC-3" NoNetwork Says("[ $(readlink /proc/self/ns/net) = {net} ] && echo open");
    no_network: "EXEC-3" NoNetwork Says("tail -n +3 /proc/net/dev | grep -qv ' lo:' && echo open");
    ipc_namespace: "EXEC-4" IpcNamespace Says("[ $(readlink /proc/self/ns/ipc) = {ipc} ] && echo open");
    uts_namespace: "EXEC-4" UtsNamespace Says("[ $(readlink /proc/self/ns/uts) = {uts} ] && echo open");
    cgroup_namespace: "EXEC-4" CgroupNamespace
        Says("[ $(readlink /proc/self/ns/cgroup) = {cgroup} ] && echo open");
    no_capabilities: "S-1" NoCapabilities
        Says("grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && echo open"),
        beside [OwnUid, UserNamespace, DisabledUserns];
    die_with_parent: "S-41" DieWithParent Told(Story::Parent);
    new_session: "S-41" NewSession Says("[ $(cut -d' ' -f6 /proc/1/stat) = 0 ] && echo open");
    disabled_userns: "S-40, S-41" DisabledUserns
        Says("unshare --user true 2>/dev/null && echo open"), beside [Seccomp];
    seccomp: "S-40" Seccomp Says("grep -q 'Seccomp:.*2' /proc/self/status || echo open");
    read_only_root: "S-3" ReadOnlyRoot Says("touch /here 2>/dev/null && echo open");
    read_only_dev: "S-3" ReadOnlyRoot Says("touch /dev/here 2>/dev/null && echo open");
    own_dev: "S-3" OwnDev Says("[ $(ls /dev | wc -l) -gt 20 ] && echo open"), beside [ReadOnlyRoot];
    // As the run's own user the kernel refuses too; the mount itself is what this row looks at.
    read_only_proc_sys: "S-2" ReadOnlyProcSys
        Says("grep ' /proc/sys ' /proc/mounts | grep -q ' ro,' || echo open");
    generated_etc: "S-3" GeneratedEtc Says("test -e /etc/debian_version && echo open");
    read_only_system: "EXEC-4" ReadOnlySystem Says("grep ' /usr ' /proc/mounts | grep -q ' rw,' && echo open");
    read_only_guest: "S-14" ReadOnlyGuest
        Says("grep ' /.conductor/guest ' /proc/mounts | grep -q ' rw,' && echo open");
    read_only_objects: "S-5" ReadOnlyObjects Says("touch {objects}/here 2>/dev/null && echo open");
    read_only_snapshot: "S-7" ReadOnlySnapshot Reader("touch /w/here 2>/dev/null && echo open");
    sized_tmpfs: "S-3" SizedTmpfs
        Says("for d in /tmp /dev/shm $HOME; do [ $(stat -f -c %b $d) -gt 17000 ] && echo open; done; true");
    memory_limit: "EXEC-6, S-42" MemoryLimit
        Says("head -c 300000000 /dev/zero | tail -c 299000000 | head -c 1 > /dev/null && echo open");
    process_limit: "EXEC-6, S-42" ProcessLimit Says("for i in $(seq 200); do sleep 2 & done; echo open");
    cpu_limit: "EXEC-6" CpuLimit Told(Story::Processor);
    open_files: "EXEC-6" OpenFiles Says("[ $(ulimit -n) -gt 1024 ] && echo open");
    // Its files belong to somebody else as well; the mount itself is what this row looks at.
    read_only_given: "EXEC-4" ReadOnlyGiven
        Says("grep ' /skills ' /proc/mounts | grep -q ' rw,' && echo open");
    read_only_ways: "S-32" ReadOnlyWays Says("chmod 600 /.conductor/way-0 2>/dev/null && echo open");
    lost_guest: "S-16" EndsWithGuest Told(Story::LostGuest);
    told_limits: "S-18, S-42" ToldLimits Says("tail /dev/zero || echo open");
    kills_inside: "S-43" KillsInside Told(Story::Kill), beside [DieWithParent];
}

/// S-1…S-3, S-5, S-7, S-14, S-16, S-18, S-32, S-40…S-43, EXEC-3, EXEC-4, EXEC-6: red with the protection switched off, and only then.
async fn check(test: &str) {
    let row = ROWS.iter().find(|row| row.test == test).unwrap();
    let switched = [row.beside, &[row.protection]].concat();
    match row.attack {
        Says(attack) | Reader(attack) => {
            let profile = if matches!(row.attack, Reader(_)) {
                Profile::Snapshot
            } else {
                Profile::Tool
            };
            let with = gets_through(row.beside, profile, attack).await;
            let without = gets_through(&switched, profile, attack).await;
            assert_eq!(with, Ok(false), "{test} in force");
            // Only root can be more than itself.
            if row.beside.contains(&Switch::OwnUid) {
                needs_root();
            }
            assert_eq!(without, Ok(true), "{test} left out");
        }
        Opens => {
            assert_eq!(gets_through(row.beside, Profile::Tool, "true").await, Ok(false));
            let refused = gets_through(&switched, Profile::Tool, "true").await;
            assert!(refused.is_err(), "{test} left out");
        }
        Told(Story::Uid) => own_uid().await,
        Told(Story::Processor) => cpu_limit().await,
        Told(Story::Parent) => die_with_parent().await,
        Told(Story::LostGuest) => lost_guest().await,
        Told(Story::Kill) => kills_inside(row.beside).await,
    }
}

/// Attacks in a sandbox without these protections; an error is a sandbox that did not open.
async fn gets_through(without: &[Switch], profile: Profile, attack: &str) -> Result<bool, String> {
    let ground = Ground::without(without);
    let objects = ground.base.path().join("objects");
    std::fs::create_dir(&objects).unwrap();
    std::fs::set_permissions(&objects, std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut attack = attack.replace("{objects}", objects.to_str().unwrap());
    for namespace in ["net", "ipc", "uts", "cgroup"] {
        let ours = std::fs::read_link(format!("/proc/self/ns/{namespace}")).unwrap();
        attack = attack.replace(&format!("{{{namespace}}}"), ours.to_str().unwrap());
    }
    let mut spec = spec("r1.1.0", ground.work());
    spec.profile = profile;
    spec.readable.push(objects);
    spec.given.push(skills());
    let socket = ground.base.path().join("way.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    if attack.contains("/way-0") {
        spec.ways.push(Way { port: 3128, socket });
    }
    let sandbox = ground.executor.open(spec).await.map_err(|fault| fault.what)?;
    let result = sandbox.bash(script(&attack, 60_000)).await.unwrap();
    sandbox.close().await.unwrap();
    // A command that was ended at a limit did not get through, whatever it printed before.
    let is_ended = matches!(result.ending, Ending::LimitExceeded { .. });
    Ok(text(&result).contains("open") && !is_ended)
}

/// S-1…S-3, S-5, S-7, S-14, S-40…S-42: every switch of the code has a row, and every row stands in the matrix.
#[test]
fn the_matrix_has_every_protection() {
    let mut lines = Vec::new();
    for switch in Switch::ALL {
        let rows: Vec<&Row> = ROWS.iter().filter(|row| row.protection == *switch).collect();
        let named = |row: &&Row| format!("conductor-executor::it local::protections::each::{}", row.test);
        lines.push(Line {
            protection: format!("local: {switch:?}"),
            requirement: rows
                .first()
                .map(|row| row.requirement.to_owned())
                .unwrap_or_default(),
            tests: rows.iter().map(named).collect::<BTreeSet<_>>(),
        });
    }
    matrix::check("local", &lines);
}

/// EXEC-6: a limit that is added without a row does not compile here.
#[test]
fn every_limit_has_a_row() {
    let Limits {
        milli_cpus: _,
        memory: _,
        processes: _,
        open_files: _,
        temporary: _,
        shared_memory: _,
    } = Limits::default();
    for limit in [
        Switch::CpuLimit,
        Switch::MemoryLimit,
        Switch::ProcessLimit,
        Switch::OpenFiles,
        Switch::SizedTmpfs,
    ] {
        assert!(ROWS.iter().any(|row| row.protection == limit), "{limit:?}");
    }
}

/// S-3, EXEC-4: everything that is mounted is known, and a row says what protects it.
#[tokio::test]
async fn every_mount_has_a_row() {
    let ground = Ground::new();
    let mut spec = spec("r1.1.0", ground.work());
    spec.given.push(skills());
    let socket = ground.base.path().join("way.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    spec.ways.push(Way { port: 3128, socket });
    let sandbox = ground.executor.open(spec).await.unwrap();
    let said = text(&bash(sandbox.as_ref(), "cut -d' ' -f2 /proc/mounts").await);
    sandbox.close().await.unwrap();
    let known = [
        ("/proc/sys", Switch::ReadOnlyProcSys),
        ("/proc", Switch::PidNamespace),
        ("/dev/shm", Switch::SizedTmpfs),
        ("/dev", Switch::OwnDev),
        ("/tmp", Switch::SizedTmpfs),
        ("/home/agent", Switch::SizedTmpfs),
        ("/etc", Switch::GeneratedEtc),
        ("/usr", Switch::ReadOnlySystem),
        ("/lib32", Switch::ReadOnlySystem),
        ("/libx32", Switch::ReadOnlySystem),
        ("/.conductor/guest", Switch::ReadOnlyGuest),
        ("/.conductor/way-0", Switch::ReadOnlyWays),
        ("/skills", Switch::ReadOnlyGiven),
        // The worktree is the one thing that commands may write; its reader may not.
        ("/w", Switch::ReadOnlySnapshot),
    ];
    for mount in said.lines() {
        let is_at = |point: &str| mount == point || mount.starts_with(&format!("{point}/"));
        let by = match mount {
            "/" => Some(Switch::ReadOnlyRoot),
            _ => known.iter().find(|(point, _)| is_at(point)).map(|(_, by)| *by),
        };
        let by = by.unwrap_or_else(|| panic!("nobody knows {mount}: {said}"));
        assert!(ROWS.iter().any(|row| row.protection == by), "{mount}: {by:?}");
    }
    for there in ["/w", "/skills", "/.conductor/way-0"] {
        assert!(said.lines().any(|mount| mount == there), "{there}: {said}");
    }
}

/// EXEC-6: a command that spins is held back by its group, and by nothing without the limit.
async fn cpu_limit() {
    // Nobody else may write cgroups; the executor then refuses, unless the operator named this limit.
    needs_root();
    for (switches, is_held) in [(&[][..], true), (&[Switch::CpuLimit], false)] {
        let limits = Limits {
            milli_cpus: 50,
            ..Limits::default()
        };
        let ground = Ground::limited(limits, switches);
        let sandbox = ground.open().await;
        bash(sandbox.as_ref(), "for i in $(seq 20000); do :; done").await;
        let record = records(ground.base.path()).remove(0);
        let held = throttled(&record);
        sandbox.close().await.unwrap();
        assert_eq!(held > 0, is_held, "{held} times, {switches:?}");
    }
}

/// How often the group of a sandbox was held back.
fn throttled(record: &str) -> u64 {
    let pid = members(record)[0];
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let mut stats = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let mount = match controllers {
            "" => "/sys/fs/cgroup",
            some if some.split(',').any(|name| name == "cpu") => "/sys/fs/cgroup/cpu",
            _ => return None,
        };
        read_stat(&format!("{mount}{path}/cpu.stat"))
    });
    stats.next().expect("the kernel counts it")
}

fn read_stat(path: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("nr_throttled ")?.parse().ok())
}

/// S-41: whoever starts a sandbox and dies takes it along, even when its guest does not hear of it.
async fn die_with_parent() {
    for (arguments, is_ended) in [(&[][..], true), (&["without"], false)] {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("work")).unwrap();
        let mut holder = hold(base.path(), arguments);
        let mut said = [0; 5];
        holder.stdout.take().unwrap().read_exact(&mut said).unwrap();
        assert_eq!(&said, b"open\n");
        let inside: Vec<(i32, Watched)> = guests(base.path());
        assert!(!inside.is_empty(), "the guest is there");
        for (pid, _) in &inside {
            // It hears nothing of its channel's end now.
            rustix::process::kill_process(Pid::from_raw(*pid).unwrap(), Signal::STOP).unwrap();
        }
        holder.kill().unwrap();
        holder.wait().unwrap();
        let patience = if is_ended { 20_000 } else { 1_000 };
        for (pid, process) in inside {
            assert_eq!(process.has_ended_within(patience), is_ended, "{arguments:?}");
            if !is_ended {
                rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
            }
        }
        let left = super::kit::local(base.path(), Toolchain::system());
        left.reap(&spec("r1.1.0", base.path().join("work")).effect)
            .await
            .unwrap();
    }
}

/// The first process of a sandbox, as the host sees it.
fn first_inside(base: &std::path::Path) -> Watched {
    let record = records(base).remove(0);
    let is_first = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        numbers.is_some_and(|numbers| numbers.split_whitespace().skip(1).last() == Some("1"))
    };
    let first = members(&record).into_iter().find(is_first);
    Watched::new(first.expect("a first process"))
}

/// S-16: a guest that breaks the protocol ends its sandbox at once, though nobody closed it and it does not want to go.
async fn lost_guest() {
    for (switches, is_ended) in [(&[][..], true), (&[Switch::EndsWithGuest], false)] {
        let ground = Ground::with_guest(stubborn_guest, switches);
        let sandbox = ground.open().await;
        let first = first_inside(ground.base.path());
        let fault = sandbox.view("f").await.unwrap_err();
        assert!(fault.what.contains("it broke the protocol"), "{fault}");
        let patience = if is_ended { 60_000 } else { 500 };
        assert_eq!(first.is_ended_within(patience).await, is_ended, "{switches:?}");
        sandbox.close().await.unwrap();
        assert!(!first.is_alive(), "closing ends it all the same");
    }
}

/// S-43: closing ends what is inside, whatever that thinks of it; ending only what holds the sandbox would not.
async fn kills_inside(beside: &[Switch]) {
    for (also, is_ended) in [(&[][..], true), (&[Switch::KillsInside], false)] {
        let ground = Ground::with_guest(stubborn_guest, &[beside, also].concat());
        let sandbox = ground.open().await;
        let first = first_inside(ground.base.path());
        sandbox.close().await.unwrap();
        assert_eq!(!first.is_alive(), is_ended, "{also:?}");
        // Whoever comes later finds it by its record.
        let later = super::kit::local(ground.base.path(), Toolchain::system());
        later.reap(&spec("r1.1.0", ground.work()).effect).await.unwrap();
        assert!(first.has_ended_within(60_000));
        assert_eq!(records(ground.base.path()), Vec::<String>::new());
    }
}

#[allow(clippy::disallowed_methods, reason = "a test starts a program of its own")]
fn hold(base: &std::path::Path, arguments: &[&str]) -> std::process::Child {
    let program = std::env::current_exe().unwrap();
    let program = program.parent().unwrap().parent().unwrap().join("examples/hold");
    Command::new(program)
        .arg(base)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("`cargo nextest` builds the examples")
}

/// The guests that work below a directory, as the host sees them.
fn guests(base: &std::path::Path) -> Vec<(i32, Watched)> {
    let record = records(base).remove(0);
    let is_guest = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"/.conductor/guest")
    };
    let pids = members(&record).into_iter().filter(is_guest);
    pids.map(|pid| (pid, Watched::new(pid))).collect()
}

/// EXEC-4: files outside are another world; without any sandbox they are not.
#[tokio::test]
async fn mount_namespace() {
    let ours = std::fs::read_link("/proc/self/ns/mnt").unwrap();
    let look = format!(
        "[ $(readlink /proc/self/ns/mnt) = {} ] && echo open; true",
        ours.display()
    );
    let ground = Ground::new();
    assert_eq!(ground.said(&look).await, "");
    let plain = executor(ground.base.path());
    let sandbox = plain.open(spec("r1.1.1", ground.work())).await.unwrap();
    assert_eq!(text(&bash(sandbox.as_ref(), &look).await), "open\n");
    sandbox.close().await.unwrap();
}

/// EXEC-7: as much output and as much time as was said, and no more.
#[tokio::test]
async fn output_and_time_limits() {
    let ground = Ground::new();
    let sandbox = ground.open().await;
    for (output, is_cut) in [(1_000, true), (10_000, false)] {
        let mut command = script("head -c 5000 /dev/zero", 60_000);
        command.output = output;
        assert_eq!(sandbox.bash(command).await.unwrap().truncated, is_cut, "{output}");
    }
    for (time, ending) in [(200, Ending::TimedOut), (60_000, PASSED)] {
        let result = sandbox.bash(script("sleep 1", time)).await.unwrap();
        assert_eq!(result.ending, ending, "{time} ms");
    }
    sandbox.close().await.unwrap();
}

/// S-1: as root, bubblewrap runs as a uid of the run's own; nothing that it makes belongs to root, and no global switch
/// of the kernel can be thrown.
async fn own_uid() {
    let ground = Ground::new();
    let said = ground
        .said("id -u; echo x > made; echo '|/bin/true' > /proc/sys/kernel/core_pattern || echo refused")
        .await;
    assert!(
        said.starts_with("1000\n") && said.ends_with("refused\n"),
        "{said}"
    );
    let owner = std::fs::metadata(ground.work().join("made")).unwrap().uid();
    needs_root();
    assert!(owner >= 0x7000_0000, "{owner}");
    let as_root = Ground::without(&[Switch::OwnUid]);
    as_root.said("echo x > made").await;
    let owner = std::fs::metadata(as_root.work().join("made")).unwrap().uid();
    assert_eq!(owner, 0, "without the protection it is root's");
}

/// S-1: two runs are two users, one run is one.
#[tokio::test]
async fn every_run_has_a_user_of_its_own() {
    needs_root();
    let ground = Ground::new();
    let mut owners = Vec::new();
    for (number, run) in ["a", "a", "b"].into_iter().enumerate() {
        let dir = ground.base.path().join(number.to_string());
        std::fs::create_dir(&dir).unwrap();
        let mut spec = spec("r1.1.0", dir.clone());
        spec.run = conductor_domain::id::RunId::parse(run).unwrap();
        let sandbox = ground.executor.open(spec).await.unwrap();
        sandbox.close().await.unwrap();
        owners.push(std::fs::metadata(&dir).unwrap().uid());
    }
    assert!(owners[0] == owners[1] && owners[1] != owners[2], "{owners:?}");
}

/// S-3, EXEC-4: nothing of the host but what was named.
#[tokio::test]
async fn nothing_of_the_host_is_mounted_but_what_was_named() {
    let ground = Ground::new();
    std::fs::write(ground.base.path().join("secret"), "x").unwrap();
    let said = ground
        .said(
            "ls -A /; for p in /sys /run /root /var /home/* /etc/shadow /var/run/docker.sock; do \
             [ -e $p ] && echo there $p; done; cat /proc/mounts | cut -d' ' -f2 | sort | tr '\\n' ' '",
        )
        .await;
    let top: Vec<&str> = said.lines().take_while(|line| !line.starts_with('/')).collect();
    let known = [
        ".conductor",
        "bin",
        "dev",
        "etc",
        "home",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "proc",
        "sbin",
        "tmp",
        "usr",
        "w",
    ];
    for name in top.iter().filter(|line| !line.starts_with("there")) {
        assert!(known.contains(name), "{name} stands in {said}");
    }
    let there: Vec<&&str> = top.iter().filter(|line| line.starts_with("there")).collect();
    assert_eq!(there, [&"there /home/agent"], "{said}");
}

/// S-14: the guest is PID 1; nothing inside can look into it, trace it, or end it.
#[tokio::test]
async fn the_guest_is_first_and_untouchable() {
    let ground = Ground::new();
    let said = ground
        .said(
            "tr '\\0' ' ' < /proc/1/cmdline; echo; ls -l /proc/1/fd 2>&1 | tail -1; cat /proc/1/environ 2>&1; \
             kill -9 1; kill -STOP 1; kill -9 -1; echo alive",
        )
        .await;
    assert!(said.starts_with("/.conductor/guest --root /w"), "{said}");
    assert!(said.contains("Permission denied"), "{said}");
    let sandbox = ground.open().await;
    bash(sandbox.as_ref(), "kill -9 -1").await;
    assert_eq!(text(&bash(sandbox.as_ref(), "echo alive").await), "alive\n");
    sandbox.close().await.unwrap();
}

/// S-44: what is secret in a run's environment stands in no argument and in no environment but the command's own.
#[tokio::test]
async fn a_secret_travels_by_frame_only() {
    let ground = Ground::new();
    let mut spec = spec("r1.1.0", ground.work());
    spec.environment.push(("LEASE".into(), "s3cr3t-lease".into()));
    let sandbox = ground.executor.open(spec).await.unwrap();
    let record = super::kit::records(ground.base.path()).remove(0);
    for pid in super::kit::members(&record) {
        for file in ["cmdline", "environ"] {
            let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            assert!(
                !String::from_utf8_lossy(&bytes).contains("s3cr3t"),
                "{pid} {file}"
            );
        }
    }
    assert_eq!(
        text(&bash(sandbox.as_ref(), "echo $LEASE").await),
        "s3cr3t-lease\n"
    );
    sandbox.close().await.unwrap();
}

/// S-41: a thread that ends does not take the sandbox with it.
#[tokio::test]
async fn a_sandbox_outlives_the_thread_that_asked_for_it() {
    let ground = Ground::new();
    let handle = tokio::runtime::Handle::current();
    let (executor, work) = (
        std::sync::Arc::new(ground.executor),
        ground.base.path().join("work"),
    );
    let asked = std::thread::spawn({
        let executor = std::sync::Arc::clone(&executor);
        move || handle.block_on(executor.open(spec("r1.1.0", work)))
    });
    let sandbox = tokio::task::spawn_blocking(move || asked.join().unwrap().unwrap())
        .await
        .unwrap();
    assert_eq!(bash(sandbox.as_ref(), "true").await.ending, PASSED);
    sandbox.close().await.unwrap();
}

/// EXEC-4, EXEC-5: the toolchains that a run needs, found outside and shown read-only, work with nothing else.
#[tokio::test]
async fn rust_python_and_node_work_inside() {
    #[allow(clippy::disallowed_methods, reason = "the operator's own environment")]
    let environment: Vec<_> = std::env::vars_os().collect();
    let toolchain = Toolchain::find(&["cargo", "python3", "node"], &environment)
        .await
        .unwrap();
    let ground = Ground::with(toolchain, &[]);
    let sandbox = ground.open().await;
    for (file, content) in [
        (
            "Cargo.toml",
            "[package]\nname = \"a\"\nedition = \"2024\"\n[lib]\npath = \"a.rs\"\n",
        ),
        ("a.rs", "#[test]\nfn t() { assert_eq!(1 + 1, 2); }\n"),
    ] {
        sandbox
            .create_file(file, content.as_bytes())
            .await
            .unwrap()
            .unwrap();
    }
    for words in [
        &[
            "python3",
            "-c",
            "import ssl, json, subprocess; subprocess.run(['true'], check=True)",
        ][..],
        &["node", "-e", "require('child_process').execSync('true')"],
        &["git", "--version"],
        &["cargo", "test", "--offline", "--quiet"],
    ] {
        let result = sandbox.bash(argv(words, 200_000)).await.unwrap();
        assert_eq!(result.ending, PASSED, "{words:?}: {}", text(&result));
    }
    sandbox.close().await.unwrap();
}
