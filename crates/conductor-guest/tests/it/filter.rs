//! Each rule of the system call list, tried by a real program: refused with the list, not refused without (S-40).

use conductor_guest::response::Ending;
use conductor_guest::seccomp::{Rule, TABLE, Test};

use crate::kit::{Guest, Place, command};
use crate::matrix::{self, Line};

/// A call that the kernel would answer otherwise: with success, or with an error that is not the list's.
struct Probe {
    /// The test that makes it.
    test: &'static str,
    name: &'static str,
    arguments: [u64; 6],
}

const fn probe<const N: usize>(test: &'static str, name: &'static str, given: [u64; N]) -> Probe {
    let mut arguments = [0; 6];
    let mut at = 0;
    while at < N {
        arguments[at] = given[at];
        at += 1;
    }
    Probe {
        test,
        name,
        arguments,
    }
}

/// No descriptor; also no address.
const NONE: u64 = u64::MAX;
/// No address that can be read.
const BAD: u64 = 1;
/// No flag that the call knows.
const ODD: u64 = 0x4000_0000;
/// Makes `clone` fail without it, by itself, so that no process is made.
const SIGHAND: u64 = 0x800;

macro_rules! refused {
    ($($test:ident: $name:ident [$($argument:expr),*];)*) => {
        const PROBES: &[Probe] = &[ $( probe(stringify!($test), stringify!($name), [$($argument),*]) ),* ];
        $(
            /// S-40.
            #[test]
            fn $test() {
                check(&probe(stringify!($test), stringify!($name), [$($argument),*]));
            }
        )*
    };
}

refused![
    unshare: unshare [1];
    setns: setns [NONE];
    clone3: clone3 [0, 0];
    clone_of_a_mount_namespace: clone [0x0002_0000 | SIGHAND];
    clone_of_a_cgroup_namespace: clone [0x0200_0000 | SIGHAND];
    clone_of_a_host_name_namespace: clone [0x0400_0000 | SIGHAND];
    clone_of_an_ipc_namespace: clone [0x0800_0000 | SIGHAND];
    clone_of_a_user_namespace: clone [0x1000_0000 | SIGHAND];
    clone_of_a_process_namespace: clone [0x2000_0000 | SIGHAND];
    clone_of_a_network_namespace: clone [0x4000_0000 | SIGHAND];
    mount: mount [BAD, BAD, BAD];
    umount2: umount2 [BAD, ODD];
    pivot_root: pivot_root [BAD, BAD];
    open_tree: open_tree [NONE, BAD, ODD];
    move_mount: move_mount [NONE, BAD, NONE, BAD, ODD];
    fsopen: fsopen [BAD, ODD];
    fsconfig: fsconfig [NONE, 99];
    fsmount: fsmount [NONE, ODD];
    fspick: fspick [NONE, BAD, ODD];
    mount_setattr: mount_setattr [NONE, BAD, ODD];
    open_tree_attr: open_tree_attr [NONE, BAD, ODD];
    io_uring_setup: io_uring_setup [0, 0];
    io_uring_enter: io_uring_enter [NONE];
    io_uring_register: io_uring_register [NONE];
    ptrace: ptrace [2, 0];
    process_vm_readv: process_vm_readv [0, BAD, 1, BAD, 1];
    process_vm_writev: process_vm_writev [0, BAD, 1, BAD, 1];
    pidfd_getfd: pidfd_getfd [NONE];
    kcmp: kcmp [0, 0];
    bpf: bpf [99, 0, 0];
    perf_event_open: perf_event_open [0];
    userfaultfd: userfaultfd [0x41];
    keyctl: keyctl [999];
    add_key: add_key [BAD, BAD];
    request_key: request_key [BAD, BAD];
    name_to_handle_at: name_to_handle_at [NONE, BAD, BAD];
    open_by_handle_at: open_by_handle_at [NONE, BAD];
    memfd_secret: memfd_secret [ODD];
    personality: personality [8];
    typing_into_a_terminal: ioctl [0, 0x5412];
    pasting_into_a_terminal: ioctl [0, 0x541C];
    typing_with_garbage_above_the_number: ioctl [0, 0xdead_0000_5412];
    socket_without_a_family: socket [0, 1];
    socket_of_ax25: socket [3, 1];
    socket_of_ipx: socket [4, 1];
    socket_of_appletalk: socket [5, 1];
    socket_of_netrom: socket [6, 1];
    socket_of_bridge: socket [7, 1];
    socket_of_atm: socket [8, 1];
    socket_of_x25: socket [9, 1];
    socket_of_rose: socket [11, 1];
    socket_of_decnet: socket [12, 1];
    socket_of_netbeui: socket [13, 1];
    socket_of_security: socket [14, 1];
    socket_of_keys: socket [15, 1];
    socket_of_packets: socket [17, 3];
    socket_of_the_kernels_ciphers: socket [38, 5];
    socket_of_the_virtual_machine: socket [40, 1];
    netlink_for_audit: socket [16, 3, 9];
    raw_socket: socket [2, 3, 1];
    raw_socket_with_garbage_above_the_family: socket [0xdead_0000_0002, 3, 1];
    reliable_datagrams: socket [2, 4];
    sequenced_packets: socket [2, 5];
    congestion_controlled_datagrams: socket [2, 6, 1];
    packet_socket: socket [2, 10];
    stream_control_transmission: socket [2, 1, 132];
    raw_socket_of_v6: socket [10, 3, 1];
    reliable_datagrams_of_v6: socket [10, 4];
    sequenced_packets_of_v6: socket [10, 5];
    congestion_controlled_datagrams_of_v6: socket [10, 6, 1];
    packet_socket_of_v6: socket [10, 10];
    stream_control_transmission_of_v6: socket [10, 1, 132];
    pair_of_sockets_but_unix: socketpair [2, 1, 0];
    init_module: init_module [BAD, 1, BAD];
    finit_module: finit_module [NONE, BAD, ODD];
    delete_module: delete_module [BAD];
    kexec_load: kexec_load [0, 0, 0];
    reboot: reboot [1];
    swapon: swapon [BAD];
    swapoff: swapoff [BAD];
    acct: acct [BAD];
    quotactl: quotactl [0x00ff_ff00, BAD];
    settimeofday: settimeofday [BAD, BAD];
    clock_settime: clock_settime [99, BAD];
    modify_ldt: modify_ldt [0, 0, 0];
    iopl: iopl [4];
    ioperm: ioperm [1 << 63, 1 << 63];
];

fn meets(rule: &Rule, probe: &Probe) -> bool {
    let low = |argument: u8| u32::try_from(probe.arguments[usize::from(argument)] & 0xffff_ffff).unwrap();
    let holds = |test: &Test| match *test {
        Test::Is(argument, value) => low(argument) == value,
        Test::IsNot(argument, value) => low(argument) != value,
        Test::Above(argument, value) => low(argument) > value,
        Test::Bits {
            argument,
            mask,
            value,
        } => low(argument) & mask == value,
    };
    rule.name == probe.name && rule.when.iter().all(holds)
}

/// Makes the call in a sandbox and returns what it printed: the error's number.
fn errno(guest: &mut Guest, number: u32, arguments: &[u64]) -> (String, Ending) {
    let mut words = vec!["./probe".to_owned(), number.to_string()];
    words.extend(arguments.iter().map(u64::to_string));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    guest.run(command(&words)).told()
}

fn check(probe: &Probe) {
    let rule = TABLE.iter().find(|rule| meets(rule, probe)).unwrap();
    let place = Place::new();
    place.add_probe();
    let refused = (format!("{}\n", rule.errno), Ending::Code(0));
    let with = errno(&mut place.plain(), rule.number, &probe.arguments);
    assert_eq!(with, refused, "{} with the list", probe.name);
    let mut bare = place.plain_with(&["--without", "filter"]);
    let without = errno(&mut bare, rule.number, &probe.arguments);
    assert_ne!(without, refused, "{} without the list", probe.name);
    assert_eq!(without.1, Ending::Code(0));
}

/// S-40: no rule without a test.
#[test]
fn every_rule_is_tried() {
    for rule in TABLE {
        assert!(PROBES.iter().any(|probe| meets(rule, probe)), "{rule:?}");
    }
}

/// S-40: every rule of the table stands in the matrix, with the tests that go red without it; so do the protections that
/// the guest itself adds.
#[test]
fn the_matrix_has_every_rule() {
    let line = |protection: String, requirement: &str, tests: Vec<String>| Line {
        protection,
        requirement: requirement.to_owned(),
        tests: tests
            .into_iter()
            .map(|test| format!("conductor-guest::it {test}"))
            .collect(),
    };
    let mut lines: Vec<Line> = TABLE
        .iter()
        .map(|rule| {
            let tried = PROBES.iter().filter(|probe| meets(rule, probe));
            let tests = tried.map(|probe| format!("filter::{}", probe.test)).collect();
            line(
                format!("seccomp: {}{}", rule.name, condition(rule)),
                "S-40",
                tests,
            )
        })
        .collect();
    let foreign = "filter::calls_of_foreign_architectures_end_the_program".to_owned();
    lines.push(line(
        "seccomp: foreign architectures".to_owned(),
        "S-40",
        vec![foreign],
    ));
    let known = include_str!("../../src/guest/settings.rs");
    let named: Vec<&str> = known
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.split_once("\" => Protection::"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        named,
        GUEST.map(|(name, ..)| name),
        "what the guest can be told to leave out"
    );
    for (name, requirement, tests) in GUEST {
        let tests = tests.iter().map(|test| (*test).to_owned()).collect();
        lines.push(line(format!("guest: {name}"), requirement, tests));
    }
    matrix::check("seccomp", &lines);
}

/// What the guest itself adds, and the tests that show both sides.
const GUEST: [(&str, &str, &[&str]); 5] = [
    (
        "undumpable",
        "S-14",
        &[
            "sandbox::a_command_cannot_forge_its_own_result",
            "sandbox::without_its_protection_a_result_is_forged",
        ],
    ),
    (
        "hidden-channel",
        "S-14",
        &[
            "commands::a_command_inherits_no_descriptor_no_mask_and_no_session",
            "commands::without_its_protection_the_channel_is_inherited",
        ],
    ),
    ("filter", "S-40", &["filter::unshare"]),
    (
        "no-new-privileges",
        "S-14",
        &["commands::new_privileges_are_given_up"],
    ),
    (
        "adoption",
        "EXEC-7",
        &["trees::without_adoption_a_daemon_gets_away"],
    ),
];

fn condition(rule: &Rule) -> String {
    let tests = rule.when.iter().map(|test| match *test {
        Test::Is(argument, value) => format!("#{argument} is {value:#x}"),
        Test::IsNot(argument, value) => format!("#{argument} is not {value:#x}"),
        Test::Above(argument, value) => format!("#{argument} above {value:#x}"),
        Test::Bits {
            argument,
            mask,
            value,
        } => format!("#{argument} has {value:#x} of {mask:#x}"),
    });
    let tests: Vec<String> = tests.collect();
    if tests.is_empty() {
        return String::new();
    }
    format!(" when {}", tests.join(" and "))
}

/// S-40: killed, not refused.
#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_foreign_architectures_end_the_program() {
    const GETPID_OF_X32: u32 = 0x4000_0000 + 39;
    const SIGSYS: i32 = 31;
    let killed = (String::new(), Ending::Signal(SIGSYS));
    let place = Place::new();
    place.add_probe();
    let (mut guest, mut bare) = (place.plain(), place.plain_with(&["--without", "filter"]));
    let foreign = || command(&["./probe", "i386"]);
    assert_eq!(guest.run(foreign()).told(), killed);
    assert_ne!(bare.run(foreign()).told(), killed);
    assert_eq!(errno(&mut guest, GETPID_OF_X32, &[]), killed);
    assert_ne!(errno(&mut bare, GETPID_OF_X32, &[]), killed);
}

/// S-40: what people do all day works under the list.
#[test]
fn everyday_programs_run_under_the_list() {
    let place = Place::new();
    let mut guest = place.plain();
    let text = "git init -q repo && cd repo && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m m && \
                git log --format=%s && (exec 3<>/dev/udp/127.0.0.1/9) && setsid -w echo session && \
                timeout 5 sort --parallel=2 <<< sorted && echo done";
    assert_eq!(
        guest.script(text).told(),
        (String::from("m\nsession\nsorted\ndone\n"), Ending::Code(0))
    );
}
