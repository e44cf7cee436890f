//! What the kernel says of cgroups, in the forms of both versions; v2's controllers are not on every machine.

use super::*;

const V1: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime shared:1 - cgroup cgroup rw,pids
";

fn parents(mounts: &str, ourselves: &str) -> Vec<(Protection, String)> {
    hierarchies(mounts, ourselves)
        .into_iter()
        .map(|found| (found.controls, found.parent.display().to_string()))
        .collect()
}

/// EXEC-6: below our own group first, so that what limits us limits the sandbox; never above it by a trick of names.
#[test]
fn groups_are_made_below_our_own() {
    let own = "4:memory:/a/b\n8:pids:/\n1:cpu,cpuacct:/../x\n0::/\n";
    assert_eq!(
        parents(V1, own),
        [
            (Protection::Cpu, "/sys/fs/cgroup/cpu/conductor".to_owned()),
            (
                Protection::Memory,
                "/sys/fs/cgroup/memory/a/b/conductor".to_owned()
            ),
            (Protection::Memory, "/sys/fs/cgroup/memory/conductor".to_owned()),
            (Protection::Processes, "/sys/fs/cgroup/pids/conductor".to_owned()),
        ]
    );
    let v2 = "30 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
    let all: Vec<_> = [Protection::Memory, Protection::Processes, Protection::Cpu]
        .map(|controls| (controls, "/sys/fs/cgroup/conductor".to_owned()))
        .into();
    assert_eq!(parents(v2, "0::/user.slice\n"), all);
    assert_eq!(parents("nonsense\n- - -\n", ""), []);
}

/// S-42: the counters of both versions.
#[test]
fn a_breach_is_read_from_the_kernels_counter() {
    let check = |text: &str, key: &str, expected: u64| {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        assert_eq!(read(Some(&file), key), expected, "{text}");
    };
    check("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill", 3);
    check(
        "low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 9\n",
        "oom_kill",
        2,
    );
    check("max 5\n", "max", 5);
    check("", "max", 0);
    assert_eq!(read(None, "max"), 0);
}

/// EXEC-6, S-42: swap is limited too, in both versions.
#[test]
fn v2_limits_are_written_as_v2_wants_them() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits::default();
    for (controls, expected) in [
        (Protection::Memory, vec![("memory.max", "4294967296")]),
        (Protection::Processes, vec![("pids.max", "272")]),
        (Protection::Cpu, vec![("cpu.max", "200000 100000")]),
    ] {
        let hierarchy = Hierarchy {
            controls,
            version: Version::Two,
            parent: directory.path().to_owned(),
        };
        std::fs::write(directory.path().join("memory.swap.max"), "max").unwrap();
        hierarchy.make(directory.path(), &limits).unwrap();
        for (file, value) in expected {
            assert_eq!(
                std::fs::read_to_string(directory.path().join(file)).unwrap(),
                value
            );
        }
    }
    let swap = std::fs::read_to_string(directory.path().join("memory.swap.max")).unwrap();
    assert_eq!(swap, "max", "the last writer was the processor's group");
}

/// EXEC-6: where somebody else made our group, none is made below it, and the limit is told to be missing.
#[test]
fn a_group_of_somebody_else_is_none_of_ours() {
    use std::os::unix::fs::PermissionsExt as _;

    let top = tempfile::tempdir().unwrap();
    let hierarchy = Hierarchy {
        controls: Protection::Processes,
        version: Version::One,
        parent: top.path().join(OURS),
    };
    hierarchy.prepare().unwrap();
    hierarchy.prepare().unwrap();
    for (directory, mode) in [(top.path(), 0o755), (hierarchy.parent.as_path(), 0o555)] {
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let seen_by_somebody = std::thread::spawn(move || {
        // Modes do not bind root; of a thread the kernel can be told that it is somebody else.
        if nix::unistd::geteuid().is_root() {
            let nobody = rustix::process::Uid::from_raw(65534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        hierarchy.prepare()
    });
    let error = seen_by_somebody.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
}
